// Goal: a register leaves its old set for a new one whatever is missing meanwhile (PROTOCOL J2).
// Method: one Seat on exact instants; the rest of both sets is played by hand.
#include <gtest/gtest.h>

#include <set>

#include "test/unit/ownership_seat_bench.h"

namespace weir::ownership {
namespace {

/// The new set lacks voters, and no owner can teach them as there is none without them.
TEST(J2, WhoeverHasTheOldSetsMajorityTeachesTheNewSetBeforeItOwns) {
  Bench bench;
  Layout joint;
  joint.stage = 1;
  joint.target = 2;
  joint.quorums = {{{"a", "b", "c"}, {"a", "c", "d"}}};
  joint.listed = {{"a", 1}, {"b", 1}, {"c", 2}, {"d", 1}};
  bench.seat.set_layout(joint, bench.now_ns, bench.did);
  bench.tick({}, {{"c", 2}, {"d", 2}});
  bench.run(3 * kSecond, {}, {{"c", 2}, {"d", 2}});
  for (const char* node : {"a", "b", "c", "d"}) bench.poll_replies(node, true);
  ASSERT_EQ(bench.seat.phase(), Seat::Phase::preparing);
  bench.promises("a", true);
  bench.promises("c", false, {}, 2);
  EXPECT_TRUE(bench.sent<Scan>().empty()) << "not without the old set's majority";
  bench.promises("b", true);
  bench.promises("d", false, {}, 2);
  EXPECT_FALSE(bench.seat.active());
  for (const auto& [to, prepare] : bench.sent<Prepare>()) {
    EXPECT_FALSE(prepare.enlists) << to << " is another store than the version lists";
  }
  EXPECT_EQ(bench.seat.learners(), (std::vector<std::string>{"c", "d"}));
  std::set<std::uint64_t> tokens;
  for (const auto& [to, scan] : bench.sent<Scan>()) tokens.insert(scan.token);
  ASSERT_EQ(tokens.size(), 2U);
  auto page = bench.by<ScanReply>("a");
  page.accepted = page.votes = page.last = true;
  page.token = *tokens.begin();
  page.records = {aged(3, 30, kHour)};
  bench.hear("a", page);
  EXPECT_TRUE(bench.sent<Install>().empty()) << "one is no majority of the old set";
  page.store = {"b", 1};
  bench.hear("b", page);
  auto installs = bench.sent<Install>();
  ASSERT_EQ(installs.size(), 1U);
  const std::string learner = installs.front().first;
  EXPECT_EQ(installs.front().second.records, std::vector<AgedRecord>{aged(3, 30, kHour)});
  bench.installed(learner, installs.front().second.token, 2);
  installs = bench.sent<Install>();
  ASSERT_EQ(installs.size(), 1U);
  EXPECT_TRUE(installs.front().second.admit);
  EXPECT_FALSE(bench.seat.active());
  bench.installed(learner, installs.front().second.token, 2);
  EXPECT_TRUE(bench.seat.active());
}

/// One replica that has promised the mark makes an owner that goes by the new set alone possible.
/// What that has committed only stores know that were there all along.
TEST(J2, NobodyIsTaughtWhereAMajorityOfTheNewSetWasReplaced) {
  Bench bench;
  Layout joint;
  joint.stage = 1;
  joint.target = 2;
  joint.quorums = {{{"a", "b", "c"}, {"x", "d", "e"}}};
  joint.listed = {{"a", 1}, {"b", 1}, {"c", 1}, {"x", 1}, {"d", 1}, {"e", 1}};
  bench.seat.set_layout(joint, bench.now_ns, bench.did);
  bench.run(3 * kSecond, {}, {{"e", 2}});
  for (const char* node : {"a", "b", "c", "x", "d", "e"}) bench.poll_replies(node, true);
  ASSERT_EQ(bench.seat.phase(), Seat::Phase::preparing);
  bench.promises("b", true);
  bench.promises("c", true);
  bench.promises("d", true);
  bench.promises("e", false, {}, 2);
  EXPECT_TRUE(bench.sent<Scan>().empty()) << "x may know better";
  bench.promises("x", false);
  EXPECT_FALSE(bench.sent<Scan>().empty());
}

/// Twice moved: out of the set that it owned in, and back in.
TEST(J2, WhoeverLeftTheSetAsItsOwnerMayOwnAgainWhenItIsBack) {
  Bench bench;
  bench.owns();
  Layout layout;
  layout.stage = 1;
  layout.target = 2;
  layout.quorums = {{{"a", "b", "c"}, {"b", "c", "d"}}};
  bench.seat.set_layout(layout, bench.now_ns, bench.did);
  for (const char* node : {"a", "b", "c", "d"}) bench.promises(node, node[0] != 'd');
  ASSERT_TRUE(bench.seat.active());
  bench.run(kConfig.retry_ns);
  auto page = bench.by<ScanReply>("a");
  page.token = bench.sent<Scan>().front().second.token;
  page.accepted = page.votes = page.last = true;
  for (const char* node : {"a", "b", "c"}) {
    page.store = {node, 1};
    bench.hear(node, page);
  }
  const std::uint64_t token = bench.sent<Install>().front().second.token;
  for (const char* node : {"b", "c", "d"}) bench.installed(node, token, 1);
  for (const char* node : {"a", "b", "c", "d"}) {
    auto mark = bench.by<Promise>(node);
    mark.promised = true;
    mark.votes = node[0] != 'd';
    mark.stage = 2;
    bench.hear(node, mark);
  }
  ASSERT_EQ(bench.seat.phase(), Seat::Phase::idle) << "no member any more";
  layout.stage = layout.target = 4;
  layout.quorums = {{{"a", "b", "c"}}};
  bench.seat.set_layout(layout, bench.now_ns, bench.did);
  bench.run(3 * kSecond);
  EXPECT_FALSE(bench.sent<Poll>().empty());
}

TEST(J2, AStoreThatJoinsVotesThoughMajoritiesWereThereWithoutIt) {
  Bench bench;
  bench.owns();
  Layout joint;
  joint.stage = 1;
  joint.target = 2;
  joint.quorums = {{{"a", "b", "c"}, {"a", "b", "c", "d", "e"}}};
  joint.listed = {{"d", 1}, {"e", 1}};
  bench.seat.set_layout(joint, bench.now_ns, bench.did);
  bench.run(kConfig.suspicion_ns);
  for (const char* node : {"a", "b", "c"}) bench.promises(node, true);
  ASSERT_TRUE(bench.seat.active());
  bench.sent<Prepare>();
  bench.promises("d", false);
  const auto asked = bench.sent<Prepare>();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked.front().first, "d");
  EXPECT_TRUE(asked.front().second.enlists);
  bench.promises("d", true);
  EXPECT_TRUE(bench.sent<Prepare>().empty());
}

TEST(J2, AScanIsAnsweredAfterItWasRepeated) {
  Bench bench;
  bench.owns();
  Layout joint;
  joint.stage = 1;
  joint.target = 2;
  joint.quorums = {{{"a", "b", "c"}, {"a", "b", "d"}}};
  bench.seat.set_layout(joint, bench.now_ns, bench.did);
  bench.run(kConfig.suspicion_ns);
  for (const char* node : {"a", "b", "c", "d"}) bench.promises(node, node[0] != 'd');
  ASSERT_TRUE(bench.seat.active());
  bench.run(kConfig.retry_ns);
  const auto first = bench.sent<Scan>();
  ASSERT_FALSE(first.empty());
  bench.run(2 * kConfig.retry_ns);
  auto page = bench.by<ScanReply>("a");
  page.token = first.front().second.token;
  page.stage = 1;
  page.accepted = page.votes = page.last = true;
  bench.sent<Install>();
  for (const char* node : {"a", "b", "c"}) {
    page.store = {node, 1};
    bench.hear(node, page);
  }
  EXPECT_FALSE(bench.sent<Install>().empty());
}

}  // namespace
}  // namespace weir::ownership
