#include "src/limit/token_bucket.h"

#include <algorithm>

namespace weir::limit {
namespace {

/// Wide enough for every product here: two factors below 2^63 and one addend below 2^63.
__extension__ using Wide = unsigned __int128;

bool refills(const LimitNumbers& numbers) {
  return numbers.rate_count > 0 && numbers.rate_period_ns > 0;
}

/// Holds what a caller hands in to the type's range, so that no level whatever can yield a token
/// that was not there.
Level in_range(Level level, Nanos period_ns) {
  const auto period = static_cast<std::uint64_t>(std::max<Nanos>(period_ns, 0));
  const std::uint64_t most = period == 0 ? 0 : period - 1;
  return {std::max<std::int64_t>(level.tokens, 0), std::min(level.fraction, most)};
}

Level held_at(Level level, std::int64_t ceiling) {
  return level.tokens < ceiling ? level : Level{ceiling, 0};
}

}  // namespace

Level refill(Level level, const LimitNumbers& numbers, Nanos elapsed_ns, std::int64_t ceiling) {
  level = in_range(level, numbers.rate_period_ns);
  ceiling = std::max<std::int64_t>(ceiling, 0);
  if (elapsed_ns <= 0 || level.tokens >= ceiling || !refills(numbers)) {
    return held_at(level, ceiling);
  }
  const auto period = static_cast<std::uint64_t>(numbers.rate_period_ns);
  const Wide units =
      static_cast<Wide>(elapsed_ns) * static_cast<std::uint64_t>(numbers.rate_count) +
      level.fraction;
  const Wide tokens = units / period + static_cast<std::uint64_t>(level.tokens);
  if (tokens >= static_cast<std::uint64_t>(ceiling)) return {ceiling, 0};
  return {static_cast<std::int64_t>(tokens), static_cast<std::uint64_t>(units % period)};
}

Nanos time_until(Level level, const LimitNumbers& numbers, std::int64_t tokens) {
  level = in_range(level, numbers.rate_period_ns);
  if (level.tokens >= tokens) return 0;
  if (!refills(numbers)) return kForever;
  const auto count = static_cast<std::uint64_t>(numbers.rate_count);
  const Wide missing = static_cast<Wide>(tokens - level.tokens) *
                           static_cast<std::uint64_t>(numbers.rate_period_ns) -
                       level.fraction;
  const Wide wait_ns = (missing - 1) / count + 1;
  return wait_ns < static_cast<Wide>(kForever) ? static_cast<Nanos>(wait_ns) : kForever;
}

Level rescale(Level level, Nanos from_period_ns, Nanos to_period_ns) {
  level = in_range(level, from_period_ns);
  if (from_period_ns <= 0 || to_period_ns <= 0) return {level.tokens, 0};
  const Wide scaled = static_cast<Wide>(level.fraction) * static_cast<std::uint64_t>(to_period_ns) /
                      static_cast<std::uint64_t>(from_period_ns);
  return {level.tokens, static_cast<std::uint64_t>(scaled)};
}

TokenBucket::TokenBucket(const LimitNumbers& numbers, Nanos now_ns)
    : numbers_(numbers),
      level_{std::max<std::int64_t>(numbers.capacity, 0), 0},
      as_of_ns_(now_ns) {}

TokenBucket::Outcome TokenBucket::take(std::int64_t cost, Nanos now_ns) {
  const Level level = level_at(now_ns);
  const Outcome outcome = outcome_of(level, cost, now_ns);
  if (outcome.allowed)
    settle({level.tokens - std::max<std::int64_t>(cost, 0), level.fraction}, now_ns);
  return outcome;
}

TokenBucket::Outcome TokenBucket::peek(std::int64_t cost, Nanos now_ns) const {
  return outcome_of(level_at(now_ns), cost, now_ns);
}

void TokenBucket::give_back(std::int64_t tokens, Nanos now_ns) {
  const Level level = level_at(now_ns);
  const std::int64_t sum = add_saturating(level.tokens, std::max<std::int64_t>(tokens, 0));
  settle(held_at({sum, level.fraction}, std::max<std::int64_t>(numbers_.capacity, 0)), now_ns);
}

Level TokenBucket::level_at(Nanos now_ns) const {
  return refill(level_, numbers_, subtract_saturating(now_ns, as_of_ns_), numbers_.capacity);
}

Nanos TokenBucket::time_to_full(Nanos now_ns) const {
  return wait_for(level_at(now_ns), numbers_.capacity, now_ns);
}

Nanos TokenBucket::time_to_next_token(Nanos now_ns) const {
  const Level level = level_at(now_ns);
  if (level.tokens >= numbers_.capacity) return 0;
  return wait_for(level, level.tokens + 1, now_ns);
}

void TokenBucket::set_numbers(const LimitNumbers& numbers, Nanos now_ns) {
  const Level level = rescale(level_at(now_ns), numbers_.rate_period_ns, numbers.rate_period_ns);
  numbers_ = numbers;
  settle(held_at(level, std::max<std::int64_t>(numbers.capacity, 0)), now_ns);
}

TokenBucket::Outcome TokenBucket::outcome_of(Level level, std::int64_t cost, Nanos now_ns) const {
  if (cost <= level.tokens) return {true, 0};
  if (cost > numbers_.capacity) return {false, -1};
  return {false, wait_for(level, cost, now_ns)};
}

Nanos TokenBucket::wait_for(Level level, std::int64_t tokens, Nanos now_ns) const {
  const Nanos wait_ns = time_until(level, numbers_, tokens);
  if (wait_ns == 0 || now_ns >= as_of_ns_) return wait_ns;
  return add_saturating(wait_ns, subtract_saturating(as_of_ns_, now_ns));
}

void TokenBucket::settle(Level level, Nanos now_ns) {
  level_ = level;
  as_of_ns_ = std::max(as_of_ns_, now_ns);
}

}  // namespace weir::limit
