// Where an edge sends what it asks: a guess for each register, mended by redirects and by silence.
// Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/base/time.h"
#include "src/model/ids.h"

namespace weir::edge {

/// Without a word for this long after the first unanswered request, and for twice the slowest
/// answer of late, the next in rank is tried; each further silence lasts twice as long.
inline constexpr Nanos kRouteSilenceNs = 150 * kMillisecond;
/// Doublings of the silence at most.
inline constexpr int kMaxSilenceDoublings = 4;

class Router {
 public:
  /// The replica set of a register in rank order.
  using Replicas = std::function<const std::vector<std::string>&(const RegisterId&)>;
  explicit Router(Replicas replicas) : replicas_(std::move(replicas)) {}

  /// The node to send to now. Empty: the topology has none.
  const std::string& target(const RegisterId& reg, Nanos now_ns);
  /// An owner (or its relay) spoke.
  void heard(const RegisterId& reg, const std::string& from, Nanos now_ns);
  /// `from` does not own it; `hint` does, if it is not empty. True: ask again at once.
  bool redirected(const RegisterId& reg, const std::string& from, const std::string& hint,
                  Nanos now_ns);
  /// Another topology: guesses start anew.
  void reset(Replicas replicas);

 private:
  struct Route {
    std::string node;
    Nanos silent_since_ns = 0;  ///< 0: nothing unanswered
    int redirects = 0;          ///< in a row
    int silences = 0;           ///< in a row
  };
  void next_in_rank(const RegisterId& reg, Route& route) const;
  void answered(Route& route, Nanos now_ns);

  Replicas replicas_;
  std::map<RegisterId, Route> routes_;
  Nanos slowest_ns_ = 0;  ///< answer; forgotten by an eighth with each further one
};

}  // namespace weir::edge
