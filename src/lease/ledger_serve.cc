// Who gets how much: the serving half of the ledger (PROTOCOL E6, G2-G4).

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"
#include "src/lease/ledger.h"
#include "src/lease/sizing.h"

namespace weir::lease {
namespace {

__extension__ using Wide = __int128;

std::int64_t narrow(Wide value) {
  return static_cast<std::int64_t>(std::clamp<Wide>(value, 0, INT64_MAX));
}

}  // namespace

/// The portion in which parked lessees (each one behind a relay) are served instead of token by
/// token: kShortPortionNs of refill, which whoever waits hardly notices; and while demand is at
/// least one and a quarter times the rate, so that most checks are denied anyway, more. Never so
/// much that one turn of all takes longer than requests live, nor more than fits in the bucket for
/// each of them: what never fits is never granted.
std::int64_t Ledger::portion() const {
  std::int64_t parked = 0;
  std::int64_t active = 0;
  for (const auto& [lessee, entry] : entries_) {
    if (entry.parked) parked += entry.weight;
    if (entry.parked || entry.outstanding > 0) active += entry.weight;
  }
  if (parked == 0 || numbers_.rate_period_ns <= 0) return 0;
  const Wide count = numbers_.rate_count;
  const Wide period = numbers_.rate_period_ns;
  const bool overloaded = is_overloaded();
  const Wide by_time = count * (overloaded ? kPortionNs : kShortPortionNs) / period;
  const Wide by_turn = count * (terms_.ttl_ns / 1000 * kTurnPermille) / period / parked;
  // What is out and spent blocks the refill until it is told: leave most of the bucket free for it.
  const std::int64_t part = std::max<std::int64_t>(1, numbers_.capacity / (kRoomParts * active));
  const Wide by_room = std::min(part, ceiling() / parked);
  const Wide wanted = overloaded ? std::max<Wide>(by_time, kPortionTokens) : by_time;
  return narrow(std::min({wanted, by_turn, by_room}));
}

/// Demand of those who wait or hold tokens is at least one and a quarter times the rate.
bool Ledger::is_overloaded() const {
  if (windowed()) return false;
  Wide demand = 0;
  for (const auto& [lessee, entry] : entries_) {
    if (entry.parked || entry.outstanding > 0) demand += entry.rate_per_s;
  }
  return demand * numbers_.rate_period_ns * 4 >= Wide{numbers_.rate_count} * kSecond * 5;
}

/// What a parked lessee waits for: as much as it wants within the taper or its portion, at least
/// its need.
std::int64_t Ledger::target(const Entry& entry, std::int64_t taper, std::int64_t portion) const {
  if (entry.strict) return free() + entry.credit >= entry.want ? entry.want : entry.need;
  const std::int64_t least = std::max<std::int64_t>(1, entry.need);
  portion = multiply_saturating(portion, entry.weight);
  return std::max(least, std::min(entry.want, std::max(taper, portion)));
}

std::map<LesseeId, std::int64_t> Ledger::targets(Nanos now_ns) const {
  std::vector<Claim> claims;
  std::vector<std::pair<const LesseeId*, const Entry*>> contenders;
  for (const auto& [lessee, entry] : entries_) {
    if (entry.want <= 0 || (!entry.parked && now_ns - entry.heard_ns > kContenderNs)) continue;
    claims.push_back({entry.want, entry.weight});
    contenders.emplace_back(&lessee, &entry);
  }
  const std::vector<std::int64_t> fair = max_min_shares(level_.tokens, claims);
  Wide sum = 0;
  for (const std::int64_t share : fair) sum += share;
  const std::int64_t turn = portion();
  std::map<LesseeId, std::int64_t> result;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const auto& [lessee, entry] = contenders[i];
    if (!entry->parked) continue;
    const std::int64_t taper =
        sum == 0 ? 0 : narrow(static_cast<Wide>(level_.tokens) * fair[i] / sum / 2);
    result.emplace(*lessee, target(*entry, taper, turn));
  }
  return result;
}

