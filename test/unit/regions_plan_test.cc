// Goal: `plan` says what a change moves, and no more than that moves.
// Method: topologies with a node more or less, counted against the placement itself.
#include <gtest/gtest.h>

#include "regions/plan.h"
#include "src/base/limits.h"

namespace weir::regions {
namespace {

Topology with(std::uint64_t version, std::initializer_list<const char*> nodes) {
  Topology topology;
  topology.version = version;
  topology.replica_count = 3;
  TopologyRegion region{"eu", 1, {}};
  for (const char* node : nodes) region.nodes.push_back({node, node, {"127.0.0.1", 1}});
  topology.regions.push_back(region);
  return topology;
}

const NodePlan& of(const Plan& plan, const std::string& name) {
  for (const NodePlan& node : plan.nodes) {
    if (node.node == name) return node;
  }
  throw std::out_of_range(name);
}

TEST(Plan, nothing_moves_without_a_change) {
  const Plan plan = plan_change(with(1, {"a", "b", "c"}), with(2, {"a", "b", "c"}));
  EXPECT_EQ(plan.registers, 2U * kSlotCount);
  EXPECT_EQ(plan.moved, 0U);
  EXPECT_EQ(plan.owners_moved, 0U);
  EXPECT_EQ(of(plan, "a").receives, 0U);
}

TEST(Plan, a_fourth_node_receives_its_share_and_nobody_else_anything) {
  const Plan plan = plan_change(with(1, {"a", "b", "c"}), with(2, {"a", "b", "c", "d"}));
  const NodePlan& added = of(plan, "d");
  EXPECT_TRUE(added.added);
  EXPECT_EQ(added.stores_before, 0U);
  EXPECT_EQ(added.receives, added.stores_after);
  EXPECT_EQ(plan.moved, added.stores_after);
  EXPECT_NEAR(static_cast<double>(added.stores_after), 0.75 * 2 * kSlotCount, 200);
  EXPECT_NEAR(static_cast<double>(added.owns_after), 0.25 * 2 * kSlotCount, 200);
  EXPECT_EQ(plan.owners_moved, added.owns_after);
  for (const char* old : {"a", "b", "c"}) EXPECT_EQ(of(plan, old).receives, 0U);
}

TEST(Plan, a_node_that_leaves_is_shared_among_the_rest) {
  const Plan plan = plan_change(with(1, {"a", "b", "c", "d"}), with(2, {"a", "b", "c"}));
  EXPECT_TRUE(of(plan, "d").removed);
  EXPECT_EQ(of(plan, "d").stores_after, 0U);
  const std::size_t received =
      of(plan, "a").receives + of(plan, "b").receives + of(plan, "c").receives;
  EXPECT_EQ(received, of(plan, "d").stores_before);
}

}  // namespace
}  // namespace weir::regions
