// What happens to the cluster: faults are drawn from the scenario's list, begin, and are mended.

#include <algorithm>
#include <memory>
#include <utility>

#include "src/base/hash.h"
#include "test/sim/simulation.h"

namespace weir::sim {
namespace {

constexpr int kTries = 10;
/// Clocks are slewed by at most this (chrony's limit; PROTOCOL E3 allows 10 %).
constexpr std::int64_t kSlewPpm = 83'000;
/// From the cut of the one that is left to the end of the others, and to what the operator does.
constexpr Nanos kDestructionNs = 5 * kSecond;
constexpr Nanos kRecoveryNs = 2 * kSecond;
/// A node that is told to stop has this long to give everything back.
constexpr Nanos kRetireNs = kSecond;
/// How often, and for how long, whoever is to commit a version is cut off then.
constexpr unsigned kProposerCutPermille = 300;
constexpr Nanos kProposerCutNs = 3 * kSecond;

}  // namespace

void Simulation::schedule_fault() {
  if (scenario_.faults.empty()) return;
  world_.after(world_.random.between(scenario_.fault_every_ns / 2, scenario_.fault_every_ns),
               [this] {
                 if (world_.now_ns() >= faults_end_ns_) return;
                 for (int i = 0; i < kTries; ++i) {
                   if (inject(scenario_.faults[world_.random.below(scenario_.faults.size())])) {
                     ++outcome_.faults;
                     break;
                   }
                 }
                 schedule_fault();
               });
}

/// A fault ends after a while, and at the latest when the faults of the run do.
void Simulation::heal(const std::string& what, Nanos after_ns, std::function<void()> mend) {
  const Nanos at_ns = std::min(world_.now_ns() + after_ns, faults_end_ns_);
  ++active_faults_;
  world_.at(at_ns, [this, what, mend = std::move(mend)] {
    --active_faults_;
    world_.log("mended: " + what);
    disturbed();
    mend();
  });
}

std::string Simulation::any_node() {
  auto at = nodes_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(world_.random.below(nodes_.size())));
  return at->first;
}

/// Remembers since when a register has no owner, for the time that fail-over takes.
void Simulation::owner_ended(const std::string& node) {
  for (const auto& [reg, owner] : owners_) {
    if (owner == node) died_ns_.try_emplace(reg, world_.now_ns());
  }
}

/// False: this fault cannot happen to the node that was drawn.
bool Simulation::inject(Fault fault) {
  std::string name = any_node();
  if (scenario_.aim_at_owners && !owners_.empty()) {
    auto at = owners_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(world_.random.below(owners_.size())));
    name = at->second;
  }
  Node& node = *nodes_.at(name);
  const Nanos span_ns = world_.random.between(100 * kMillisecond, scenario_.longest_fault());
  bool done = false;
  switch (fault) {
    case Fault::kill_owner: {
      const std::string& customer = customers_[world_.random.below(customers_.size())];
      const RegisterId reg = register_of(Scope::global, "", customer);
      for (auto& [other, at] : nodes_) done = at->kill_owner(customer) || done;
      if (done && owners_.contains(reg)) died_ns_.try_emplace(reg, world_.now_ns());
      break;
    }
    case Fault::change_policy:
      change_policy();
      done = true;
      break;
    case Fault::change_topology:
      done = change_topology();
      break;
    case Fault::destroy_majority:
      done = destroy_majority();
      break;
    case Fault::kill_node:
    case Fault::power_loss:
    case Fault::wipe:
    case Fault::pause:
    case Fault::stall:
    case Fault::retire:
      done = inject_down(fault, node, span_ns);
      break;
    case Fault::disk_error:
    case Fault::disk_full:
      done = inject_disk(fault, node, span_ns);
      break;
    case Fault::slew:
    case Fault::step_wall:
      done = inject_clock(fault, node, span_ns);
      break;
    case Fault::cut_one_way:
    case Fault::cut_off:
    case Fault::cut_pair:
    case Fault::split:
    case Fault::storm:
      done = inject_network(fault, name, span_ns);
      break;
  }
  if (!done) return false;
  world_.log(std::string("fault: ") + to_string(fault) + " " + name);
  disturbed();
  return true;
}

