// The checks that clients issue, and what their answers tell the judges.

#include <algorithm>

#include "test/sim/simulation.h"

namespace weir::sim {
namespace {

__extension__ using Wide = __int128;

/// Added to a check's longest wait before it counts as late: clocks drift and turns take their
/// time.
constexpr Nanos kPatienceNs = 100 * kMillisecond;
/// So long after a storm the round trips measured in it lengthen the wait.
constexpr Nanos kStormEchoNs = 15 * kSecond;
constexpr Nanos kHotEdgeMovesNs = 7 * kSecond;
/// How long a denial may be remembered (1 s), refreshed late, and answered to an old request.
/// Edges miss an owner after this time (PROTOCOL I2).
constexpr Nanos kSuspicionNs = 500 * kMillisecond;
constexpr Nanos kDenialAllowanceNs = 2500 * kMillisecond;
/// A commit and the one that it may wait for take so long at most, and four round trips.
constexpr Nanos kStoredWithinNs = 100 * kMillisecond;

/// At least what either allows.
LimitNumbers larger(const LimitNumbers& a, const LimitNumbers& b) {
  const bool a_is_faster = static_cast<Wide>(a.rate_count) * b.rate_period_ns >=
                           static_cast<Wide>(b.rate_count) * a.rate_period_ns;
  LimitNumbers result = a_is_faster ? a : b;
  result.capacity = std::max(a.capacity, b.capacity);
  return result;
}

}  // namespace

/// What holds for a limit now. After a change the larger of old and new numbers does, until leases
/// of the old ones have ended (PROTOCOL D8).
LimitNumbers Simulation::declared(const LimitDefinition& limit) const {
  LimitNumbers numbers = limit.numbers;
  for (const OldLimits& before : old_limits_) {
    if (world_.now_ns() >= before.until_ns) continue;
    for (const LimitDefinition& old : before.limits) {
      if (old.name == limit.name) numbers = larger(old.numbers, numbers);
    }
  }
  return numbers;
}

Nanos Simulation::next_gap(const std::string& edge) {
  std::int64_t rate = std::max<std::int64_t>(1, scenario_.load.checks_per_s);
  auto edges = static_cast<std::int64_t>(edges_.size());
  const Nanos now_ns = world_.now_ns();
  if (scenario_.load.kind == "moving") {
    // One edge has nearly all the load; another one after a while.
    const auto hot = static_cast<std::size_t>(now_ns / kHotEdgeMovesNs) % edges_.size();
    if (edges_[hot] == edge) {
      edges = 1;
    } else {
      rate = std::max<std::int64_t>(1, rate / 10);
    }
  }
  if (scenario_.load.kind == "bursty" && now_ns / (2 * kSecond) % 3 != 0) {
    rate = std::max<std::int64_t>(1, rate / 20);
  }
  if (scenario_.load.kind == "waves" && now_ns / (scenario_.ttl_ns * 3) % 2 != 0) {
    // Nobody asks for three TTLs: leases end, keys leave, owners go to rest.
    return scenario_.ttl_ns;
  }
  const Nanos mean_ns = kSecond * edges / rate;
  return world_.random.between(0, 2 * mean_ns);
}

std::string Simulation::pick_customer() {
  const std::size_t count = customers_.size();
  if (scenario_.load.kind == "hot" && world_.random.chance(900)) return customers_.front();
  if (scenario_.load.kind == "zipf") {
    // Each is half as likely as the one before.
    std::size_t k = 0;
    while (k + 1 < count && world_.random.chance(500)) ++k;
    return customers_[k];
  }
  return customers_[world_.random.below(count)];
}

void Simulation::schedule_check(const std::string& edge) {
  world_.after(next_gap(edge), [this, edge] {
    if (world_.now_ns() >= load_ends_ns_) return;
    issue(edge);
    schedule_check(edge);
  });
}

void Simulation::issue(const std::string& edge) {
  Check check;
  check.customer = pick_customer();
  const auto& costs = scenario_.load.costs;
  const auto at = std::find(edges_.begin(), edges_.end(), edge) - edges_.begin();
  check.cost = scenario_.load.cost_by_edge ? costs[static_cast<std::size_t>(at) % costs.size()]
                                           : costs[world_.random.below(costs.size())];
  const Nanos invoked_ns = world_.now_ns();
  const std::uint64_t id = ++check_id_;
  open_[id] = {invoked_ns, edge};
  const bool taken =
      nodes_.at(edge)->check(check, [this, id, edge, check, invoked_ns](const Decision& decision) {
        open_.erase(id);
        answered(edge, check, invoked_ns, decision);
      });
  if (!taken) open_.erase(id);
}

void Simulation::answered(const std::string& edge, const Check& check, Nanos invoked_ns,
                          const Decision& decision) {
  const Nanos now_ns = world_.now_ns();
  ++outcome_.checks;
  ++(decision.allowed ? outcome_.admitted : outcome_.denied);
  if (decision.source == Source::timeout) ++outcome_.timeouts;
  const Weather& weather = network_.weather;
  const bool free = busy_[edge] == 0 && invoked_ns >= free_since_ns_[edge];
  if (free && now_ns - storm_ended_ns_ > kStormEchoNs) {
    // A first round trip that an outage made long counts as the suspicion time at most.
    const Nanos outage_ns = scenario_.faults.empty() ? 0 : 2 * kSuspicionNs;
    // By a relay there are two ways, one after the other.
    const int ways = scenario_.relay_nodes > 0 ? 2 : 1;
    const Nanos slow_ns =
        std::max(4 * (ways * round_trip_ns() + 2 * weather.straggler_ns), outage_ns);
    progress_.answered(invoked_ns, now_ns, std::max(scenario_.wait_ns, slow_ns) + kPatienceNs,
                       edge);
  }
  if (invoked_ns >= quiet_from_ns_) {
    Tally& tally = late_[check.customer];
    ++tally.issued;
    tally.admitted += decision.allowed && check.cost > 0 ? 1 : 0;
    const bool unheard = decision.source == Source::deny || decision.source == Source::allow ||
                         decision.source == Source::static_share;
    // A first answer takes a read, a commit and the way there.
    const bool near = 4 * round_trip_ns() < kSuspicionNs;
    if (unheard && near && calm_weather() && busy_[edge] == 0) {
      finding_.lost(now_ns, "a check of " + check.customer + " at " + edge + " ended as `" +
                                to_string(decision.source) + "` long after the last fault");
    }
  }
  if (!decision.allowed) {
    judge_denial(check, decision);
    return;
  }
  world_.log(edge + " admits " + std::to_string(check.cost) + " of " + check.customer + " by " +
             to_string(decision.source));
  if (check.cost > 0) edge_admitted_[edge] += static_cast<std::uint64_t>(check.cost);
  // Failure policies are declared exceptions; without a fault nobody may use them.
  const bool by_policy =
      decision.source == Source::allow || decision.source == Source::static_share;
  if (by_policy && !scenario_.faults.empty()) return;
  for (const LimitDefinition& limit : limits_) {
    if (!limit.shadow) judge_admission(edge, check, limit);
  }
}

void Simulation::judge_admission(const std::string& edge, const Check& check,
                                 const LimitDefinition& limit) {
  const Nanos now_ns = world_.now_ns();
  const LimitNumbers numbers = declared(limit);
  const std::string bucket = encode(BucketKey{check.customer, limit.scope, "", limit.name, {}});
  if (limit.scope == Scope::node) {
    if (limit.algorithm != Algorithm::sliding_window || check.cost < 0) return;
    Node& node = *nodes_.at(edge);
    const std::string where = limit.name + " of " + check.customer + " at " + edge + " " +
                              std::to_string(node.process_incarnation());
    windows_.slid(where, numbers.capacity, check.cost,
                  node.clock().boot_ns() / numbers.rate_period_ns, now_ns);
  } else if (limit.algorithm == Algorithm::fixed_window) {
    const Nanos wall_ns = kEpochWallNs + scenario_.wall_start_ns + now_ns;
    if (check.cost > 0) {
      windows_.admitted(bucket, numbers.capacity, check.cost, wall_ns, now_ns);
    } else {
      windows_.given_back(bucket, numbers.capacity, -check.cost, wall_ns);
    }
  } else {
    if (check.cost > 0) bound_.admitted(bucket, numbers, check.cost, now_ns);
    if (check.cost < 0) bound_.given_back(bucket, -check.cost);
  }
}

/// Judged a while later: an owner denies by what it has granted, stored or not yet.
void Simulation::judge_denial(const Check& check, const Decision& decision) {
  if (decision.source != Source::owner || !calm_weather() || active_faults_ > 0) return;
  const Nanos denied_ns = world_.now_ns();
  const Nanos quiet_ns = disturbed_ns_;
  const Nanos allowance_ns = kDenialAllowanceNs + scenario_.ttl_ns / 2 + 4 * round_trip_ns();
  for (const LimitDecision& said : decision.limits) {
    if (said.allowed || said.scope == Scope::node) continue;
    std::string bucket = encode(BucketKey{check.customer, said.scope, "", said.name, {}});
    world_.after(kStoredWithinNs + 4 * round_trip_ns(), [=, this, bucket = std::move(bucket)] {
      if (disturbed_ns_ != quiet_ns) return;
      denial_.denied(bucket, quiet_ns, allowance_ns, denied_ns, world_.now_ns());
    });
  }
}

}  // namespace weir::sim
