#include "src/edge/estimate.h"

#include <algorithm>

#include "src/limit/calendar.h"

namespace weir::edge {
namespace {

__extension__ using Wide = __int128;

std::int64_t narrow(Wide value) {
  return static_cast<std::int64_t>(std::clamp<Wide>(value, 0, INT64_MAX));
}

Wide divide_up(Wide amount, Wide by) { return (amount + by - 1) / by; }

/// Nothing flows into a calendar window: what the owner said and what is held here, until it ends.
Estimate estimate_window(const lease::Holder& holder, std::int64_t quota, Nanos now_ns) {
  Estimate result;
  const Nanos end_ns = holder.window_end_ns();
  const bool told = end_ns > now_ns;
  const std::int64_t level = told || holder.told_ns() == 0 ? holder.known_level() : quota;
  const std::int64_t held = now_ns < holder.deadline_ns() ? holder.held() : 0;
  result.remaining = std::clamp<std::int64_t>(add_saturating(level, held), 0, quota);
  if (told) result.reset_ns = end_ns - now_ns;
  if (result.remaining < quota) result.next_token_ns = std::max<Nanos>(1, result.reset_ns);
  return result;
}

}  // namespace

Nanos refill_time(const LimitNumbers& numbers, std::int64_t tokens) {
  if (tokens <= 0 || numbers.rate_count <= 0) return 0;
  return narrow(divide_up(static_cast<Wide>(tokens) * numbers.rate_period_ns, numbers.rate_count));
}

Estimate estimate(const lease::Holder& holder, const LimitNumbers& numbers, Nanos now_ns) {
  const std::int64_t capacity = numbers.capacity;
  if (numbers.rate_period_ns == 0) return estimate_window(holder, capacity, now_ns);
  const std::int64_t ceiling =
      std::max<std::int64_t>(0, subtract_saturating(capacity, holder.known_outstanding()));
  const Nanos elapsed_ns = std::max<Nanos>(0, now_ns - holder.told_ns());
  const Nanos first_ns = holder.known_next_token_ns();
  const Wide period = numbers.rate_period_ns;
  const Wide count = std::max<std::int64_t>(1, numbers.rate_count);

  Wide flowed = 0;
  Nanos next_ns = refill_time(numbers, 1);
  if (first_ns > 0 && elapsed_ns < first_ns) {
    next_ns = first_ns - elapsed_ns;
  } else if (first_ns > 0 && period > 0) {
    const Wide units = static_cast<Wide>(elapsed_ns - first_ns) * count;
    flowed = 1 + units / period;
    next_ns = narrow(divide_up(period - units % period, count));
  }
  const std::int64_t level =
      std::min(narrow(static_cast<Wide>(holder.known_level()) + flowed), ceiling);

  Estimate result;
  result.remaining = std::clamp<std::int64_t>(add_saturating(level, holder.held()), 0, capacity);
  if (result.remaining < capacity) {
    result.next_token_ns = std::max<Nanos>(1, next_ns);
    result.reset_ns =
        add_saturating(result.next_token_ns, refill_time(numbers, capacity - result.remaining - 1));
  }
  return result;
}

std::int64_t to_ms(Nanos span_ns) {
  if (span_ns < 0 || span_ns == kForever) return -1;
  return span_ns / kMillisecond + (span_ns % kMillisecond != 0 ? 1 : 0);
}

std::int64_t window_s(const LimitDefinition& limit, const LimitNumbers& numbers) {
  if (limit.algorithm == Algorithm::fixed_window) return limit::nominal_window_s(limit.window);
  const Nanos full_ns = refill_time(numbers, numbers.capacity);
  return std::max<std::int64_t>(1, full_ns / kSecond + (full_ns % kSecond != 0 ? 1 : 0));
}

}  // namespace weir::edge
