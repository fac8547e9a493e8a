#include "src/ownership/owner.h"

#include <algorithm>
#include <iterator>

#include "src/base/assert.h"
#include "src/base/mutants.h"

namespace weir::ownership {
namespace {

void move_all(std::vector<LeaseAnswer>& from, std::vector<LeaseAnswer>& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
  from.clear();
}

}  // namespace

Owner::Owner(OwnerConfig config, Epoch epoch, std::shared_ptr<const LimitBook> book, Nanos now_ns)
    : config_(config), epoch_(std::move(epoch)), book_(std::move(book)), idle_since_ns_(now_ns) {}

void Owner::step(Event event, const Instant& now, Effects& effects) {
  if (resigned_) return;
  const Nanos now_ns = now.boot_ns;
  if (WEIR_MUTANT(window_by_own_clock)) {
    wall_ns_ = now.wall_ns;
  } else if (now.wall_ns > 0) {
    wall_ns_ = std::clamp(now.wall_ns,
                          subtract_saturating(now.trusted_wall_ns, config_.max_clock_error_ns),
                          add_saturating(now.trusted_wall_ns, config_.max_clock_error_ns));
  } else {
    wall_ns_ = 0;
  }
  std::visit([&](auto&& what) { on(std::move(what), now_ns, effects); }, std::move(event));
  if (resigned_) return;
  commit_if_idle(now_ns, effects);
  for (LeaseAnswer& answer : effects.answers) answer.epoch = epoch_;
}

LeaseAnswer Owner::refusal(const LeaseRequest& request, LeaseStatus status) const {
  LeaseAnswer answer = answer_to(request, status);
  answer.policy_version = book_->version();
  return answer;
}

void Owner::on(Requested&& event, Nanos now_ns, Effects& effects) {
  idle_since_ns_ = now_ns;
  const std::string& name = event.request.bucket;
  auto found = buckets_.find(name);
  if (found == buckets_.end()) {
    if (!decode_bucket_key(name)) return;  // no edge of ours writes this
    found = buckets_.emplace(name, Bucket{}).first;
    effects.loads.push_back(name);
  }
  Bucket& bucket = found->second;
  bucket.used_ns = now_ns;
  if (bucket.ledger) {
    apply(bucket, event.request, now_ns, effects);
  } else if (bucket.waiting.size() < kMaxWaitingForRecord) {
    bucket.waiting.push_back(std::move(event.request));
  } else {
    effects.answers.push_back(refusal(event.request, LeaseStatus::pending));
  }
}

/// Whether a broken rule gives up a window that is not over. By H1: never.
bool Owner::forgets_window(const lease::Ledger& ledger, const BucketKey& key) const {
  const bool reopened = WEIR_MUTANT(window_reopened);
  const bool redefined = WEIR_MUTANT(window_redefined);
  if ((!reopened && !redefined) || !ledger.windowed() || !ledger.window()) return false;
  const limit::WindowSpan stored = *ledger.window();
  const auto span = book_->window(key, wall_ns_);
  if (!span || *span == stored) return false;
  return span->end_ns - span->start_ns == stored.end_ns - stored.start_ns ? reopened : redefined;
}

/// Tells the ledger the wall clock, and opens its next window when the last one is over.
void Owner::keep_window(const BucketKey& key, Bucket& bucket, Nanos now_ns, Effects& effects) {
  if (wall_ns_ <= 0) return;
  bucket.ledger->set_wall(wall_ns_, now_ns);
  if (!bucket.ledger->wants_window(now_ns) && !forgets_window(*bucket.ledger, key)) return;
  const auto span = book_->window(key, wall_ns_);
  if (span) take(bucket, bucket.ledger->open_window(*span, now_ns), effects);
}

/// Somebody has a higher version of the policy than this node: until it comes the bucket goes by
/// the numbers of its record, and nothing is granted (PROTOCOL D8).
bool Owner::lags(const Bucket& bucket) const {
  return bucket.met_version > book_->version() && !WEIR_MUTANT(older_policy_grants);
}

/// The policy's numbers rule from now on. What a window of the old numbers has left behind is
/// booked before.
void Owner::rule(const BucketKey& key, Bucket& bucket, Nanos now_ns, Effects& effects) {
  if (lags(bucket)) return take(bucket, bucket.ledger->withhold(true, now_ns), effects);
  keep_window(key, bucket, now_ns, effects);
  const auto numbers = book_->numbers(key);
  if (!numbers) return;
  take(bucket, bucket.ledger->set_numbers(*numbers, book_->version(), now_ns), effects);
  keep_window(key, bucket, now_ns, effects);
  take(bucket, bucket.ledger->withhold(false, now_ns), effects);
}

/// A limit that the policy no longer has is booked with the last known numbers and grants nothing.
void Owner::apply(Bucket& bucket, const LeaseRequest& request, Nanos now_ns, Effects& effects) {
  const auto key = decode_bucket_key(request.bucket);
  WEIR_ASSERT(key.has_value());
  bucket.met_version = std::max(bucket.met_version, request.policy_version);
  rule(*key, bucket, now_ns, effects);
  if (lags(bucket) || book_->numbers(*key)) {
    take(bucket, bucket.ledger->request(request, now_ns), effects);
    return;
  }
  LeaseRequest report = request;
  report.want = 0;
  report.need = 0;
  take(bucket, bucket.ledger->request(report, now_ns), effects);
  if (request.want > 0) effects.answers.push_back(refusal(request, LeaseStatus::no_limit));
}

void Owner::take(Bucket& bucket, lease::Ledger::Outcome&& outcome, Effects& effects) {
  move_all(outcome.now, effects.answers);
  bucket.dirty = bucket.dirty || outcome.changed || !outcome.after_commit.empty();
  move_all(outcome.after_commit, WEIR_MUTANT(answers_before_commit) ? effects.answers : gathered_);
}

/// A bucket of an earlier generation, or one that nobody remembers in a later one: what it had may
/// be anywhere, so that nothing is free and everything is out until no lease of then can live.
LedgerRecord Owner::drained(const std::optional<AgedRecord>& record,
                            const std::optional<LimitNumbers>& numbers) const {
  LedgerRecord left;
  if (record) left = record->record.ledger;
  if (!record) left.numbers = *numbers;
  Nanos longest_ns = config_.terms.grantor_ns();
  for (const LesseeRecord& lessee : left.lessees) {
    longest_ns = std::max(longest_ns, lessee.ttl_remaining_ns);
  }
  std::int64_t most = left.numbers.capacity;
  if (numbers) most = std::max(most, numbers->capacity);
  left.level = 0;
  left.fraction = 0;
  left.lessees = {{{"recovered", config_.generation}, 0, most, 0, 0, longest_ns}};
  return left;
}

void Owner::on(Loaded&& event, Nanos now_ns, Effects& effects) {
  const auto found = buckets_.find(event.bucket);
  if (found == buckets_.end() || found->second.ledger) return;
  Bucket& bucket = found->second;
  std::vector<LeaseRequest> waiting = std::move(bucket.waiting);
  bucket.waiting.clear();
  const auto key = decode_bucket_key(event.bucket);
  const auto numbers = key ? book_->numbers(*key) : std::nullopt;
  for (const LeaseRequest& request : waiting) {
    bucket.met_version = std::max(bucket.met_version, request.policy_version);
  }
  const bool unknown = event.record && !event.record->has_value() && (!numbers || lags(bucket));
  if (!event.record || unknown) {
    // Unreadable: nothing may be believed. Unknown to policy and store alike: nothing to own,
    // unless a policy is still to come.
    const bool comes = !event.record || lags(bucket);
    const LeaseStatus status = comes ? LeaseStatus::pending : LeaseStatus::no_limit;
    for (const LeaseRequest& request : waiting) effects.answers.push_back(refusal(request, status));
    buckets_.erase(found);
    return;
  }
  if (event.record->has_value() && (**event.record).record.ledger.moved_under != 0) {
    // It lives in another register now; its edges will hear which.
    for (const LeaseRequest& request : waiting) {
      effects.answers.push_back(refusal(request, LeaseStatus::pending));
    }
    buckets_.erase(found);
    return;
  }
  const bool earlier =
      config_.generation > 0 && (!event.record->has_value() ||
                                 (**event.record).record.ledger.generation < config_.generation);
  if (earlier && !WEIR_MUTANT(recovered_starts_full)) {
    const LedgerRecord left = drained(*event.record, numbers);
    bucket.ledger.emplace(event.bucket, left, 0, config_.terms, now_ns);
  } else if (event.record->has_value()) {
    const AgedRecord& aged = **event.record;
    const Nanos age_ns = WEIR_MUTANT(age_forfeited) ? 0 : aged.age_ns;
    bucket.ledger.emplace(event.bucket, aged.record.ledger, age_ns, config_.terms, now_ns);
  } else {
    bucket.ledger.emplace(event.bucket, *numbers, book_->version(), config_.terms, now_ns);
  }
  bucket.met_version = std::max(bucket.met_version, bucket.ledger->policy_version());
  for (const LeaseRequest& request : waiting) apply(bucket, request, now_ns, effects);
}

void Owner::on(Committed&& event, Nanos now_ns, Effects& effects) {
  if (!committing_ || event.id != commit_id_) return;
  committing_ = false;
  idle_since_ns_ = now_ns;
  move_all(in_flight_, effects.answers);
}

/// A failed write may or may not be there after a restart: the owner ends without releasing
/// anything (C5).
void Owner::on(CommitFailed&& event, Nanos, Effects& effects) {
  if (!committing_ || event.id != commit_id_) return;
  resigned_ = true;
  effects.resign = true;
  effects.commit.reset();
  effects.answers.clear();
}

void Owner::on(PolicyChanged&& event, Nanos now_ns, Effects& effects) {
  book_ = std::move(event.book);
  for (auto& [name, bucket] : buckets_) {
    if (!bucket.ledger) continue;
    const auto key = decode_bucket_key(name);
    WEIR_ASSERT(key.has_value());
    rule(*key, bucket, now_ns, effects);
  }
}

void Owner::on(Tick&&, Nanos now_ns, Effects& effects) {
  for (auto& [name, bucket] : buckets_) {
    if (!bucket.ledger || bucket.ledger->next_deadline() > now_ns) continue;
    const auto key = decode_bucket_key(name);
    WEIR_ASSERT(key.has_value());
    if (!lags(bucket)) keep_window(*key, bucket, now_ns, effects);
    take(bucket, bucket.ledger->tick(now_ns), effects);
  }
  drop_quiet(now_ns, effects);
}

/// What has answers waiting is stored at once; a mere report or return rides along, or is stored by
/// itself when its bucket goes quiet (B11).
void Owner::commit_if_idle(Nanos now_ns, Effects& effects) {
  if (committing_) return;
  const bool due =
      !gathered_.empty() || std::any_of(buckets_.begin(), buckets_.end(), [](const auto& item) {
        return item.second.dirty && item.second.ledger->quiet();
      });
  if (!due) return;
  Commit commit;
  commit.id = ++commit_id_;
  for (auto& [name, bucket] : buckets_) {
    if (!bucket.dirty) continue;
    commit.records.emplace_back(name, bucket.ledger->record(now_ns));
    commit.records.back().second.generation = config_.generation;
    bucket.dirty = false;
  }
  in_flight_ = std::move(gathered_);
  gathered_.clear();
  committing_ = true;
  effects.commit = std::move(commit);
}

void Owner::drop_quiet(Nanos now_ns, Effects& effects) {
  for (auto it = buckets_.begin(); it != buckets_.end();) {
    const Bucket& bucket = it->second;
    const bool leaves = bucket.ledger && !bucket.dirty && !committing_ && bucket.ledger->quiet() &&
                        now_ns - bucket.used_ns >= config_.quiet_ns;
    if (leaves) {
      retired_.breaches += bucket.ledger->counters().breaches;
      retired_.burnt += bucket.ledger->counters().burnt;
    }
    it = leaves ? buckets_.erase(it) : std::next(it);
  }
  effects.passive = buckets_.empty() && !committing_ && gathered_.empty() &&
                    now_ns - idle_since_ns_ >= config_.quiet_ns;
}

Nanos Owner::next_deadline() const {
  // While a commit is under way its end is the next event for whatever waits to go quiet.
  Nanos next_ns = buckets_.empty() && !committing_
                      ? add_saturating(idle_since_ns_, config_.quiet_ns)
                      : kForever;
  for (const auto& [name, bucket] : buckets_) {
    if (!bucket.ledger) continue;
    next_ns = std::min(next_ns, bucket.ledger->next_deadline());
    if (!committing_ && bucket.ledger->quiet()) {
      next_ns = std::min(next_ns, add_saturating(bucket.used_ns, config_.quiet_ns));
    }
  }
  return next_ns;
}

namespace {

void fill_level(const lease::Ledger& ledger, Nanos now_ns, BucketView& view) {
  const std::int64_t ceiling = std::max<std::int64_t>(0, view.capacity - view.outstanding);
  if (ledger.windowed()) {
    view.reset_ns = ledger.window_left_ns(now_ns);
    view.level = view.reset_ns > 0 ? ledger.level() : ceiling;  // else the next begins when asked
    if (view.level < view.capacity) view.next_token_ns = view.reset_ns;
    return;
  }
  const Nanos elapsed_ns = now_ns - ledger.as_of_ns();
  const auto level = limit::refill(ledger.exact_level(), ledger.numbers(), elapsed_ns, ceiling);
  view.level = level.tokens;
  view.reset_ns = limit::time_until(level, ledger.numbers(), view.capacity);
  if (level.tokens < ceiling) {
    view.next_token_ns = limit::time_until(level, ledger.numbers(), level.tokens + 1);
  }
}

}  // namespace

std::vector<BucketView> Owner::view(Nanos now_ns) const {
  std::vector<BucketView> views;
  for (const auto& [name, bucket] : buckets_) {
    if (!bucket.ledger) continue;
    const lease::Ledger& ledger = *bucket.ledger;
    BucketView view;
    view.bucket = name;
    view.capacity = ledger.numbers().capacity;
    view.outstanding = ledger.outstanding();
    fill_level(ledger, now_ns, view);
    for (const auto& lessee : ledger.lessees()) {
      if (lessee.outstanding == 0) continue;
      view.lessees.push_back({lessee.lessee.node, lessee.outstanding,
                              std::max<Nanos>(0, lessee.expires_ns - now_ns), lessee.relay});
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace weir::ownership
