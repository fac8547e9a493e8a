// The judges. Each watches one property over a whole run and says what it saw broken, with the
// time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

 protected:
  void violated(Nanos true_ns, std::string what) {
    if (violations_.size() < 10) violations_.push_back({name_, true_ns, std::move(what)});
  }

 private:
  std::string name_;
  std::vector<Violation> violations_;
};

/// bound: for every bucket and every pair of instants, admitted <= capacity + rate x T. An ideal
/// bucket in true time that may never be overdrawn says exactly that. Its rate is the owner's by
/// the owner's clock, which may run fast by the declared drift.
class BoundChecker final : public Checker {
 public:
  explicit BoundChecker(std::int64_t drift_ppm) : Checker("bound"), drift_ppm_(drift_ppm) {}
  void admitted(const std::string& bucket, const LimitNumbers& numbers, std::int64_t cost,
                Nanos true_ns);
  void given_back(const std::string& bucket, const LimitNumbers& numbers, std::int64_t tokens,
                  Nanos true_ns);
  std::int64_t admitted_tokens(const std::string& bucket) const;
  const std::map<std::string, std::int64_t>& totals() const { return totals_; }

 private:
  limit::TokenBucket& ideal(const std::string& bucket, const LimitNumbers& numbers, Nanos true_ns);
  std::int64_t drift_ppm_;
  std::map<std::string, limit::TokenBucket> ideal_;
  std::map<std::string, std::int64_t> totals_;
};

/// one committing epoch: once an epoch has committed in a register, no lower one does.
class EpochChecker final : public Checker {
 public:
  EpochChecker() : Checker("one committing epoch") {}
  void committed(const std::string& node, const RegisterId& reg, const Epoch& epoch, Nanos true_ns);

 private:
  std::map<RegisterId, Epoch> highest_;
};

/// replica agreement: a store's promise never goes back, whatever restarts in between.
class PromiseChecker final : public Checker {
 public:
  PromiseChecker() : Checker("replica agreement") {}
  void promised(const std::string& node, std::uint64_t disk, const RegisterId& reg,
                const RegisterState& state, Nanos true_ns);

 private:
  std::map<std::tuple<std::string, std::uint64_t, RegisterId>, Epoch> promises_;
};

/// progress: a check is answered within its wait, and while faults rest and there is demand,
/// something is admitted now and then.
class ProgressChecker final : public Checker {
 public:
  ProgressChecker() : Checker("progress") {}
  void answered(Nanos invoked_ns, Nanos answered_ns, Nanos longest_ns, const std::string& edge);
  void unanswered(Nanos invoked_ns, const std::string& edge);
  void starved(Nanos true_ns, const std::string& what) { violated(true_ns, what); }
};

/// truthful retry-after: see run.cc; conservation, use of the quota, no leak, finding the owner,
/// bounded state: asked of the cluster at rest points.
class StateChecker final : public Checker {
 public:
  explicit StateChecker(std::string name) : Checker(std::move(name)) {}
  void fail(Nanos true_ns, std::string what) { violated(true_ns, std::move(what)); }
};

}  // namespace weir::sim
