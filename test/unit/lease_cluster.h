// A cluster in one thread on a virtual clock for the unit tests of leases: one Owner and some
// Limiters, the production classes, over a network that may lose, copy, delay and reorder, with
// checkers that know nothing of leases. Not thread-safe; everything happens inside run_until().
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/base/time.h"
#include "src/edge/limiter.h"
#include "src/ownership/owner.h"
#include "src/policy/policy.h"

namespace weir::test {

/// A clock that stands still until it is set. `step_ns` is added by each reading, for the tests of
/// what happens between two readings.
class FakeClock : public Clock {
 public:
  Nanos boot_ns() const override {
    const Nanos read_ns = now_ns;
    now_ns += step_ns;
    return read_ns;
  }
  Nanos wall_ns() const override { return now_ns; }

  mutable Nanos now_ns = 1000 * kSecond;
  Nanos step_ns = 0;
};

/// "For all pairs of instants, admitted <= capacity + rate x T" is the same as "an ideal bucket
/// never goes below zero", which takes one pass. Exact integers.
class IdealBucket {
 public:
  explicit IdealBucket(const LimitNumbers& numbers);
  /// `tokens` admitted. Instants must not go backwards.
  void admit(std::int64_t tokens, Nanos now_ns);
  /// So many more may be admitted, some time from now on: given back, but booked later.
  void allow_more(std::int64_t tokens) { allowance_ += tokens; }
  bool violated() const { return violated_; }
  /// Whole tokens below zero at the worst instant.
  std::int64_t worst() const { return worst_; }
  std::int64_t admitted() const { return admitted_; }

 private:
  __extension__ using Wide = __int128;
  LimitNumbers numbers_;
  Wide level_;
  Nanos as_of_ns_ = 0;
  bool started_ = false;
  std::int64_t allowance_ = 0;
  bool violated_ = false;
  std::int64_t worst_ = 0;
  std::int64_t admitted_ = 0;
};

/// The policy as the grantor sees it.
class PolicyBook : public ownership::LimitBook {
 public:
  explicit PolicyBook(std::shared_ptr<const policy::Policy> policy) : policy_(std::move(policy)) {}
  std::optional<LimitNumbers> numbers(const BucketKey& bucket) const override;
  std::uint64_t version() const override { return policy_->version(); }

 private:
  std::shared_ptr<const policy::Policy> policy_;
};

LimitDefinition leased_limit(std::string name, std::int64_t capacity, std::int64_t count,
                             Nanos period_ns);
std::shared_ptr<const policy::Policy> policy_of(std::vector<LimitDefinition> limits,
                                                std::uint64_t version = 1);
Check check_of(std::string customer, std::int64_t cost = 1);

struct ClusterOptions {
  std::size_t edges = 1;
  std::vector<LimitDefinition> limits;
  lease::LeaseTerms terms;
  Nanos wait_ns = 50 * kMillisecond;
  std::uint32_t expected_edges = 1;
  std::size_t max_buckets = edge::kMaxBuckets;
  Nanos one_way_ns = 1 * kMillisecond;
  Nanos commit_ns = 200 * kMicrosecond;
  // Faults of the network, in thousandths, and the longest extra delay of a delayed message.
  unsigned lost = 0;
  unsigned copied = 0;
  unsigned delayed = 0;
  Nanos delay_ns = 0;
  std::uint64_t seed = 1;
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options);

  Nanos now_ns() const { return clock_.now_ns; }
  edge::Limiter& limiter(std::size_t edge) { return *edges_[edge].limiter; }
  const edge::Limiter& limiter(std::size_t edge) const { return *edges_[edge].limiter; }
  Random& random() { return random_; }

  void at(Nanos instant_ns, std::function<void()> what);
  void after(Nanos span_ns, std::function<void()> what) { at(now_ns() + span_ns, std::move(what)); }
  void run_until(Nanos instant_ns);
  void run_for(Nanos span_ns) { run_until(now_ns() + span_ns); }

  using Answered = std::function<void(const Decision&)>;
  /// Asks edge `edge`; `answered` may be called at once or later. Admitted costs go to the ideal
  /// buckets of all limits.
  void check(std::size_t edge, const Check& check, const Answered& answered = {});
  /// Asks and runs until the answer is there.
  Decision ask(std::size_t edge, const Check& check);
  /// Asks edge `edge` every `every_ns` until `end_ns`, whatever the answers.
  void load(std::size_t edge, const Check& check, Nanos every_ns, Nanos end_ns);

  void set_policy(std::vector<LimitDefinition> limits, std::uint64_t version);

  /// Ends the owner at once. A commit under way is stored or not, by chance. After
  /// `down_ns` the next request starts another one from what is stored.
  void kill_owner(Nanos down_ns);
  bool owner_is_up() const { return owner_ != nullptr; }
  ownership::Owner& owner() { return *owner_; }
  /// The stored record of the limit's only bucket in the test; aged to now.
  lease::Ledger stored_ledger(const std::string& bucket) const;
  const std::map<std::string, std::pair<LedgerRecord, Nanos>>& stored() const { return stored_; }

  // What has happened so far.
  IdealBucket& ideal(const std::string& limit) { return ideal_.at(limit); }
  std::uint64_t checks = 0;
  std::uint64_t allowed = 0;
  std::uint64_t requests = 0;  ///< lease requests sent, one for each bucket asked for
  std::uint64_t commits = 0;
  std::map<std::pair<bool, Source>, std::uint64_t> by_source;
  std::vector<std::uint64_t> allowed_at;  ///< by edge

  /// Looks at every lease request and answer that is sent.
  std::function<void(const LeaseRequest&)> on_request;
  std::function<void(const LeaseAnswer&)> on_answer;
  /// No more faults in the network.
  void heal() { options_.lost = options_.copied = options_.delayed = 0; }
  /// False: the message to or from this edge is lost.
  std::function<bool(std::size_t)> connected = [](std::size_t) { return true; };

  /// level + outstanding <= capacity in every bucket in memory, and the sum of what the lessees
  /// hold is what is out.
  void expect_conservation();

 private:
  struct Edge {
    std::unique_ptr<edge::Limiter> limiter;
    Nanos next_ns = kForever;
  };

  void start_owner();
  void step_owner(ownership::Owner::Event event);
  void collect(std::size_t edge);
  Nanos next_instant() const;
  void turn();
  std::string spinner() const;
  void send(std::size_t edge, std::function<void()> deliver);

  ClusterOptions options_;
  Random random_;
  FakeClock clock_;
  std::shared_ptr<const policy::Policy> policy_;
  std::vector<Edge> edges_;
  std::multimap<Nanos, std::function<void()>> events_;
  std::unique_ptr<ownership::Owner> owner_;
  bool down_ = false;             ///< killed; else an owner starts with the next request
  std::uint64_t owner_life_ = 0;  ///< so that events for a dead owner reach nobody
  std::optional<ownership::Owner::Commit> committing_;
  std::map<std::string, std::pair<LedgerRecord, Nanos>> stored_;
  std::map<std::string, IdealBucket> ideal_;
};

}  // namespace weir::test
