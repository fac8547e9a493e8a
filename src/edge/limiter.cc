#include "src/edge/limiter.h"

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"
#include "src/edge/limiter_impl.h"

namespace weir::edge {
namespace {

/// Buckets of scope node that are full say nothing that a new one would not: they leave this often.
constexpr Nanos kSweepEveryNs = 2 * kSecond;
/// Entries whose turn has come that one `collect` handles in one stripe before it lets checks in
/// again.
constexpr std::size_t kMaxDuePerStripe = 512;
/// Longest idle entries that are looked at for one that nobody waits for, when a stripe is crowded.
constexpr int kEvictionTries = 8;

/// Frees the slots of a map that has shrunk much.
template <typename Map>
void shrink(Map& map) {
  if (map.bucket_count() > 1024 && map.size() * 8 < map.bucket_count()) map.rehash(map.size() * 2);
}

void sweep(NodeBuckets& buckets, Nanos& swept_ns, LocalCounter::Now now) {
  if (now.boot_ns - swept_ns < kSweepEveryNs) return;
  swept_ns = now.boot_ns;
  erase_if(buckets, [&](const auto& item) { return item.second->counter.time_to_idle(now) == 0; });
  shrink(buckets);
}

/// A round trip as it is kept: at most a minute.
std::uint32_t to_us(Nanos span_ns) {
  return static_cast<std::uint32_t>(
      std::clamp<Nanos>(span_ns / kMicrosecond, 0, kMinute / kMicrosecond));
}

}  // namespace

Limiter::Impl::Impl(LimiterConfig config, const Clock& clock, std::uint64_t seed,
                    std::function<void()> wake)
    : config_(std::move(config)), clock_(clock), wake_(std::move(wake)) {
  Random random(seed);
  names_.push_back("");
  for (Part& part : parts_) {
    part.stripe.random = Random(random.next());
    part.stripe.scanned_ns = clock_.boot_ns();
  }
  idle_ns_ = lease::idle_after_ns(config_.terms.ttl_ns);
}

Evaluation& Limiter::Impl::evaluation_of(Part& part) {
  if (!part.evaluation) {
    part.evaluation = std::make_unique<Evaluation>(
        Evaluation::Surroundings{config_, clock_, shared_, live_edges_}, part.stripe);
  }
  return *part.evaluation;
}

Result<bool> Limiter::Impl::too_many() {
  return failure(ErrorCode::invalid_argument, "attributes",
                 "more than " + std::to_string(kMaxLimitsPerCheck) + " limits match this check");
}

void Limiter::Impl::set_policy(std::shared_ptr<const policy::Policy> policy) {
  auto in_force = std::make_shared<PolicyInForce>();
  in_force->policy = std::move(policy);
  {
    const std::lock_guard lock(names_mutex_);
    for (const LimitDefinition& limit : in_force->policy->definition().limits) {
      const auto known = std::find(names_.begin(), names_.end(), limit.name);
      in_force->ids.push_back(static_cast<LimitId>(known - names_.begin()));
      if (known == names_.end()) names_.push_back(limit.name);
      in_force->by_customer.push_back(std::find(limit.by.begin(), limit.by.end(), "customer") !=
                                      limit.by.end());
      auto& calendar = in_force->calendars.emplace_back();
      if (limit.algorithm != Algorithm::fixed_window) continue;
      if (auto made = limit::Calendar::make(limit.window, limit.timezone)) calendar = *made;
    }
  }
  for (Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    part.stripe.policy = in_force;
    for (auto& [key, entry] : part.stripe.entries) entry->holder.forget_denial();
  }
}

/// Holds a stripe, and wakes the broker once it is free again if that has become due.
class Limiter::Impl::Locked {
 public:
  Locked(Impl& impl, Stripe& stripe) : impl_(impl), stripe_(stripe), lock_(stripe.mutex) {}
  ~Locked() {
    const bool wake_due = std::exchange(stripe_.wake_due, false);
    lock_.unlock();
    if (wake_due) impl_.wake_();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Impl& impl_;
  Stripe& stripe_;
  std::unique_lock<std::mutex> lock_;
};

/// Calls the broker, as soon as the stripe is free, unless it comes by then anyway.
void Limiter::Impl::wake_at(Stripe& stripe, Nanos at_ns) {
  Nanos known_ns = next_wake_ns_.load();
  while (at_ns < known_ns) {
    if (next_wake_ns_.compare_exchange_weak(known_ns, at_ns)) {
      stripe.wake_due = true;
      return;
    }
  }
}

void Limiter::Impl::schedule(Stripe& stripe, Entry& entry, Nanos at_ns) {
  if (at_ns >= entry.scheduled_ns) return;
  unschedule(stripe, entry);
  entry.scheduled_ns = at_ns;
  stripe.due.insert(entry);
}

void Limiter::Impl::unschedule(Stripe& stripe, Entry& entry) {
  if (entry.scheduled_ns == kForever) return;
  stripe.due.erase(stripe.due.iterator_to(entry));
  entry.scheduled_ns = kForever;
}

/// When a static share says no more than a new one would: until then its entry stays (I3).
Nanos Limiter::Impl::share_full_ns(const Entry& entry, Nanos now_ns) const {
  if (!entry.static_share) return now_ns;
  return add_saturating(now_ns, entry.static_share->time_to_idle({now_ns, clock_.wall_ns()}));
}

bool Limiter::Impl::leaves(const Entry& entry, Nanos now_ns) const {
  if (entry.queue) return false;
  return entry.evicted || returning_.load(std::memory_order_relaxed) ||
         now_ns - entry.used_ns >= idle_ns_;
}

lease::Holder::Demand Limiter::Impl::demand(Stripe& stripe, const Entry& entry, Nanos now_ns,
                                            bool leave) const {
  const Health& health = stripe.health_of(entry);
  lease::Holder::Demand demand;
  demand.need = entry.queue ? entry.queue->front()->check.cost : entry.other_need;
  demand.waiting = add_saturating(entry.waiting, entry.other_need);
  demand.look = entry.look;
  demand.strict = entry.strict;
  demand.leave = leave && leaves(entry, now_ns);
  const std::uint32_t round_trip_us =
      health.round_trip_us != 0 ? health.round_trip_us : health.node_round_trip_us;
  demand.round_trip_ns = round_trip_us * kMicrosecond;
  demand.upstream_ns = health.upstream_us * kMicrosecond;
  demand.probe = health.silent_since_ns != 0 && !health.degraded;
  return demand;
}

void Limiter::Impl::reschedule(Stripe& stripe, Entry& entry, Nanos now_ns) {
  const auto wanted = demand(stripe, entry, now_ns, true);
  Nanos next_ns = entry.holder.next_deadline(wanted, config_.terms, now_ns);
  // Whoever has a check waiting does not leave, however long that takes.
  if (!wanted.leave && !entry.queue) {
    next_ns = std::min(next_ns, add_saturating(entry.used_ns, idle_ns_));
  }
  if (wanted.leave && entry.holder.empty()) {
    next_ns = entry.evicted
                  ? now_ns
                  : std::max(share_full_ns(entry, now_ns), add_saturating(entry.used_ns, idle_ns_));
  }
  schedule(stripe, entry, next_ns);
}

/// What a check left behind: entries whose next request may have come closer, one entry too many.
void Limiter::Impl::after_run(Stripe& stripe, const Evaluation& evaluation, Nanos now_ns) {
  for (Entry* entry : evaluation.touched()) {
    reschedule(stripe, *entry, now_ns);
    if (entry->scheduled_ns < next_wake_ns_.load(std::memory_order_relaxed)) {
      wake_at(stripe, entry->scheduled_ns);
    }
  }
  if (evaluation.crowded()) evict_one(stripe, now_ns);
}

void Limiter::Impl::evict_one(Stripe& stripe, Nanos now_ns) {
  int tries = kEvictionTries;
  for (Entry& entry : stripe.idle_order) {
    if (!entry.queue && !entry.evicted && entry.used_ns < now_ns) {
      entry.evicted = true;
      // Behind the others, so that the next search does not pass it.
      stripe.idle_order.splice(stripe.idle_order.end(), stripe.idle_order,
                               stripe.idle_order.iterator_to(entry));
      schedule(stripe, entry, now_ns);
      wake_at(stripe, now_ns);
      return;
    }
    if (--tries == 0) return;
  }
}

Result<bool> Limiter::Impl::decide(const Check& check, Decision& decision) {
  Part& part = part_of(check.customer);
  const Locked lock(*this, part.stripe);
  Evaluation& evaluation = evaluation_of(part);
  const Nanos now_ns = clock_.boot_ns();
  const Verdict verdict = evaluation.run(check, {}, now_ns, decision);
  if (verdict == Verdict::too_many) return too_many();
  if (verdict == Verdict::decided) {
    after_run(part.stripe, evaluation, now_ns);
  } else if (evaluation.crowded()) {
    evict_one(part.stripe, now_ns);
  }
  return verdict == Verdict::decided;
}

Nanos Limiter::Impl::wait_ns(const Stripe& stripe, const Entry& entry) const {
  const Health& health = stripe.health_of(entry);
  const Nanos round_trip_ns =
      (std::max(health.round_trip_us, health.node_round_trip_us) + Nanos{health.upstream_us}) *
      kMicrosecond;
  return std::max(config_.wait_ns, 2 * round_trip_ns);
}

void Limiter::Impl::decide_later(const Check& check, Completion done) {
  Part& part = part_of(check.customer);
  Stripe::Finished finished;
  {
    const Locked lock(*this, part.stripe);
    Evaluation& evaluation = evaluation_of(part);
    const Nanos now_ns = clock_.boot_ns();
    Evaluation::Options options{.first = false, .from_queue = false, .last = false};
    options.last = waiting_count_.load(std::memory_order_relaxed) >= kMaxWaitingChecks;
    Decision decision;
    const Verdict verdict = evaluation.run(check, options, now_ns, decision);
    if (verdict == Verdict::wait) {
      auto waiter = std::make_shared<Waiter>();
      waiter->check = check;
      waiter->done = std::move(done);
      Nanos longest_ns = 0;
      for (const Entry* entry : evaluation.lacking()) {
        longest_ns = std::max(longest_ns, wait_ns(part.stripe, *entry));
      }
      waiter->since_ns = now_ns;
      waiter->deadline_ns = add_saturating(now_ns, longest_ns);
      part.stripe.waiters.emplace(waiter->deadline_ns, waiter);
      waiting_count_.fetch_add(1, std::memory_order_relaxed);
      park(part.stripe, evaluation, waiter, false);
      wake_at(part.stripe, waiter->deadline_ns);
    } else {
      finished.emplace_back(std::move(done), std::move(decision));
    }
    after_run(part.stripe, evaluation, now_ns);
  }
  complete(finished);
}

void Limiter::Impl::complete(Stripe::Finished& finished) {
  for (auto& [done, decision] : finished) done(decision);
  finished.clear();
}

/// Queues a waiter at the first entry that lacks tokens, and makes the others ask for it too.
void Limiter::Impl::park(Stripe&, const Evaluation& evaluation, std::shared_ptr<Waiter> waiter,
                         bool at_front) {
  const std::int64_t cost = waiter->check.cost;
  Entry& entry = *evaluation.lacking().front();
  waiter->entry = &entry;
  entry.waiting = add_saturating(entry.waiting, std::max<std::int64_t>(0, cost));
  if (!entry.queue) entry.queue = std::make_unique<std::deque<std::shared_ptr<Waiter>>>();
  if (at_front) {
    entry.queue->push_front(std::move(waiter));
  } else {
    entry.queue->push_back(std::move(waiter));
  }
  for (Entry* other : evaluation.lacking()) {
    if (other != &entry) other->other_need = std::max(other->other_need, cost);
  }
}

/// Takes a waiter out of its queue; O(1) at the ends, where it nearly always stands.
void Limiter::Impl::unpark(Waiter& waiter) {
  Entry& entry = *waiter.entry;
  waiter.entry = nullptr;
  entry.waiting = subtract_saturating(entry.waiting, std::max<std::int64_t>(0, waiter.check.cost));
  auto& queue = *entry.queue;
  const auto at = std::find_if(queue.begin(), queue.end(),
                               [&](const auto& other) { return other.get() == &waiter; });
  WEIR_ASSERT(at != queue.end());
  queue.erase(at);
  if (queue.empty()) entry.queue.reset();
}

/// Decides whoever waits at `entry`, first come first served, until one still lacks tokens here.
void Limiter::Impl::run_queue(Part& part, Entry& entry, Nanos now_ns, Stripe::Finished& finished) {
  Evaluation& evaluation = evaluation_of(part);
  const Evaluation::Options options{.first = false, .from_queue = true, .last = false};
  while (entry.queue) {
    const std::shared_ptr<Waiter> waiter = entry.queue->front();
    Decision decision;
    const Verdict verdict = evaluation.run(waiter->check, options, now_ns, decision);
    const bool still_here = verdict == Verdict::wait && evaluation.lacking().front() == &entry;
    unpark(*waiter);
    if (verdict == Verdict::wait) {
      park(part.stripe, evaluation, waiter, still_here);
    } else {
      // More limits than a check may match can only come from a reload: such a check is let through
      // as the policy's mistake would be for a new check, with an empty decision.
      waiting_count_.fetch_sub(1, std::memory_order_relaxed);
      finished.emplace_back(std::move(waiter->done), std::move(decision));
    }
    after_run(part.stripe, evaluation, now_ns);
    if (still_here) return;
  }
}

/// Denies whoever has waited long enough (I1). Who waits for a relay that has asked the owner since
/// waits for that round trip, too (F4).
void Limiter::Impl::time_out(Part& part, Nanos now_ns, Stripe::Finished& finished) {
  auto& waiters = part.stripe.waiters;
  const Evaluation::Options options{.first = false, .from_queue = true, .last = true};
  while (!waiters.empty() && waiters.begin()->first <= now_ns) {
    const std::shared_ptr<Waiter> waiter = std::move(waiters.begin()->second);
    waiters.erase(waiters.begin());
    if (waiter->entry == nullptr) continue;
    const bool relayed = part.stripe.health_of(*waiter->entry).upstream_us != 0;
    const Nanos end_ns = add_saturating(waiter->since_ns, wait_ns(part.stripe, *waiter->entry));
    if (relayed && end_ns > now_ns) {
      waiter->deadline_ns = end_ns;
      waiters.emplace(end_ns, waiter);
      continue;
    }
    unpark(*waiter);
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);
    Evaluation& evaluation = evaluation_of(part);
    Decision decision;
    evaluation.run(waiter->check, options, now_ns, decision);
    after_run(part.stripe, evaluation, now_ns);
    finished.emplace_back(std::move(waiter->done), std::move(decision));
  }
}

/// Keeps the register's sign of life in step with its unanswered requests (I2).
void Limiter::Impl::note_open(Stripe& stripe, Entry& entry, bool was_open, Nanos now_ns) {
  Health& health = stripe.health_of(entry);
  const bool open = entry.holder.open();
  if (open == was_open) return;
  if (open) {
    if (health.open++ == 0 && health.silent_since_ns == 0) health.silent_since_ns = now_ns;
    return;
  }
  close_one(health, now_ns);
}

void Limiter::Impl::close_one(Health& health, Nanos now_ns) {
  WEIR_ASSERT(health.open > 0);
  if (--health.open > 0) return;
  health.silent_since_ns = 0;
  health.closed_ns = now_ns;
}

/// `unanswered`: its last request has just been taken for lost.
bool Limiter::Impl::erase_if_done(Stripe& stripe, Entry& entry, bool unanswered, Nanos now_ns) {
  if (!leaves(entry, now_ns)) return false;
  // There are too many: one try is enough, the rest burns at the owner.
  const bool gives_up = entry.evicted && unanswered;
  if (!entry.holder.empty() && !gives_up) return false;
  const bool idle = now_ns - entry.used_ns >= idle_ns_ && share_full_ns(entry, now_ns) <= now_ns;
  if (!entry.evicted && !idle) return false;
  if (entry.holder.open()) close_one(stripe.health_of(entry), now_ns);
  unschedule(stripe, entry);
  stripe.idle_order.erase(stripe.idle_order.iterator_to(entry));
  stripe.entries.erase(stripe.entries.find(entry.key));
  return true;
}

/// One entry's turn: the request that is due, or its end.
void Limiter::Impl::process(Stripe& stripe, Entry& entry, Nanos now_ns,
                            std::vector<LeaseRequest>& out) {
  const bool was_open = entry.holder.open();
  auto wanted = demand(stripe, entry, now_ns, true);
  wanted.fresh_incarnation = WEIR_MUTANT(incarnation_reused) ? 1 : stripe.random.next();
  auto request = entry.holder.poll(wanted, config_.terms, now_ns);
  note_open(stripe, entry, was_open, now_ns);
  if (request) {
    entry.other_need = 0;
    const std::string_view region =
        entry.scope == Scope::region ? std::string_view(config_.region) : std::string_view();
    request->reg.kind =
        entry.scope == Scope::region ? RegisterId::Kind::region : RegisterId::Kind::global;
    request->reg.region = region;
    request->reg.slot = entry.slot;
    request->bucket = entry.key;
    request->lessee.node = config_.node;
    request->policy_version = stripe.policy ? stripe.policy->policy->version() : 0;
    out.push_back(std::move(*request));
  }
  const bool unanswered = was_open && (request || !entry.holder.open());
  if (erase_if_done(stripe, entry, unanswered, now_ns)) return;
  reschedule(stripe, entry, now_ns);
}

Nanos Limiter::Impl::collect_stripe(Part& part, std::vector<LeaseRequest>& out) {
  Stripe& stripe = part.stripe;
  Stripe::Finished finished;
  Nanos next_ns = kForever;
  {
    const Locked lock(*this, stripe);
    const Nanos now_ns = clock_.boot_ns();
    time_out(part, now_ns, finished);
    for (std::size_t i = 0; i < kMaxDuePerStripe; ++i) {
      if (stripe.due.empty() || stripe.due.begin()->scheduled_ns > now_ns) break;
      Entry& entry = *stripe.due.begin();
      unschedule(stripe, entry);
      evaluation_of(part).is_degraded(entry, now_ns);
      process(stripe, entry, now_ns, out);
    }
    sweep(stripe.node_buckets, stripe.swept_ns, {now_ns, clock_.wall_ns()});
    shrink(stripe.entries);
    if (!stripe.due.empty()) next_ns = stripe.due.begin()->scheduled_ns;
    if (!stripe.waiters.empty()) next_ns = std::min(next_ns, stripe.waiters.begin()->first);
    if (!stripe.node_buckets.empty()) next_ns = std::min(next_ns, stripe.swept_ns + kSweepEveryNs);
  }
  complete(finished);
  return next_ns;
}

Nanos Limiter::Impl::collect(std::vector<LeaseRequest>& out) {
  next_wake_ns_.store(kForever);
  Nanos next_ns = kForever;
  for (Part& part : parts_) next_ns = std::min(next_ns, collect_stripe(part, out));
  {
    const std::lock_guard lock(shared_.mutex);
    const Nanos now_ns = clock_.boot_ns();
    sweep(shared_.node_buckets, shared_.swept_ns, {now_ns, clock_.wall_ns()});
    if (!shared_.node_buckets.empty()) {
      next_ns = std::min(next_ns, shared_.swept_ns + kSweepEveryNs);
    }
  }
  // A check that came meanwhile has called `wake` for anything earlier than this.
  Nanos known_ns = next_wake_ns_.load();
  while (next_ns < known_ns && !next_wake_ns_.compare_exchange_weak(known_ns, next_ns)) {
  }
  return next_ns;
}

Limiter::Impl::Part* Limiter::Impl::part_of_bucket(std::string_view bucket) {
  const auto length = take_varint(bucket);
  if (!length || *length > bucket.size()) return nullptr;
  return &part_of(bucket.substr(0, *length));
}

void Limiter::Impl::ask_again_now(const LeaseAnswer& answer) {
  Part* part = part_of_bucket(answer.bucket);
  if (part == nullptr) return;
  const Locked lock(*this, part->stripe);
  const auto found = part->stripe.entries.find(std::string_view(answer.bucket));
  if (found == part->stripe.entries.end()) return;
  Entry& entry = *found->second;
  if (!entry.holder.redirected(answer)) return;
  schedule(part->stripe, entry, clock_.boot_ns());
  wake_at(part->stripe, entry.scheduled_ns);
}

/// A bucket's health stands for its register, or for that of the same slot which a pin made (I2):
/// to ask once more than needed is harmless.
void Limiter::Impl::grantors_gone(const std::set<RegisterId>& registers) {
  if (registers.empty()) return;
  std::array<std::vector<bool>, 2> gone;
  for (std::vector<bool>& slots : gone) slots.resize(kSlotCount);
  for (const RegisterId& reg : registers) {
    gone[reg.kind == RegisterId::Kind::region ? 1 : 0][reg.slot] = true;
  }
  for (Part& part : parts_) {
    const Locked lock(*this, part.stripe);
    const Nanos now_ns = clock_.boot_ns();
    for (auto& [key, entry] : part.stripe.entries) {
      if (!gone[entry->scope == Scope::region ? 1 : 0][entry->slot]) continue;
      if (!entry->holder.grantor_gone()) continue;
      schedule(part.stripe, *entry, now_ns);
      wake_at(part.stripe, entry->scheduled_ns);
    }
  }
}

void Limiter::Impl::on_answer(const LeaseAnswer& answer) {
  Part* at = part_of_bucket(answer.bucket);
  if (at == nullptr) return;
  Part& part = *at;
  Stripe::Finished finished;
  {
    const Locked lock(*this, part.stripe);
    const auto found = part.stripe.entries.find(std::string_view(answer.bucket));
    if (found == part.stripe.entries.end()) return;
    Entry& entry = *found->second;
    const Nanos now_ns = clock_.boot_ns();
    const bool was_open = entry.holder.open();
    const Nanos sent_ns = entry.holder.sent_ns();
    const auto heard = entry.holder.on_answer(answer, config_.terms, now_ns);
    note_open(part.stripe, entry, was_open, now_ns);
    Health& health = part.stripe.health_of(entry);
    if (heard != lease::Holder::Heard::nobody) {
      health.upstream_us = to_us(answer.upstream_round_trip_ns);
      health.silent_since_ns = health.open > 0 ? now_ns : 0;
      if (health.degraded) {
        health.degraded = false;
        const auto key = decode_bucket_key(answer.bucket);
        part.stripe.degradations.push_back(
            {register_of(entry.scope, config_.region, key ? key->customer : std::string()), false});
      }
    }
    if (was_open && !entry.holder.open()) {
      entry.look = entry.look && entry.holder.told_ns() == 0;
      // What takes longer is an outage, which says nothing of the way.
      const Nanos longest_ns = config_.suspicion_ns + health.node_round_trip_us * kMicrosecond;
      const std::uint32_t sample_us = std::max(1U, to_us(std::min(now_ns - sent_ns, longest_ns)));
      health.round_trip_us =
          health.round_trip_us == 0 ? sample_us : health.round_trip_us / 8 * 7 + sample_us / 8;
    }
    run_queue(part, entry, now_ns, finished);
    reschedule(part.stripe, entry, now_ns);
    wake_at(part.stripe, entry.scheduled_ns);
  }
  complete(finished);
}

void Limiter::Impl::set_round_trip(const RegisterId& reg, Nanos round_trip_ns) {
  Stripe& stripe = parts_[reg.slot % kStripes].stripe;
  const std::lock_guard lock(stripe.mutex);
  const std::size_t kind = reg.kind == RegisterId::Kind::region ? 1 : 0;
  stripe.health[kind][reg.slot / kStripes].node_round_trip_us = to_us(round_trip_ns);
}

void Limiter::Impl::begin_return() {
  returning_.store(true);
  for (Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    const Nanos now_ns = clock_.boot_ns();
    for (auto& [key, entry] : part.stripe.entries) schedule(part.stripe, *entry, now_ns);
  }
  next_wake_ns_.store(clock_.boot_ns());
  wake_();
}

bool Limiter::Impl::all_returned() const {
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    for (const auto& [key, entry] : part.stripe.entries) {
      if (!entry->holder.empty()) return false;
    }
  }
  return true;
}

