#include "src/lease/ledger.h"

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"

namespace weir::lease {

void Ledger::Outcome::append(Outcome&& other) {
  std::move(other.now.begin(), other.now.end(), std::back_inserter(now));
  std::move(other.after_commit.begin(), other.after_commit.end(), std::back_inserter(after_commit));
  changed = changed || other.changed;
}

Ledger::Ledger(std::string bucket, const LimitNumbers& numbers, std::uint64_t policy_version,
               LeaseTerms terms, Nanos now_ns)
    : bucket_(std::move(bucket)),
      numbers_(numbers),
      policy_version_(policy_version),
      terms_(terms),
      level_{windowed() ? 0 : numbers.capacity, 0},
      as_of_ns_(now_ns) {}

Ledger::Ledger(std::string bucket, const LedgerRecord& record, Nanos age_ns, LeaseTerms terms,
               Nanos now_ns)
    : bucket_(std::move(bucket)),
      numbers_(record.numbers),
      policy_version_(record.policy_version),
      terms_(terms),
      level_{record.level, record.fraction},
      as_of_ns_(subtract_saturating(now_ns, std::max<Nanos>(0, age_ns))) {
  for (const LesseeRecord& stored : record.lessees) {
    Entry entry;
    entry.sequence = stored.sequence;
    entry.outstanding = stored.outstanding;
    entry.spent_total = stored.spent_total;
    entry.given_back = stored.given_back;
    entry.relay = stored.relay;
    entry.expires_ns = add_saturating(as_of_ns_, stored.ttl_remaining_ns);
    entry.heard_ns = as_of_ns_;
    entries_.emplace(stored.lessee, entry);
  }
  if (record.window_end_ns > record.window_start_ns) {
    window_ = {{record.window_start_ns, record.window_end_ns}, record.used};
  }
  clamp();
  // Of a window the time since is replayed once it is known when it ended.
  if (!windowed()) advance(now_ns);
}

std::int64_t Ledger::outstanding() const {
  std::int64_t sum = 0;
  for (const auto& [lessee, entry] : entries_) sum = add_saturating(sum, entry.outstanding);
  return sum;
}

std::int64_t Ledger::reserved() const {
  std::int64_t sum = 0;
  for (const auto& [lessee, entry] : entries_) sum = add_saturating(sum, entry.credit);
  return sum;
}

/// What may be free and out on lease together: of a window what has not been spent in it.
std::int64_t Ledger::room() const {
  if (!windowed()) return numbers_.capacity;
  if (!window_) return 0;
  return std::max<std::int64_t>(0, subtract_saturating(numbers_.capacity, window_->used));
}

std::int64_t Ledger::ceiling() const {
  if (WEIR_MUTANT(clamp_ignores_leases)) return room();
  return std::max<std::int64_t>(0, subtract_saturating(room(), outstanding()));
}

/// While more is out than a lowered limit allows, no TTL is extended (PROTOCOL D8); nor is one at
/// the very end of a window.
bool Ledger::may_extend() const { return !withholds_ && !exceeds() && !ends_soon(); }

/// True when a lease would end, with its window or with the lease that backs it, before it is of
/// use.
bool Ledger::ends_soon() const {
  if (lent_) return ttl_ns() < terms_.ttl_ns / 1000 * kShortestLentPermille;
  return windowed() && ttl_ns() < kShortestLeaseNs;
}

/// How long a lease lasts from now on: at most to the end of its window (H2), and of a sub-lease so
/// long that its grantor stops to count it when the lease that backs it ends (F2).
Nanos Ledger::ttl_ns() const {
  if (lent_ && !WEIR_MUTANT(relay_outlives_backing)) {
    const Nanos left_ns = subtract_saturating(lent_->deadline_ns, as_of_ns_);
    return std::clamp<Nanos>(terms_.ttl_within(left_ns), 0, terms_.ttl_ns);
  }
  if (!windowed() || WEIR_MUTANT(lease_outlives_window)) return terms_.ttl_ns;
  return std::min(terms_.ttl_ns, window_left_ns(as_of_ns_));
}

/// Until when a lease granted now counts as out.
Nanos Ledger::lease_end_ns(Nanos now_ns) const {
  return add_saturating(now_ns, LeaseTerms::grantor_ns(ttl_ns(), terms_.slew_permille));
}

/// Until when an entry that holds nothing is remembered: it needs no backing.
Nanos Ledger::entry_end_ns(Nanos now_ns) const {
  return lent_ ? add_saturating(now_ns, terms_.grantor_ns()) : lease_end_ns(now_ns);
}

void Ledger::extend(Entry& entry, LeaseAnswer& answer, Nanos now_ns) const {
  answer.ttl_ns = ttl_ns();
  live_until(entry, lease_end_ns(now_ns), now_ns);
}

void Ledger::live_until(Entry& entry, Nanos end_ns, Nanos now_ns) const {
  if (end_ns <= entry.expires_ns) return;
  entry.expires_ns = end_ns;
  entry.margin_ns = end_ns - now_ns - ttl_ns();
}

void Ledger::refill_to(Nanos instant_ns) {
  if (instant_ns <= as_of_ns_) return;
  level_ = limit::refill(level_, numbers_, subtract_saturating(instant_ns, as_of_ns_), ceiling());
  as_of_ns_ = instant_ns;
}

void Ledger::clamp() {
  const std::int64_t most = ceiling();
  if (windowed() || level_.tokens >= most) level_ = {most, 0};
  if (reserved() > level_.tokens) {
    for (auto& [lessee, entry] : entries_) entry.credit = 0;
  }
  WEIR_ASSERT(level_.tokens >= 0);
}

/// Replays refill and expiries in time order: until a lease's expiry the clamp counts it (D5), and
/// what expires is spent (D6).
void Ledger::advance(Nanos now_ns) {
  if (lent_ && now_ns >= lent_->deadline_ns) return end_backing(now_ns);
  while (true) {
    auto first = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (it->second.expires_ns > now_ns) continue;
      if (first == entries_.end() || it->second.expires_ns < first->second.expires_ns) first = it;
    }
    if (first == entries_.end()) break;
    if (!WEIR_MUTANT(burnt_before_refill)) refill_to(first->second.expires_ns);
    counters_.burnt += static_cast<std::uint64_t>(first->second.outstanding);
    if (WEIR_MUTANT(expired_put_back)) level_.tokens += first->second.outstanding;
    count_used(first->second.outstanding, 0);
    if (lent_) lent_->reports.spent += first->second.outstanding;
    entries_.erase(first);
  }
  refill_to(now_ns);
}

