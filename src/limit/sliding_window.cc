#include "src/limit/sliding_window.h"

#include <algorithm>

namespace weir::limit {
namespace {

/// Every product here has two factors below 2^63, and sums have at most three of them.
__extension__ using Wide = unsigned __int128;

Nanos period_of(const LimitNumbers& numbers) { return std::max<Nanos>(1, numbers.rate_period_ns); }

Wide product(std::int64_t count, Nanos span_ns) {
  return static_cast<Wide>(count) * static_cast<std::uint64_t>(span_ns);
}

Nanos aligned(Nanos now_ns, Nanos period_ns) {
  now_ns = std::max<Nanos>(0, now_ns);
  return now_ns - now_ns % period_ns;
}

}  // namespace

SlidingWindow::SlidingWindow(const LimitNumbers& numbers, Nanos now_ns)
    : numbers_(numbers), start_ns_(aligned(now_ns, period_of(numbers))), latest_ns_(now_ns) {}

SlidingWindow::Counts SlidingWindow::at(Nanos now_ns) const {
  now_ns = std::max({now_ns, latest_ns_, start_ns_});
  const Nanos period_ns = period_of(numbers_);
  const Nanos passed_ns = now_ns - start_ns_;
  const Nanos windows = passed_ns / period_ns;
  const Nanos elapsed_ns = passed_ns % period_ns;
  if (windows == 0) return {previous_, current_, elapsed_ns, start_ns_};
  return {windows == 1 ? current_ : 0, 0, elapsed_ns, now_ns - elapsed_ns};
}

/// What a caller whose clock is behind the latest change must wait for that alone.
Nanos SlidingWindow::lag(Nanos now_ns) const {
  return std::max<Nanos>(0, subtract_saturating(std::max(latest_ns_, start_ns_), now_ns));
}

Nanos SlidingWindow::wait_for(const Counts& counts, std::int64_t cost) const {
  const Nanos period_ns = period_of(numbers_);
  // Within a window that began with `earlier` before it and has `room` left without them.
  const auto instant_in = [&](std::int64_t earlier, std::int64_t room) -> Nanos {
    if (room < 0) return kForever;
    if (earlier <= room) return 0;
    return period_ns -
           static_cast<Nanos>(product(room, period_ns) / static_cast<std::uint64_t>(earlier));
  };
  const std::int64_t room =
      subtract_saturating(subtract_saturating(numbers_.capacity, counts.current), cost);
  const Nanos here_ns = instant_in(counts.previous, room);
  if (here_ns <= counts.elapsed_ns) return 0;
  if (here_ns < period_ns) return here_ns - counts.elapsed_ns;
  const Nanos left_ns = period_ns - counts.elapsed_ns;
  const Nanos next_ns = instant_in(counts.current, subtract_saturating(numbers_.capacity, cost));
  return add_saturating(left_ns, next_ns);
}

SlidingWindow::Outcome SlidingWindow::peek(std::int64_t cost, Nanos now_ns) const {
  cost = std::max<std::int64_t>(0, cost);
  if (cost == 0) return {true, 0};
  if (cost > numbers_.capacity) return {false, -1};
  const Nanos wait_ns = wait_for(at(now_ns), cost);
  if (wait_ns == 0) return {true, 0};
  return {false, add_saturating(wait_ns, lag(now_ns))};
}

SlidingWindow::Outcome SlidingWindow::take(std::int64_t cost, Nanos now_ns) {
  const Outcome outcome = peek(cost, now_ns);
  if (!outcome.allowed || cost <= 0) return outcome;
  const Counts counts = at(now_ns);
  previous_ = counts.previous;
  current_ = add_saturating(counts.current, cost);
  start_ns_ = counts.start_ns;
  latest_ns_ = std::max(latest_ns_, now_ns);
  return outcome;
}

void SlidingWindow::give_back(std::int64_t tokens, Nanos now_ns) {
  const Counts counts = at(now_ns);
  tokens = std::max<std::int64_t>(0, tokens);
  const std::int64_t from_current = std::min(tokens, counts.current);
  current_ = counts.current - from_current;
  previous_ = std::max<std::int64_t>(0, counts.previous - (tokens - from_current));
  start_ns_ = counts.start_ns;
  latest_ns_ = std::max(latest_ns_, now_ns);
}

std::int64_t SlidingWindow::remaining(Nanos now_ns) const {
  const Counts counts = at(now_ns);
  const auto period = static_cast<std::uint64_t>(period_of(numbers_));
  const Wide counted = product(counts.previous, period_of(numbers_) - counts.elapsed_ns) +
                       product(counts.current, period_of(numbers_));
  const Wide all = product(std::max<std::int64_t>(0, numbers_.capacity), period_of(numbers_));
  return counted >= all ? 0 : static_cast<std::int64_t>((all - counted) / period);
}

Nanos SlidingWindow::time_to_full(Nanos now_ns) const {
  const Counts counts = at(now_ns);
  const Nanos period_ns = period_of(numbers_);
  const Nanos left_ns = period_ns - counts.elapsed_ns;
  if (counts.current > 0) return add_saturating(lag(now_ns), add_saturating(left_ns, period_ns));
  return counts.previous > 0 ? add_saturating(lag(now_ns), left_ns) : 0;
}

Nanos SlidingWindow::time_to_next_token(Nanos now_ns) const {
  const std::int64_t fits = remaining(now_ns);
  if (fits >= numbers_.capacity) return 0;
  return add_saturating(lag(now_ns), wait_for(at(now_ns), fits + 1));
}

void SlidingWindow::set_numbers(const LimitNumbers& numbers, Nanos now_ns) {
  const Counts counts = at(now_ns);
  now_ns = std::max({now_ns, latest_ns_, start_ns_});
  if (period_of(numbers) == period_of(numbers_)) {
    previous_ = counts.previous;
    current_ = counts.current;
    start_ns_ = counts.start_ns;
  } else {
    const auto period = static_cast<std::uint64_t>(period_of(numbers_));
    const Wide earlier = product(counts.previous, period_of(numbers_) - counts.elapsed_ns);
    const auto rounded_up = static_cast<std::int64_t>((earlier + period - 1) / period);
    current_ = add_saturating(counts.current, rounded_up);
    previous_ = 0;
    start_ns_ = aligned(now_ns, period_of(numbers));
  }
  numbers_ = numbers;
  latest_ns_ = now_ns;
}

}  // namespace weir::limit
