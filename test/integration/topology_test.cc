// Goal: owner nodes and edges come and go under load, and customers notice nothing but that the
// limit holds. Method: real processes, the commands that an operator runs, the promise judged over
// the whole history.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "src/base/limits.h"
#include "src/cli/commands.h"
#include "src/config/parse.h"
#include "src/config/print_topology.h"
#include "src/model/ids.h"
#include "test/integration/fixture.h"

namespace weir::test {
namespace {

Nanos load_ns() { return (long_run() ? 60 : 20) * kSecond; }

class TopologyTest : public ClusterTest {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(start(2, 5, kUsualPolicy, quick_disk())); }

  Topology in_force() const { return in_force(node(0)); }
  static Topology in_force(const cli::LocalNode& node) {
    const auto answer = ask(node.admin, "GET", "/v1/topology");
    auto parsed = config::parse_topology(answer.word("document"), "topology");
    EXPECT_TRUE(parsed.value.has_value());
    return parsed.value.value_or(Topology{});
  }

  std::string write(const Topology& topology) const {
    const std::string file = path("topology-" + std::to_string(topology.version) + ".yaml");
    std::ofstream(file) << config::print_topology(topology);
    return file;
  }

  cli::TopologyOptions at(const cli::LocalNode& node) const {
    cli::TopologyOptions options;
    options.admin = to_string(node.admin);
    return options;
  }

  using Action = int (*)(const cli::TopologyOptions&, cli::Console);
  static int run(Action action, const cli::TopologyOptions& options) {
    std::ostringstream said;
    const int status = action(options, {said, said});
    std::cout << said.str();
    return status;
  }

  /// An owner node more, running, for a version that is still to be applied.
  void add_to(Topology& next, const std::string& name) {
    const cli::LocalNode more = further(name, "eu", true);
    ASSERT_EQ(next.regions.front().name, "eu");
    next.regions.front().nodes.push_back({more.name, more.zone, more.cluster});
    added_.push_back(std::make_unique<OneMore>(
        more, cli::node_yaml(more, write(next), cluster_->policy(), true, quick_disk())));
    ASSERT_TRUE(eventually([&] { return slots(more) == 0; }));
  }

  /// By a command at `node`; returns once it is finished there.
  void apply(const Topology& next, const cli::LocalNode& node) const {
    cli::TopologyOptions options = at(node);
    options.file = write(next);
    ASSERT_TRUE(eventually([&] { return run(cli::run_topology_apply, options) == 0; }));
    ASSERT_TRUE(eventually([&] { return in_force(node).version == next.version; }));
  }

  std::int64_t slots(const cli::LocalNode& node) const {
    const auto now = status(node);
    return now.contains("slots_owned") ? now.at("slots_owned").to_number<std::int64_t>() : -1;
  }

