// One bucket at a relay: a lessee above and a grantor below (PROTOCOL F). Internal to regions/.
//
// The tokens stand in the ledger: free ones (the relay's own level) and those lent on. The holder
// mirrors it: it knows the level, and reports level + lent as held, and as spent what has been
// reported or burnt below. Each incarnation of the holder is one incarnation of the grantor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/base/time.h"
#include "src/lease/holder.h"
#include "src/lease/ledger.h"
#include "src/model/lease.h"

namespace weir::regions {

inline constexpr std::size_t kMaxRelayBuckets = 100'000;
/// Edges that wait for a first look at a bucket of which the owner has said nothing yet. A further
/// one is answered when it asks again.
inline constexpr std::size_t kMaxLookers = kMaxLesseesPerRecord;

struct RelayConfig {
  std::string node;
  lease::LeaseTerms terms;
  /// At once, 1 to 2 KB each. Edges that ask for a further one are sent on.
  std::size_t most_buckets = kMaxRelayBuckets;
  /// An owner that is silent for this long is not waited for: edges are sent on (PROTOCOL I2).
  Nanos suspicion_ns = 500 * kMillisecond;
};

class RelayBucket {
 public:
  struct Effects {
    std::vector<LeaseAnswer>& answers;
    std::vector<LeaseRequest>& requests;
  };

  /// `round_trip_ns`: to the owner, as known so far; 0: it will measure. `config` and `random`
  /// outlive it.
  RelayBucket(std::string bucket, RegisterId reg, Nanos round_trip_ns, const RelayConfig& config,
              Random& random, Nanos now_ns);

  void request(const LeaseRequest& request, Nanos now_ns, Effects effects);
  void answer(const LeaseAnswer& answer, bool ask_again, Nanos now_ns, Effects effects);
  void tick(Nanos now_ns, Effects effects);
  /// Whoever was asked is gone: another one is asked.
  void owner_gone(Nanos now_ns, Effects effects);
  /// The owner may have changed its mind: another policy (E7).
  void forget_denial(Nanos now_ns, Effects effects);
  /// Gives its own level back, asks for no more, and sends edges on.
  void leave(Nanos now_ns, Effects effects);

  Nanos next_deadline() const { return next_ns_; }
  /// True when forgetting it loses nothing.
  bool done(Nanos now_ns) const;

  /// True when nothing is left to give back, or on its way.
  bool has_returned() const { return ledger_.level() == 0 && !holder_.open(); }

  Nanos round_trip_ns() const { return round_trip_ns_; }
  /// As the lessee of the owner.
  std::uint64_t incarnation() const { return holder_.incarnation(); }
  const lease::Ledger& ledger() const { return ledger_; }
  Nanos deadline_ns() const { return holder_.deadline_ns(); }

 private:
  void settle(Nanos now_ns, lease::Ledger::Outcome& out);
  void mirror();
  void renew_grantor(std::uint64_t incarnation, Nanos now_ns, lease::Ledger::Outcome& out);
  void take_up(Nanos now_ns, lease::Ledger::Outcome& out);
  void serve_lookers(Nanos now_ns, lease::Ledger::Outcome& out);
  void meet(std::uint64_t policy_version, Nanos now_ns, lease::Ledger::Outcome& out);
  bool outdated() const;
  void send_away(Nanos now_ns, lease::Ledger::Outcome& out);
  void turn(Nanos now_ns, lease::Ledger::Outcome&& out, Effects effects);
  void ask(Nanos now_ns, lease::Ledger::Outcome& out, Effects effects);
  void reply_all(lease::Ledger::Outcome&& out, Nanos now_ns, Effects effects);
  void reply(LeaseAnswer answer, Nanos now_ns, Effects effects);
  lease::Holder::Demand demand(Nanos now_ns) const;
  bool idle(Nanos now_ns) const;
  Nanos idle_ns() const;
  bool is_silent(Nanos now_ns) const;

  const RelayConfig& config_;
  Random& random_;
  const RegisterId reg_;
  lease::Ledger ledger_;
  lease::Holder holder_;
  std::vector<LeaseRequest> lookers_;
  LeaseAnswer told_;                 ///< the owner's latest word
  std::uint64_t met_version_ = 0;    ///< of the policy, the highest that an edge named
  std::uint64_t owner_version_ = 0;  ///< the highest that the owner named
  Nanos round_trip_ns_ = 0;          ///< to the owner; 0: not measured yet
  Nanos silent_since_ns_ = 0;        ///< first request without a word since; 0: none
  Nanos used_ns_ = 0;                ///< when somebody below last wanted tokens
  Nanos lent_ns_ = 0;                ///< when tokens last went below
  Nanos turned_away_ns_ = 0;         ///< when the owner had no place for this relay; 0: never
  Nanos next_ns_ = 0;
  std::int64_t unit_ = 1;  ///< the least that is of use to the latest who asked
  bool strict_ = false;
  bool leaving_ = false;
};

}  // namespace weir::regions
