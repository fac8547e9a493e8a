// The sliding window of scope `node`: a counter for this window and one for the last, and the
// assumption that the last one's requests came evenly. Source of the formula: Cloudflare, "How we
// built rate limiting capable of scaling to millions of domains" (2017), section "Sliding windows
// to the rescue":
//
//   estimate = previous * (period - elapsed) / period + current
//
// Weir takes it in integers, multiplied by the period, so that nothing is rounded: a cost fits when
// previous * (period - elapsed) + (current + cost) * period <= capacity * period. Windows are
// aligned to multiples of the period on the boot clock. Between two windows the true count of the
// last period may exceed the capacity when the requests did not come evenly; that is the
// approximation's price.
//
// `numbers.capacity` per `numbers.rate_period_ns`. Total like token_bucket.h: nothing wraps for any
// numbers. Values: whoever holds one guards it.
#pragma once

#include <cstdint>

#include "src/base/time.h"
#include "src/limit/token_bucket.h"
#include "src/model/limit.h"

namespace weir::limit {

class SlidingWindow {
 public:
  /// New: nothing counted.
  SlidingWindow(const LimitNumbers& numbers, Nanos now_ns);

  using Outcome = TokenBucket::Outcome;
  /// Takes `cost` (negative counts as 0) if it fits. Refused: nothing changes.
  Outcome take(std::int64_t cost, Nanos now_ns);
  /// The same answer without taking; its retry time is exact by the formula: admitted then if
  /// nobody else takes, refused a nanosecond before.
  Outcome peek(std::int64_t cost, Nanos now_ns) const;
  /// Takes `tokens` off this window's count, and off the last one's what is left.
  void give_back(std::int64_t tokens, Nanos now_ns);

  /// Whole tokens that fit now.
  std::int64_t remaining(Nanos now_ns) const;
  /// Until nothing counts any more / until one more whole token fits; 0 when all fits.
  Nanos time_to_full(Nanos now_ns) const;
  Nanos time_to_next_token(Nanos now_ns) const;

  /// A changed policy. Another capacity counts at once; another period starts with what is counted
  /// now as this window's count.
  void set_numbers(const LimitNumbers& numbers, Nanos now_ns);
  const LimitNumbers& numbers() const { return numbers_; }

 private:
  /// The counters as of an instant; time never runs backwards in them.
  struct Counts {
    std::int64_t previous = 0;
    std::int64_t current = 0;
    Nanos elapsed_ns = 0;  ///< since this window's start, in [0, period)
    Nanos start_ns = 0;
  };
  Counts at(Nanos now_ns) const;
  /// From `counts` until `cost` fits, kForever never; the caller adds what it is behind.
  Nanos wait_for(const Counts& counts, std::int64_t cost) const;
  Nanos lag(Nanos now_ns) const;

  LimitNumbers numbers_;
  std::int64_t previous_ = 0;
  std::int64_t current_ = 0;
  Nanos start_ns_ = 0;   ///< of this window
  Nanos latest_ns_ = 0;  ///< the latest `now` that changed something
};

}  // namespace weir::limit
