// The shape of a local cluster and the files that say it to its nodes. Pure, but for
// write_cluster_files.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "src/base/result.h"
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
/// are edges. With `relays`, so many nodes of each other region own, for its relays, and it is no
/// home when they are fewer than three.
Result<std::vector<LocalNode>> plan_nodes(int regions, int nodes, int relays = 0);

/// topology.yaml of these nodes.
std::string topology_yaml(const std::vector<LocalNode>& nodes);

/// node.yaml of one of them. `further_lines` are appended.
std::string node_yaml(const LocalNode& node, const std::string& topology, const std::string& policy,
                      bool chaos, const std::vector<std::string>& further_lines);

/// A policy that shows the main kinds of limits.
const char* sample_policy_yaml();

/// `text` as a double-quoted YAML scalar.
std::string yaml_quoted(const std::string& text);

}  // namespace weir::cli
