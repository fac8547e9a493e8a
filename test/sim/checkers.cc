#include "test/sim/checkers.h"

#include <tuple>

namespace weir::sim {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kMillion = 1'000'000;

/// The same limit by a clock that runs fast by `drift_ppm`, rounded up.
LimitNumbers hurried(LimitNumbers numbers, std::int64_t drift_ppm) {
  const Wide period = static_cast<Wide>(numbers.rate_period_ns) * kMillion / (kMillion + drift_ppm);
  numbers.rate_period_ns = static_cast<Nanos>(period < 1 ? 1 : period);
  return numbers;
}

}  // namespace

limit::TokenBucket& BoundChecker::ideal(const std::string& bucket, const LimitNumbers& numbers,
                                        Nanos true_ns) {
  const LimitNumbers fast = hurried(numbers, drift_ppm_);
  auto [at, is_new] = ideal_.try_emplace(bucket, fast, true_ns);
  if (at->second.numbers() != fast) at->second.set_numbers(fast, true_ns);
  return at->second;
}

void BoundChecker::admitted(const std::string& bucket, const LimitNumbers& numbers,
                            std::int64_t cost, Nanos true_ns) {
  totals_[bucket] += cost;
  limit::TokenBucket& should = ideal(bucket, numbers, true_ns);
  if (should.take(cost, true_ns).allowed) return;
  const auto key = decode_bucket_key(bucket);
  violated(true_ns, "limit " + (key ? key->limit + " of " + key->customer : bucket) + ": " +
                        std::to_string(cost) + " admitted where an ideal bucket holds " +
                        std::to_string(should.level_at(true_ns).tokens));
}

void BoundChecker::given_back(const std::string& bucket, const LimitNumbers& numbers,
                              std::int64_t tokens, Nanos true_ns) {
  ideal(bucket, numbers, true_ns).give_back(tokens, true_ns);
}

std::int64_t BoundChecker::admitted_tokens(const std::string& bucket) const {
  const auto found = totals_.find(bucket);
  return found == totals_.end() ? 0 : found->second;
}

void EpochChecker::committed(const std::string& node, const RegisterId& reg, const Epoch& epoch,
                             Nanos true_ns) {
  Epoch& highest = highest_[reg];
  if (epoch < highest) {
    violated(true_ns, node + " committed in " + to_string(reg) + " under " + to_string(epoch) +
                          " after " + to_string(highest));
  }
  highest = std::max(highest, epoch);
}

void PromiseChecker::promised(const std::string& node, std::uint64_t disk, const RegisterId& reg,
                              const RegisterState& state, Nanos true_ns) {
  Epoch& before = promises_[{node, disk, reg}];
  if (state.promise < before) {
    violated(true_ns, node + " promised " + to_string(state.promise) + " in " + to_string(reg) +
                          " after " + to_string(before));
  }
  before = state.promise;
}

void ProgressChecker::answered(Nanos invoked_ns, Nanos answered_ns, Nanos longest_ns,
                               const std::string& edge) {
  if (answered_ns - invoked_ns <= longest_ns) return;
  violated(answered_ns, "a check at " + edge + " waited " +
                            std::to_string((answered_ns - invoked_ns) / kMillisecond) + " ms");
}

void ProgressChecker::unanswered(Nanos invoked_ns, const std::string& edge) {
  violated(invoked_ns, "a check at " + edge + " was never answered");
}

}  // namespace weir::sim
