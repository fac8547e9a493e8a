#include "regions/plan.h"

#include <algorithm>
#include <map>

#include "regions/placement.h"
#include "src/base/limits.h"

namespace weir::regions {
namespace {

std::vector<RegisterId> registers_of(const Topology& topology) {
  std::vector<RegisterId> result;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    result.push_back({RegisterId::Kind::global, {}, static_cast<Slot>(slot)});
    for (const TopologyRegion& region : topology.regions) {
      if (region.nodes.empty()) continue;
      result.push_back({RegisterId::Kind::region, region.name, static_cast<Slot>(slot)});
    }
  }
  return result;
}

}  // namespace

Plan plan_change(const Topology& from, const Topology& to) {
  Plan plan;
  std::map<std::string, NodePlan> nodes;
  for (const Topology* topology : {&from, &to}) {
    for (const TopologyRegion& region : topology->regions) {
      for (const TopologyNode& node : region.nodes) {
        NodePlan& entry = nodes[node.name];
        entry.node = node.name;
        entry.region = region.name;
        entry.added = from.find_node(node.name) == nullptr;
        entry.removed = to.find_node(node.name) == nullptr;
      }
    }
  }
  const Placement before(from);
  const Placement after(to);
  for (const RegisterId& reg : registers_of(to)) {
    auto old = before.replicas(reg);
    auto now = after.replicas(reg);
    ++plan.registers;
    if (!old.empty()) ++nodes[old.front()].owns_before;
    if (!now.empty()) ++nodes[now.front()].owns_after;
    if (!old.empty() && !now.empty() && old.front() != now.front()) ++plan.owners_moved;
    for (const std::string& node : old) ++nodes[node].stores_before;
    for (const std::string& node : now) {
      ++nodes[node].stores_after;
      if (std::find(old.begin(), old.end(), node) == old.end()) ++nodes[node].receives;
    }
    std::sort(old.begin(), old.end());
    std::sort(now.begin(), now.end());
    if (old != now) ++plan.moved;
  }
  for (auto& [name, node] : nodes) plan.nodes.push_back(std::move(node));
  return plan;
}

}  // namespace weir::regions