Ledger::Outcome Ledger::request(const LeaseRequest& request, Nanos now_ns) {
  Outcome out;
  advance(now_ns);
  Entry* entry = find_or_create(request, now_ns, out);
  if (entry == nullptr) return out;
  if (request.sequence < entry->sequence) return out;
  if (request.sequence == entry->sequence && !WEIR_MUTANT(equal_booked_again)) {
    repeat_answer(request, *entry, now_ns, out);
    return out;
  }
  if (!book(request, *entry)) {
    ++counters_.breaches;
    out.now.push_back(answer(request.lessee, *entry, LeaseStatus::unknown));
    out.now.back().sequence = request.sequence;
    return out;
  }
  out.changed = true;
  entry->heard_ns = now_ns;
  answer_booked(request, *entry, now_ns, out);
  serve(now_ns, out);
  recall_idle(now_ns, out);
  return out;
}

/// The entry of a request's lessee. No live entry: only a lessee that says it never had anything
/// gets one (D3); the others hear `unknown`. Null: `out` has the answer.
Ledger::Entry* Ledger::find_or_create(const LeaseRequest& request, Nanos now_ns, Outcome& out) {
  const auto found = entries_.find(request.lessee);
  const bool has_history = request.held != 0 || request.spent_total != 0 || request.given_back != 0;
  const bool believed = lent_ && WEIR_MUTANT(relay_counters_survive);
  const bool of_another = request.grantor != grantor() && has_history && !believed;
  const bool outlived = found != entries_.end() && found->second.sequence == kOutlivedSequence;
  if (found != entries_.end() && !outlived && !of_another) return &found->second;
  Entry fresh;
  live_until(fresh, entry_end_ns(now_ns), now_ns);
  fresh.heard_ns = now_ns;
  fresh.relay = request.hop == LeaseHop::from_relay;
  if (believed) {
    fresh.outstanding = request.held;
    fresh.spent_total = request.spent_total;
    fresh.given_back = request.given_back;
  } else if (outlived || of_another || (has_history && !WEIR_MUTANT(breach_credited))) {
    out.now.push_back(answer(request.lessee, fresh, LeaseStatus::unknown));
    out.now.back().sequence = request.sequence;
    return nullptr;
  }
  if (is_crowded_for(request)) {
    out.now.push_back(answer(request.lessee, fresh, LeaseStatus::crowded));
    out.now.back().sequence = request.sequence;
    return nullptr;
  }
  if (WEIR_MUTANT(restart_overwrites)) {
    for (auto& [lessee, entry] : entries_) {
      if (lessee.node == request.lessee.node) level_.tokens += std::exchange(entry.outstanding, 0);
    }
  }
  return &entries_.emplace(request.lessee, fresh).first->second;
}

