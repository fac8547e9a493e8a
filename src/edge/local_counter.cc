#include "src/edge/local_counter.h"

#include <algorithm>
#include <utility>

namespace weir::edge {
namespace {

using limit::FixedWindow;
using limit::SlidingWindow;
using limit::TokenBucket;

Algorithm algorithm_of(const TokenBucket&) { return Algorithm::token_bucket; }
Algorithm algorithm_of(const FixedWindow&) { return Algorithm::fixed_window; }
Algorithm algorithm_of(const SlidingWindow&) { return Algorithm::sliding_window; }

std::int64_t spent(const TokenBucket& bucket, LocalCounter::Now now) {
  return bucket.numbers().capacity - bucket.level_at(now.boot_ns).tokens;
}
std::int64_t spent(const FixedWindow& window, LocalCounter::Now) { return window.used(); }
std::int64_t spent(const SlidingWindow& window, LocalCounter::Now now) {
  return window.numbers().capacity - window.remaining(now.boot_ns);
}

}  // namespace

void LocalCounter::keep(Algorithm algorithm, const LimitNumbers& numbers,
                        const limit::Calendar* calendar, Now now) {
  const Algorithm kind =
      std::visit([](const auto& counter) { return algorithm_of(counter); }, state_);
  if (kind != algorithm) change(algorithm, numbers, now);
  if (auto* bucket = std::get_if<TokenBucket>(&state_)) {
    if (bucket->numbers() != numbers) bucket->set_numbers(numbers, now.boot_ns);
  } else if (auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    if (sliding->numbers() != numbers) sliding->set_numbers(numbers, now.boot_ns);
  } else {
    auto& window = std::get<FixedWindow>(state_);
    window.set_quota(numbers.capacity);
    if (calendar != nullptr) window.advance(*calendar, now.wall_ns);
  }
}

void LocalCounter::change(Algorithm algorithm, const LimitNumbers& numbers, Now now) {
  const std::int64_t carried =
      std::visit([&](const auto& counter) { return spent(counter, now); }, state_);
  if (const auto* window = std::get_if<FixedWindow>(&state_)) {
    left_ = std::make_unique<FixedWindow>(*window);
  }
  if (algorithm == Algorithm::fixed_window) {
    const bool goes_on = left_ && now.wall_ns < left_->span().end_ns;
    FixedWindow window = goes_on ? *left_ : FixedWindow(numbers.capacity);
    if (!goes_on) window.carry(carried);
    state_ = window;
    left_.reset();
    return;
  }
  const std::int64_t most = std::clamp<std::int64_t>(carried, 0, numbers.capacity);
  if (algorithm == Algorithm::sliding_window) {
    SlidingWindow sliding(numbers, now.boot_ns);
    sliding.take(most, now.boot_ns);
    state_ = sliding;
  } else {
    TokenBucket bucket(numbers, now.boot_ns);
    bucket.take(most, now.boot_ns);
    state_ = bucket;
  }
}

LocalCounter::Outcome LocalCounter::take(std::int64_t cost, Now now) {
  if (auto* window = std::get_if<FixedWindow>(&state_)) return window->take(cost, now.wall_ns);
  auto* sliding = std::get_if<SlidingWindow>(&state_);
  const Outcome outcome = sliding != nullptr
                              ? sliding->take(cost, now.boot_ns)
                              : std::get<TokenBucket>(state_).take(cost, now.boot_ns);
  if (outcome.allowed && left_) left_->carry(cost);
  return outcome;
}

LocalCounter::Outcome LocalCounter::peek(std::int64_t cost, Now now) const {
  if (const auto* window = std::get_if<FixedWindow>(&state_)) {
    return window->peek(cost, now.wall_ns);
  }
  if (const auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    return sliding->peek(cost, now.boot_ns);
  }
  return std::get<TokenBucket>(state_).peek(cost, now.boot_ns);
}

void LocalCounter::give_back(std::int64_t tokens, Now now) {
  if (left_) left_->give_back(tokens);
  if (auto* window = std::get_if<FixedWindow>(&state_)) {
    window->give_back(tokens);
  } else if (auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    sliding->give_back(tokens, now.boot_ns);
  } else {
    std::get<TokenBucket>(state_).give_back(tokens, now.boot_ns);
  }
}

Estimate LocalCounter::about(Now now) const {
  if (const auto* window = std::get_if<FixedWindow>(&state_)) {
    const Nanos left_ns = window->left_ns(now.wall_ns);
    return {window->remaining(), window->used() == 0 ? 0 : left_ns, left_ns};
  }
  const auto say = [&](const auto& counter, std::int64_t remaining) {
    return Estimate{remaining, counter.time_to_next_token(now.boot_ns),
                    counter.time_to_full(now.boot_ns)};
  };
  if (const auto* sliding = std::get_if<SlidingWindow>(&state_)) {
    return say(*sliding, sliding->remaining(now.boot_ns));
  }
  const auto& bucket = std::get<TokenBucket>(state_);
  return say(bucket, bucket.level_at(now.boot_ns).tokens);
}

Nanos LocalCounter::time_to_idle(Now now) const {
  const auto until_over = [&](const FixedWindow& window) -> Nanos {
    if (window.used() == 0) return 0;
    return std::max<Nanos>(0, subtract_saturating(window.span().end_ns, now.wall_ns));
  };
  const Nanos left_ns = left_ ? until_over(*left_) : 0;
  const auto* window = std::get_if<FixedWindow>(&state_);
  return std::max(left_ns, window != nullptr ? until_over(*window) : about(now).reset_ns);
}

}  // namespace weir::edge
