// What a Limiter tells about itself: usage, counters, gauges. Scrapes and people ask, not checks.

#include <algorithm>
#include <map>
#include <tuple>

#include "src/edge/estimate.h"
#include "src/edge/limiter_impl.h"

namespace weir::edge {

std::vector<BucketUsage> Limiter::Impl::usage(const std::string& customer) const {
  const Stripe& stripe = parts_[slot_of(customer) % kStripes].stripe;
  const std::string prefix = customer_prefix(customer);
  std::vector<BucketUsage> result;
  const std::lock_guard lock(stripe.mutex);
  if (!stripe.policy) return result;
  const Nanos now_ns = clock_.boot_ns();
  const auto add = [&](const std::string& key, const auto& about_of) {
    if (!key.starts_with(prefix)) return;
    auto bucket = decode_bucket_key(key);
    if (!bucket) return;
    const auto matched = stripe.policy->policy->find(bucket->limit, customer);
    if (!matched || matched->kind != policy::MatchedLimit::Kind::numbers) return;
    const Estimate about = about_of(matched->numbers);
    BucketUsage& usage = result.emplace_back();
    usage.name = std::move(bucket->limit);
    usage.scope = bucket->scope;
    for (auto& [name, value] : bucket->attributes) {
      if (value) usage.attributes.emplace_back(std::move(name), std::move(*value));
    }
    usage.limit = matched->numbers.capacity;
    usage.remaining = std::min(about.remaining, usage.limit);
    usage.used = usage.limit - usage.remaining;
    usage.reset_ms = to_ms(about.reset_ns);
  };
  for (const auto& [key, bucket] : stripe.node_buckets) {
    add(key, [&](const LimitNumbers&) {
      return bucket->counter.about({now_ns, clock_.wall_ns()});
    });
  }
  for (const auto& [key, entry] : stripe.entries) {
    if (entry->holder.told_ns() == 0) continue;
    add(key, [&](const LimitNumbers& numbers) { return estimate(entry->holder, numbers, now_ns); });
  }
  return result;
}

std::vector<CheckCount> Limiter::Impl::check_counts() const {
  std::map<std::tuple<LimitId, bool, Source>, std::uint64_t> sums;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    for (std::size_t id = 0; id < part.stripe.stats.size(); ++id) {
      for (const bool allowed : {false, true}) {
        const auto& counts = part.stripe.stats[id].checks[allowed ? 1 : 0];
        for (std::size_t source = 0; source < counts.size(); ++source) {
          if (counts[source] == 0) continue;
          sums[{static_cast<LimitId>(id), allowed, static_cast<Source>(source)}] += counts[source];
        }
      }
    }
  }
  std::vector<CheckCount> result;
  const std::lock_guard lock(names_mutex_);
  for (const auto& [what, count] : sums) {
    const auto& [id, allowed, source] = what;
    result.push_back({names_[id], allowed, source, count});
  }
  return result;
}

std::vector<LimitGauges> Limiter::Impl::gauges() const {
  std::map<LimitId, LimitGauges> sums;
  const Nanos now_ns = clock_.boot_ns();
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    for (std::size_t id = 1; id < part.stripe.stats.size(); ++id) {
      const LimitStats& stats = part.stripe.stats[id];
      LimitGauges& gauges = sums[static_cast<LimitId>(id)];
      gauges.overshoot_tokens = add_saturating(gauges.overshoot_tokens, stats.overshoot_tokens);
      gauges.shadow_denied += stats.shadow_denied;
      if (stats.failure_applied_ns == 0) continue;
      gauges.policy = stats.failure_policy;
      gauges.degraded = gauges.degraded || now_ns - stats.failure_applied_ns < 2 * kSecond;
    }
    for (const auto& [key, entry] : part.stripe.entries) {
      LimitGauges& gauges = sums[entry->limit];
      gauges.lease_tokens = add_saturating(gauges.lease_tokens, entry->holder.held());
    }
  }
  std::vector<LimitGauges> result;
  const std::lock_guard lock(names_mutex_);
  for (auto& [id, gauges] : sums) {
    gauges.limit = names_[id];
    result.push_back(std::move(gauges));
  }
  return result;
}

std::vector<LeaseView> Limiter::Impl::leases() const {
  std::vector<LeaseView> result;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    for (const auto& [key, entry] : part.stripe.entries) {
      const lease::Holder& holder = entry->holder;
      if (holder.held() == 0) continue;
      result.push_back(
          {key, holder.incarnation(), holder.held(), holder.deadline_ns(), holder.grantor()});
    }
  }
  return result;
}

std::vector<Degradation> Limiter::Impl::take_degradations() {
  std::vector<Degradation> result;
  for (Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    std::move(part.stripe.degradations.begin(), part.stripe.degradations.end(),
              std::back_inserter(result));
    part.stripe.degradations.clear();
  }
  return result;
}

std::size_t Limiter::Impl::bucket_count() const {
  std::size_t count = 0;
  for (const Part& part : parts_) {
    const std::lock_guard lock(part.stripe.mutex);
    count += part.stripe.entries.size() + part.stripe.node_buckets.size();
  }
  return count;
}

}  // namespace weir::edge
