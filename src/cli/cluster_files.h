// The shape of a local cluster and the files that say it to its nodes. Pure, but for
// write_cluster_files.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/topology.h"

namespace weir::cli {

/// Most nodes of a local cluster.
inline constexpr int kMaxLocalNodes = 64;
/// Most regions of a local cluster: as many names as there are.
inline constexpr int kMaxLocalRegions = 8;

struct LocalNode {
  std::string name;
  std::string region;
  std::string zone;
  bool owner = false;  ///< else an edge only
  Endpoint http;
  Endpoint admin;
  Endpoint cluster;
  std::string config;  ///< path of its node.yaml: `weir serve --config` it to bring it back by hand
  std::string data;    ///< folder of its records
  std::string log;     ///< file
  pid_t pid = 0;       ///< 0: not running
};

/// Names, regions, zones and roles of `nodes` nodes in `regions` regions. The first region gets
/// three owner nodes when it can; another region owns when it has three nodes too, else its nodes
/// are edges. `spread`: at least three regions share the nodes evenly, and all of them own. With
/// `relays`, so many nodes of each other region own, for its relays, and it is no home when they
/// are fewer than three.
Result<std::vector<LocalNode>> plan_nodes(int regions, int nodes, bool spread = false,
                                          int relays = 0);

/// topology.yaml of these nodes. `spread`: each region's replicas are one in each of three regions.
std::string topology_yaml(const std::vector<LocalNode>& nodes, bool spread);

/// A round trip between two regions that a local cluster is to have.
struct RegionLatency {
  std::string from;
  std::string to;
  Nanos round_trip_ns = 0;
};
/// Reads `eu:us=80ms`.
Result<RegionLatency> parse_latency(const std::string& text);
/// The line of node.yaml that holds up what a node of `region` sends: half of the round trip.
/// Empty: nothing does.
std::string delay_line(const std::string& region, const std::vector<RegionLatency>& latencies);

/// node.yaml of one of them. `further_lines` are appended.
std::string node_yaml(const LocalNode& node, const std::string& topology, const std::string& policy,
                      bool chaos, const std::vector<std::string>& further_lines);

/// A policy that shows the main kinds of limits.
const char* sample_policy_yaml();

/// `text` as a double-quoted YAML scalar.
std::string yaml_quoted(const std::string& text);

}  // namespace weir::cli
