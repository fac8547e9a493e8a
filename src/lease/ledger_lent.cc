// A relay's ledger: its tokens are lent from above (PROTOCOL F). Nothing flows in, so whoever needs
// more than there is waits until the relay has asked for it: by turns, whole needs first.

#include <algorithm>
#include <limits>
#include <utility>

#include "src/lease/ledger.h"

namespace weir::lease {
namespace {

/// The owner knows the capacity; here nothing may be cut off by one.
constexpr LimitNumbers kLentNumbers{std::numeric_limits<std::int64_t>::max(), 0, 1};

}  // namespace

Ledger::Ledger(std::string bucket, std::uint64_t grantor, LeaseTerms terms, Nanos now_ns)
    : bucket_(std::move(bucket)),
      numbers_(kLentNumbers),
      terms_(terms),
      as_of_ns_(now_ns),
      lent_(Lent{grantor, 0, {}}) {}

Ledger Ledger::of_relay(std::string bucket, std::uint64_t grantor, LeaseTerms terms, Nanos now_ns) {
  return {std::move(bucket), grantor, terms, now_ns};
}

Ledger::Outcome Ledger::lend(std::int64_t tokens, Nanos deadline_ns, Nanos now_ns) {
  Outcome out;
  advance(now_ns);
  lent_->deadline_ns = std::max(lent_->deadline_ns, deadline_ns);
  level_.tokens = add_saturating(level_.tokens, tokens);
  clamp();
  serve(now_ns, out);
  return out;
}

void Ledger::withdraw(std::int64_t tokens) {
  level_.tokens = std::max<std::int64_t>(0, level_.tokens - tokens);
  clamp();
}

Ledger::Outcome Ledger::restart(std::uint64_t grantor, Nanos now_ns) {
  Outcome out;
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    const bool blank = entry.outstanding == 0 && entry.spent_total == 0 && entry.given_back == 0;
    if (!blank && entry.parked) {
      out.now.push_back(answer(it->first, entry, LeaseStatus::unknown));
    }
    entry.credit = 0;
    if (entry.answered) entry.answered->grantor = grantor;
    it = blank ? std::next(it) : entries_.erase(it);
  }
  lent_ = Lent{grantor, 0, {}};
  level_ = {};
  as_of_ns_ = now_ns;
  return out;
}

/// The lease from above is over, or there has been none yet: the leases that it backed have ended
/// by their own margins, and what is not known to be left of them is spent.
void Ledger::end_backing(Nanos now_ns) {
  std::erase_if(entries_, [&](const auto& item) {
    const Entry& entry = item.second;
    counters_.burnt += static_cast<std::uint64_t>(entry.outstanding);
    lent_->reports.spent = add_saturating(lent_->reports.spent, entry.outstanding);
    return entry.outstanding > 0 || entry.expires_ns <= now_ns;
  });
  level_ = {};
  clamp();
  as_of_ns_ = std::max(as_of_ns_, now_ns);
}

Ledger::Outcome Ledger::recall_below(Nanos now_ns) {
  Outcome out;
  advance(now_ns);
  recall(now_ns, out);
  return out;
}

Ledger::Outcome Ledger::say_empty(Nanos now_ns) {
  Outcome out;
  advance(now_ns);
  for (auto& [lessee, entry] : entries_) {
    if (!entry.parked || entry.asked_again) continue;
    entry.refreshed_ns = now_ns;
    out.now.push_back(answer(lessee, entry, LeaseStatus::empty));
  }
  return out;
}

void Ledger::drop_parked(const LesseeId& lessee) {
  const auto found = entries_.find(lessee);
  if (found != entries_.end()) unpark(found->second);
}

std::int64_t Ledger::least_served() const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& [lessee, entry] : entries_) {
    if (entry.parked) least = std::min(least, entry.served);
  }
  return least == std::numeric_limits<std::int64_t>::max() ? 0 : least;
}

/// Who waits, by turns: whoever will have been served least (start-time fair queueing; Goyal, Vin,
/// Cheng, IEEE/ACM ToN 5, 1997). A large need comes when the others have had as much.
std::vector<LesseeId> Ledger::fair_order() const {
  std::vector<std::pair<std::int64_t, LesseeId>> tags;
  for (const auto& [lessee, entry] : entries_) {
    if (!entry.parked || entry.asked_again) continue;
    tags.emplace_back(add_saturating(entry.served, std::max<std::int64_t>(1, entry.need)), lessee);
  }
  std::sort(tags.begin(), tags.end());
  std::vector<LesseeId> order;
  order.reserve(tags.size());
  for (auto& [tag, lessee] : tags) order.push_back(std::move(lessee));
  return order;
}

/// Whole needs in the order of turns, as far as there is enough; what is left goes to those whose
/// need is met, up to their targets. A part of a need would only lie there: the relay gives up what
/// it holds when it asks for more (E6).
void Ledger::share_lent(const std::map<LesseeId, std::int64_t>& targets) {
  const std::vector<LesseeId> order = fair_order();
  for (const LesseeId& lessee : order) {
    Entry& entry = entries_.at(lessee);
    const std::int64_t missing = std::max<std::int64_t>(1, entry.need) - entry.credit;
    if (missing > 0 && missing <= free()) entry.credit += missing;
  }
  for (const LesseeId& lessee : order) {
    Entry& entry = entries_.at(lessee);
    if (entry.credit < std::max<std::int64_t>(1, entry.need)) continue;
    entry.credit += std::clamp<std::int64_t>(targets.at(lessee) - entry.credit, 0, free());
  }
}

std::int64_t Ledger::need_of(const LesseeId& lessee) const {
  const auto found = entries_.find(lessee);
  return found == entries_.end() ? 1 : std::max<std::int64_t>(1, found->second.need);
}

Ledger::Demand Ledger::demand(Nanos now_ns) const {
  Demand demand;
  for (const auto& [lessee, entry] : entries_) {
    const bool active = entry.parked || entry.outstanding > 0;
    if (entry.parked && !entry.asked_again) demand.want = add_saturating(demand.want, entry.want);
    if (active || now_ns - entry.heard_ns <= kContenderNs) {
      ++demand.lessees;
      demand.rate_per_s = add_saturating(demand.rate_per_s, entry.rate_per_s);
    }
  }
  const std::vector<LesseeId> order = fair_order();
  if (!order.empty()) demand.need = need_of(order.front());
  return demand;
}

Ledger::Reports Ledger::take_reports() { return std::exchange(lent_->reports, {}); }

}  // namespace weir::lease