/// Deals the free tokens out to the parked, in parts by their weight up to each one's target; odd
/// tokens go round in turn, as many at a turn as the weight, so that a large need saves up within
/// its own share (E6: deficit round robin).
void Ledger::share_out(const std::map<LesseeId, std::int64_t>& targets) {
  std::int64_t left = free();
  while (left > 0) {
    std::vector<std::map<LesseeId, std::int64_t>::const_iterator> hungry;
    for (auto it = targets.begin(); it != targets.end(); ++it) {
      if (entries_.at(it->first).credit < it->second) hungry.push_back(it);
    }
    if (hungry.empty()) return;
    const auto first = std::find_if(hungry.begin(), hungry.end(), [&](const auto& it) {
      if (it->first == turn_) return turn_given_ < entries_.at(turn_).weight;
      return turn_ < it->first;
    });
    if (!WEIR_MUTANT(first_come)) std::rotate(hungry.begin(), first, hungry.end());
    std::int64_t weights = 0;
    for (const auto& it : hungry) weights += entries_.at(it->first).weight;
    const std::int64_t part =
        WEIR_MUTANT(first_come) ? left : std::max<std::int64_t>(1, left / weights);
    for (const auto& it : hungry) {
      if (left == 0) return;
      Entry& entry = entries_.at(it->first);
      if (it->first != turn_ || turn_given_ >= entry.weight) turn_given_ = 0;
      turn_ = it->first;
      const std::int64_t most = multiply_saturating(part, entry.weight) - turn_given_;
      const std::int64_t given = std::min({most, left, it->second - entry.credit});
      entry.credit += given;
      left -= given;
      turn_given_ += given;
    }
  }
}

/// Breaks the tie of a full bucket in which nobody has enough: needs that save up side by side
/// would wait for each other for ever (limit 5, cost 3, three edges: 2, 2 and 1). Whoever lacks
/// least takes it from those who lack most; they keep the rest and come first in their turn.
void Ledger::pool(const std::map<LesseeId, std::int64_t>& targets) {
  if (level_.tokens < ceiling()) return;
  const auto lack = [&](const auto& it) { return it->second - entries_.at(it->first).credit; };
  std::vector<std::map<LesseeId, std::int64_t>::const_iterator> savers;
  for (auto it = targets.begin(); it != targets.end(); ++it) {
    if (lack(it) <= 0) return;
    savers.push_back(it);
  }
  if (savers.empty()) return;
  std::stable_sort(savers.begin(), savers.end(),
                   [&](const auto& a, const auto& b) { return lack(a) < lack(b); });
  Entry& first = entries_.at(savers.front()->first);
  std::int64_t missing = lack(savers.front());
  if (missing > level_.tokens - first.credit) return;
  const std::int64_t loose = std::min(missing, free());
  first.credit += loose;
  missing -= loose;
  for (auto it = savers.rbegin(); missing > 0 && it != savers.rend() - 1; ++it) {
    Entry& other = entries_.at((*it)->first);
    const std::int64_t moved = std::min(missing, other.credit);
    other.credit -= moved;
    first.credit += moved;
    missing -= moved;
  }
}

/// Grants whatever is saved up. What one gets lowers the taper of the others, so look again until
/// nobody has enough.
void Ledger::grant_saved(Nanos now_ns, Outcome& out) {
  for (bool again = true; again;) {
    again = false;
    const auto goals = targets(now_ns);
    if (goals.empty()) return;
    if (lent_) {
      share_lent(goals);
    } else {
      share_out(goals);
      pool(goals);
    }
    for (const auto& [lessee, goal] : goals) {
      Entry& entry = entries_.at(lessee);
      if (entry.credit < goal || entry.asked_again) continue;
      grant(lessee, entry, now_ns, out);
      again = again || !entry.parked;
    }
  }
}

/// What a parked lessee hears while it gets nothing.
LeaseAnswer Ledger::not_now(const LesseeId& lessee, const Entry& entry, Nanos now_ns) const {
  if (withholds_) return answer(lessee, entry, LeaseStatus::pending);
  LeaseAnswer empty = answer(lessee, entry, LeaseStatus::empty);
  empty.retry_ns = retry_for(lessee, entry, now_ns);
  return empty;
}