/// True when the record has no place for one more such lessee (D9); those with nothing out or
/// parked leave first.
bool Ledger::is_crowded_for(const LeaseRequest& request) {
  const bool relay = request.hop == LeaseHop::from_relay;
  const auto full = [&] {
    const auto relays = static_cast<std::size_t>(std::count_if(
        entries_.begin(), entries_.end(), [](const auto& item) { return item.second.relay; }));
    const std::size_t edges = entries_.size() - relays;
    return entries_.size() >= kMaxLesseesPerRecord ||
           (!relay && !lent_ && edges >= kMaxLesseesPerRecord - kRelayPlacesPerRecord);
  };
  if (!full()) return false;
  std::erase_if(entries_, [](const auto& item) {
    return item.second.outstanding == 0 && !item.second.parked;
  });
  return full() && !WEIR_MUTANT(lessees_unbounded);
}

/// The same sequence again changes nothing. This activation repeats its own answer; after a
/// take-over the answer follows from the record, and is committed once more before it leaves (D4).
void Ledger::repeat_answer(const LeaseRequest& request, Entry& entry, Nanos now_ns, Outcome& out) {
  if (entry.answered) {
    auto& queue = entry.answered->ttl_ns > 0 ? out.after_commit : out.now;
    queue.push_back(*entry.answered);
    out.changed = out.changed || entry.answered->ttl_ns > 0;
    return;
  }
  if (request.spent_total != entry.spent_total || request.held < 0 ||
      request.held > entry.outstanding || request.given_back != entry.given_back) {
    ++counters_.breaches;
    out.now.push_back(answer(request.lessee, entry, LeaseStatus::unknown));
    return;
  }
  LeaseAnswer again = answer(request.lessee, entry, LeaseStatus::granted);
  again.granted = entry.outstanding - request.held;
  if (may_extend()) extend(entry, again, now_ns);
  entry.answered = again;
  out.after_commit.push_back(std::move(again));
  out.changed = true;
}

/// Books what a lessee says of itself (D4, D7). False: it says what cannot be, and nothing changed.
bool Ledger::book(const LeaseRequest& request, Entry& entry) {
  if (request.held < 0 || request.want < 0 || request.need < 0) return false;
  if (request.spent_total < entry.spent_total || request.given_back < entry.given_back)
    return false;
  const std::int64_t newly_spent = request.spent_total - entry.spent_total;
  const bool breach =
      newly_spent > entry.outstanding || request.held > entry.outstanding - newly_spent;
  if (breach && !WEIR_MUTANT(breach_credited)) return false;
  const std::int64_t returned = entry.outstanding - newly_spent - request.held;
  const std::int64_t given_back = request.given_back - entry.given_back;
  level_.tokens = add_saturating(level_.tokens, returned);
  if (lent_) {
    lent_->reports.spent = add_saturating(lent_->reports.spent, newly_spent);
    lent_->reports.given_back = add_saturating(lent_->reports.given_back, given_back);
  } else {
    level_.tokens = add_saturating(level_.tokens, given_back);
  }
  count_used(newly_spent, given_back);
  entry.sequence = request.sequence;
  entry.outstanding = request.held;
  entry.spent_total = request.spent_total;
  entry.given_back = request.given_back;
  entry.want = request.want;
  entry.need = request.need;
  entry.rate_per_s = std::max<std::int64_t>(0, request.rate_per_s);
  entry.strict = request.strict;
  entry.weight = std::clamp<std::int64_t>(request.weight, 1, kMaxLesseesPerRecord);
  entry.answered.reset();
  entry.asked_again = false;
  clamp();
  return true;
}

/// Parks a booked request that wants tokens, so that `serve` treats it like the others; answers one
/// that wants none.
void Ledger::answer_booked(const LeaseRequest& request, Entry& entry, Nanos now_ns, Outcome& out) {
  const std::int64_t saved = std::min(entry.credit, std::max(request.want, request.need));
  unpark(entry);
  if (request.need > numbers_.capacity && !withholds_) {
    LeaseAnswer never = answer(request.lessee, entry, LeaseStatus::empty);
    never.retry_ns = -1;
    entry.answered = never;
    out.now.push_back(std::move(never));
    return;
  }
  if (request.want > 0 || request.need > 0) {
    entry.parked = true;
    entry.credit = saved;
    if (lent_) entry.served = std::max(entry.served, least_served());
    entry.want = std::max(request.want, request.need);
    if (entry.outstanding == 0) live_until(entry, entry_end_ns(now_ns), now_ns);
    return;
  }
  LeaseAnswer report = answer(request.lessee, entry, LeaseStatus::granted);
  if (entry.outstanding > 0 && may_extend()) extend(entry, report, now_ns);
  entry.answered = report;
  const bool waits = report.ttl_ns > 0 && !WEIR_MUTANT(renewal_uncommitted);
  (waits ? out.after_commit : out.now).push_back(std::move(report));
}

