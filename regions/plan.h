// What a change of the topology moves, before anybody applies it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/model/topology.h"

namespace weir::regions {

/// One node's share, in registers (4,096 global ones and as many for each region with owner nodes).
struct NodePlan {
  std::string node;
  std::string region;
  bool added = false;
  bool removed = false;
  std::size_t stores_before = 0;
  std::size_t stores_after = 0;
  std::size_t receives = 0;     ///< registers that are copied to it
  std::size_t owns_before = 0;  ///< registers of which it is the first in rank
  std::size_t owns_after = 0;
};

struct Plan {
  std::size_t registers = 0;     ///< of the later version
  std::size_t moved = 0;         ///< of them, those whose replica set changes
  std::size_t owners_moved = 0;  ///< of them, those whose first in rank changes
  std::vector<NodePlan> nodes;   ///< by name
};

Plan plan_change(const Topology& from, const Topology& to);

}  // namespace weir::regions
