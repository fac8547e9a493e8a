// Goal: the files of a local cluster are files that the node accepts, for every shape that can be
// asked for. Method: parse them back with src/config.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "src/cli/cluster_files.h"
#include "src/config/parse.h"
#include "src/policy/supported.h"

namespace weir::cli {
namespace {

std::vector<LocalNode> with_addresses(std::vector<LocalNode> nodes) {
  std::uint16_t port = 10'000;
  for (LocalNode& node : nodes) {
    node.http = {"127.0.0.1", port++};
    node.admin = {"127.0.0.1", port++};
    node.cluster = {"127.0.0.1", port++};
    node.data = "/tmp/we \"ir\\/" + node.name;
  }
  return nodes;
}

TEST(Shape, TwoRegionsShareFiveNodesAsTheManualSays) {
  const auto nodes = plan_nodes(2, 5);
  ASSERT_TRUE(nodes);
  std::vector<std::string> names;
  std::vector<bool> owners;
  for (const LocalNode& node : *nodes) {
    names.push_back(node.name);
    owners.push_back(node.owner);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"eu-1", "eu-2", "eu-3", "us-1", "us-2"}));
  EXPECT_EQ(owners, (std::vector<bool>{true, true, true, false, false}));
}

TEST(Shape, EveryNodeHasAPlaceAndTheFirstRegionItsThreeOwners) {
  for (int regions = 1; regions <= kMaxLocalRegions; ++regions) {
    for (int nodes = regions; nodes <= kMaxLocalNodes; ++nodes) {
      const auto planned = plan_nodes(regions, nodes);
      ASSERT_TRUE(planned) << regions << " " << nodes;
      ASSERT_EQ(planned->size(), static_cast<std::size_t>(nodes));
      std::map<std::string, int> in_region;
      std::set<std::string> names;
      for (const LocalNode& node : *planned) {
        ++in_region[node.region];
        names.insert(node.name);
      }
      EXPECT_EQ(in_region.size(), static_cast<std::size_t>(regions));
      EXPECT_EQ(names.size(), planned->size());
      EXPECT_GE(in_region["eu"], std::min(3, nodes - regions + 1));
    }
  }
}

TEST(Shape, ARegionWithRelaysOnlyIsNoHome) {
  const auto nodes = with_addresses(*plan_nodes(2, 7, false, 1));
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [](const auto& node) { return node.owner && node.region == "us"; }),
            1);
  const auto topology = config::parse_topology(topology_yaml(nodes, false), "topology.yaml");
  ASSERT_TRUE(topology) << config::to_string(topology.errors);
  ASSERT_EQ(topology.value->regions.size(), 2U);
  EXPECT_GT(topology.value->regions[0].weight, 0U);
  EXPECT_EQ(topology.value->regions[1].weight, 0U);
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_FALSE(plan_nodes(0, 3));
  EXPECT_FALSE(plan_nodes(3, 2));
  EXPECT_FALSE(plan_nodes(kMaxLocalRegions + 1, 64));
  EXPECT_FALSE(plan_nodes(1, kMaxLocalNodes + 1));
}

TEST(Files, AreAcceptedByTheNodeThatReadsThem) {
  for (const auto& [regions, count] : std::vector<std::pair<int, int>>{{1, 1}, {2, 5}, {3, 12}}) {
    const auto nodes = with_addresses(*plan_nodes(regions, count));
    const auto topology = config::parse_topology(topology_yaml(nodes, false), "topology.yaml");
    ASSERT_TRUE(topology) << config::to_string(topology.errors);
    for (const LocalNode& node : nodes) {
      const auto parsed = config::parse_node(
          node_yaml(node, "/t/topology.yaml", "/p \"q\".yaml", true, {"wait: 80ms"}), "node.yaml");
      ASSERT_TRUE(parsed) << config::to_string(parsed.errors);
      EXPECT_EQ(parsed.value->node, node.name);
      EXPECT_EQ(parsed.value->data, node.data);
      EXPECT_EQ(parsed.value->policy, "/p \"q\".yaml");
      EXPECT_EQ(parsed.value->listen.http, node.http);
      EXPECT_EQ(parsed.value->roles.owner, node.owner);
      EXPECT_EQ(parsed.value->wait_ns, 80 * kMillisecond);
      EXPECT_TRUE(parsed.value->chaos);
      EXPECT_TRUE(config::check_node_in_topology(*parsed.value, *topology.value));
    }
  }
}

TEST(Files, SpreadOverThreeRegionsAllOfThemOwn) {
  EXPECT_FALSE(plan_nodes(2, 6, true));
  const auto nodes = with_addresses(*plan_nodes(3, 4, true));
  std::map<std::string, int> owners;
  for (const LocalNode& node : nodes) owners[node.region] += node.owner ? 1 : 0;
  EXPECT_EQ(owners, (std::map<std::string, int>{{"eu", 2}, {"us", 1}, {"ap", 1}}));
  const auto topology = config::parse_topology(topology_yaml(nodes, true), "topology.yaml");
  ASSERT_TRUE(topology) << config::to_string(topology.errors);
  EXPECT_EQ(topology.value->place, ReplicaPlace::spread);
}

TEST(Latency, IsHalfOfTheRoundTripEachWay) {
  const auto latency = parse_latency("eu:us=80ms");
  ASSERT_TRUE(latency);
  EXPECT_EQ(delay_line("eu", {*latency}), "chaos_delay: {us: 40ms}");
  EXPECT_EQ(delay_line("us", {*latency, *parse_latency("us:ap=150ms")}),
            "chaos_delay: {eu: 40ms, ap: 75ms}");
  EXPECT_EQ(delay_line("ap", {*latency}), "");
  for (const char* wrong :
       {"", "eu=80ms", "eu:us", "eu:us=", "eu:us=80", "eu=us:80ms", "eu:us=1ms", "eu:us=81ms"}) {
    EXPECT_FALSE(parse_latency(wrong)) << wrong;
  }
}

TEST(Files, TheSamplePolicyIsServed) {
  const auto policy =
      config::parse_policy(sample_policy_yaml(), "policy.yaml", policy::check_limit_supported);
  ASSERT_TRUE(policy) << config::to_string(policy.errors);
  EXPECT_EQ(policy.value->limits.size(), 2U);
}

}  // namespace
}  // namespace weir::cli
