// Goal: a topology file means what API.md and PROTOCOL A3 say, and each mistake is one error at its
// place. Method: whole files, and a table with one mistake per file.
#include "src/base/hash.h"
#include "src/config/parse.h"
#include "src/config/print_topology.h"
#include "test/unit/config_test_support.h"

namespace weir::config {
namespace {

using testing::HasSubstr;

std::string node(const std::string& name, int port) {
  return "{name: " + name + ", zone: a, cluster: \"10.0.0.1:" + std::to_string(port) + "\"}";
}

/// Three nodes in eu and one in us; `head` stands before, on line 2, and `rest` after, on line 6.
std::string topology(const std::string& head, const std::string& rest = "") {
  return "version: 7\n" + head + "\nregions:\n" + "  us: {weight: 0, nodes: [" + node("us-1", 4) +
         "]}\n" + "  eu: {weight: 2, nodes: [" + node("eu-1", 1) + ", " + node("eu-2", 2) + ", " +
         node("eu-3", 3) + "]}\n" + rest;
}

Topology good(const std::string& text) {
  auto parsed = parse_topology(text, "t.yaml");
  EXPECT_TRUE(parsed) << to_string(parsed.errors);
  return parsed ? *parsed.value : Topology{};
}

TEST(ConfigTopology, EveryField) {
  const std::string text =
      topology("replicas: {count: 3, place: region}", "pins: {acme: eu, 7: eu}\n");
  const auto parsed = parse_topology(text, "t.yaml");
  ASSERT_TRUE(parsed) << to_string(parsed.errors);
  EXPECT_TRUE(parsed.warnings.empty()) << to_string(parsed.warnings);
  const Topology& read = *parsed.value;
  EXPECT_EQ(read.version, 7U);
  EXPECT_EQ(read.content_hash, hash_bytes(text));
  EXPECT_EQ(read.replica_count, 3U);
  EXPECT_EQ(read.place, ReplicaPlace::region);
  ASSERT_EQ(read.regions.size(), 2U);
  EXPECT_EQ(read.regions[0].name, "eu");  // in byte order, not the file's
  EXPECT_EQ(read.regions[0].weight, 2U);
  EXPECT_EQ(read.regions[0].nodes[2], (TopologyNode{"eu-3", "a", {"10.0.0.1", 3}}));
  EXPECT_EQ(read.regions[1].name, "us");
  EXPECT_EQ(read.regions[1].weight, 0U);
  EXPECT_EQ(read.pins.at("acme"), "eu");
  EXPECT_EQ(read.pins.at("7"), "eu");
}

TEST(ConfigTopology, Defaults) {
  const Topology read = good(
      "version: 1\nregions: {eu: {nodes: [{name: a, cluster: \"h:1\"}]}, edges: {nodes: []}}\n");
  EXPECT_EQ(read.replica_count, 1U);
  EXPECT_EQ(read.place, ReplicaPlace::region);
  EXPECT_EQ(read.regions[1].weight, 1U);
  EXPECT_EQ(read.regions[1].nodes[0].zone, "");
}

TEST(ConfigTopology, SpreadCountsRegions) {
  const auto parsed = parse_topology(
      "version: 1\nreplicas: {count: 3, place: spread}\nregions:\n"
      "  a: {nodes: [" +
          node("a-1", 1) + "]}\n  b: {nodes: [" + node("b-1", 2) + "]}\n  c: {nodes: [" +
          node("c-1", 3) + "]}\n",
      "t.yaml");
  ASSERT_TRUE(parsed) << to_string(parsed.errors);
  EXPECT_EQ(parsed.value->place, ReplicaPlace::spread);
  EXPECT_TRUE(parsed.warnings.empty());
}

TEST(ConfigTopology, ARegionTooSmallToBeAHomeIsAWarning) {
  const auto parsed =
      parse_topology("version: 1\nreplicas: {count: 3}\nregions:\n  eu: {nodes: [" +
                         node("eu-1", 1) + ", " + node("eu-2", 2) + ", " + node("eu-3", 3) +
                         "]}\n  us: {nodes: [" + node("us-1", 4) + "]}\n  edges: {nodes: []}\n",
                     "t.yaml");
  ASSERT_TRUE(parsed) << to_string(parsed.errors);
  ASSERT_EQ(parsed.warnings.size(), 1U) << to_string(parsed.warnings);
  EXPECT_EQ(parsed.warnings[0].line, 5);
  EXPECT_THAT(parsed.warnings[0].message, HasSubstr("region `us` has 1 owner nodes, fewer than 3"));
}

TEST(ConfigTopology, SeveralNodesWithoutReplicasIsAWarning) {
  const auto parsed = parse_topology(topology(""), "t.yaml");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed.warnings.size(), 1U);
  EXPECT_THAT(parsed.warnings[0].message, HasSubstr("no `replicas`"));
}

class TopologyMistake : public testing::TestWithParam<Mistake> {};

TEST_P(TopologyMistake, IsOneErrorAtItsPlace) {
  expect_one_error(GetParam(), parse_topology(GetParam().text, "t.yaml"));
}

INSTANTIATE_TEST_SUITE_P(
    Each, TopologyMistake,
    testing::Values(
        Mistake{"no_version", topology("").substr(12), 1, 1, "`version` is missing", "version: 1"},
        Mistake{"version_0", "version: 0\n" + topology("").substr(12), 1, 10, "too small",
                "from 1"},
        Mistake{"unknown_key", topology("replica: {count: 1}"), 2, 1, "unknown key `replica`",
                "`replicas`"},
        Mistake{"no_regions", "version: 1\n", 1, 1, "`regions` is missing", "eu: {nodes:"},
        Mistake{"empty_regions", "version: 1\nregions: {}\n", 2, 10, "none", "at least one"},
        Mistake{"regions_list", "version: 1\nregions: [eu]\n", 2, 10, "a list where a map", "eu:"},
        Mistake{"count_0", topology("replicas: {count: 0}"), 2, 19, "too small", "from 1"},
        Mistake{"count_even", topology("replicas: {count: 2}"), 2, 19, "even", "1 or 3"},
        Mistake{"count_above_every_region", topology("replicas: {count: 5}"), 2, 19,
                "no region with a weight has 5", "add nodes"},
        Mistake{"count_above_regions_for_spread", topology("replicas: {count: 3, place: spread}"),
                2, 19, "as many regions", "there are 2"},
        Mistake{"count_missing", topology("replicas: {place: region}"), 2, 11, "`count` is missing",
                "count: 3"},
        Mistake{"bad_place", topology("replicas: {count: 1, place: regions}"), 2, 29,
                "unknown `regions`", "`region`"},
        Mistake{"no_weight_at_all",
                "version: 1\nregions: {eu: {weight: 0, nodes: [" + node("a", 1) + "]}}\n", 2, 10,
                "no region with a weight", "add nodes"},
        Mistake{"no_nodes_at_all", "version: 1\nregions: {eu: {nodes: []}}\n", 2, 10,
                "no region with a weight", "add nodes"},
        Mistake{"weight_negative",
                "version: 1\nregions: {eu: {weight: -1, nodes: [" + node("a", 1) + "]}}\n", 2, 24,
                "negative", "from 0"},
        Mistake{"weight_huge",
                "version: 1\nregions: {eu: {weight: 1000001, nodes: [" + node("a", 1) + "]}}\n", 2,
                24, "too large", "to 1000000"},
        Mistake{"nodes_missing", "version: 1\nregions: {eu: {weight: 1}}\n", 2, 15,
                "`nodes` is missing", "nodes: ["},
        Mistake{"bad_region_name",
                "version: 1\nregions: {\"e u\": {nodes: [" + node("a", 1) + "]}}\n", 2, 11,
                "not a name", "letter or digit"},
        Mistake{"duplicate_region", topology("", "  eu: {nodes: []}\n"), 6, 3, "duplicate key `eu`",
                "keep one"},
        Mistake{"duplicate_name", topology("", "  x: {nodes: [" + node("eu-2", 9) + "]}\n"), 6, 22,
                "`eu-2` is taken, first on line 5", "its own"},
        Mistake{"duplicate_address", topology("", "  x: {nodes: [" + node("x", 2) + "]}\n"), 6, 43,
                "`10.0.0.1:2` is taken, first on line 5", "its own"},
        Mistake{"node_without_name", topology("", "  x: {nodes: [{cluster: \"h:1\"}]}\n"), 6, 15,
                "`name` is missing", "name: eu-1"},
        Mistake{"node_without_cluster", topology("", "  x: {nodes: [{name: x}]}\n"), 6, 15,
                "`cluster` is missing", "cluster: \"10.0.0.1:7070\""},
        Mistake{"port_0", topology("", "  x: {nodes: [{name: x, cluster: \"h:0\"}]}\n"), 6, 34,
                "no valid port", "from 1 to 65535"},
        Mistake{"node_key",
                topology("", "  x: {nodes: [{name: x, clustr: a, cluster: \"h:1\"}]}\n"), 6, 25,
                "unknown key `clustr`", "`cluster`"},
        Mistake{"pin_unknown", topology("", "pins: {acme: eux}\n"), 6, 14, "unknown region `eux`",
                "`eu`"},
        Mistake{"pin_to_no_home", topology("", "pins: {acme: us}\n"), 6, 14, "no home", "another"},
        Mistake{"pin_list", topology("", "pins: {acme: [eu]}\n"), 6, 14,
                "a list where a single value", "acme: eu"},
        Mistake{"pin_twice", topology("", "pins: {acme: eu, acme: eu}\n"), 6, 18,
                "duplicate key `acme`", "keep one"}),
    mistake_name);

TEST(TopologyFile, what_is_printed_reads_back_as_the_same) {
  const std::string text =
      "version: 7\n"
      "replicas: {count: 3, place: spread}\n"
      "regions:\n"
      "  eu: {weight: 2, nodes: [{name: eu-1, zone: a, cluster: \"10.0.0.1:7070\"}]}\n"
      "  us: {nodes: [{name: us-1, cluster: \"[::1]:7070\"}, {name: us-2, cluster: \"h:1\"}]}\n"
      "  ap: {nodes: [{name: ap-1, zone: \"1\", cluster: \"h:2\"}]}\n"
      "pins: {\"a: b\": eu, acme: us}\n";
  auto first = parse_topology(text, "t.yaml");
  ASSERT_TRUE(first);
  const std::string printed = print_topology(*first.value);
  auto again = parse_topology(printed, "printed.yaml");
  ASSERT_TRUE(again) << printed << (again.errors.empty() ? "" : to_string(again.errors.front()));
  again.value->content_hash = first.value->content_hash;
  EXPECT_EQ(*again.value, *first.value) << printed;
}

}  // namespace
}  // namespace weir::config