void Ledger::serve(Nanos now_ns, Outcome& out) {
  if (!withholds_) grant_saved(now_ns, out);
  for (auto& [lessee, entry] : entries_) {
    if (!entry.parked || entry.answered) continue;
    // Parked just now: it hears at once that there is nothing yet (G3). What it holds lives on.
    LeaseAnswer empty = not_now(lessee, entry, now_ns);
    entry.refreshed_ns = now_ns;
    if (entry.outstanding > 0 && may_extend()) extend(entry, empty, now_ns);
    entry.answered = empty;
    const bool waits = empty.ttl_ns > 0 && !WEIR_MUTANT(renewal_uncommitted);
    (waits ? out.after_commit : out.now).push_back(std::move(empty));
  }
  WEIR_ASSERT(level_.tokens >= 0 && level_.tokens <= ceiling());
}

/// Grants a parked lessee what has been saved for it, or bids it ask again when its request is so
/// old that the tokens would arrive with little of their life left (G3).
void Ledger::grant(const LesseeId& lessee, Entry& entry, Nanos now_ns, Outcome& out) {
  if (ends_soon()) return;
  const bool is_old = now_ns - entry.heard_ns > ttl_ns() / 1000 * kTooOldPermille;
  if (is_old && !WEIR_MUTANT(grants_to_old)) {
    entry.asked_again = true;
    entry.refreshed_ns = now_ns;
    out.now.push_back(answer(lessee, entry, LeaseStatus::ask_again));
    return;
  }
  const std::int64_t tokens = entry.credit;
  unpark(entry);
  level_.tokens -= tokens;
  entry.outstanding += tokens;
  entry.served = add_saturating(entry.served, tokens);
  entry.need = 0;
  // Not idle before its caller, who may have been told to come back, has had the time to.
  entry.recalled_ns = add_saturating(now_ns, kComeBackNs - kRecallEveryNs);
  LeaseAnswer granted = answer(lessee, entry, LeaseStatus::granted);
  granted.granted = tokens;
  extend(entry, granted, now_ns);
  entry.answered = granted;
  out.after_commit.push_back(std::move(granted));
  out.changed = true;
}

/// Says `empty` again to whoever waits: a denial is never older than a second, and nobody polls
/// (E7).
void Ledger::refresh_parked(Nanos now_ns, Outcome& out) {
  for (auto& [lessee, entry] : entries_) {
    if (!entry.parked || entry.asked_again || now_ns - entry.refreshed_ns < kParkedRefreshNs)
      continue;
    entry.refreshed_ns = now_ns;
    out.now.push_back(not_now(lessee, entry, now_ns));
  }
}

/// While a need cannot be met soon, asks those who hold tokens and do not wait to give back what
/// lies idle (E6, G4); repeated until it is booked.
void Ledger::recall_idle(Nanos now_ns, Outcome& out) {
  if (withholds_) return;
  if (lent_) return;  // only the owner knows whether there is more
  std::int64_t missing = 0;
  for (const auto& [lessee, entry] : entries_) {
    if (entry.parked)
      missing = std::max(missing, std::max<std::int64_t>(1, entry.need) - entry.credit);
  }
  if (missing <= free() && !exceeds()) return;
  if (missing > 0 && time_to_room(add_saturating(reserved(), missing), now_ns) < kPortionNs) return;
  if (missing == 0 && !exceeds()) return;
  recall(now_ns, out);
}

void Ledger::recall(Nanos now_ns, Outcome& out) {
  for (auto& [lessee, entry] : entries_) {
    if (entry.outstanding == 0 || entry.sequence == kOutlivedSequence) continue;
    if (entry.parked && !exceeds()) continue;
    if (entry.recalled_ns > now_ns - kRecallEveryNs) continue;
    entry.recalled_ns = now_ns;
    out.now.push_back(answer(lessee, entry, LeaseStatus::recall));
  }
}

/// How long until the level can be `tokens`: by refill, and by leases that must end first; in a
/// window what ends is spent, so only the next one brings more.
Nanos Ledger::time_to_room(std::int64_t tokens, Nanos now_ns) const {
  if (windowed()) {
    if (tokens <= level_.tokens) return 0;
    return window_ ? window_left_ns(now_ns) : kForever;
  }
  const Nanos refill_ns = limit::time_until(level_, numbers_, tokens);
  std::int64_t room = ceiling();
  if (tokens <= room) return refill_ns;
  std::vector<std::pair<Nanos, std::int64_t>> ends;
  for (const auto& [lessee, entry] : entries_)
    ends.emplace_back(entry.expires_ns, entry.outstanding);
  std::sort(ends.begin(), ends.end());
  for (const auto& [end_ns, tokens_out] : ends) {
    room = add_saturating(room, tokens_out);
    // What ends is spent, so the missing part still has to flow in after that.
    if (tokens <= room) {
      const Nanos missing_ns = limit::time_until({ceiling(), 0}, numbers_, tokens);
      return std::max(refill_ns, add_saturating(subtract_saturating(end_ns, now_ns), missing_ns));
    }
  }
  return kForever;
}