  std::vector<std::unique_ptr<OneMore>> added_;
};

TEST_F(TopologyTest, ANodeIsAddedAndAnotherDrainedUnderLoad) {
  Load load(load_of(http(), 200, 4, load_ns()));
  Topology next = in_force();
  const cli::LocalNode added = further("eu-4", "eu", true);
  ++next.version;
  next.regions.front().nodes.push_back({added.name, added.zone, added.cluster});
  ASSERT_EQ(next.regions.front().name, "eu");
  cli::TopologyOptions options = at(node(0));
  options.file = write(next);
  const OneMore fourth(added,
                       cli::node_yaml(added, options.file, cluster_->policy(), true, quick_disk()));
  ASSERT_TRUE(eventually([&] { return slots(added) == 0; }));
  ASSERT_TRUE(load.wait_for_permille(200));
  ASSERT_TRUE(eventually([&] { return run(cli::run_topology_apply, options) == 0; }));
  EXPECT_TRUE(eventually([&] { return slots(added) > 0; }));
  ASSERT_TRUE(load.wait_for_permille(600));
  cli::TopologyOptions drain = at(node(1));
  drain.node = node(0).name;
  ASSERT_TRUE(eventually([&] { return in_force(node(1)).version == next.version; }));
  EXPECT_EQ(run(cli::run_topology_drain, drain), 0);
  EXPECT_TRUE(eventually([&] { return slots(node(0)) == 0; }));
  const History history = load.finish();
  expect_bound(history, kUsualLimit, "a node added, another drained");
  EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
  EXPECT_TRUE(eventually([&] { return in_force(node(1)).version == next.version + 1; }));
}

TEST_F(TopologyTest, ThreeBecomeFiveThenFourThenADeadOneIsReplaced) {
  Load load(load_of(http(), 200, 4, 2 * load_ns()));
  Topology next = in_force();
  ++next.version;
  ASSERT_NO_FATAL_FAILURE(add_to(next, "eu-4"));
  ASSERT_NO_FATAL_FAILURE(add_to(next, "eu-5"));
  ASSERT_NO_FATAL_FAILURE(apply(next, node(1)));
  for (const auto& more : added_) {
    EXPECT_TRUE(eventually([&] { return slots(more->node()) > 0; }));
  }
  cli::TopologyOptions drain = at(node(1));
  drain.node = node(0).name;
  EXPECT_EQ(run(cli::run_topology_drain, drain), 0);
  EXPECT_TRUE(eventually([&] { return slots(node(0)) == 0; }));

  // The dead one leaves and another comes in one version.
  ASSERT_TRUE(cluster_->kill(node(2).name, SIGKILL));
  next = in_force(node(1));
  ++next.version;
  std::erase_if(next.regions.front().nodes,
                [&](const TopologyNode& each) { return each.name == node(2).name; });
  ASSERT_NO_FATAL_FAILURE(add_to(next, "eu-6"));
  ASSERT_NO_FATAL_FAILURE(apply(next, node(1)));
  EXPECT_TRUE(eventually([&] { return slots(added_.back()->node()) > 0; }));
  std::int64_t owned = slots(node(1));
  for (const auto& more : added_) owned += slots(more->node());
  std::cout << "slots owned by the four: " << owned << "\n";
  const History history = load.finish();
  expect_bound(history, kUsualLimit, "3, 5, 4 owner nodes and one replaced");
  const auto failed = std::count_if(history.begin(), history.end(), [](const CheckRecord& one) {
    return one.verdict == Verdict::failed && one.node != 2;
  });
  EXPECT_EQ(failed, 0) << testing::PrintToString(load.complaints());
}

TEST_F(TopologyTest, ThreeReplicasBecomeFiveWhichOutliveTwo) {
  Load load(load_of(http(), 200, 4, load_ns()));
  Topology next = in_force();
  ++next.version;
  ASSERT_NO_FATAL_FAILURE(add_to(next, "eu-4"));
  ASSERT_NO_FATAL_FAILURE(add_to(next, "eu-5"));
  next.replica_count = 5;
  ASSERT_NO_FATAL_FAILURE(apply(next, node(0)));
  const Answer owner = ask(node(0).admin, "GET", "/v1/owners/acme");
  ASSERT_TRUE(owner.json.contains("replicas")) << owner.text;
  EXPECT_EQ(owner.json.at("replicas").as_array().size(), 5U);
  for (const auto& more : added_) {
    EXPECT_TRUE(eventually([&] { return slots(more->node()) > 0; }));
  }
  // The version is finished by majorities; two may die once the other replicas have caught up.
  const std::vector<cli::LocalNode> owners = {node(0), node(1), node(2), added_[0]->node(),
                                              added_[1]->node()};
  EXPECT_TRUE(eventually([&] {
    std::int64_t owned = 0;
    std::int64_t incomplete = 0;
    for (const cli::LocalNode& each : owners) {
      const auto now = status(each);
      if (!now.contains("registers_incomplete")) return false;
      owned += now.at("slots_owned").to_number<std::int64_t>();
      incomplete += now.at("registers_incomplete").to_number<std::int64_t>();
    }
    return owned == kSlotCount && incomplete == 0;
  }));
  for (const std::size_t lost : {1, 2}) {
    ASSERT_TRUE(cluster_->kill(node(lost).name, SIGKILL));
  }
  EXPECT_TRUE(eventually([&] {
    std::int64_t owned = slots(node(0));
    for (const auto& more : added_) owned += slots(more->node());
    return owned == kSlotCount;
  }));
  EXPECT_TRUE(eventually([&] { return check(node(4).http, "another").allowed(); }));
  const History history = load.finish();
  expect_bound(history, kUsualLimit, "five replicas, two of them killed");
  const auto failed = std::count_if(history.begin(), history.end(), [](const CheckRecord& one) {
    return one.verdict == Verdict::failed && one.node != 1 && one.node != 2;
  });
  EXPECT_EQ(failed, 0) << testing::PrintToString(load.complaints());
}

/// It has neither a topology nor a policy of its own.
TEST_F(TopologyTest, AnEdgeJoinsByTheAddressOfOneNode) {
  const cli::LocalNode edge = further("us-9", "us", false);
  std::ostringstream yaml;
  yaml << "node: us-9\nregion: us\nrole: [edge]\njoin: [\"" << to_string(node(0).cluster)
       << "\"]\nlisten: {http: " << to_string(edge.http) << ", admin: " << to_string(edge.admin)
       << "}\npolicy: " << cli::yaml_quoted(path("nowhere.yaml")) << "\n";
  const OneMore joined(edge, yaml.str());
  EXPECT_TRUE(eventually([&] { return check(edge.http, "acme").allowed(); }));
  EXPECT_EQ(ask(edge.admin, "GET", "/v1/topology").word("document"),
            ask(node(0).admin, "GET", "/v1/topology").word("document"));
}

TEST_F(TopologyTest, WhatIsLeftGoesOnAfterItsMajorityWasDestroyed) {
  ASSERT_NO_FATAL_FAILURE(spend(node(4).http, "warm", {}, 1));
  Load load(load_of(http(), 200, 4, load_ns()));
  ASSERT_TRUE(load.wait_for_permille(200));
  Topology next = in_force();
  ++next.version;
  next.replica_count = 1;
  cli::TopologyOptions options = at(node(0));
  for (const std::size_t lost : {1, 2}) {
    ASSERT_TRUE(cluster_->kill(node(lost).name, SIGKILL));
    std::filesystem::remove_all(node(lost).data);
    std::erase_if(next.regions.front().nodes,
                  [&](const TopologyNode& each) { return each.name == node(lost).name; });
    options.lost.push_back(node(lost).name);
  }
  options.file = write(next);
  ASSERT_EQ(run(cli::run_topology_recover, options), 0);
  EXPECT_TRUE(eventually([&] { return slots(node(0)) == kSlotCount; }));
  ASSERT_TRUE(load.wait_for_permille(1000));
  EXPECT_TRUE(eventually([&] { return check(node(4).http, "acme").allowed(); }));
  expect_bound(load.finish(), kUsualLimit, "two of three disks destroyed");
}

}  // namespace
}  // namespace weir::test
