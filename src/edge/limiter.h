// The hot path: decides checks out of tokens held here, and says what the broker should ask for.
//
// Thread rule: every public method may be called from any thread. Buckets of one customer live in
// one stripe; a stripe's mutex is held for a look-up and a few additions, never across I/O, a
// callback or another wait. It exists because HTTP threads decide in place instead of queueing at
// an actor. Lock order: one customer stripe, then node-scope stripes in ascending order.
//
// A check that needs tokens that are not here waits in its stripe until an answer, a push or its
// deadline (PROTOCOL I1); no thread waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/lease/terms.h"
#include "src/model/activity.h"
#include "src/model/check.h"
#include "src/model/lease.h"
#include "src/policy/policy.h"

namespace weir::edge {

/// Most checks that wait at once on one edge; a further one is denied (`timeout`) at once.
inline constexpr std::size_t kMaxWaitingChecks = 65'536;
/// Most buckets at one edge. Beyond it the longest idle one is returned and leaves first; if its
/// return is not answered in time it leaves all the same (its tokens burn at the owner).
inline constexpr std::size_t kMaxBuckets = 4'000'000;

struct LimiterConfig {
  std::string node;
  std::string region;
  lease::LeaseTerms terms;
  Nanos wait_ns = 50 * kMillisecond;        ///< PROTOCOL I1
  Nanos suspicion_ns = 500 * kMillisecond;  ///< PROTOCOL I2
  std::uint32_t expected_edges = 1;         ///< floor of static_share (I3)
  std::size_t max_buckets = kMaxBuckets;
};

/// For `weir_checks_total` and friends.
struct CheckCount {
  std::string limit;  ///< empty: no limit matched
  bool allowed = false;
  Source source = Source::policy;
  std::uint64_t count = 0;
};
struct LimitGauges {
  std::string limit;
  std::int64_t lease_tokens = 0;      ///< held here
  std::int64_t overshoot_tokens = 0;  ///< admitted under a failure policy so far
  std::uint64_t shadow_denied = 0;
  bool degraded = false;  ///< some register of it is under a failure policy
  FailurePolicy policy = FailurePolicy::static_share;
};

/// What one holder has, as an auditor sees it.
struct LeaseView {
  std::string bucket;             ///< encoded BucketKey
  std::uint64_t incarnation = 0;  ///< of the holder
  std::int64_t held = 0;
  Nanos deadline_ns = 0;      ///< boot clock; what is held then is gone
  std::uint64_t grantor = 0;  ///< incarnation of the relay that lent it; 0: the owner
};

/// A change of state that a person should hear of.
struct Degradation {
  RegisterId reg;
  bool degraded = false;  ///< false: the owner speaks again
};

class Limiter {
 public:
  using Completion = std::function<void(const Decision&)>;

  /// `wake` is called (from any thread, without a lock) when `collect` has something to do before
  /// the deadline that it last returned.
  Limiter(LimiterConfig config, const Clock& clock, std::uint64_t seed, std::function<void()> wake);
  ~Limiter();

  /// Takes the policy for every check from now on. Tokens held stay; denials learnt are forgotten.
  void set_policy(std::shared_ptr<const policy::Policy> policy);

  /// Decides without waiting when it can; false: call decide_later. Fails when more than
  /// kMaxLimitsPerCheck limits match. The check is valid (weir::validate).
  Result<bool> decide(const Check& check, Decision& decision);
  /// Calls `done` exactly once: at once, or when the tokens come, or at the deadline.
  void decide_later(const Check& check, Completion done);

  /// The broker's turn: appends what should be asked now, completes checks whose wait is over, and
  /// returns when to be called next (boot clock; kForever: not before `wake`). One caller at a
  /// time.
  Nanos collect(std::vector<LeaseRequest>& out);
  /// An answer or a push from a grantor. Completes the checks it decides.
  void on_answer(const LeaseAnswer& answer);
  /// The request that `answer` redirects goes out again with the next `collect` (before on_answer).
  void ask_again_now(const LeaseAnswer& answer);
  /// Whoever answered for these registers is gone: what was asked of it goes out again with the
  /// next `collect`.
  void grantors_gone(const std::set<RegisterId>& registers);
  /// Edges that answer checks now, as last heard (I3).
  void set_live_edges(std::uint32_t count);
  /// The round trip to the node that owns `reg`, for keys that have not measured their own yet.
  void set_round_trip(const RegisterId& reg, Nanos round_trip_ns);

  /// Gives every lease back (shutdown): the next `collect` asks nothing but returns. New checks are
  /// still decided with what is there.
  void begin_return();
  /// True once nothing is held and no return is unanswered.
  bool all_returned() const;

  /// The buckets of a customer that are known here; consumes nothing.
  std::vector<BucketUsage> usage(const std::string& customer) const;

  /// The `most` customers with most checks, and with most denials, since the last call; takes the
  /// counts. One caller at a time, once a second or so.
  std::vector<CustomerActivity> busiest(std::size_t most);

  std::vector<CheckCount> check_counts() const;
  std::vector<LimitGauges> gauges() const;
  /// Every lease with tokens in it.
  std::vector<LeaseView> leases() const;
  /// Degradations since the last call.
  std::vector<Degradation> take_degradations();
  std::size_t bucket_count() const;
  std::size_t waiting_count() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::edge