/// When the need of a parked lessee will be met if nothing is given back meanwhile: its own missing
/// tokens and, while several wait, those that the others get in the same turns. Under overload
/// whoever holds tokens now has spent them and waits too before the turn is over. -1: never.
Nanos Ledger::retry_for(const LesseeId& lessee, const Entry& entry, Nanos now_ns) const {
  if (entry.need > numbers_.capacity) return -1;
  const auto goals = targets(now_ns);
  const auto own = goals.find(lessee);
  const std::int64_t goal =
      own == goals.end() ? std::max<std::int64_t>(1, entry.need) : own->second;
  const std::int64_t missing = std::max<std::int64_t>(0, goal - entry.credit);
  std::int64_t ahead = 0;
  for (const auto& [other, other_goal] : goals) {
    if (other == lessee) continue;
    const std::int64_t part = multiply_saturating(missing, entries_.at(other).weight);
    ahead = add_saturating(ahead, std::min(part / entry.weight, other_goal));
  }
  if (is_overloaded()) {
    const std::int64_t turn = portion();
    for (const auto& [other, holder] : entries_) {
      const bool comes_back = !holder.parked && holder.outstanding > 0 && holder.rate_per_s > 0 &&
                              now_ns - holder.heard_ns <= kContenderNs;
      if (!comes_back) continue;
      const std::int64_t part = multiply_saturating(missing, holder.weight) / entry.weight;
      ahead = add_saturating(ahead, std::min(part, multiply_saturating(turn, holder.weight)));
    }
  }
  const std::int64_t tokens =
      add_saturating(reserved(), add_saturating(missing, std::max<std::int64_t>(0, ahead)));
  const std::int64_t least = std::max<std::int64_t>(1, entry.need);
  const Nanos wait_ns = time_to_room(std::min(std::max(tokens, least), numbers_.capacity), now_ns);
  return wait_ns == kForever ? kForever : std::max<Nanos>(wait_ns, 1);
}

/// How long from as_of until the next parked lessee may be served by refill.
Nanos Ledger::next_service() const {
  std::int64_t missing = INT64_MAX;
  const auto goals = targets(as_of_ns_);
  for (const auto& [lessee, goal] : goals) {
    const Entry& entry = entries_.at(lessee);
    if (!entry.asked_again && goal > entry.credit) missing = std::min(missing, goal - entry.credit);
  }
  if (missing == INT64_MAX) return kForever;
  // A full bucket breaks ties (see pool), after that only another request changes anything.
  const std::int64_t tokens = std::min(add_saturating(reserved(), missing), ceiling());
  if (tokens <= level_.tokens) return kForever;
  return limit::time_until(level_, numbers_, tokens);
}

Nanos Ledger::next_deadline() const {
  Nanos next_ns = kForever;
  if (lent_ && (level_.tokens > 0 || outstanding() > 0)) next_ns = lent_->deadline_ns;
  bool waiting = false;
  for (const auto& [lessee, entry] : entries_) {
    next_ns = std::min(next_ns, entry.expires_ns);
    if (!entry.parked) continue;
    waiting = true;
    next_ns = std::min(next_ns, parked_until(entry));
    if (!entry.asked_again) {
      next_ns = std::min(next_ns, add_saturating(entry.refreshed_ns, kParkedRefreshNs));
    }
  }
  if (!waiting || withholds_) return next_ns;
  if (const Nanos left_ns = window_left_ns(as_of_ns_); windowed() && left_ns > 0) {
    next_ns = std::min(next_ns, add_saturating(as_of_ns_, left_ns));
  }
  return std::min(next_ns, add_saturating(as_of_ns_, std::max<Nanos>(next_service(), 1)));
}

}  // namespace weir::lease
