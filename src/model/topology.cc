#include "src/model/topology.h"

#include <string_view>

namespace weir {

std::string to_string(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

const TopologyNode* Topology::find_node(std::string_view name) const {
  for (const auto& region : regions) {
    for (const auto& node : region.nodes) {
      if (node.name == name) return &node;
    }
  }
  return nullptr;
}

const TopologyRegion* Topology::region_of(std::string_view name) const {
  for (const auto& region : regions) {
    for (const auto& node : region.nodes) {
      if (node.name == name) return &region;
    }
  }
  return nullptr;
}

}  // namespace weir
