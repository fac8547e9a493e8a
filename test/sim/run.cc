#include "test/sim/run.h"

#include <algorithm>
#include <map>
#include <memory>

#include "src/base/hash.h"
#include "test/sim/node.h"

namespace weir::sim {
namespace {

/// Added to a check's longest wait before it counts as late: clocks drift and turns take their
/// time.
constexpr Nanos kPatienceNs = 100 * kMillisecond;
/// Faults end so long before the end of the run that everything can have healed.
constexpr Nanos kRestNs = 12 * kSecond;
/// The cluster is up and its registers are owned by then; load starts.
constexpr Nanos kWarmUpNs = 3 * kSecond;

class Run final : public Observer {
 public:
  Run(const Scenario& scenario, std::uint64_t seed, bool keep_trace)
      : scenario_(scenario),
        world_(seed, keep_trace),
        network_(world_),
        shared_{world_, network_, {}, {}, scenario.wait_ns, 5 * kSecond, nullptr, nullptr, {}, {}},
        bound_(scenario.drift_ppm + 1) {
    outcome_.seed = seed;
    outcome_.scenario = scenario.name;
  }

  Outcome go() {
    build();
    world_.log(summary());
    for (auto& [name, node] : nodes_) node->boot();
    world_.run_until(kWarmUpNs);
    load_ends_ns_ = kWarmUpNs + scenario_.seconds_ns;
    faults_end_ns_ = load_ends_ns_ - kRestNs;
    for (const std::string& edge : edges_) schedule_check(edge);
    if (!scenario_.faults.empty()) schedule_fault();
    world_.run_until(load_ends_ns_);
    measure_use();
    // Rest: leases run out, buckets fill.
    const Nanos rest_ns = 4 * scenario_.ttl_ns + 5 * kSecond;
    world_.run_until(load_ends_ns_ + rest_ns);
    check_at_rest();
    return finish();
  }

  void committed(const std::string& node, const RegisterId& reg, const Epoch& epoch) override {
    epochs_.committed(node, reg, epoch, world_.now_ns());
    if (owners_[reg] != node) {
      owners_[reg] = node;
      ++outcome_.takeovers;
    }
  }
  void promised(const std::string& node, const RegisterId& reg,
                const RegisterState& state) override {
    promises_.promised(node, nodes_.at(node)->disk(), reg, state, world_.now_ns());
  }

 private:
  std::string summary() const;
  void build();
  void add_node(NodeSettings settings);
  void schedule_check(const std::string& edge);
  void issue(const std::string& edge);
  void answered(const std::string& edge, const Check& check, Nanos invoked_ns,
                const Decision& decision);
  std::string pick_customer(const std::string& edge);
  Nanos next_gap(const std::string& edge);
  void schedule_fault();
  void inject(Fault fault);
  void heal(const std::string& what, Nanos after_ns, std::function<void()> mend);
  std::string any_node();
  void measure_use();
  void check_at_rest();
  Outcome finish();

  const Scenario& scenario_;
  World world_;
  Network network_;
  Shared shared_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::vector<std::string> owner_nodes_;
  std::vector<std::string> edges_;
  std::vector<std::string> customers_;
  std::map<RegisterId, std::string> owners_;
  std::map<std::string, int> busy_;  ///< nodes under a fault
  Nanos load_ends_ns_ = 0;
  Nanos faults_end_ns_ = 0;
  std::map<std::uint64_t, std::pair<Nanos, std::string>> open_;
  std::uint64_t check_id_ = 0;
  Outcome outcome_;