/// A register whose stores have lost their majority is not covered (PROTOCOL C4): each that this
/// node replicates must keep one without it, of stores that vote or wait to, or never have been
/// started.
bool Simulation::may_wipe(const std::string& name) const {
  if (!nodes_.at(name)->settings().owner || scenario_.replicas == 1) return false;
  // A version that somebody may have stored, and nobody goes by yet, counts on the stores that it
  // lists.
  const TopologyState& known = shared_.topology;
  const auto& newest = known.next ? *known.next : known.finished;
  if (proposed_version_ > newest.version) return false;
  std::vector<RegisterId> registers = shared_.topologies.registers();
  registers.push_back(kTopologyRegister);
  const auto is_listed = [&](const Node& node) {
    const StoreMark own{node.settings().name, node.store_number()};
    const auto& listed = newest.listed;
    return std::find(listed.begin(), listed.end(), own) != listed.end();
  };
  for (const RegisterId& reg : registers) {
    // While registers move, both sets keep one, the new one of stores that the version lists.
    const auto sets = shared_.view->layout(reg, 0).quorums.sets;
    if (sets.size() > 1 && std::count(sets.back().begin(), sets.back().end(), name) > 0) {
      const auto left =
          std::count_if(sets.back().begin(), sets.back().end(), [&](const std::string& other) {
            const Node& node = *nodes_.at(other);
            return other != name && (node.register_state(reg).votes || is_listed(node));
          });
      if (static_cast<std::size_t>(left) * 2 <= sets.back().size()) return false;
    }
    for (const auto& set : sets) {
      if (std::find(set.begin(), set.end(), name) == set.end()) continue;
      std::size_t left = 0;
      bool started = false;
      for (const std::string& other : set) {
        const Node& node = *nodes_.at(other);
        const RegisterState state = node.register_state(reg);
        started = started || state.votes;
        const bool untouched = topology_version_ == 1 && !known.next && !node.wiped();
        if (other != name && (state.votes || !state.first_start.empty() || untouched)) ++left;
      }
      if (started && left * 2 <= set.size()) return false;
    }
  }
  return true;
}

bool Simulation::inject_down(Fault fault, Node& node, Nanos span_ns) {
  const std::string name = node.settings().name;
  if (!node.alive() || node.paused() || busy_[name] > 0) return false;
  const auto end_busy = [this, name] {
    --busy_[name];
    free_since_ns_[name] = world_.now_ns();
  };
  if (fault == Fault::stall) {
    if (node.limiter() == nullptr) return false;
    ++busy_[name];
    node.stall_next_check(span_ns);
    heal("stall of " + name, 2 * span_ns + kSecond, [&node, end_busy] {
      node.stall_next_check(0);
      node.resume();
      end_busy();
    });
    return true;
  }
  if (fault == Fault::pause) {
    ++busy_[name];
    node.pause();
    heal("pause of " + name, span_ns, [this, &node, end_busy] {
      node.resume();
      world_.after(kSecond, end_busy);
    });
    return true;
  }
  if (fault == Fault::wipe && !may_wipe(name)) return false;
  ++busy_[name];
  const bool machine = fault == Fault::power_loss || fault == Fault::wipe;
  const auto end = [this, &node, name, machine, fault] {
    node.crash(machine);
    // The machine lives on and closes its connections.
    if (!machine) tell_links(name, false);
    if (fault == Fault::wipe) node.wipe();
    owner_ended(name);
  };
  const auto restart = [this, &node, name, end_busy] {
    end_busy();
    node.boot();
    tell_links(name, true);
  };
  if (fault == Fault::retire) {
    node.retire();
    // When the faults of the run end before it does, it ends with them.
    const auto ended = std::make_shared<bool>(false);
    const auto end_once = [ended, end] {
      if (!std::exchange(*ended, true)) end();
    };
    world_.after(std::min(kRetireNs, span_ns), end_once);
    heal(name, span_ns + kRetireNs, [this, restart, end_once] {
      end_once();
      world_.after(kMillisecond, restart);
    });
    return true;
  }
  end();
  heal(name, span_ns, restart);
  return true;
}

/// The others notice at once that a process has ended, or is there again: by their connections.
void Simulation::tell_links(const std::string& name, bool up) {
  if (!nodes_.at(name)->settings().owner) return;
  world_.after(kMillisecond, [this, name, up] {
    if (nodes_.at(name)->alive() != up) return;
    for (auto& [other, node] : nodes_) {
      if (other != name) node->link(name, up);
    }
  });
}