Limiter::Limiter(LimiterConfig config, const Clock& clock, std::uint64_t seed,
                 std::function<void()> wake)
    : impl_(std::make_unique<Impl>(std::move(config), clock, seed, std::move(wake))) {}

Limiter::~Limiter() = default;

void Limiter::set_policy(std::shared_ptr<const policy::Policy> policy) {
  impl_->set_policy(std::move(policy));
}
Result<bool> Limiter::decide(const Check& check, Decision& decision) {
  return impl_->decide(check, decision);
}
void Limiter::decide_later(const Check& check, Completion done) {
  impl_->decide_later(check, std::move(done));
}
Nanos Limiter::collect(std::vector<LeaseRequest>& out) { return impl_->collect(out); }
void Limiter::on_answer(const LeaseAnswer& answer) { impl_->on_answer(answer); }
void Limiter::ask_again_now(const LeaseAnswer& answer) { impl_->ask_again_now(answer); }
void Limiter::grantors_gone(const std::set<RegisterId>& registers) {
  impl_->grantors_gone(registers);
}
void Limiter::set_live_edges(std::uint32_t count) { impl_->set_live_edges(count); }
void Limiter::set_round_trip(const RegisterId& reg, Nanos round_trip_ns) {
  impl_->set_round_trip(reg, round_trip_ns);
}
void Limiter::begin_return() { impl_->begin_return(); }
bool Limiter::all_returned() const { return impl_->all_returned(); }
std::vector<BucketUsage> Limiter::usage(const std::string& customer) const {
  return impl_->usage(customer);
}
std::vector<CheckCount> Limiter::check_counts() const { return impl_->check_counts(); }
std::vector<LimitGauges> Limiter::gauges() const { return impl_->gauges(); }
std::vector<LeaseView> Limiter::leases() const { return impl_->leases(); }
std::vector<Degradation> Limiter::take_degradations() { return impl_->take_degradations(); }
std::size_t Limiter::bucket_count() const { return impl_->bucket_count(); }
std::size_t Limiter::waiting_count() const { return impl_->waiting_count(); }

}  // namespace weir::edge