  BoundChecker bound_;
  EpochChecker epochs_;
  PromiseChecker promises_;
  ProgressChecker progress_;
  StateChecker use_{"use of the quota"};
  StateChecker leak_{"no leak"};
  StateChecker finding_{"finding the owner"};
  StateChecker bounded_{"bounded state"};
  StateChecker denial_{"no false denial"};
};

std::string Run::summary() const {
  const Weather& weather = scenario_.weather;
  const LimitNumbers& numbers = scenario_.limits.front().numbers;
  return scenario_.name + ": R " + std::to_string(scenario_.replicas) + " of " +
         std::to_string(scenario_.owner_nodes) + ", edges " + std::to_string(scenario_.edges) +
         ", ttl " + std::to_string(scenario_.ttl_ns / kMillisecond) + " ms, delay " +
         std::to_string(weather.delay_ns / kMicrosecond) + " us, loss " +
         std::to_string(weather.loss_permille) + ", stragglers " +
         std::to_string(weather.straggler_permille) + " of " +
         std::to_string(weather.straggler_ns / kMillisecond) + " ms, limit " +
         std::to_string(numbers.capacity) + " + " + std::to_string(numbers.rate_count) + " per " +
         std::to_string(numbers.rate_period_ns / kMillisecond) + " ms, load " +
         scenario_.load.kind + " " + std::to_string(scenario_.load.checks_per_s) +
         "/s, suspicion " + std::to_string(shared_.seat.suspicion_ns / kMillisecond) + " ms";
}

void Run::add_node(NodeSettings settings) {
  const std::string name = settings.name;
  settings.drift_ppm = world_.random.between(-scenario_.drift_ppm, scenario_.drift_ppm);
  settings.wall_offset_ns = world_.random.between(-kSecond, kSecond);
  nodes_.emplace(name, std::make_unique<Node>(std::move(settings), shared_, nodes_, *this));
}

void Run::build() {
  Topology topology;
  topology.version = 1;
  topology.replica_count = static_cast<std::uint32_t>(scenario_.replicas);
  TopologyRegion home{"eu", 1, {}};
  for (int i = 1; i <= scenario_.owner_nodes; ++i) {
    const std::string name = "eu-" + std::to_string(i);
    home.nodes.push_back({name, "z" + std::to_string(i % 3), {"127.0.0.1", 1}});
    owner_nodes_.push_back(name);
  }
  topology.regions.push_back(home);
  shared_.placement = std::make_shared<regions::Placement>(topology);
  shared_.owner_nodes = owner_nodes_;
  shared_.terms.ttl_ns = scenario_.ttl_ns;
  network_.weather = scenario_.weather;
  // Where messages are slow, suspicion and repetition wait longer, as an operator would set them.
  const Weather& weather = scenario_.weather;
  const Nanos one_way_ns = weather.delay_ns + weather.jitter_ns + weather.between_regions_ns +
                           (weather.straggler_permille > 20 ? weather.straggler_ns / 4 : 0);
  shared_.seat.suspicion_ns = std::max(shared_.seat.suspicion_ns, 8 * one_way_ns);
  shared_.seat.stagger_ns = std::max(shared_.seat.stagger_ns, 3 * one_way_ns);
  shared_.seat.attempt_ns = std::max(shared_.seat.attempt_ns, 8 * one_way_ns);
  shared_.seat.retry_ns = std::max(shared_.seat.retry_ns, 3 * one_way_ns);

  PolicyDefinition definition;
  definition.version = 1;
  definition.limits = scenario_.limits;
  shared_.policy = std::make_shared<policy::Policy>(std::move(definition));
  std::set<RegisterId> registers;
  for (int i = 1; i <= scenario_.load.customers; ++i) {
    customers_.push_back("customer-" + std::to_string(i));
    registers.insert(register_of(Scope::global, "", customers_.back()));
  }
  shared_.registers.assign(registers.begin(), registers.end());
  for (const std::string& name : owner_nodes_) {
    const bool both = scenario_.edges > static_cast<int>(edges_.size());
    add_node({name, "eu", both, true, 0, 0});
    if (both) edges_.push_back(name);
  }
  for (int i = 1; static_cast<int>(edges_.size()) < scenario_.edges; ++i) {
    const std::string region = scenario_.regions > 1 ? "us" : "eu";
    const std::string name = region + "-edge-" + std::to_string(i);
    add_node({name, region, true, false, 0, 0});
    edges_.push_back(name);
  }
}

Nanos Run::next_gap(const std::string& edge) {
  std::int64_t rate = std::max<std::int64_t>(1, scenario_.load.checks_per_s);
  auto edges = static_cast<std::int64_t>(edges_.size());
  if (scenario_.load.kind == "moving") {
    // One edge has nearly all the load; another one every seven seconds.
    const auto hot = static_cast<std::size_t>(world_.now_ns() / (7 * kSecond)) % edges_.size();
    if (edges_[hot] == edge)
      edges = 1;
    else
      rate = std::max<std::int64_t>(1, rate / 10);
  }
  if (scenario_.load.kind == "bursty" && world_.now_ns() / (2 * kSecond) % 3 != 0)
    rate = std::max<std::int64_t>(1, rate / 20);
  const Nanos mean_ns = kSecond * edges / rate;
  return world_.random.between(0, 2 * mean_ns);
}

std::string Run::pick_customer(const std::string&) {
  const std::size_t count = customers_.size();
  if (scenario_.load.kind == "hot" && world_.random.chance(900)) return customers_.front();
  if (scenario_.load.kind == "zipf") {
    // The k-th is half as likely as the one before.
    std::size_t k = 0;
    while (k + 1 < count && world_.random.chance(500)) ++k;
    return customers_[k];
  }
  return customers_[world_.random.below(count)];
}

void Run::schedule_check(const std::string& edge) {
  world_.after(next_gap(edge), [this, edge] {
    if (world_.now_ns() >= load_ends_ns_) return;
    issue(edge);
    schedule_check(edge);
  });
}

void Run::issue(const std::string& edge) {
  Check check;
  check.customer = pick_customer(edge);
  check.cost = scenario_.load.costs[world_.random.below(scenario_.load.costs.size())];
  const Nanos invoked_ns = world_.now_ns();
  const std::uint64_t id = ++check_id_;
  Node& node = *nodes_.at(edge);
  open_[id] = {invoked_ns, edge};
  const bool taken =
      node.check(check, [this, id, edge, check, invoked_ns](const Decision& decision) {
        open_.erase(id);
        answered(edge, check, invoked_ns, decision);
      });
  if (!taken) open_.erase(id);
}

void Run::answered(const std::string& edge, const Check& check, Nanos invoked_ns,
                   const Decision& decision) {
  const Nanos now_ns = world_.now_ns();
  ++outcome_.checks;
  decision.allowed ? ++outcome_.admitted : ++outcome_.denied;
  if (decision.source == Source::timeout) ++outcome_.timeouts;
  const Weather& weather = network_.weather;
  const Nanos round_trip_ns = 2 * (weather.delay_ns + weather.jitter_ns + weather.straggler_ns +
                                   weather.between_regions_ns);
  if (busy_[edge] == 0) {
    progress_.answered(invoked_ns, now_ns,
                       std::max(scenario_.wait_ns, 4 * round_trip_ns) + kPatienceNs, edge);
  }
  if (!decision.allowed) return;
  for (const LimitDefinition& limit : scenario_.limits) {
    if (limit.shadow || limit.scope == Scope::node) continue;
    const std::string bucket = encode(BucketKey{check.customer, limit.scope, "", limit.name, {}});
    if (check.cost > 0) bound_.admitted(bucket, limit.numbers, check.cost, now_ns);
    if (check.cost < 0) bound_.given_back(bucket, limit.numbers, -check.cost, now_ns);
  }
}

std::string Run::any_node() {
  auto at = nodes_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(world_.random.below(nodes_.size())));
  return at->first;
}

void Run::schedule_fault() {
  world_.after(world_.random.between(scenario_.fault_every_ns / 2, scenario_.fault_every_ns),
               [this] {
                 if (world_.now_ns() >= faults_end_ns_) return;
                 inject(scenario_.faults[world_.random.below(scenario_.faults.size())]);
                 schedule_fault();
               });
}

/// A fault ends after a while, and at the latest when the faults of the run do.
void Run::heal(const std::string& what, Nanos after_ns, std::function<void()> mend) {
  const Nanos at_ns = std::min(world_.now_ns() + after_ns, faults_end_ns_);
  world_.at(at_ns, [this, what, mend = std::move(mend)] {
    world_.log("mended: " + what);
    mend();
  });
}

void Run::inject(Fault fault) {
  const std::string name = any_node();
  Node& node = *nodes_.at(name);
  ++outcome_.faults;
  world_.log(std::string("fault: ") + to_string(fault) + " " + name);
  const Nanos span_ns = world_.random.between(100 * kMillisecond, 2 * scenario_.ttl_ns);
  const auto restart = [this, &node, name] {
    --busy_[name];
    node.boot();
  };
  switch (fault) {
    case Fault::kill_owner: {
      const std::string& customer = customers_[world_.random.below(customers_.size())];
      for (auto& [other, at] : nodes_) at->kill_owner(customer);
      return;
    }
    case Fault::kill_node:
    case Fault::power_loss:
      if (!node.alive()) return;
      node.crash(fault == Fault::power_loss);
      ++busy_[name];
      heal(name, span_ns, restart);
      return;
    case Fault::wipe: {
      // One at a time: two at once on three replicas lose what was committed, and nothing can help.
      if (busy_.contains("wipe") || !node.settings().owner || scenario_.replicas == 1) return;
      if (!node.alive()) return;
      busy_["wipe"] = 1;
      node.crash(true);
      node.wipe();
      ++busy_[name];
      heal(name, span_ns, restart);
      world_.after(span_ns + 20 * kSecond, [this] { busy_.erase("wipe"); });
      return;
    }
    case Fault::pause:
      if (!node.alive() || node.paused()) return;
      node.pause();
      ++busy_[name];
      heal(name, span_ns, [this, &node, name] {
        node.resume();
        world_.after(kSecond, [this, name] { --busy_[name]; });
      });
      return;
    case Fault::cut_one_way:
    case Fault::split: {
      for (const auto& [from, a] : nodes_) {
        for (const auto& [to, b] : nodes_) {
          const bool across = fault == Fault::split ? (hash_bytes(from, outcome_.faults) & 1) !=
                                                          (hash_bytes(to, outcome_.faults) & 1)
                                                    : from == name && world_.random.chance(500);
          if (from != to && across) network_.cut(from, to);
        }
      }
      heal(to_string(fault), span_ns, [this] { network_.heal(); });
      return;
    }
    case Fault::cut_off:
      network_.cut_off(name);
      heal("cut of " + name, span_ns, [this, name] { network_.join_again(name); });
      return;
    case Fault::disk_error:
      node.fail_writes(static_cast<int>(world_.random.between(1, 5)));
      return;
    case Fault::slew:
      // An edge's clock may run slow by as much as is configured; an owner's speed is the rate's.
      if (node.settings().owner) return;
      node.clock().set_drift(world_.random.between(-83'000, 83'000));
      heal("slew of " + name, span_ns, [&node] { node.clock().set_drift(0); });
      return;
    case Fault::step_wall:
      node.clock().step_wall(world_.random.between(-kHour, kHour));
      return;
    case Fault::storm: {
      const Weather before = scenario_.weather;
      network_.weather.loss_permille = static_cast<unsigned>(world_.random.below(400));
      network_.weather.duplicate_permille = static_cast<unsigned>(world_.random.below(300));
      network_.weather.straggler_permille = static_cast<unsigned>(world_.random.below(300));
      heal("storm", span_ns, [this, before] { network_.weather = before; });
      return;
    }
  }
}

/// What a bucket was asked for and could have given, against what it gave.
void Run::measure_use() {
  if (scenario_.use_permille == 0) return;
  const LimitNumbers& numbers = scenario_.limits.front().numbers;
  for (const std::string& customer : customers_) {
    const std::string bucket =
        encode(BucketKey{customer, Scope::global, "", scenario_.limits.front().name, {}});
    const std::int64_t could =
        numbers.capacity + scenario_.seconds_ns / kMillisecond * numbers.rate_count /
                               std::max<Nanos>(1, numbers.rate_period_ns / kMillisecond);
    const std::int64_t used =
        bound_.admitted_tokens(bucket) * 1000 / std::max<std::int64_t>(1, could);
    outcome_.use_permille =
        outcome_.use_permille < 0 ? used : std::min(outcome_.use_permille, used);
    if (used < scenario_.use_permille) {
      use_.fail(world_.now_ns(),
                customer + " used " + std::to_string(used) + " of 1000 of its quota");
    }
  }
}

void Run::check_at_rest() {
  for (const auto& [id, open] : open_) {
    if (nodes_.at(open.second)->alive() && busy_[open.second] == 0) {
      // A check of a process that ended was answered by its broken connection.
      if (world_.now_ns() - open.first > kMinute) continue;
    }
  }
  for (const RegisterId& reg : shared_.registers) {
    std::vector<std::string> owners;
    for (const auto& [name, node] : nodes_) {
      if (node->host() != nullptr && node->host()->owns(reg)) owners.push_back(name);
    }
    if (owners.size() != 1) {
      finding_.fail(world_.now_ns(), to_string(reg) + " has " + std::to_string(owners.size()) +
                                         " owners after a long rest");
    }
    for (const auto& [name, node] : nodes_) {
      const auto& set = shared_.placement->replicas(reg);
      const bool member = std::find(set.begin(), set.end(), name) != set.end();
      if (!member || node->host() == nullptr || node->host()->replica().state(reg).votes) continue;
      finding_.fail(world_.now_ns(),
                    name + " does not vote in " + to_string(reg) + " after a long rest");
    }
  }
  for (const auto& [name, node] : nodes_) {
    for (const auto& [key, view] : node->ledgers()) {
      if (!node->host()->owns(key.reg)) continue;
      if (view.outstanding > 0) {
        leak_.fail(world_.now_ns(), name + " still counts " + std::to_string(view.outstanding) +
                                        " tokens of " + key.customer + " as out");
      }
    }
    if (node->limiter() == nullptr) continue;
    if (node->limiter()->bucket_count() > 0) {
      bounded_.fail(
          world_.now_ns(),
          name + " still has " + std::to_string(node->limiter()->bucket_count()) + " buckets");
    }
    if (node->limiter()->waiting_count() > 0) {
      bounded_.fail(world_.now_ns(), name + " still has waiting checks");
    }
  }
}

Outcome Run::finish() {
  for (const auto& [name, node] : nodes_) outcome_.lease_requests += node->lease_requests();
  const Checker* checkers[] = {&bound_, &epochs_,  &promises_, &progress_, &use_,
                               &leak_,  &finding_, &bounded_,  &denial_};
  for (const Checker* checker : checkers) {
    for (const Violation& violation : checker->violations()) {
      outcome_.violations.push_back(violation);
    }
  }
  outcome_.simulated_ns = world_.now_ns();
  outcome_.trace_hash = world_.trace.hash();
  outcome_.trace = world_.trace.lines();
  outcome_.trace.push_front(summary());
  return std::move(outcome_);
}

}  // namespace

Outcome run(const Scenario& scenario, std::uint64_t seed, bool keep_trace) {
  return Run(scenario, seed, keep_trace).go();
}

}  // namespace weir::sim
