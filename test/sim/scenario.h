// What a run looks like: the shape of the cluster, the load, the faults. Read from
// test/sim/scenarios/*.yaml or drawn from the seed (swarm).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/limit.h"
#include "test/sim/network.h"

namespace weir::sim {

enum class Fault : std::uint8_t {
  kill_owner,  ///< the owning actor of a customer
  kill_node,   ///< kill -9 and restart
  power_loss,  ///< the machine, with unsynced writes and its boot clock; restart
  retire,      ///< told to stop: gives back and hands over, ends, restarts
  stall,       ///< stopped between taking a check's tokens and answering it
  pause,       ///< SIGSTOP and SIGCONT, up to beyond the TTL
  cut_one_way,
  cut_off,     ///< one node from all others
  cut_pair,    ///< the two first of a replica set from each other
  split,       ///< two halves
  wipe,        ///< a node's store is emptied while it is down
  disk_error,  ///< some writes fail, though some of those are there afterwards
  disk_full,   ///< all writes fail for a while
  slew,        ///< an edge's clock runs off by up to the configured slew
  step_wall,   ///< by up to an hour, or within the clock error where machines reboot
  change_policy,
  destroy_majority,  ///< of the owner nodes, for good; the operator recovers
  change_topology,   ///< another set of owner nodes, spares among them
  storm,             ///< loss, duplication, stragglers for a while
};
inline constexpr std::array kFaults = {Fault::kill_owner,
                                       Fault::kill_node,
                                       Fault::power_loss,
                                       Fault::retire,
                                       Fault::stall,
                                       Fault::pause,
                                       Fault::cut_one_way,
                                       Fault::cut_off,
                                       Fault::cut_pair,
                                       Fault::split,
                                       Fault::wipe,
                                       Fault::disk_error,
                                       Fault::disk_full,
                                       Fault::slew,
                                       Fault::step_wall,
                                       Fault::change_policy,
                                       Fault::change_topology,
                                       Fault::destroy_majority,
                                       Fault::storm};
const char* to_string(Fault fault);

struct Load {
  /// steady | bursty | hot | zipf | moving | waves (with pauses of three TTLs)
  std::string kind = "steady";
  int customers = 4;
  std::int64_t checks_per_s = 100;  ///< over all edges and customers
  std::vector<std::int64_t> costs = {1};
  bool cost_by_edge = false;  ///< each edge has its own cost, else one is drawn for each check
};

struct Scenario {
  std::string name;
  int regions = 1;      ///< at most 3
  int owner_nodes = 3;  ///< in the first region
  int spares = 0;       ///< of these, too, but left out by the first topology
  int relay_nodes = 0;  ///< owner nodes in each other region; homes, too, when they are enough
  int replicas = 3;
  int edges = 3;
  Nanos ttl_ns = 5 * kSecond;
  Nanos wait_ns = 50 * kMillisecond;
  Nanos seconds_ns = 60 * kSecond;
  bool pins = false;         ///< topology changes pin and unpin customers
  bool edges_apart = false;  ///< no edge is an owner node, too
  std::size_t max_buckets = 4'000'000;
  Nanos max_clock_error_ns = 5 * kSecond;
  Nanos wall_offset_ns = 1 * kSecond;  ///< wall clocks are off by up to this at the start
  Nanos wall_start_ns = 0;             ///< the time of day at the start, after a full hour
  bool far_clock = false;              ///< step_wall steps the first owner node by up to an hour
  std::int64_t drift_ppm = 200;        ///< clocks of machines run off by up to this
  Weather weather;
  std::vector<LimitDefinition> limits;
  Load load;
  std::vector<Fault> faults;
  Nanos fault_every_ns = 6 * kSecond;
  Nanos fault_span_ns = 0;         ///< the longest; 0: two TTLs
  bool faults_from_start = false;  ///< before the first owner, too
  bool aim_at_owners = false;      ///< faults of nodes happen to nodes that own something
  Nanos sample_every_ns = 200 * kMillisecond;  ///< what is stored and held is looked at
  std::int64_t use_permille =
      0;  ///< of the quota that must be used; 0: not asked (faults, low demand)
  std::int64_t fair_permille = 0;  ///< of an even part that each edge must get; 0: not asked

  Nanos longest_fault() const { return fault_span_ns != 0 ? fault_span_ns : 2 * ttl_ns; }
  /// Machines lose their boot clock in this scenario.
  bool reboots() const;
  /// Some limit counts calendar windows.
  bool windowed() const;
  /// How far from its end a window may be in force somewhere.
  Nanos window_error_ns() const;
};

/// Every error names the file and the line.
Result<Scenario> read_scenario(const std::string& path);
/// Those of a folder, by name, without its subfolders; only `only` unless it is empty.
Result<std::vector<Scenario>> read_scenarios(const std::string& folder, const std::string& only);
/// A scenario drawn from the seed: shapes, limits, loads and fault mixes that nobody would write
/// down.
Scenario swarm(Random& random);

}  // namespace weir::sim
