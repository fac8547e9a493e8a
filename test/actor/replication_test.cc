// Goal: real nodes keep a limit over the loss of its owner, and say when they cannot own.
// Method: nodes with real limiters and actors over memory stores and a network that freezes on
// command; conditions are awaited, never slept for.
#include "actors/replication.h"

#include <gtest/gtest.h>

#include "src/store/faulty_store.h"
#include "test/actor/support.h"

namespace weir::actors::test {
namespace {

TEST(Replication, a_disk_that_fails_ends_all_ownership) {
  SystemClock clock;
  const auto faulty = std::make_shared<store::FaultyStore>(
      std::make_unique<store::MemoryStore>(clock, "boot", kSecond, 1));
  TestNode::Options options;
  options.name = "only";
  options.topology = topology_of({{"only", "", {}}});
  options.store = faulty;
  TestNode node(options);
  ASSERT_TRUE(eventually([&] { return node.node().state().slots_owned == kSlotCount; }));
  EXPECT_FALSE(node.node().state().store_failed);
  faulty->script_writes(store::WriteFault::disk_full);
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  node.check("acme", 1, allowed, denied);
  ASSERT_TRUE(eventually([&] { return node.node().state().store_failed; }));
  EXPECT_TRUE(eventually([&] { return node.node().state().slots_owned == 0; }));
  EXPECT_EQ(allowed, 0) << "what was not stored was not granted";
}

TEST(Replication, a_single_store_that_was_lost_has_everything_out) {
  SystemClock clock;
  TestNode::Options options;
  options.name = "only";
  options.topology = topology_of({{"only", "", {}}});
  options.store = std::make_shared<store::MemoryStore>(clock, "boot", kSecond, 1);
  ASSERT_TRUE(options.store->write({{}, {{std::string(store::kNumberMeta), "2"}}}));
  TestNode node(options);
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  node.check("acme", 3, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed + denied == 3; }));
  EXPECT_EQ(allowed, 0) << "what was granted before the loss may still be held";
}

TEST(Replication, data_without_promises_are_refused) {
  ManualClock clock;
  store::MemoryStore store(clock, "boot", kSecond, 1);
  ASSERT_TRUE(read_stored_registers(store).has_value());
  ASSERT_TRUE(store.write({{}, {{"epoch", "5"}}}));
  const auto refused = read_stored_registers(store);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

TEST(Replication, unreadable_promises_are_refused) {
  ManualClock clock;
  store::MemoryStore store(clock, "boot", kSecond, 1);
  const RegisterId reg = register_of(Scope::global, "", "acme");
  ASSERT_TRUE(store.write({{}, {{meta_key(reg), "nonsense"}}}));
  EXPECT_EQ(read_stored_registers(store).error().code, ErrorCode::corrupt);
}

/// Three nodes with all registers on each of them.
class Three : public ::testing::Test {
 protected:
  explicit Three(std::shared_ptr<const policy::Policy> policy = one_limit(100)) {
    Topology topology = topology_of({{"a", "", {}}, {"b", "", {}}, {"c", "", {}}});
    topology.replica_count = 3;
    std::uint64_t seed = 0;
    for (const char* name : {"a", "b", "c"}) {
      ports_.push_back(std::make_unique<FakeNetwork::Port>(network_, name));
      TestNode::Options options;
      options.name = name;
      options.topology = topology;
      options.transport = ports_.back().get();
      options.seed = ++seed;
      options.policy = policy;
      nodes_.push_back(std::make_unique<TestNode>(options));
    }
  }

  /// Whoever owns `acme`, as `asked` sees it; empty: nobody.
  std::string owner_seen_by(std::size_t asked) {
    std::promise<Result<OwnerDescription>> promise;
    nodes_[asked]->node().describe(register_of(Scope::global, "eu", "acme"), "acme",
                                   [&](auto said) { promise.set_value(std::move(said)); });
    const auto said = promise.get_future().get();
    return said ? said->node : std::string();
  }
  std::size_t index_of(const std::string& name) { return static_cast<std::size_t>(name[0] - 'a'); }
  std::uint32_t slots() {
    std::uint32_t sum = 0;
    for (const auto& node : nodes_) sum += node->node().state().slots_owned;
    return sum;
  }

  FakeNetwork network_{1};
  std::vector<std::unique_ptr<FakeNetwork::Port>> ports_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
};

TEST_F(Three, a_frozen_owner_is_succeeded_and_nothing_is_granted_twice) {
  ASSERT_TRUE(eventually([&] { return slots() == kSlotCount; }));
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  nodes_[0]->check("acme", 60, allowed, denied);
  nodes_[1]->check("acme", 20, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed + denied == 80; }));
  EXPECT_EQ(allowed, 80);
  std::string owner;
  ASSERT_TRUE(eventually([&] { return !(owner = owner_seen_by(0)).empty(); }));
  network_.freeze(owner, true);
  const std::size_t other = (index_of(owner) + 1) % 3;
  ASSERT_TRUE(eventually([&] {
    const std::string next = owner_seen_by(other);
    return !next.empty() && next != owner;
  }));
  nodes_[other]->check("acme", 40, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed + denied == 120; }));
  EXPECT_LE(allowed, 100);
  EXPECT_GE(allowed, 80);
  EXPECT_GT(
      nodes_[other]->node().state().takeovers + nodes_[(other + 1) % 3]->node().state().takeovers,
      0U);
  // The one that comes back is no owner of what others took, and grants nothing more.
  network_.freeze(owner, false);
  nodes_[index_of(owner)]->check("acme", 40, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed + denied == 160; }));
  EXPECT_LE(allowed, 100);
}

TEST_F(Three, a_node_that_drains_hands_its_registers_over) {
  ASSERT_TRUE(eventually([&] { return slots() == kSlotCount; }));
  std::promise<void> drained;
  nodes_[0]->node().drain(nodes_[0]->clock().boot_ns() + 30 * kSecond,
                          [&] { drained.set_value(); });
  EXPECT_EQ(drained.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(nodes_[0]->node().state().slots_owned, 0U);
  EXPECT_TRUE(eventually([&] { return slots() == kSlotCount; }));
}

class ThreeWithQuota : public Three {
 protected:
  ThreeWithQuota() : Three(one_quota(10)) {}

  void spend(std::size_t node, int count) {
    const int before = allowed_ + denied_;
    nodes_[node]->check("acme", count, allowed_, denied_);
    ASSERT_TRUE(eventually([&] { return allowed_ + denied_ == before + count; }));
  }
  std::atomic<int> allowed_{0};
  std::atomic<int> denied_{0};
};

TEST_F(ThreeWithQuota, a_window_is_not_opened_by_the_owners_clock_alone) {
  ASSERT_TRUE(eventually([&] { return slots() == kSlotCount; }));
  spend(0, 20);
  ASSERT_EQ(allowed_, 10);
  std::string owner;
  ASSERT_TRUE(eventually([&] { return !(owner = owner_seen_by(0)).empty(); }));
  constexpr Nanos kTwoDays = 48 * kHour;
  nodes_[index_of(owner)]->set_wall_ahead(kTwoDays);
  spend(index_of(owner), 20);
  spend((index_of(owner) + 1) % 3, 20);
  EXPECT_EQ(allowed_, 10) << "one clock that is wrong gives no second quota";
  for (const auto& node : nodes_) node->set_wall_ahead(kTwoDays);
  // What the clocks say travels with the beats.
  EXPECT_TRUE(eventually([&] {
    spend(0, 1);
    return allowed_ > 10;
  })) << "a majority of clocks opens the next one";
}

}  // namespace
}  // namespace weir::actors::test