bool Simulation::inject_network(Fault fault, const std::string& name, Nanos span_ns) {
  if (fault == Fault::storm) {
    Weather& weather = network_.weather;
    weather.loss_permille = static_cast<unsigned>(world_.random.below(400));
    weather.duplicate_permille = static_cast<unsigned>(world_.random.below(300));
    weather.straggler_permille = static_cast<unsigned>(world_.random.below(300));
    storm_ended_ns_ = kForever;
    heal("storm", span_ns, [this] {
      network_.weather = scenario_.weather;
      storm_ended_ns_ = world_.now_ns();
    });
    return true;
  }
  if (fault == Fault::cut_off) {
    network_.cut_off(name);
    heal("cut of " + name, span_ns, [this, name] { network_.join_again(name); });
    return true;
  }
  if (fault == Fault::cut_pair) {
    // The two best of one register: each of them would do for the other's successor.
    const auto& registers = shared_.topologies.registers();
    const auto set = replicas_of(registers[world_.random.below(registers.size())]);
    if (set.size() < 3) return false;
    network_.cut(set[0], set[1]);
    network_.cut(set[1], set[0]);
    heal("cut of " + set[0] + " and " + set[1], span_ns, [this] { network_.heal(); });
    return true;
  }
  const std::uint64_t sides = world_.random.next();
  for (const auto& [from, a] : nodes_) {
    for (const auto& [to, b] : nodes_) {
      const bool across = fault == Fault::split
                              ? (hash_bytes(from, sides) & 1) != (hash_bytes(to, sides) & 1)
                              : from == name && world_.random.chance(500);
      if (from != to && across) network_.cut(from, to);
    }
  }
  heal(to_string(fault), span_ns, [this] { network_.heal(); });
  return true;
}

bool Simulation::inject_disk(Fault fault, Node& node, Nanos span_ns) {
  if (!node.settings().owner) return false;
  if (fault == Fault::disk_error) {
    node.fail_writes(static_cast<int>(world_.random.between(1, 5)), world_.random.chance(400));
    return true;
  }
  node.fill_disk(true);
  heal("full disk of " + node.settings().name, span_ns, [&node] { node.fill_disk(false); });
  return true;
}

bool Simulation::inject_clock(Fault fault, Node& node, Nanos span_ns) {
  if (fault == Fault::slew) {
    // An edge's clock may run off by as much as is configured; an owner's speed is the rate's.
    if (node.settings().owner) return false;
    const bool at_bound = world_.random.chance(500);
    node.clock().set_drift(at_bound ? -kSlewPpm : world_.random.between(-kSlewPpm, kSlewPpm));
    heal("slew of " + node.settings().name, span_ns, [&node] { node.clock().set_drift(0); });
    return true;
  }
  // Where machines reboot, ages are taken from the wall clock: it must keep to its error. So must a
  // majority's where windows are counted.
  const bool keeps = scenario_.reboots() || scenario_.windowed();
  const bool is_far = scenario_.far_clock && node.settings().name == owner_nodes_.front();
  const Nanos most_ns = keeps && !is_far ? scenario_.max_clock_error_ns : kHour;
  const Nanos offset_ns = world_.random.chance(500)   ? world_.random.between(-most_ns, most_ns)
                          : world_.random.chance(500) ? most_ns
                                                      : -most_ns;
  node.clock().set_wall_offset(scenario_.wall_start_ns + offset_ns);
  return true;
}

/// Any of the owner nodes, any number of replicas that they can be. Sometimes whoever is to commit
/// the version is cut off when it is asked: another operator, who knows nothing of that, then uses
/// its number again (PROTOCOL J1).
bool Simulation::change_topology() {
  std::vector<std::string> nodes = owner_nodes_;
  const auto least = std::min<std::size_t>(3, nodes.size());
  while (nodes.size() > least && world_.random.chance(400)) {
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(world_.random.below(nodes.size())));
  }
  int replicas = scenario_.replicas;
  if (world_.random.chance(300)) replicas = world_.random.chance(500) ? 3 : 5;
  const TopologyState& known = shared_.topology;
  topology_version_ = std::max(topology_version_, known.finished.version);
  if (known.next) topology_version_ = std::max(topology_version_, known.next->version);
  const TopologyVersion version = topology_of(topology_version_ + 1, nodes, replicas);
  for (auto& [name, node] : nodes_) {
    const bool cut = world_.random.chance(kProposerCutPermille);
    const bool before = cut && world_.random.chance(500);
    if (before) network_.cut_off(name);
    const bool proposed = node->propose(version);
    if (!proposed) {
      if (before) network_.join_again(name);
      continue;
    }
    proposed_version_ = version.version;
    if (cut) {
      network_.cut_off(name);
      heal("cut of " + name, kProposerCutNs, [this, name = name] { network_.join_again(name); });
    } else {
      ++topology_version_;
    }
    std::string line =
        "topology " + std::to_string(version.version) + ": R " + std::to_string(replicas) + " of";
    for (const std::string& owner : nodes) line += " " + owner;
    world_.log(line);
    return true;
  }
  return false;
}

