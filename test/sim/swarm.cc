// Scenarios that nobody would write down.

#include "test/sim/scenario.h"

namespace weir::sim {
namespace {

LimitDefinition token_bucket(std::string name, std::int64_t capacity, std::int64_t count,
                             Nanos period_ns) {
  LimitDefinition limit;
  limit.name = std::move(name);
  limit.numbers = {capacity, count, period_ns};
  limit.on_unreachable = FailurePolicy::deny;
  return limit;
}

/// The first limit counts minutes, one of which at least ends within the run; each edge may have a
/// sliding window beside it.
void count_windows(Random& random, Scenario& s) {
  LimitDefinition& limit = s.limits.front();
  limit.algorithm = Algorithm::fixed_window;
  limit.window = Window::minute;
  limit.numbers = {limit.numbers.capacity * 10, 0, 0};
  s.wall_start_ns = random.between(0, 59) * kMinute + random.between(0, 59) * kSecond;
  s.seconds_ns = 120 * kSecond;
  if (s.load.costs.size() > 1 && s.load.costs[1] < 0) s.load.costs = {1, 2};
  if (!random.chance(300)) return;
  LimitDefinition guard = token_bucket("guard", 100, 100, 5 * kSecond);
  guard.scope = Scope::node;
  guard.algorithm = Algorithm::sliding_window;
  s.limits.push_back(guard);
}

template <typename T, std::size_t n>
T pick(Random& random, const T (&of)[n]) {
  return of[random.below(n)];
}

}  // namespace

Scenario swarm(Random& random) {
  Scenario s;
  s.name = "swarm";
  s.replicas = pick(random, {1, 3, 3, 3, 5});
  s.owner_nodes = s.replicas + static_cast<int>(random.below(3));
  s.edges = pick(random, {1, 2, 3, 5, 10, 20, 40});
  s.edges_apart = random.chance(300);
  if (random.chance(250)) {
    s.regions = static_cast<int>(random.between(2, 3));
    s.relay_nodes = static_cast<int>(random.below(4));
    s.weather.between_regions_ns = random.between(1, 60) * kMillisecond;
  }
  s.ttl_ns = pick(random, {kSecond, 2 * kSecond, 5 * kSecond, 10 * kSecond});
  if (random.chance(200)) s.max_buckets = 1;
  s.weather.loss_permille = random.chance(500) ? 0 : static_cast<unsigned>(random.below(100));
  s.weather.duplicate_permille = static_cast<unsigned>(random.below(100));
  s.weather.straggler_permille = random.chance(500) ? 0 : static_cast<unsigned>(random.below(50));
  s.weather.straggler_ns = random.between(50, 3000) * kMillisecond;
  s.weather.delay_ns = random.between(50, 2000) * kMicrosecond;
  if (random.chance(150)) s.weather.delay_ns = random.between(20, 300) * kMillisecond;
  const std::int64_t capacity = pick<std::int64_t>(random, {1, 2, 5, 20, 100, 1000});
  const Nanos period_ns = pick(random, {kSecond, kSecond, 10 * kSecond, kMinute, kHour});
  s.limits.push_back(token_bucket("first", capacity, random.between(1, 2 * capacity), period_ns));
  if (random.chance(300)) {
    s.limits.push_back(token_bucket("second", capacity * 3, capacity, kSecond));
  }
  if (random.chance(150)) s.limits.front().strict = true;
  static const char* const kKinds[] = {"steady", "bursty", "hot", "zipf", "moving", "waves"};
  s.load.kind = kKinds[random.below(6)];
  s.load.customers = static_cast<int>(random.between(1, 6));
  s.load.checks_per_s = random.between(5, 400);
  if (random.chance(300)) s.load.costs = {1, 1, 3};
  if (random.chance(100)) s.load.costs = {1, -1, 2};
  for (const Fault fault : kFaults) {
    if (fault != Fault::destroy_majority && random.chance(400)) s.faults.push_back(fault);
  }
  s.pins = random.chance(500);
  if (random.chance(300)) s.spares = 1 + static_cast<int>(random.below(2));
  if (s.faults.empty()) s.faults.push_back(Fault::kill_node);
  s.fault_every_ns = random.between(1, 8) * kSecond;
  s.aim_at_owners = random.chance(200);
  // Last, so that the other draws of a seed stay what they were.
  if (random.chance(100)) count_windows(random, s);
  return s;
}

}  // namespace weir::sim
