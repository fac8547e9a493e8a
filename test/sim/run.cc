#include "test/sim/run.h"

#include <algorithm>

#include "test/sim/simulation.h"

namespace weir::sim {
namespace {

/// The cluster is up and its registers are owned by then; load starts.
constexpr Nanos kWarmUpNs = 3 * kSecond;
/// Faults end so long before the load does that everything can have healed; and two TTLs.
constexpr Nanos kRestNs = 12 * kSecond;
/// Two periods of the longest sliding window, and some.
constexpr Nanos kSlidingRestNs = 25 * kSecond;
/// What a record gives is judged with ages that are wrong by so much: disks and clocks.
constexpr Nanos kActivationSlackNs = 30 * kMillisecond;
/// Ownership does not move any more so long after the last change of the world, and some
/// suspicions.
constexpr Nanos kSettledNs = 3 * kSecond;
constexpr const char* kRegions[] = {"eu", "us", "ap"};

}  // namespace

Simulation::Simulation(const Scenario& scenario, std::uint64_t seed, bool keep_trace)
    : scenario_(scenario),
      world_(seed, keep_trace),
      network_(world_),
      shared_{world_,
              network_,
              {},
              {},
              scenario.wait_ns,
              scenario.max_clock_error_ns,
              scenario.max_buckets,
              {},
              false,
              {},
              {},
              {},
              nullptr},
      bound_(scenario.drift_ppm + 1),
      windows_(scenario.window_error_ns()) {
  outcome_.seed = seed;
  outcome_.scenario = scenario.name;
}

Outcome Simulation::go() {
  build();
  world_.log(summary());
  for (auto& [name, node] : nodes_) node->boot();
  load_ends_ns_ = kWarmUpNs + scenario_.seconds_ns + 2 * scenario_.ttl_ns;
  faults_end_ns_ = load_ends_ns_ - kRestNs - 2 * scenario_.ttl_ns;
  quiet_from_ns_ = load_ends_ns_ - kRestNs / 2;
  schedule_sample();
  if (scenario_.faults_from_start) schedule_fault();
  world_.run_until(kWarmUpNs);
  for (const std::string& edge : edges_) schedule_check(edge);
  if (!scenario_.faults_from_start) schedule_fault();
  world_.run_until(load_ends_ns_);
  measure_use();
  check_progress();
  // Rest: leases run out, buckets fill.
  const bool slides = std::any_of(limits_.begin(), limits_.end(),
                                  [](const auto& limit) { return limit.scope == Scope::node; });
  world_.run_until(load_ends_ns_ + 4 * scenario_.ttl_ns + 5 * kSecond + 40 * round_trip_ns() +
                   (slides ? kSlidingRestNs : 0));
  check_at_rest();
  look_everywhere();
  world_.run_until(world_.now_ns() + 2 * kSecond);
  probe_retries();
  world_.run_until(world_.now_ns() + 8 * kSecond);
  return finish();
}

std::string Simulation::summary() const {
  const Weather& weather = scenario_.weather;
  const LimitNumbers& numbers = scenario_.limits.front().numbers;
  return scenario_.name + ": R " + std::to_string(scenario_.replicas) + " of " +
         std::to_string(scenario_.owner_nodes) + ", regions " + std::to_string(scenario_.regions) +
         " with " + std::to_string(scenario_.relay_nodes) + ", edges " +
         std::to_string(scenario_.edges) + ", ttl " +
         std::to_string(scenario_.ttl_ns / kMillisecond) + " ms, delay " +
         std::to_string(weather.delay_ns / kMicrosecond) + " us, loss " +
         std::to_string(weather.loss_permille) + ", stragglers " +
         std::to_string(weather.straggler_permille) + " of " +
         std::to_string(weather.straggler_ns / kMillisecond) + " ms, limit " +
         std::to_string(numbers.capacity) + " + " + std::to_string(numbers.rate_count) + " per " +
         std::to_string(numbers.rate_period_ns / kMillisecond) + " ms, load " +
         scenario_.load.kind + " " + std::to_string(scenario_.load.checks_per_s) +
         "/s, suspicion " + std::to_string(shared_.seat.suspicion_ns / kMillisecond) + " ms";
}

void Simulation::build() {
  // Where messages are slow, suspicion waits longer, as an operator would set it.
  const Weather& weather = scenario_.weather;
  network_.weather = weather;
  const Nanos one_way_ns = weather.delay_ns + weather.jitter_ns +
                           (weather.straggler_permille > 20 ? weather.straggler_ns / 4 : 0);
  shared_.terms.ttl_ns = scenario_.ttl_ns;
  shared_.seat.suspicion_ns = std::max(shared_.seat.suspicion_ns, 8 * one_way_ns);
  shared_.seat.stagger_ns = std::max(shared_.seat.stagger_ns, 3 * one_way_ns);
  shared_.seat.attempt_ns = std::max(shared_.seat.attempt_ns, 8 * one_way_ns);
  limits_ = scenario_.limits;
  use_policy();
  shared_.policies_change =
      std::count(scenario_.faults.begin(), scenario_.faults.end(), Fault::change_policy) > 0;
  std::set<RegisterId> registers;
  for (int i = 1; i <= scenario_.load.customers; ++i) {
    customers_.push_back("customer-" + std::to_string(i));
    registers.insert(register_of(Scope::global, "", customers_.back()));
    if (scenario_.pins) {
      registers.insert({RegisterId::Kind::pin, "eu", slot_of(customers_.back())});
    }
  }
  shared_.topologies.set_registers({registers.begin(), registers.end()});
  build_nodes();
}

/// Names a topology of these owner nodes.
TopologyVersion Simulation::topology_of(std::uint64_t version,
                                        const std::vector<std::string>& nodes, int replicas) {
  Topology topology;
  topology.version = version;
  topology.replica_count = static_cast<std::uint32_t>(replicas);
  TopologyRegion home{kRegions[0], 1, {}};
  for (const std::string& name : nodes) {
    const auto number = static_cast<std::size_t>(std::stoi(name.substr(name.find('-') + 1)));
    home.nodes.push_back({name, "z" + std::to_string(number % 3), {"127.0.0.1", 1}});
  }
  topology.regions.push_back(home);
  for (const std::string& customer : customers_) {
    if (scenario_.pins && version > 1 && world_.random.chance(500)) topology.pins[customer] = "eu";
  }
  // They are homes when they can be by the first topology, and for ever (A3).
  const std::uint32_t weight = scenario_.relay_nodes >= scenario_.replicas ? 1 : 0;
  for (int r = 1; r < scenario_.regions && scenario_.relay_nodes > 0; ++r) {
    TopologyRegion other{kRegions[r], weight, {}};
    for (int i = 1; i <= scenario_.relay_nodes; ++i) {
      const std::string name = other.name + "-" + std::to_string(i);
      other.nodes.push_back({name, "z" + std::to_string(i % 3), {"127.0.0.1", 1}});
    }
    topology.regions.push_back(std::move(other));
  }
  // Two operators may use one number for two contents.
  const std::string document =
      "version " + std::to_string(version) + ", draft " + std::to_string(++topology_drafts_);
  shared_.topologies.add(document, std::move(topology));
  return {version, document, {}};
}

void Simulation::build_nodes() {
  for (int i = 1; i <= scenario_.owner_nodes + scenario_.spares; ++i) {
    owner_nodes_.push_back("eu-" + std::to_string(i));
  }
  const auto first = owner_nodes_.begin();
  topology_version_ = 1;
  shared_.first_topology.finished =
      topology_of(1, {first, first + scenario_.owner_nodes}, scenario_.replicas);
  shared_.topology = shared_.first_topology;
  shared_.view = shared_.topologies.whole_view(shared_.topology);
  const auto add_owner = [this](const std::string& name, const std::string& region) {
    const bool both = scenario_.edges > static_cast<int>(edges_.size()) && !scenario_.edges_apart;
    add_node({name, region, both, true, 0, 0});
    if (both) edges_.push_back(name);
  };
  for (const std::string& name : owner_nodes_) add_owner(name, kRegions[0]);
  for (const TopologyRegion& region : shared_.view->topology().regions) {
    if (region.name == kRegions[0]) continue;
    for (const TopologyNode& node : region.nodes) add_owner(node.name, region.name);
  }
  // Without relays all other edges are in the second region, if there is one.
  for (int i = 1; static_cast<int>(edges_.size()) < scenario_.edges; ++i) {
    const int r = scenario_.relay_nodes > 0 ? i % scenario_.regions : scenario_.regions - 1;
    const std::string name = std::string(kRegions[r]) + "-edge-" + std::to_string(i);
    add_node({name, kRegions[r], true, false, 0, 0});
    edges_.push_back(name);
  }
}

void Simulation::add_node(NodeSettings settings) {
  const std::string name = settings.name;
  settings.drift_ppm = world_.random.between(-scenario_.drift_ppm, scenario_.drift_ppm);
  settings.wall_offset_ns =
      scenario_.wall_start_ns +
      world_.random.between(-scenario_.wall_offset_ns, scenario_.wall_offset_ns);
  nodes_.emplace(name, std::make_unique<Node>(std::move(settings), shared_, nodes_, *this));
}

void Simulation::use_policy() {
  PolicyDefinition definition;
  definition.version = policy_version_;
  definition.limits = limits_;
  shared_.policies[policy_version_] = std::make_shared<policy::Policy>(std::move(definition));
}

void Simulation::committed(const std::string& node, const ownership::OwnerKey& key,
                           const Epoch& epoch) {
  const Nanos now_ns = world_.now_ns();
  for (const LimitDefinition& limit : limits_) {
    if (limit.scope == Scope::node) continue;
    const BucketCopies copies = copies_of(key.customer, limit);
    agreement_.committed(copies, epoch, now_ns);
    if (copies.newest() != nullptr) bound_.booked(copies.bucket, declared(limit), now_ns);
    denial_.sampled(copies, largest_cost(), now_ns);
  }
  if (const auto died = died_ns_.find(key.reg); died != died_ns_.end()) {
    outcome_.failover_ns.push_back(now_ns - died->second);
    died_ns_.erase(died);
  }
  std::string& owner = owners_[key.reg];
  if (owner == node) return;
  owner = node;
  ++outcome_.takeovers;
  if (stable()) finding_.moved(key.reg, now_ns);
}

void Simulation::activated(const ownership::OwnerKey& key, const Version& loaded,
                           const ownership::BucketView& view) {
  // Give-backs add to it; after a reboot ages are shorter than the truth.
  const auto& costs = scenario_.load.costs;
  if (scenario_.reboots() || *std::min_element(costs.begin(), costs.end()) < 0) return;
  for (const LimitDefinition& limit : limits_) {
    if (limit.scope == Scope::node) continue;
    const BucketCopies copies = copies_of(key.customer, limit);
    if (copies.bucket != view.bucket) continue;
    conservation_.activated(copies, loaded, limit.numbers, view.level + view.outstanding,
                            kActivationSlackNs + 2 * round_trip_ns(), world_.now_ns());
  }
}

void Simulation::accepted(const std::string& node, const RegisterId& reg, const Version& version) {
  const auto set = replicas_of(reg);
  if (std::find(set.begin(), set.end(), node) == set.end()) return;
  epochs_.accepted(node, reg, version, set.size(), world_.now_ns());
}

void Simulation::said(const std::string& node, const RegisterMessage& message) {
  promises_.said(node, nodes_.at(node)->disk(), message, world_.now_ns());
}

void Simulation::misdirected(const std::string& edge, const RegisterId& reg) {
  finding_.misdirected(edge, reg, stable() && active_faults_ == 0, world_.now_ns());
}

void Simulation::found_owner(const std::string& edge, const RegisterId& reg) {
  finding_.found(edge, reg);
}

/// A fault began or ended: what is true of a steady world is not expected for a while.
void Simulation::disturbed() {
  disturbed_ns_ = world_.now_ns();
  finding_.disturbed();
}

bool Simulation::stable() const {
  const Weather& weather = network_.weather;
  return weather.loss_permille <= 50 && weather.straggler_permille <= 20 &&
         world_.now_ns() - disturbed_ns_ > kSettledNs + 6 * shared_.seat.suspicion_ns;
}

bool Simulation::calm_weather() const {
  const Weather& weather = network_.weather;
  return weather.loss_permille == 0 && weather.straggler_permille == 0;
}

Nanos Simulation::round_trip_ns() const {
  const Weather& weather = network_.weather;
  return 2 * (weather.delay_ns + weather.jitter_ns + weather.between_regions_ns);
}

std::int64_t Simulation::largest_cost() const {
  return *std::max_element(scenario_.load.costs.begin(), scenario_.load.costs.end());
}

/// The set that must have what is committed: in a joint phase the old one, until a store knows that
/// everything has moved.
std::vector<std::string> Simulation::replicas_of(const RegisterId& reg) const {
  std::uint64_t stage = 0;
  for (const auto& [name, node] : nodes_) {
    if (node->settings().owner) stage = std::max(stage, node->register_state(reg).stage);
  }
  return shared_.view->layout(reg, stage).quorums.sets.front();
}

BucketCopies Simulation::copies_of(const std::string& customer, const LimitDefinition& limit) {
  BucketCopies result;
  result.reg = shared_.view->placement().register_for(limit.scope, "", customer);
  result.bucket = encode(BucketKey{customer, limit.scope, "", limit.name, {}});
  for (const std::string& name : replicas_of(result.reg)) {
    Node& node = *nodes_.at(name);
    const auto record = node.store().read_record(result.reg, result.bucket);
    result.copies.push_back({name, node.votes(result.reg), record ? *record : std::nullopt});
  }
  return result;
}

void Simulation::schedule_sample() {
  world_.after(scenario_.sample_every_ns, [this] {
    sample();
    schedule_sample();
  });
}

std::map<std::string, std::vector<LiveLease>> Simulation::live_leases() const {
  std::map<std::string, std::vector<LiveLease>> leases;
  for (const auto& [name, node] : nodes_) {
    if (node->limiter() == nullptr) continue;
    const Nanos boot_ns = node->clock().boot_ns();
    for (const edge::LeaseView& lease : node->limiter()->leases()) {
      if (boot_ns >= lease.deadline_ns) continue;
      leases[lease.bucket].push_back({{name, lease.incarnation}, lease.held, lease.grantor});
    }
  }
  return leases;
}

std::map<std::string, std::vector<RelayLevel>> Simulation::relay_levels() const {
  std::map<std::string, std::vector<RelayLevel>> relays;
  for (const auto& [name, node] : nodes_) {
    for (const regions::Relay::View& view : node->relay_views()) {
      if (node->clock().boot_ns() >= view.deadline_ns) continue;
      relays[view.bucket].push_back({view.grantor, view.level});
    }
  }
  return relays;
}

void Simulation::sample() {
  const Nanos now_ns = world_.now_ns();
  auto leases = live_leases();
  auto relays = relay_levels();
  const std::int64_t cost = largest_cost();
  for (const std::string& customer : customers_) {
    for (const LimitDefinition& limit : limits_) {
      if (limit.scope == Scope::node) continue;
      const BucketCopies copies = copies_of(customer, limit);
      const LimitNumbers numbers = declared(limit);
      bound_.settle(copies.bucket, numbers, now_ns);
      agreement_.sampled(copies, now_ns);
      conservation_.sampled(copies, agreement_.committed_version(copies), leases[copies.bucket],
                            relays[copies.bucket], numbers.capacity, now_ns);
      if (!scenario_.reboots()) conservation_.watch_excess(copies, now_ns);
      denial_.sampled(copies, cost, now_ns);
      const AgedRecord* newest = copies.newest();
      if (newest == nullptr) continue;
      bounded_.count("lessees in a record", newest->record.ledger.lessees.size(),
                     kMaxLesseesPerRecord, now_ns);
    }
  }
}

Outcome Simulation::finish() {
  for (const auto& [name, node] : nodes_) outcome_.lease_requests += node->lease_requests();
  for (const auto& [name, node] : nodes_) outcome_.relay_requests += node->relay_requests();
  const Checker* checkers[] = {&bound_,     &windows_, &conservation_, &epochs_, &promises_,
                               &agreement_, &use_,     &denial_,       &leak_,   &progress_,
                               &retry_,     &finding_, &bounded_};
  for (const Checker* checker : checkers) {
    outcome_.judged[checker->name()] += checker->judged();
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

Outcome run(const Scenario& scenario, std::uint64_t seed, bool keep_trace) {
  return Simulation(scenario, seed, keep_trace).go();
}

}  // namespace weir::sim