/// All but one of the topology's owner nodes burn down, after that one has been cut off for a while
/// and lacks their last commits; later the operator names them as destroyed and goes on with what
/// is left, the spares among it (PROTOCOL C4). Once in a run.
bool Simulation::destroy_majority() {
  if (busy_["destroyed"] > 0 || shared_.topology.next) return false;
  const auto voters = replicas_of(kTopologyRegister);
  const std::vector<std::string> lost(voters.begin() + 1, voters.end());
  for (const std::string& name : voters) {
    if (busy_[name] > 0 || !nodes_.at(name)->alive()) return false;
  }
  busy_["destroyed"] = 1;
  for (const std::string& name : voters) ++busy_[name];
  const std::string left = voters.front();
  network_.cut_off(left);
  heal("destruction", kDestructionNs, [this, lost, left] {
    for (const std::string& name : lost) {
      if (!nodes_.at(name)->alive()) continue;
      nodes_.at(name)->crash(true);
      nodes_.at(name)->wipe();
      owner_ended(name);
    }
    agreement_.forget();
    conservation_.forget();
    network_.join_again(left);
    --busy_[left];
    // The spares hear it before they are added.
    world_.after(kRecoveryNs, [this, lost, left] { recover_at(left, lost); });
  });
  return true;
}

void Simulation::recover_at(const std::string& node, const std::vector<std::string>& lost) {
  std::vector<std::string> nodes = owner_nodes_;
  std::erase_if(nodes, [&](const std::string& name) {
    return std::find(lost.begin(), lost.end(), name) != lost.end();
  });
  const int replicas = nodes.size() < 3 ? 1 : 3;
  const TopologyVersion version = topology_of(topology_version_ + 1, nodes, replicas);
  if (nodes_.at(node)->recover(version)) {
    ++topology_version_;
  } else {
    world_.after(kRecoveryNs, [this, node, lost] { recover_at(node, lost); });
  }
}

/// Another quota, and the minute becomes an hour or the hour a minute. What an edge counts by
/// itself stays as it is.
void Simulation::redefine(LimitDefinition& limit, const LimitDefinition& first) {
  if (limit.algorithm != Algorithm::fixed_window) return;
  limit.window = limit.window == Window::minute ? Window::hour : Window::minute;
  limit.numbers = first.numbers;
  if (world_.random.chance(500)) limit.numbers.capacity *= 2;
}

/// Doubles or halves every limit, back and forth.
void Simulation::change_policy() {
  const std::vector<LimitDefinition> before = limits_;
  const bool raise = world_.random.chance(500);
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (limits_[i].algorithm != Algorithm::token_bucket) {
      redefine(limits_[i], scenario_.limits[i]);
      continue;
    }
    LimitNumbers& numbers = limits_[i].numbers;
    numbers = scenario_.limits[i].numbers;
    if (numbers == before[i].numbers) {
      numbers.capacity =
          raise ? numbers.capacity * 2 : std::max<std::int64_t>(1, numbers.capacity / 2);
      numbers.rate_period_ns =
          raise ? std::max<Nanos>(1, numbers.rate_period_ns / 2) : numbers.rate_period_ns * 2;
    }
  }
  for (const LimitDefinition& limit : limits_) {
    world_.log("policy: " + limit.name + " " + std::to_string(limit.numbers.capacity) + " + " +
               std::to_string(limit.numbers.rate_count) + " per " +
               std::to_string(limit.numbers.rate_period_ns / kMillisecond) + " ms");
  }
  ++policy_version_;
  use_policy();
  old_limits_.push_back({policy_version_, kForever, before});
  settle_limits();
  // One file at first, or all of them.
  const std::string first = any_node();
  const bool everywhere = world_.random.chance(300);
  for (auto& [name, node] : nodes_) {
    if (everywhere || name == first) node->read_policy_file(policy_version_);
  }
}

/// The old numbers hold until nobody who runs goes by them, and until what they granted has ended;
/// whoever is stopped meanwhile goes on with them when it resumes.
void Simulation::adopted_policy() {
  denial_.forget();
  disturbed();
  std::uint64_t oldest = UINT64_MAX;
  for (const auto& [name, node] : nodes_) {
    if (node->alive()) oldest = std::min(oldest, node->policy_version());
  }
  for (OldLimits& old : old_limits_) {
    if (old.until_ns != kForever || oldest < old.replaced_by) continue;
    old.until_ns = world_.now_ns() + shared_.terms.grantor_ns() + scenario_.longest_fault() +
                   2 * kSecond + round_trip_ns();
  }
}

void Simulation::settle_limits() {
  for (const std::string& customer : customers_) {
    for (const LimitDefinition& limit : limits_) {
      bound_.settle(encode(BucketKey{customer, limit.scope, "", limit.name, {}}), declared(limit),
                    world_.now_ns());
    }
  }
}

}  // namespace weir::sim
