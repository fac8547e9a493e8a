// A calendar window counted in one place alone: scope `node`, and an edge's static share. The
// leased kind is src/lease/ledger.h.
//
// A window once begun counts until its end; the next begins at or after that end, whatever clock,
// zone or policy say (PROTOCOL H1). All instants are wall time (UTC). Values: whoever holds one
// guards it.
#pragma once

#include <cstdint>

#include "src/base/time.h"
#include "src/limit/calendar.h"
#include "src/limit/token_bucket.h"

namespace weir::limit {

class FixedWindow {
 public:
  explicit FixedWindow(std::int64_t quota) : quota_(quota) {}

  /// Begins the calendar's window of `wall_ns` if the last has ended. Call it before the others.
  void advance(const Calendar& calendar, Nanos wall_ns) {
    if (wall_ns < span_.end_ns) return;
    const Nanos last_end_ns = span_.end_ns;
    span_ = calendar.containing(wall_ns);
    if (span_.start_ns < last_end_ns) span_.start_ns = last_end_ns;
    if (last_end_ns != 0) used_ = 0;
  }

  using Outcome = TokenBucket::Outcome;
  /// Takes `cost` (negative counts as 0) if it fits. Refused: nothing changes.
  Outcome take(std::int64_t cost, Nanos wall_ns) {
    const Outcome outcome = peek(cost, wall_ns);
    if (outcome.allowed && cost > 0) used_ += cost;
    return outcome;
  }
  Outcome peek(std::int64_t cost, Nanos wall_ns) const {
    if (cost <= 0 || cost <= remaining()) return {true, 0};
    return {false, cost > quota_ ? -1 : left_ns(wall_ns)};
  }
  /// Takes `tokens` (negative counts as 0) off what is used.
  void give_back(std::int64_t tokens) {
    if (tokens > 0) used_ -= tokens < used_ ? tokens : used_;
  }

  std::int64_t remaining() const { return used_ < quota_ ? quota_ - used_ : 0; }
  std::int64_t used() const { return used_; }
  /// Until the window ends, at least 1.
  Nanos left_ns(Nanos wall_ns) const {
    const Nanos left_ns = subtract_saturating(span_.end_ns, wall_ns);
    return left_ns > 0 ? left_ns : 1;
  }
  void set_quota(std::int64_t quota) { quota_ = quota; }
  /// Counts what has been spent elsewhere in the same window, or before the first begins: that one
  /// begins with it.
  void carry(std::int64_t spent) {
    if (spent > 0) used_ = add_saturating(used_, spent);
  }
  const WindowSpan& span() const { return span_; }

 private:
  std::int64_t quota_;
  std::int64_t used_ = 0;
  WindowSpan span_;
};

}  // namespace weir::limit
