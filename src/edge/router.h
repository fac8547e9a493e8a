// Where an edge sends what it asks: a guess for each register, mended by redirects and by silence.
// Pure.
//
// Outside the register's home the relays of its own region come first, by rank (PROTOCOL F); when
// they are silent or say that the owner is, the owner itself is asked. At home the owner is asked,
// and a relay when the owner has no place for one more edge (D9). A relay itself asks the owner: it
// has a Router that knows no relays.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "src/base/time.h"
#include "src/model/ids.h"
#include "src/model/lease.h"

namespace weir::edge {

/// Without a word for this long after the first unanswered request, and for twice the slowest
/// answer of late, the next in rank is tried; each further silence lasts twice as long.
inline constexpr Nanos kRouteSilenceNs = 150 * kMillisecond;
/// Doublings of the silence at most.
inline constexpr int kMaxSilenceDoublings = 4;
/// Whoever had to leave the way that it should take tries it again after this long.
inline constexpr Nanos kDetourNs = 30 * kSecond;

class Router {
 public:
  /// Whom an edge may ask about a register, each in rank order.
  struct Places {
    const std::vector<std::string>* replicas = nullptr;
    const std::vector<std::string>* relays = nullptr;  ///< null: none
    bool relays_first = false;                         ///< this is not the home
  };
  using PlacesOf = std::function<Places(const RegisterId&)>;
  explicit Router(PlacesOf places) : places_(std::move(places)) {}

  struct Target {
    std::string node;  ///< empty: the topology has none
    LeaseHop hop = LeaseHop::direct;
  };
  /// The node to send to now.
  const Target& target(const RegisterId& reg, Nanos now_ns);
  /// An owner, or its relay, spoke.
  void heard(const RegisterId& reg, const std::string& from, LeaseHop hop, Nanos now_ns);
  /// `from` does not own it; `hint` does, if it is not empty. A relay says so when it does not
  /// reach the owner. True: ask again at once.
  bool redirected(const RegisterId& reg, const std::string& from, LeaseHop hop,
                  const std::string& hint, Nanos now_ns);
  /// `from` has no place for one more. True: ask again at once.
  bool crowded(const RegisterId& reg, const std::string& from, LeaseHop hop, Nanos now_ns);
  /// What an answer says of the way (one of the above). True: ask again at once.
  bool learn(const RegisterId& reg, const std::string& from, const LeaseAnswer& answer,
             Nanos now_ns);
  /// The node that would be asked now, but for its silence.
  const std::string& guess(const RegisterId& reg) const;
  /// There is no connection to `node`: it is passed over until there is one again. The registers
  /// about which it would have been asked are asked elsewhere from now on.
  std::set<RegisterId> lost(const std::string& node, Nanos now_ns);
  void found(const std::string& node) { gone_.erase(node); }
  /// Another topology: guesses start anew.
  void reset(PlacesOf places);

 private:
  struct Route {
    Target to;
    Nanos silent_since_ns = 0;  ///< 0: nothing unanswered
    Nanos detour_ns = 0;        ///< since when it is not the way that it should be; 0: it is
    int redirects = 0;          ///< in a row
    int silences = 0;           ///< in a row
  };
  struct First {
    const std::string& node;
    LeaseHop hop;
  };
  First first(const RegisterId& reg) const;
  bool relays_are_gone(const Places& places) const;
  void answered(Route& route, Nanos now_ns);
  void begin(const RegisterId& reg, Route& route, Nanos now_ns) const;
  void next(const RegisterId& reg, Route& route, Nanos now_ns) const;
  bool next_relay(const Places& places, Route& route) const;
  const std::string& first_of(const std::vector<std::string>& nodes) const;

  PlacesOf places_;
  std::map<RegisterId, Route> routes_;
  std::set<std::string> gone_;
  Nanos slowest_ns_ = 0;  ///< answer; forgotten by an eighth with each further one
};

}  // namespace weir::edge
