// The judges. Each watches one property over a whole run and says what it saw broken, with the
// time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/limit/token_bucket.h"
#include "src/model/check.h"
#include "src/model/ids.h"
#include "src/model/register.h"
#include "test/sim/world.h"

namespace weir::sim {

struct Violation {
  std::string checker;
  Nanos true_ns = 0;
  std::string what;
};

class Checker {
 public:
  explicit Checker(std::string name) : name_(std::move(name)) {}
  virtual ~Checker() = default;
  const std::string& name() const { return name_; }
  const std::vector<Violation>& violations() const { return violations_; }
  /// How often it had something to judge: a checker that never does proves nothing.
  std::uint64_t judged() const { return judged_; }

 protected:
  void judge() { ++judged_; }
  void violated(Nanos true_ns, std::string what) {
    if (violations_.size() < 10) violations_.push_back({name_, true_ns, std::move(what)});
  }

 private:
  std::string name_;
  std::vector<Violation> violations_;
  std::uint64_t judged_ = 0;
};

/// bound: for every bucket and every pair of instants, admitted <= capacity + rate x T. An ideal
/// bucket in true time that may never be overdrawn says exactly that. Its rate is the owner's by
/// the owner's clock, which may run fast by the declared drift. A give-back is credited when the
/// owner books it, which is some time after it was said: each excuses as many tokens once. A
/// bucket that sleeps through changes of the policy is refilled by the numbers of its record.
class BoundChecker final : public Checker {
 public:
  explicit BoundChecker(std::int64_t drift_ppm) : Checker("bound"), drift_ppm_(drift_ppm) {}
  void admitted(const std::string& bucket, const LimitNumbers& numbers, std::int64_t cost,
                Nanos true_ns);
  void given_back(const std::string& bucket, std::int64_t tokens) { given_back_[bucket] += tokens; }
  /// Its owner has stored the bucket's record.
  void booked(const std::string& bucket, const LimitNumbers& numbers, Nanos true_ns);
  /// These numbers hold from now on (a policy change). A bucket that nobody has used begins full by
  /// whatever numbers hold when somebody does (B10).
  void settle(const std::string& bucket, const LimitNumbers& numbers, Nanos true_ns) {
    if (ideal_.contains(bucket)) ideal(bucket, numbers, true_ns);
  }
  std::int64_t admitted_tokens(const std::string& bucket) const;
  const std::map<std::string, std::int64_t>& totals() const { return totals_; }

 private:
  limit::TokenBucket& ideal(const std::string& bucket, const LimitNumbers& numbers, Nanos true_ns);
  std::int64_t drift_ppm_;
  std::map<std::string, limit::TokenBucket> ideal_;
  std::map<std::string, std::int64_t> totals_;
  std::map<std::string, std::int64_t> given_back_;
  struct Booking {
    LimitNumbers numbers;
    std::int64_t tokens = 0;    ///< of the ideal bucket then
    std::int64_t admitted = 0;  ///< in all, then
    Nanos true_ns = 0;
  };
  std::map<std::string, Booking> bookings_;
};

/// one committing epoch: once a majority of stores has accepted a record under an epoch, none
/// accepts one under a lower epoch in that register. (Its owner may hear of that much later.)
class EpochChecker final : public Checker {
 public:
  EpochChecker() : Checker("one committing epoch") {}
  /// A store of `replicas` has accepted a record.
  void accepted(const std::string& node, const RegisterId& reg, const Version& version,
                std::size_t replicas, Nanos true_ns);

 private:
  struct Register {
    Epoch highest;                                      ///< that has committed
    std::map<Version, std::set<std::string>> accepted;  ///< not by a majority yet
  };
  std::map<RegisterId, Register> registers_;
};

/// replica agreement, first half: what a store has promised in any answer it never goes back on,
/// whatever restarts in between. The second half is AgreementChecker.
class PromiseChecker final : public Checker {
 public:
  PromiseChecker() : Checker("replica agreement") {}
  /// A replica with this disk sent `message`.
  void said(const std::string& node, std::uint64_t disk, const RegisterMessage& message,
            Nanos true_ns);

 private:
  void bound_to(const std::string& node, std::uint64_t disk, const RegisterId& reg,
                const Epoch& epoch, Nanos true_ns);
  std::map<std::tuple<std::string, std::uint64_t, RegisterId>, Epoch> promises_;
};

/// progress: a check is answered within its wait; while faults rest, a customer who asks for tokens
/// that flow in gets some; what lasts is shared among those who ask.
class ProgressChecker final : public Checker {
 public:
  ProgressChecker() : Checker("progress") {}
  void answered(Nanos invoked_ns, Nanos answered_ns, Nanos longest_ns, const std::string& edge);
  void unanswered(Nanos invoked_ns, const std::string& edge);
  /// A customer, or an edge, of whom progress is asked.
  void asked() { judge(); }
  void starved(Nanos true_ns, const std::string& what) { violated(true_ns, what); }
};

/// use of the quota: what was admitted of what could have been.
class UseChecker final : public Checker {
 public:
  UseChecker() : Checker("use of the quota") {}
  void used(const std::string& customer, std::int64_t permille, std::int64_t least, Nanos true_ns);
};

/// no leak: after a rest everything is full again, and nothing counts as out.
class LeakChecker final : public Checker {
 public:
  LeakChecker() : Checker("no leak") {}
  void still_out(const std::string& where, std::int64_t tokens, Nanos true_ns);
  void looked(const std::string& what, std::int64_t remaining, std::int64_t capacity,
              Nanos true_ns);
};

/// finding the owner: after every fault each register has one owner, all its stores vote, nobody
/// fights over it, and edges reach it in a few hops.
class FindingChecker final : public Checker {
 public:
  FindingChecker() : Checker("finding the owner") {}
  void lost(Nanos true_ns, std::string what) { violated(true_ns, std::move(what)); }
  /// Nothing has changed in the world for long enough: ownership does not wander any more.
  void disturbed() { moves_.clear(); }
  void moved(const RegisterId& reg, Nanos true_ns);
  void misdirected(const std::string& edge, const RegisterId& reg, bool quiet, Nanos true_ns);
  void found(const std::string& edge, const RegisterId& reg) {
    judge();
    hops_[{edge, reg}] = 0;
  }

 private:
  std::map<RegisterId, int> moves_;
  std::map<std::pair<std::string, RegisterId>, int> hops_;
};

/// bounded state: counts that must stay within their limits, and return to nothing.
class BoundedChecker final : public Checker {
 public:
  BoundedChecker() : Checker("bounded state") {}
  void count(const std::string& what, std::size_t count, std::size_t most, Nanos true_ns);
};

/// truthful retry-after: a client that is alone and comes back when it was told to is admitted.
class RetryChecker final : public Checker {
 public:
  RetryChecker() : Checker("truthful retry-after") {}
  void admitted() { judge(); }
  void denied_again(const std::string& customer, Nanos waited_ns, Nanos true_ns);
};

}  // namespace weir::sim
