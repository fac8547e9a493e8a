// Goal: a topology finds its nodes and prints its endpoints.
// Method: a small topology, asked for what is there and what is not.
#include <gtest/gtest.h>

#include "src/model/topology.h"

namespace weir {
namespace {

Topology two_regions() {
  Topology topology;
  topology.regions = {{"eu", 1, {{"eu-1", "a", {"10.0.0.1", 7070}}, {"eu-2", "b", {}}}},
                      {"us", 1, {{"us-1", "a", {"::1", 7071}}}},
                      {"za", 1, {}}};
  return topology;
}

TEST(Topology, FindsNodesAndTheirRegions) {
  const Topology topology = two_regions();
  ASSERT_NE(topology.find_node("us-1"), nullptr);
  EXPECT_EQ(topology.find_node("us-1")->cluster.port, 7071);
  ASSERT_NE(topology.region_of("eu-2"), nullptr);
  EXPECT_EQ(topology.region_of("eu-2")->name, "eu");
  for (const char* absent : {"", "eu", "eu-", "eu-11", "za"}) {
    EXPECT_EQ(topology.find_node(absent), nullptr) << absent;
    EXPECT_EQ(topology.region_of(absent), nullptr) << absent;
  }
}

TEST(Topology, IsAValue) {
  Topology changed = two_regions();
  EXPECT_EQ(changed, two_regions());
  changed.pins["acme"] = "eu";
  EXPECT_NE(changed, two_regions());
}

TEST(Endpoint, PrintsBracketsAroundIpv6Only) {
  EXPECT_EQ(to_string(Endpoint{"127.0.0.1", 7070}), "127.0.0.1:7070");
  EXPECT_EQ(to_string(Endpoint{"eu-1.example", 65535}), "eu-1.example:65535");
  EXPECT_EQ(to_string(Endpoint{"::1", 0}), "[::1]:0");
}

}  // namespace
}  // namespace weir
