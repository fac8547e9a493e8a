#include "test/sim/checkers.h"

#include <tuple>
#include <variant>

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
  judge();
  totals_[bucket] += cost;
  limit::TokenBucket& should = ideal(bucket, numbers, true_ns);
  if (should.take(cost, true_ns).allowed) return;
  std::int64_t& excused = given_back_[bucket];
  const std::int64_t lacking = cost - should.level_at(true_ns).tokens;
  if (lacking <= excused && should.take(cost - lacking, true_ns).allowed) {
    excused -= lacking;
    return;
  }
  const auto key = decode_bucket_key(bucket);
  violated(true_ns, "limit " + (key ? key->limit + " of " + key->customer : bucket) + ": " +
                        std::to_string(cost) + " admitted where an ideal bucket holds " +
                        std::to_string(should.level_at(true_ns).tokens));
}

void BoundChecker::booked(const std::string& bucket, const LimitNumbers& numbers, Nanos true_ns) {
  limit::TokenBucket& should = ideal(bucket, numbers, true_ns);
  const auto last = bookings_.find(bucket);
  if (last != bookings_.end() && last->second.numbers != numbers) {
    const Booking& before = last->second;
    const LimitNumbers then = hurried(before.numbers, drift_ppm_);
    const limit::Level slept = limit::refill({before.tokens, 0}, then, true_ns - before.true_ns,
                                             std::max(before.tokens, then.capacity));
    const std::int64_t left = slept.tokens + 1 - (admitted_tokens(bucket) - before.admitted);
    should.give_back(std::max<std::int64_t>(0, left - should.level_at(true_ns).tokens), true_ns);
  }
  bookings_[bucket] = {numbers, should.level_at(true_ns).tokens, admitted_tokens(bucket), true_ns};
}

std::int64_t BoundChecker::admitted_tokens(const std::string& bucket) const {
  const auto found = totals_.find(bucket);
  return found == totals_.end() ? 0 : found->second;
}

void EpochChecker::accepted(const std::string& node, const RegisterId& reg, const Version& version,
                            std::size_t replicas, Nanos true_ns) {
  judge();
  Register& seen = registers_[reg];
  auto& nodes = seen.accepted[version];
  nodes.insert(node);
  if (nodes.size() * 2 <= replicas) return;
  if (version.epoch < seen.highest) {
    violated(true_ns, version.epoch.node + " committed in " + to_string(reg) + " under " +
                          to_string(version.epoch) + " after " + to_string(seen.highest));
  }
  seen.highest = std::max(seen.highest, version.epoch);
  seen.accepted.erase(seen.accepted.begin(), seen.accepted.upper_bound(version));
}

void PromiseChecker::bound_to(const std::string& node, std::uint64_t disk, const RegisterId& reg,
                              const Epoch& epoch, Nanos true_ns) {
  judge();
  Epoch& before = promises_[{node, disk, reg}];
  if (epoch < before) {
    violated(true_ns, node + " agreed to " + to_string(epoch) + " in " + to_string(reg) +
                          " after it had promised " + to_string(before));
  }
  before = std::max(before, epoch);
}

void PromiseChecker::said(const std::string& node, std::uint64_t disk,
                          const RegisterMessage& message, Nanos true_ns) {
  std::visit(
      [&](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<T, Promise>) {
          if (what.promised) bound_to(node, disk, what.reg, what.epoch, true_ns);
        } else if constexpr (std::is_same_v<T, ReadReply> || std::is_same_v<T, ScanReply> ||
                             std::is_same_v<T, Accepted> || std::is_same_v<T, Installed>) {
          if (what.accepted) bound_to(node, disk, what.reg, what.epoch, true_ns);
        }
      },
      message);
}

void ProgressChecker::answered(Nanos invoked_ns, Nanos answered_ns, Nanos longest_ns,
                               const std::string& edge) {
  judge();
  if (answered_ns - invoked_ns <= longest_ns) return;
  violated(answered_ns, "a check at " + edge + " waited " +
                            std::to_string((answered_ns - invoked_ns) / kMillisecond) + " ms");
}

void ProgressChecker::unanswered(Nanos invoked_ns, const std::string& edge) {
  violated(invoked_ns, "a check at " + edge + " was never answered");
}

void UseChecker::used(const std::string& customer, std::int64_t permille, std::int64_t least,
                      Nanos true_ns) {
  judge();
  if (permille >= least) return;
  violated(true_ns, customer + " used " + std::to_string(permille) + " of 1000 of its quota");
}

void LeakChecker::still_out(const std::string& where, std::int64_t tokens, Nanos true_ns) {
  violated(true_ns, where + " still counts " + std::to_string(tokens) + " tokens as out");
}

void LeakChecker::looked(const std::string& what, std::int64_t remaining, std::int64_t capacity,
                         Nanos true_ns) {
  judge();
  if (remaining >= capacity) return;
  violated(true_ns, what + " is said to have " + std::to_string(remaining) + " of " +
                        std::to_string(capacity) + " after a rest");
}

void FindingChecker::moved(const RegisterId& reg, Nanos true_ns) {
  judge();
  // One take-over may still be under way, and rank may take the register back.
  if (++moves_[reg] <= 3) return;
  violated(true_ns, to_string(reg) + " changes its owner again and again");
}

void FindingChecker::misdirected(const std::string& edge, const RegisterId& reg, bool quiet,
                                 Nanos true_ns) {
  int& hops = hops_[{edge, reg}];
  if (!quiet) hops = 0;
  if (++hops != 40) return;
  violated(true_ns, edge + " was sent on 40 times in a row for " + to_string(reg));
}

void BoundedChecker::count(const std::string& what, std::size_t count, std::size_t most,
                           Nanos true_ns) {
  judge();
  if (count > most) violated(true_ns, std::to_string(count) + " " + what);
}

void RetryChecker::denied_again(const std::string& customer, Nanos waited_ns, Nanos true_ns) {
  judge();
  violated(true_ns, customer + " came back after " + std::to_string(waited_ns / kMillisecond) +
                        " ms as told, alone, and was denied again");
}

}  // namespace weir::sim
