// What an edge says of a leased bucket: remaining, reset, next token. Exact while this edge is the
// only one that spends, else what follows from the owner's last word. Pure.
#pragma once

#include "src/base/time.h"
#include "src/lease/holder.h"
#include "src/model/check.h"
#include "src/model/limit.h"

namespace weir::edge {

struct Estimate {
  std::int64_t remaining = 0;  ///< in [0, capacity]
  Nanos next_token_ns = 0;     ///< until one more than now; 0: full
  Nanos reset_ns = 0;          ///< until full; of a calendar window until its end, if known
};

Estimate estimate(const lease::Holder& holder, const LimitNumbers& numbers, Nanos now_ns);

/// The time in which `tokens` flow in, rounded up.
Nanos refill_time(const LimitNumbers& numbers, std::int64_t tokens);

/// Nanoseconds to whole milliseconds, rounded up; -1 and kForever stay "never" (-1) for retry
/// times.
std::int64_t to_ms(Nanos span_ns);

/// ceil(capacity / rate) in seconds, at least 1; of a calendar window its nominal length (header
/// field w).
std::int64_t window_s(const LimitDefinition& limit, const LimitNumbers& numbers);

}  // namespace weir::edge
