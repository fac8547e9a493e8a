// What a run looks like: the shape of the cluster, the load, the faults. Read from
// test/sim/scenarios/*.yaml or drawn from the seed (swarm).
#pragma once

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
  pause,       ///< SIGSTOP and SIGCONT, up to beyond the TTL
  cut_one_way,
  cut_off,     ///< one node from all others
  split,       ///< two halves
  wipe,        ///< a node's store is emptied while it is down
  disk_error,  ///< some writes fail
  slew,        ///< an edge's clock runs off by up to the configured slew
  step_wall,
  storm,  ///< loss, duplication, stragglers for a while
};
const char* to_string(Fault fault);

struct Load {
  std::string kind = "steady";  ///< steady | bursty | hot | zipf | moving
  int customers = 4;
  std::int64_t checks_per_s = 100;  ///< over all edges and customers
  std::vector<std::int64_t> costs = {1};
};

struct Scenario {
  std::string name;
  int regions = 1;
  int owner_nodes = 3;  ///< in the first region (each region, when spread over regions)
  int replicas = 3;
  int edges = 3;
  Nanos ttl_ns = 5 * kSecond;
  Nanos wait_ns = 50 * kMillisecond;
  Nanos seconds_ns = 60 * kSecond;
  std::int64_t drift_ppm = 200;  ///< clocks of machines run off by up to this
  Weather weather;
  std::vector<LimitDefinition> limits;
  Load load;
  std::vector<Fault> faults;
  Nanos fault_every_ns = 6 * kSecond;
  std::int64_t use_permille =
      0;  ///< of the quota that must be used; 0: not asked (faults, low demand)
};

/// Every error names the file and the line.
Result<Scenario> read_scenario(const std::string& path);
/// A scenario drawn from the seed: shapes, limits, loads and fault mixes that nobody would write
/// down.
Scenario swarm(Random& random);

}  // namespace weir::sim