void Ledger::unpark(Entry& entry) {
  entry.parked = false;
  entry.credit = 0;
  entry.asked_again = false;
}

/// When a parked request is given up.
Nanos Ledger::parked_until(const Entry& entry) const {
  const Nanos end_ns = add_saturating(entry.heard_ns, terms_.ttl_ns / kParkedPartOfTtl);
  if (!entry.asked_again) return end_ns;
  return std::min(end_ns, add_saturating(entry.refreshed_ns, kAskAgainNs));
}

Ledger::Outcome Ledger::tick(Nanos now_ns) {
  Outcome out;
  const std::size_t before = entries_.size();
  advance(now_ns);
  out.changed = entries_.size() != before;
  for (auto& [lessee, entry] : entries_) {
    if (entry.parked && now_ns >= parked_until(entry)) unpark(entry);
  }
  serve(now_ns, out);
  refresh_parked(now_ns, out);
  recall_idle(now_ns, out);
  return out;
}

Ledger::Outcome Ledger::set_numbers(const LimitNumbers& numbers, std::uint64_t policy_version,
                                    Nanos now_ns) {
  Outcome out;
  advance(now_ns);
  policy_version_ = policy_version;
  if (numbers == numbers_) return out;
  if (!windowed() && !window_) carried_ = subtract_saturating(ceiling(), level_.tokens);
  level_ = limit::rescale(level_, numbers_.rate_period_ns, numbers.rate_period_ns);
  numbers_ = numbers;
  clamp();
  out.changed = true;
  serve(now_ns, out);
  return out;
}

Ledger::Outcome Ledger::withhold(bool withholds, Nanos now_ns) {
  Outcome out;
  if (withholds == withholds_) return out;
  advance(now_ns);
  withholds_ = withholds;
  serve(now_ns, out);
  return out;
}

Ledger::Outcome Ledger::reset(Nanos now_ns) {
  Outcome out;
  advance(now_ns);
  if (window_) window_->used = 0;
  carried_ = 0;
  level_ = {ceiling(), 0};
  out.changed = true;
  serve(now_ns, out);
  return out;
}

LedgerRecord Ledger::record(Nanos now_ns) {
  advance(now_ns);
  LedgerRecord record;
  record.level = level_.tokens;
  record.fraction = level_.fraction;
  record.numbers = numbers_;
  record.policy_version = policy_version_;
  if (window_) {
    record.window_start_ns = window_->span.start_ns;
    record.window_end_ns = window_->span.end_ns;
    record.used = window_->used;
  }
  for (const auto& [lessee, entry] : entries_) {
    if (entry.outstanding == 0) continue;
    record.lessees.push_back({lessee, entry.sequence, entry.outstanding, entry.spent_total,
                              entry.given_back, subtract_saturating(entry.expires_ns, now_ns),
                              entry.relay});
  }
  return record;
}

bool Ledger::quiet() const {
  return std::none_of(entries_.begin(), entries_.end(), [](const auto& item) {
    return item.second.outstanding > 0 || item.second.parked;
  });
}

std::vector<Ledger::LesseeView> Ledger::lessees() const {
  std::vector<LesseeView> views;
  for (const auto& [lessee, entry] : entries_) {
    views.push_back({lessee, entry.outstanding, entry.expires_ns, entry.parked, entry.relay});
  }
  return views;
}

LeaseAnswer Ledger::answer(const LesseeId& lessee, const Entry& entry, LeaseStatus status) const {
  LeaseAnswer answer;
  answer.bucket = bucket_;
  answer.lessee = lessee;
  answer.sequence = entry.sequence;
  answer.status = status;
  answer.level = level_.tokens;
  answer.outstanding = outstanding();
  answer.capacity = numbers_.capacity;
  answer.policy_version = policy_version_;
  answer.grantor = grantor();
  if (lent_) answer.hop = LeaseHop::to_relay;
  if (entry.relay) answer.hop = LeaseHop::from_relay;
  if (windowed() && !WEIR_MUTANT(lease_outlives_window)) {
    answer.window_left_ns = window_left_ns(as_of_ns_);
  }
  if (level_.tokens < ceiling()) {
    answer.next_token_ns = limit::time_until(level_, numbers_, level_.tokens + 1);
  }
  return answer;
}

}  // namespace weir::lease
