// What is asked of a cluster at the end of its load and after a long rest.

#include <algorithm>

#include "test/sim/simulation.h"

namespace weir::sim {
namespace {

constexpr int kProbeChecks = 3000;
/// What two writes to the disk take at most.
constexpr Nanos kStoringNs = 10 * kMillisecond;
constexpr std::int64_t kUseParts = 1'000'000;
/// A client does not wait longer than this for its retry time.
constexpr Nanos kLongestProbeNs = 5 * kSecond;
/// Progress is asked of customers who asked so often, where so many tokens flowed in.
constexpr std::uint64_t kEnoughChecks = 20;
/// So long a token lies at an edge where nobody wants it while others wait.
constexpr Nanos kTokenKeptNs = 500 * kMillisecond;
constexpr std::int64_t kEnoughTokens = 3;
/// So many more where messages are lost; and for each four pairs of an edge and a limit: a token
/// may lie at each edge in turn before one has all that a check needs.
constexpr std::int64_t kTokensForLosses = 7;
constexpr std::int64_t kPairsForToken = 4;

std::int64_t tokens_in(const LimitNumbers& numbers, Nanos span_ns) {
  return span_ns / kMillisecond * numbers.rate_count /
         std::max<Nanos>(1, numbers.rate_period_ns / kMillisecond);
}

}  // namespace

/// What a bucket could have given, against what it gave; and whether the edges got even parts.
void Simulation::measure_use() {
  const LimitDefinition& limit = scenario_.limits.front();
  const Nanos now_ns = world_.now_ns();
  auto leases = live_leases();
  for (const std::string& customer : customers_) {
    const std::string bucket = encode(BucketKey{customer, Scope::global, "", limit.name, {}});
    std::int64_t could =
        limit.numbers.capacity + tokens_in(limit.numbers, load_ends_ns_ - 3 * kSecond);
    if (limit.algorithm == Algorithm::fixed_window) {
      const Nanos begin_ns = scenario_.wall_start_ns + 3 * kSecond;
      const Nanos end_ns = scenario_.wall_start_ns + load_ends_ns_;
      could = limit.numbers.capacity * (end_ns / kMinute - begin_ns / kMinute + 1);
    }
    // What edges still hold is not lost.
    std::int64_t held = 0;
    for (const LiveLease& lease : leases[bucket]) held += lease.held;
    const std::int64_t used =
        (bound_.admitted_tokens(bucket) + windows_.admitted_tokens(bucket) + held) * kUseParts /
        std::max<std::int64_t>(1, could);
    outcome_.use_ppm = outcome_.use_ppm < 0 ? used : std::min(outcome_.use_ppm, used);
    if (scenario_.use_permille > 0) {
      use_.used(customer, used / 1000, scenario_.use_permille, now_ns);
    }
  }
  if (scenario_.fair_permille == 0) return;
  std::uint64_t sum = 0;
  for (const auto& [edge, tokens] : edge_admitted_) sum += tokens;
  std::uint64_t worst = UINT64_MAX;
  for (const std::string& edge : edges_) {
    const std::uint64_t part =
        edge_admitted_[edge] * edges_.size() * 1000 / std::max<std::uint64_t>(1, sum);
    progress_.asked();
    worst = std::min(worst, part);
    if (part >= static_cast<std::uint64_t>(scenario_.fair_permille)) continue;
    progress_.starved(now_ns, edge + " got " + std::to_string(part) + " of 1000 of an even part");
  }
  outcome_.fair_permille = worst;
}

/// While faults rested somebody must have got something of what flowed in.
void Simulation::check_progress() {
  // A lease must not be over when it arrives: its request travels, finds a commit under way, and
  // waits for its own, each for a round trip, and whoever uses it needs a while.
  if (4 * round_trip_ns() > shared_.terms.lessee_ns()) return;
  const std::int64_t cost = largest_cost();
  const Nanos span_ns = load_ends_ns_ - quiet_from_ns_;
  for (const std::string& customer : customers_) {
    std::int64_t flowed = INT64_MAX;
    for (const LimitDefinition& limit : limits_) {
      // What is out takes up room until it is told, or until its lease ends if the word is lost.
      const Nanos out_ns =
          std::max<Nanos>(1, 2 * round_trip_ns() + (calm_weather() ? 0 : scenario_.ttl_ns));
      const std::int64_t turns = multiply_saturating(limit.numbers.capacity, span_ns / out_ns);
      const std::int64_t tokens =
          cost > limit.numbers.capacity ? 0 : std::min(turns, tokens_in(limit.numbers, span_ns));
      flowed = std::min(flowed, tokens);
    }
    const Tally& tally = late_[customer];
    const auto pairs = static_cast<std::int64_t>(edges_.size() * limits_.size());
    const std::int64_t enough =
        kEnoughTokens + (calm_weather() ? 0 : kTokensForLosses) + pairs / kPairsForToken;
    // An edge that is granted a token after its check has given up keeps it for a while. Where
    // checks come to it more rarely than that, most tokens go back unused.
    const auto checks = static_cast<std::int64_t>(tally.issued);
    const std::int64_t rare = static_cast<std::int64_t>(edges_.size()) * span_ns /
                              std::max<std::int64_t>(1, multiply_saturating(checks, kTokenKeptNs));
    if (flowed < enough * cost * std::max<std::int64_t>(1, rare)) continue;
    if (tally.issued < kEnoughChecks) continue;
    progress_.asked();
    if (tally.admitted > 0) continue;
    progress_.starved(world_.now_ns(), customer + " asked " + std::to_string(tally.issued) +
                                           " times and got nothing of " + std::to_string(flowed) +
                                           " tokens that flowed in");
  }
}

void Simulation::check_at_rest() {
  const Nanos now_ns = world_.now_ns();
  for (const auto& [id, open] : open_) {
    // A check of a process that ended was answered by its broken connection.
    if (open.first >= quiet_from_ns_) progress_.unanswered(open.first, open.second);
  }
  for (const RegisterId& reg : shared_.topologies.registers()) {
    std::size_t owners = 0;
    for (const auto& [name, node] : nodes_) {
      if (node->host() != nullptr && node->host()->owns(reg)) ++owners;
    }
    if (owners != 1) {
      finding_.lost(
          now_ns, to_string(reg) + " has " + std::to_string(owners) + " owners after a long rest");
    }
    for (const std::string& name : replicas_of(reg)) {
      if (nodes_.at(name)->votes(reg)) continue;
      finding_.lost(now_ns, name + " does not vote in " + to_string(reg) + " after a long rest");
    }
  }
  for (const auto& [name, node] : nodes_) {
    std::size_t kept = 0;
    for (const auto& [key, view] : node->ledgers()) {
      if (!node->host()->owns(key.reg)) continue;
      ++kept;
      if (view.outstanding > 0) {
        leak_.still_out(name + " of " + key.customer, view.outstanding, now_ns);
      }
    }
    bounded_.count("ledgers in memory of " + name + " after a rest", kept, 0, now_ns);
    if (node->limiter() == nullptr) continue;
    bounded_.count("buckets at " + name + " after a rest", node->limiter()->bucket_count(), 0,
                   now_ns);
    bounded_.count("waiting checks at " + name + " after a rest", node->limiter()->waiting_count(),
                   0, now_ns);
  }
}

std::string Simulation::living_edge() const {
  for (const std::string& edge : edges_) {
    if (nodes_.at(edge)->alive()) return edge;
  }
  return edges_.front();
}

/// A look (cost 0) at every bucket says that it is full, where there was time to fill.
void Simulation::look_everywhere() {
  if (!calm_weather() || round_trip_ns() * 2 > scenario_.wait_ns) return;
  const Nanos rested_ns = world_.now_ns() - load_ends_ns_ - 2 * scenario_.ttl_ns;
  for (const std::string& customer : customers_) {
    Check look;
    look.customer = customer;
    look.cost = 0;
    nodes_.at(living_edge())->check(look, [this, customer, rested_ns](const Decision& decision) {
      for (const LimitDecision& said : decision.limits) {
        for (const LimitDefinition& limit : limits_) {
          if (limit.name != said.name || limit.algorithm != Algorithm::token_bucket) continue;
          if (tokens_in(limit.numbers, rested_ns) <= limit.numbers.capacity) continue;
          leak_.looked(customer + " " + limit.name, said.remaining, limit.numbers.capacity,
                       world_.now_ns());
        }
      }
    });
  }
}

/// A client alone empties a bucket, waits as it is told, and must be admitted then.
void Simulation::probe_retries() {
  if (!calm_weather() || round_trip_ns() * 2 > scenario_.wait_ns) return;
  for (const std::string& customer : customers_) probe(customer, kProbeChecks, -1);
}

void Simulation::probe(const std::string& customer, int checks_left, Nanos told_ns) {
  if (checks_left == 0) return;
  Check check;
  check.customer = customer;
  check.cost = std::max<std::int64_t>(1, largest_cost());
  const std::string edge = living_edge();
  nodes_.at(edge)->check(check, [=, this](const Decision& decision) {
    if (decision.allowed) {
      if (told_ns >= 0) {
        retry_.admitted();
        return;
      }
      world_.after(kMicrosecond, [=, this] { probe(customer, checks_left - 1, -1); });
      return;
    }
    if (decision.source != Source::owner) return;
    if (told_ns >= 0) {
      // An owner that went to rest meanwhile has aged its record from when it was stored: what the
      // commit and the read took is not credited.
      const bool rested = decision.retry_after_ms >= 0 && decision.retry_after_ms * kMillisecond <=
                                                              2 * round_trip_ns() + kStoringNs;
      if (rested) return retry_.admitted();
      retry_.denied_again(customer, told_ns, world_.now_ns());
      return;
    }
    const Nanos wait_ns = decision.retry_after_ms * kMillisecond;
    if (decision.retry_after_ms < 0 || wait_ns > kLongestProbeNs) return;
    const Nanos true_ns = nodes_.at(edge)->clock().true_span(wait_ns);
    world_.after(true_ns, [=, this] { probe(customer, 1, wait_ns); });
  });
}

}  // namespace weir::sim
