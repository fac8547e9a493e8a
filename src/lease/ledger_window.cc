// Calendar windows: the part of the ledger that knows the wall clock (PROTOCOL H).

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"
#include "src/lease/ledger.h"

namespace weir::lease {

void Ledger::set_wall(Nanos wall_ns, Nanos now_ns) {
  wall_ahead_ns_ = subtract_saturating(wall_ns, now_ns);
  // As a token bucket the ledger remembers the window only until its end.
  if (!windowed() && window_ && wall_ns >= window_->span.end_ns) window_.reset();
}

Nanos Ledger::window_left_ns(Nanos now_ns) const {
  if (!window_ || !wall_ahead_ns_) return 0;
  const Nanos wall_ns = add_saturating(now_ns, *wall_ahead_ns_);
  return std::max<Nanos>(0, subtract_saturating(window_->span.end_ns, wall_ns));
}

bool Ledger::wants_window(Nanos now_ns) const { return windowed() && window_left_ns(now_ns) == 0; }

std::optional<limit::WindowSpan> Ledger::window() const {
  if (!window_) return std::nullopt;
  return window_->span;
}

/// What is spent counts in the window in force, and what is given back there and nowhere else (D7).
void Ledger::count_used(std::int64_t spent, std::int64_t given_back) {
  if (!window_) return;
  const std::int64_t used = add_saturating(window_->used, spent);
  window_->used = std::max<std::int64_t>(0, subtract_saturating(used, given_back));
}

/// Drops the entries of all leases that end with the window at `end_ns` (boot clock). The lessee of
/// such a lease has stopped by then: the grantor counts it for its own margins longer. What
/// outlives the window, as a lease may that another owner granted by a slower clock, stays out, but
/// nothing that its lessee reports is credited any more. Who waits begins anew.
void Ledger::leave_window(Nanos end_ns, Outcome& out) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    if (entry.parked) out.now.push_back(answer(it->first, entry, LeaseStatus::unknown));
    if (entry.outstanding > 0 && !WEIR_MUTANT(lease_outlives_window) &&
        entry.expires_ns > add_saturating(end_ns, entry.margin_ns)) {
      unpark(entry);
      entry.want = entry.need = 0;
      entry.sequence = kOutlivedSequence;
      ++it;
      continue;
    }
    counters_.burnt += static_cast<std::uint64_t>(entry.outstanding);
    it = entries_.erase(it);
  }
}

Ledger::Outcome Ledger::open_window(const limit::WindowSpan& span, Nanos now_ns) {
  WEIR_ASSERT(windowed() && wall_ahead_ns_);
  Outcome out;
  const bool follows = window_.has_value();
  limit::WindowSpan opened = span;
  const bool in_order = !WEIR_MUTANT(window_reopened) && !WEIR_MUTANT(window_redefined);
  if (follows && in_order) opened.start_ns = std::max(span.start_ns, window_->span.end_ns);
  if (opened.end_ns <= opened.start_ns) return out;
  // In time order (D5): what ended before the new window is the old one's, what ends later counts
  // here.
  const Nanos begin_ns = std::min(now_ns, subtract_saturating(opened.start_ns, *wall_ahead_ns_));
  if (follows) {
    advance(begin_ns);
    leave_window(begin_ns, out);
  }
  window_ = {opened, std::exchange(carried_, 0)};
  clamp();
  advance(now_ns);
  clamp();
  out.changed = true;
  serve(now_ns, out);
  return out;
}

}  // namespace weir::lease
