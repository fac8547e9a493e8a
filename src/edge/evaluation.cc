#include "src/edge/evaluation.h"

#include <algorithm>

#include "src/base/assert.h"
#include "src/base/mutants.h"
#include "src/edge/estimate.h"

namespace weir::edge {
namespace {

__extension__ using Wide = __int128;

std::int64_t given_back(std::int64_t cost) { return cost == INT64_MIN ? INT64_MAX : -cost; }

/// Rate and burst divided among the edges (PROTOCOL I3): at least one token, and never a longer
/// period than a bucket can count.
LimitNumbers divide(LimitNumbers numbers, std::uint32_t edges) {
  const std::int64_t parts = std::max<std::int64_t>(1, edges);
  numbers.capacity = std::max<std::int64_t>(1, numbers.capacity / parts);
  if (numbers.rate_count >= parts * 1000) {
    numbers.rate_count /= parts;
  } else {
    numbers.rate_period_ns = multiply_saturating(numbers.rate_period_ns, parts);
  }
  return numbers;
}

/// Retry times compare with "never" (-1) as the longest.
bool is_longer(Nanos a, Nanos b) { return a == -1 ? b != -1 : b != -1 && a > b; }

}  // namespace

Evaluation::Evaluation(Surroundings around, Stripe& stripe)
    : around_(around), stripe_(stripe), shared_lock_(around.shared.mutex, std::defer_lock) {}

Verdict Evaluation::run(const Check& check, Options options, Nanos now_ns, Decision& decision) {
  matched_.clear();
  items_.clear();
  lacking_.clear();
  touched_.clear();
  crowded_ = false;
  if (stripe_.policy) stripe_.policy->policy->match(check, matched_);
  if (matched_.size() > kMaxLimitsPerCheck) return Verdict::too_many;
  for (const policy::MatchedLimit& matched : matched_) {
    Item& item = items_.emplace_back();
    item.matched = &matched;
    resolve(check, now_ns, item);
    if (options.first && check.cost > 0 && item.entry != nullptr) {
      item.entry->holder.note_demand(std::min(check.cost, matched.numbers.capacity), now_ns);
    }
  }
  Verdict verdict = Verdict::wait;
  do {
    lacking_.clear();
    for (Item& item : items_) judge(check, options, now_ns, item);
    verdict = conclude(check, now_ns, decision);
    // Not everything could be taken before its deadline: judge what is left, on a fresh clock.
    if (verdict == Verdict::wait && lacking_.empty()) now_ns = around_.clock.boot_ns();
  } while (verdict == Verdict::wait && lacking_.empty());
  if (shared_lock_.owns_lock()) shared_lock_.unlock();
  return verdict;
}

/// Refused by one: nothing is taken anywhere. Lacking somewhere: wait. Else take from all (E5).
Verdict Evaluation::conclude(const Check& check, Nanos now_ns, Decision& decision) {
  bool refused = false;
  for (const Item& item : items_) {
    if (item.matched->limit->shadow) continue;
    if (item.state == State::refused || item.state == State::blocked) refused = true;
    if (item.state == State::lacks) lacking_.push_back(item.entry);
  }
  if (!refused) {
    if (!lacking_.empty() && WEIR_MUTANT(taken_before_all_suffice)) take(check, now_ns);
    if (!lacking_.empty()) return Verdict::wait;
    if (!take(check, now_ns)) return Verdict::wait;
  }
  note_shadows(check);
  describe(check, !refused, now_ns, decision);
  count(decision);
  tally(check, !refused);
  return Verdict::decided;
}

void Evaluation::resolve(const Check& check, Nanos now_ns, Item& item) {
  if (item.matched->kind != policy::MatchedLimit::Kind::numbers) return;
  const LimitDefinition& limit = *item.matched->limit;
  key_.clear();
  stripe_.policy->policy->append_bucket_key(limit, check, around_.config.region, key_);
  if (limit.scope == Scope::node) {
    resolve_node(check, now_ns, item);
    return;
  }
  const auto found = stripe_.entries.find(std::string_view(key_));
  Entry* entry = found != stripe_.entries.end() ? found->second.get()
                                                : find_or_make_entry(check, item, now_ns);
  entry->limit = stripe_.policy->ids[item.matched->index];
  entry->strict = limit.strict;
  entry->on_unreachable = limit.on_unreachable;
  entry->used_ns = now_ns;
  entry->evicted = false;
  stripe_.idle_order.erase(stripe_.idle_order.iterator_to(*entry));
  stripe_.idle_order.push_back(*entry);
  item.entry = entry;
  touched_.push_back(entry);
}

Entry* Evaluation::find_or_make_entry(const Check& check, const Item& item, Nanos now_ns) {
  auto made = std::make_unique<Entry>();
  Entry* entry = made.get();
  entry->key = key_;
  entry->scope = item.matched->limit->scope;
  entry->slot = slot_of(check.customer);
  entry->used_ns = now_ns;
  stripe_.entries.emplace(key_, std::move(made));
  stripe_.idle_order.push_back(*entry);
  crowded_ =
      stripe_.entries.size() > std::max<std::size_t>(1, around_.config.max_buckets / kStripes);
  return entry;
}

void Evaluation::resolve_node(const Check&, Nanos now_ns, Item& item) {
  const bool own = stripe_.policy->by_customer[item.matched->index];
  if (!own && !shared_lock_.owns_lock()) shared_lock_.lock();
  NodeBuckets& buckets = own ? stripe_.node_buckets : around_.shared.node_buckets;
  auto found = buckets.find(std::string_view(key_));
  const LimitNumbers& numbers = item.matched->numbers;
  if (found == buckets.end()) {
    auto made = std::make_unique<NodeBucket>(NodeBucket{LocalCounter(numbers, now_ns), 0});
    found = buckets.emplace(key_, std::move(made)).first;
  }
  item.node = found->second.get();
  item.node->limit = stripe_.policy->ids[item.matched->index];
  item.node->counter.keep(item.matched->limit->algorithm, numbers, calendar_of(item),
                          moment(item, now_ns));
}

/// The wall clock is read for calendar windows alone.
LocalCounter::Now Evaluation::moment(const Item& item, Nanos now_ns) const {
  const bool calendar = item.matched->limit->algorithm == Algorithm::fixed_window;
  return {now_ns, calendar ? around_.clock.wall_ns() : 0};
}

const limit::Calendar* Evaluation::calendar_of(const Item& item) const {
  const auto& calendar = stripe_.policy->calendars[item.matched->index];
  return calendar ? &*calendar : nullptr;
}

void Evaluation::judge(const Check& check, Options options, Nanos now_ns, Item& item) {
  item.state = State::fits;
  item.retry_ns = 0;
  item.by_policy = false;
  switch (item.matched->kind) {
    case policy::MatchedLimit::Kind::unlimited:
      item.state = State::unlimited;
      item.source = Source::policy;
      return;
    case policy::MatchedLimit::Kind::blocked:
      item.state = State::blocked;
      item.source = Source::policy;
      item.retry_ns = -1;
      return;
    case policy::MatchedLimit::Kind::numbers:
      break;
  }
  if (check.cost > item.matched->numbers.capacity) {
    item.state = State::refused;
    item.source = item.node != nullptr ? Source::node : Source::policy;
    item.retry_ns = -1;
    return;
  }
  if (item.node == nullptr) {
    judge_leased(check, options, now_ns, item);
    return;
  }
  item.source = Source::node;
  const auto outcome =
      item.node->counter.peek(std::max<std::int64_t>(0, check.cost), moment(item, now_ns));
  if (outcome.allowed) return;
  item.state = State::refused;
  item.retry_ns = outcome.retry_after_ns;
}

void Evaluation::judge_leased(const Check& check, Options options, Nanos now_ns, Item& item) {
  Entry& entry = *item.entry;
  lease::Holder& holder = entry.holder;
  item.source = entry.strict ? Source::owner : Source::lease;
  holder.expire(now_ns);
  if (check.cost < 0) return;
  if (check.cost == 0) {
    if (holder.told_ns() != 0 || options.last || is_degraded(entry, now_ns)) return;
    entry.look = true;
    item.state = State::lacks;
    return;
  }
  const bool must_queue = entry.queue && !options.from_queue && !options.last;
  if (holder.held() >= check.cost && !must_queue) return;
  if (is_degraded(entry, now_ns)) {
    judge_degraded(check, now_ns, item);
    return;
  }
  if (holder.denied(check.cost, now_ns)) {
    item.state = State::refused;
    item.source = Source::owner;
    const std::int64_t more = std::max<std::int64_t>(0, check.cost - holder.denied_need());
    item.retry_ns = holder.retry_at_ns() == kForever
                        ? kSecond
                        : add_saturating(holder.retry_at_ns() - now_ns,
                                         refill_time(item.matched->numbers, more));
    return;
  }
  if (options.last) {
    item.state = State::refused;
    item.source = Source::timeout;
    item.retry_ns = around_.config.suspicion_ns;
    return;
  }
  item.state = State::lacks;
}

/// No owner has spoken for the suspicion time: the limit's own failure policy decides (I2), and the
/// check still makes the broker ask, so that the owner's return is noticed.
void Evaluation::judge_degraded(const Check& check, Nanos now_ns, Item& item) {
  item.by_policy = true;
  item.entry->other_need = check.cost;
  LimitStats& stats = stripe_.stats_of(item.entry->limit);
  stats.failure_applied_ns = now_ns;
  stats.failure_policy = item.entry->on_unreachable;
  switch (item.entry->on_unreachable) {
    case FailurePolicy::allow:
      item.source = Source::allow;
      return;
    case FailurePolicy::deny:
      item.source = Source::deny;
      item.state = State::refused;
      item.retry_ns = kSecond;
      return;
    case FailurePolicy::static_share: {
      item.source = Source::static_share;
      const auto outcome = static_share(item, now_ns).peek(check.cost, moment(item, now_ns));
      if (outcome.allowed) return;
      item.state = State::refused;
      item.retry_ns = outcome.retry_after_ns;
      return;
    }
  }
}

/// Enters and leaves the failure policy of a register. When nobody has asked the owner for so long
/// as it takes to miss it, its silence says nothing any more: the next check asks anew.
bool Evaluation::is_degraded(const Entry& entry, Nanos now_ns) {
  Health& health = stripe_.health_of(entry);
  const auto kind =
      entry.scope == Scope::region ? RegisterId::Kind::region : RegisterId::Kind::global;
  const bool region = entry.scope == Scope::region;
  const auto turn = [&](bool degraded) {
    health.degraded = degraded;
    stripe_.degradations.push_back(
        {{kind, region ? around_.config.region : std::string(), entry.slot}, degraded});
  };
  if (health.degraded) {
    const bool asked = health.open > 0 || now_ns - health.closed_ns < around_.config.suspicion_ns;
    if (!asked) turn(false);
    return asked;
  }
  if (health.silent_since_ns == 0) return false;
  const Nanos patience_ns =
      WEIR_MUTANT(suspicion_hasty) ? 20 * kMillisecond : around_.config.suspicion_ns;
  if (now_ns - health.silent_since_ns < patience_ns) return false;
  turn(true);
  return true;
}

LocalCounter& Evaluation::static_share(Item& item, Nanos now_ns) {
  const std::uint32_t edges =
      std::max(around_.live_edges.load(std::memory_order_relaxed), around_.config.expected_edges);
  const LimitNumbers share = divide(item.matched->numbers, edges);
  auto& counter = item.entry->static_share;
  if (!counter) counter = std::make_unique<LocalCounter>(share, now_ns);
  counter->keep(item.matched->limit->algorithm, share, calendar_of(item), moment(item, now_ns));
  return *counter;
}

/// Takes from all. The deadlines are read against the clock after the decrement (E4); if one has
/// passed, everything is put back: it is the same lease, under the same lock.
bool Evaluation::take(const Check& check, Nanos now_ns) {
  bool leased = false;
  for (Item& item : items_) {
    if (item.state != State::fits) continue;
    take_item(check.cost, now_ns, item);
    leased = leased || (item.entry != nullptr && !item.by_policy && check.cost > 0);
  }
  if (!leased) return true;
  const Nanos after_ns = WEIR_MUTANT(cached_clock) ? now_ns : around_.clock.boot_ns();
  const bool in_time = std::all_of(items_.begin(), items_.end(), [&](const Item& item) {
    return item.state != State::fits || item.entry == nullptr || item.by_policy ||
           after_ns < item.entry->holder.deadline_ns();
  });
  if (in_time) return true;
  for (Item& item : items_) {
    if (item.state == State::fits) undo_item(check.cost, now_ns, item);
  }
  return false;
}

void Evaluation::take_item(std::int64_t cost, Nanos now_ns, Item& item) {
  if (cost == 0) return;
  if (item.node != nullptr) {
    if (cost < 0) item.node->counter.give_back(given_back(cost), moment(item, now_ns));
    if (cost > 0) WEIR_ASSERT(item.node->counter.take(cost, moment(item, now_ns)).allowed);
    return;
  }
  if (cost < 0) {
    const std::int64_t most = item.matched->numbers.capacity;
    item.entry->holder.give_back(std::min(given_back(cost), most));
    return;
  }
  if (!item.by_policy) {
    item.entry->holder.take(cost, now_ns);
    return;
  }
  std::int64_t& overshoot = stripe_.stats_of(item.entry->limit).overshoot_tokens;
  overshoot = add_saturating(overshoot, cost);
  if (item.source == Source::static_share) {
    WEIR_ASSERT(static_share(item, now_ns).take(cost, moment(item, now_ns)).allowed);
  }
}

void Evaluation::undo_item(std::int64_t cost, Nanos now_ns, Item& item) {
  if (item.node != nullptr) {
    item.node->counter.give_back(cost, moment(item, now_ns));
  } else if (!item.by_policy) {
    item.entry->holder.put_back(cost);
  } else {
    stripe_.stats_of(item.entry->limit).overshoot_tokens -= cost;
    if (item.source == Source::static_share) {
      static_share(item, now_ns).give_back(cost, moment(item, now_ns));
    }
  }
}

/// A shadow limit takes what is there, never waits and never denies; what it lacks is asked for.
void Evaluation::note_shadows(const Check& check) {
  for (Item& item : items_) {
    if (!item.matched->limit->shadow) continue;
    if (item.state == State::lacks) item.entry->other_need = std::max<std::int64_t>(0, check.cost);
    if (item.state == State::refused || item.state == State::blocked) {
      ++stripe_.stats_of(stripe_.policy->ids[item.matched->index]).shadow_denied;
    }
  }
}

void Evaluation::describe(const Check& check, bool allowed, Nanos now_ns, Decision& decision) {
  decision.allowed = allowed;
  decision.name.clear();
  decision.limit = decision.remaining = decision.retry_after_ms = decision.reset_ms = 0;
  decision.source = Source::policy;
  std::size_t used = 0;
  const Item* decider = nullptr;
  std::size_t decider_at = 0;
  for (const Item& item : items_) {
    if (item.state == State::unlimited) continue;
    if (decision.limits.size() == used) decision.limits.emplace_back();
    LimitDecision& said = decision.limits[used];
    describe_item(check, now_ns, item, said);
    const bool refuses = !said.allowed;
    if (!said.shadow && refuses != allowed) {
      const bool decides =
          decider == nullptr || (allowed ? said.remaining < decision.limits[decider_at].remaining
                                         : is_longer(item.retry_ns, decider->retry_ns));
      if (decides) {
        decider = &item;
        decider_at = used;
      }
    }
    ++used;
  }
  decision.limits.resize(used);
  if (decider == nullptr) return;
  const LimitDecision& said = decision.limits[decider_at];
  decision.name = said.name;
  decision.limit = said.limit;
  decision.remaining = said.remaining;
  decision.retry_after_ms = said.retry_after_ms;
  decision.reset_ms = said.reset_ms;
  decision.source = decider->source;
}

void Evaluation::describe_item(const Check& check, Nanos now_ns, const Item& item,
                               LimitDecision& out) {
  const LimitNumbers& numbers = item.matched->numbers;
  out.name = item.matched->limit->name;
  out.scope = item.matched->limit->scope;
  out.shadow = item.matched->limit->shadow;
  out.allowed = item.state != State::refused && item.state != State::blocked;
  out.retry_after_ms = out.allowed ? 0 : to_ms(item.retry_ns);
  out.limit = out.remaining = out.reset_ms = out.next_token_ms = 0;
  out.window_s = 1;
  if (item.state == State::blocked) return;
  out.limit = numbers.capacity;
  out.window_s = window_s(*item.matched->limit, numbers);
  const LocalCounter* counter =
      item.node != nullptr
          ? &item.node->counter
          : (item.by_policy && item.entry->static_share ? item.entry->static_share.get() : nullptr);
  const Estimate about = counter != nullptr ? counter->about(moment(item, now_ns))
                                            : estimate(item.entry->holder, numbers, now_ns);
  out.remaining = about.remaining;
  // A refused cost is more than what is there, whatever the estimate hopes for.
  if (!out.allowed && item.retry_ns != -1) {
    out.remaining = std::min(out.remaining, std::max<std::int64_t>(0, check.cost - 1));
  }
  out.reset_ms = to_ms(about.reset_ns);
  out.next_token_ms = to_ms(about.next_token_ns);
}

void Evaluation::count(const Decision& decision) {
  const Item* decider = nullptr;
  for (const Item& item : items_) {
    if (item.matched->limit->name == decision.name) decider = &item;
  }
  // Id 0 is the empty name: no limit decided.
  const LimitId id = decider == nullptr ? LimitId{0} : stripe_.policy->ids[decider->matched->index];
  ++stripe_.stats_of(id)
        .checks[decision.allowed ? 1 : 0][static_cast<std::size_t>(decision.source)];
}

/// Once for each check, so that the sum over a customer's buckets is its number of checks.
void Evaluation::tally(const Check& check, bool allowed) {
  for (const Item& item : items_) {
    if (item.entry != nullptr) return item.entry->tally.add(allowed);
  }
  const auto found = stripe_.others.find(std::string_view(check.customer));
  if (found != stripe_.others.end()) return found->second.add(allowed);
  if (stripe_.others.size() < kMaxOthersPerStripe) stripe_.others[check.customer].add(allowed);
}

}  // namespace weir::edge
