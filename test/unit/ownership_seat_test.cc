// Goal: a seat tries when it should, becomes active only by majorities, and releases nothing of an
// epoch that is over (PROTOCOL B1, B4, B7-B9, C2, C3).
// Method: one Seat on exact instants; the rest of its replica set is played by hand.
#include <gtest/gtest.h>

#include "test/unit/ownership_seat_bench.h"

namespace weir::ownership {
namespace {

Seat::Claim claim(const std::string& node, Nanos renewed_ns) { return {node, 4, renewed_ns}; }

TEST(B8, PollsBeforeItPreparesAndOnlyOnceTheOwnerIsMissed) {
  Bench bench;
  const auto held = claim("b", kStart);
  bench.tick(held);
  EXPECT_TRUE(bench.sent<Poll>().empty());
  bench.tick_after(kConfig.suspicion_ns - 1, held);
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::idle) << "the claim is fresh";
  bench.tick_after(1, held);
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::polling);
  bench.poll_replies("a", true);
  EXPECT_TRUE(bench.sent<Prepare>().empty()) << "one is no majority";
  bench.poll_replies("c", true);
  const auto prepares = bench.sent<Prepare>();
  ASSERT_EQ(prepares.size(), 3U);
  EXPECT_EQ(prepares.front().second.epoch, (Epoch{5, "a", 77})) << "above the claimed one";
}

TEST(B8, WhoeverHearsTheNamedOwnerHoldsTheTakeOverBack) {
  Bench bench;
  bench.tick_after(kConfig.suspicion_ns, claim("b", kStart));
  bench.poll_replies("a", true);
  bench.poll_replies("c", false, "b");
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::polling);
  bench.poll_replies("b", false, "b");
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::polling);
  bench.run(3 * kConfig.suspicion_ns, claim("b", bench.now_ns + kMinute));
  EXPECT_TRUE(bench.sent<Prepare>().empty());
}

TEST(B8, TheNamedOwnersOwnDenialVoidsTheWordOfOthers) {
  Bench bench;
  bench.tick_after(kConfig.suspicion_ns, claim("b", kStart));
  bench.poll_replies("c", false, "b");
  bench.poll_replies("b", true);
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::preparing);
}

TEST(B1, EpochsAreStrictlyAboveEverythingHeardOf) {
  Bench bench;
  bench.prepares();
  const Epoch first = bench.seat.epoch();
  auto refusal = bench.by<Promise>("c");
  refusal.highest = {9, "c", 1};
  bench.hear("c", refusal);
  EXPECT_GT(refusal.highest, first);
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::idle);
  bench.prepares();
  EXPECT_GT(bench.seat.epoch(), (Epoch{9, "c", 1}));
}

TEST(C3, FirstStartNeedsThePromisesOfAll) {
  Bench bench;
  bench.prepares();
  bench.promises("a", false);
  bench.promises("b", false);
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::preparing) << "two of three are not all";
  bench.sent<Prepare>();
  bench.promises("c", false);
  ASSERT_EQ(bench.seat.phase(), Seat::Phase::starting);
  const std::vector<StoreMark> list = {{"a", 1}, {"b", 1}, {"c", 1}};
  ASSERT_EQ(bench.sent<Prepare>().back().second.first_start, list);
  bench.promises("a", false, list);
  bench.promises("b", false, list);
  EXPECT_FALSE(bench.seat.active());
  bench.promises("c", false, list);
  EXPECT_TRUE(bench.seat.active());
  EXPECT_TRUE(bench.did.activated);
  const auto begins = bench.sent<Prepare>();
  ASSERT_EQ(begins.size(), 3U);
  EXPECT_TRUE(begins.front().second.begin) << "from now on they vote";
}

TEST(C3, NoFirstStartWhereOneVotesAlready) {
  Bench bench;
  bench.prepares();
  bench.promises("a", false);
  bench.promises("b", true);
  bench.promises("c", false);
  EXPECT_FALSE(bench.seat.active()) << "one voter is no majority, and it is no first start either";
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::preparing);
}

TEST(C3, AVoterByAListShowsThatAllOfItHaveJoined) {
  Bench bench;
  bench.prepares();
  const std::vector<StoreMark> list = {{"a", 1}, {"b", 1}, {"c", 1}};
  bench.promises("a", false, list);
  EXPECT_FALSE(bench.seat.active());
  bench.sent<Prepare>();
  bench.promises("b", true, list);
  EXPECT_TRUE(bench.seat.active());
  const auto begins = bench.sent<Prepare>();
  ASSERT_EQ(begins.size(), 1U);
  EXPECT_EQ(begins.front().first, "a");
  EXPECT_TRUE(begins.front().second.begin);
}

TEST(B7, OneCommitIsInFlightAndTheRestGathers) {
  Bench bench;
  bench.owns();
  bench.submit(1, 10);
  EXPECT_EQ(bench.sent<Accept>().size(), 3U);
  bench.submit(2, 20);
  bench.submit(3, 30);
  EXPECT_TRUE(bench.sent<Accept>().empty());
  bench.accepts("a", 1);
  bench.accepts("a", 1);
  EXPECT_TRUE(bench.did.committed.empty()) << "the same store twice is no majority";
  bench.accepts("c", 1);
  EXPECT_EQ(bench.did.committed, std::vector<std::uint64_t>{1});
  const auto next = bench.sent<Accept>();
  ASSERT_EQ(next.size(), 3U);
  const auto& records = next.front().second.records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].version, (Version{bench.seat.epoch(), 2})) << "B4: no sequence repeats";
  EXPECT_EQ(records[1].version, (Version{bench.seat.epoch(), 3}));
  bench.did.committed.clear();
  bench.accepts("b", 1);
  EXPECT_TRUE(bench.did.committed.empty()) << "an answer to the last commit";
  bench.accepts("a", 2);
  bench.accepts("b", 2);
  EXPECT_EQ(bench.did.committed, (std::vector<std::uint64_t>{2, 3}));
}

TEST(B7, WithoutAMajorityACommitIsRepeatedAndNothingIsReleased) {
  Bench bench;
  bench.owns();
  bench.submit(1, 10);
  bench.accepts("a", 1);
  bench.sent<Accept>();
  bench.run(kConfig.retry_ns + kConfig.retry_ns / 2);
  const auto again = bench.sent<Accept>();
  ASSERT_EQ(again.size(), 2U) << "to those that have not answered";
  EXPECT_EQ(again.front().second.commit, 1U);
  EXPECT_TRUE(bench.did.committed.empty());
}

TEST(B2, AHigherEpochEndsThisOneAndVoidsItsCommit) {
  Bench bench;
  bench.owns();
  const Epoch old = bench.seat.epoch();
  auto late = bench.by<Accepted>("a");
  late.commit = 1;
  late.accepted = true;
  bench.submit(1, 10);
  bench.refuses("b", {old.counter + 1, "b", 5});
  EXPECT_TRUE(bench.did.deposed);
  EXPECT_FALSE(bench.seat.active());
  bench.hear("a", late);
  late.store = {"c", 1};
  bench.hear("c", late);
  EXPECT_TRUE(bench.did.committed.empty());
}

TEST(C2, AReplacedStoreDoesNotCount) {
  Bench bench;
  bench.owns();
  bench.tick({}, {{"b", 2}});
  bench.submit(1, 10);
  bench.accepts("a", 1);
  bench.accepts("b", 1, 1);
  EXPECT_TRUE(bench.did.committed.empty()) << "of the store that b had before";
}

ReadReply read_reply(const Bench& bench, std::uint64_t token, const std::string& from,
                     std::optional<AgedRecord> record, bool votes = true) {
  auto reply = bench.by<ReadReply>(from);
  reply.token = token;
  reply.accepted = true;
  reply.votes = votes;
  reply.record = std::move(record);
  return reply;
}

TEST(B9, TheNewestOfAMajorityWithTheGreatestAgeOfItsHolders) {
  Bench bench;
  bench.owns();
  bench.seat.load(5, "x", bench.now_ns, bench.did);
  const auto reads = bench.sent<Read>();
  ASSERT_EQ(reads.size(), 3U);
  const std::uint64_t token = reads.front().second.token;
  bench.hear("a", read_reply(bench, token, "a", aged(2, 20, 3 * kSecond)));
  EXPECT_TRUE(bench.did.loaded.empty());
  bench.hear("b", read_reply(bench, token, "b", aged(1, 99, kMinute), false));
  EXPECT_TRUE(bench.did.loaded.empty()) << "b does not vote";
  bench.now_ns += kSecond;
  bench.hear("c", read_reply(bench, token, "c", aged(2, 20, 2 * kSecond)));
  ASSERT_EQ(bench.did.loaded.size(), 1U);
  const auto& record = bench.did.loaded.front().record;
  ASSERT_TRUE(record && record->has_value());
  EXPECT_EQ((*record)->record.version.sequence, 2U);
  EXPECT_EQ((*record)->age_ns, 4 * kSecond) << "a's, grown since its answer came";
}

TEST(B9, TheAgeOfAnOlderVersionSaysNothing) {
  Bench bench;
  bench.owns();
  bench.seat.load(5, "x", bench.now_ns, bench.did);
  const std::uint64_t token = bench.sent<Read>().front().second.token;
  bench.hear("a", read_reply(bench, token, "a", aged(1, 99, kMinute)));
  bench.hear("b", read_reply(bench, token, "b", aged(2, 20, kSecond)));
  ASSERT_EQ(bench.did.loaded.size(), 1U);
  EXPECT_EQ((*bench.did.loaded.front().record)->age_ns, kSecond);
}

TEST(B10, NothingAtAMajorityIsNew) {
  Bench bench;
  bench.owns();
  bench.seat.load(5, "x", bench.now_ns, bench.did);
  const std::uint64_t token = bench.sent<Read>().front().second.token;
  bench.hear("a", read_reply(bench, token, "a", std::nullopt));
  bench.hear("c", read_reply(bench, token, "c", std::nullopt));
  ASSERT_EQ(bench.did.loaded.size(), 1U);
  ASSERT_TRUE(bench.did.loaded.front().record);
  EXPECT_FALSE(bench.did.loaded.front().record->has_value());
}

/// Owns with a and b; the store of c is new and has the number 2, which came up after the prepare.
void owns_beside_a_new_store(Bench& bench) {
  bench.prepares();
  bench.promises("a", true);
  bench.promises("b", true);
  ASSERT_TRUE(bench.seat.active());
  bench.promises("c", false, {}, 2);
  bench.did = {};
}

TEST(C2, ANumberThatCameAfterThePrepareNeedsANewEpochEvenUnderSteadyLoad) {
  Bench bench;
  owns_beside_a_new_store(bench);
  const Epoch before = bench.seat.epoch();
  bench.submit(1, 10);
  bench.tick({}, {{"c", 2}});
  bench.submit(2, 20);
  EXPECT_EQ(bench.seat.epoch(), before) << "not while a commit is under way";
  bench.sent<Accept>();
  bench.accepts("a", 1);
  bench.accepts("b", 1);
  EXPECT_TRUE(bench.sent<Accept>().empty()) << "and none starts any more";
  bench.tick({}, {{"c", 2}});
  EXPECT_TRUE(bench.did.deposed);
  const auto prepares = bench.sent<Prepare>();
  ASSERT_EQ(prepares.size(), 3U);
  EXPECT_GT(bench.seat.epoch(), before);
  EXPECT_EQ(prepares.front().second.known, (std::vector<StoreMark>{{"c", 2}})) << "announced";
}

TEST(C2, AStoreThatVotesMeanwhileNeedsNoNewEpoch) {
  Bench bench;
  owns_beside_a_new_store(bench);
  bench.submit(1, 10);
  bench.tick({}, {{"c", 2}});
  bench.submit(2, 20);
  // It had joined the list by which the others vote, and begins to.
  bench.promises("c", true, {}, 2);
  bench.sent<Accept>();
  bench.accepts("a", 1);
  bench.accepts("b", 1);
  bench.tick({}, {{"c", 2}});
  EXPECT_FALSE(bench.did.deposed);
  EXPECT_FALSE(bench.sent<Accept>().empty()) << "what gathered is committed";
}

TEST(C2, AnAnnouncedStoreIsTaughtEverythingThenVotes) {
  Bench bench;
  owns_beside_a_new_store(bench);
  bench.tick({}, {{"c", 2}});
  bench.promises("a", true);
  bench.promises("b", true);
  bench.promises("c", false, {}, 2);
  ASSERT_TRUE(bench.seat.active());
  bench.run(kConfig.retry_ns, {}, {{"c", 2}});
  EXPECT_EQ(bench.seat.learners(), std::vector<std::string>{"c"});
  const auto scans = bench.sent<Scan>();
  ASSERT_EQ(scans.size(), 2U) << "of those that vote";
  auto page = bench.by<ScanReply>("a");
  page.token = scans.front().second.token;
  page.accepted = page.votes = page.last = true;
  page.records = {aged(3, 30, kHour)};
  bench.hear("a", page);
  page.store = {"b", 1};
  page.records = {aged(2, 20, kSecond)};
  bench.hear("b", page);
  auto installs = bench.sent<Install>();
  ASSERT_EQ(installs.size(), 1U);
  Install install = installs.front().second;
  EXPECT_EQ(install.store, (StoreMark{"c", 2}));
  EXPECT_EQ(install.records, std::vector<AgedRecord>{aged(3, 30, kHour)}) << "dormant, unchanged";
  EXPECT_FALSE(install.admit);
  bench.submit(1, 10);
  bench.installed("c", install.token, 2);
  EXPECT_TRUE(bench.sent<Install>().empty()) << "not while a commit is under way";
  bench.accepts("a", 1);
  bench.accepts("b", 1);
  installs = bench.sent<Install>();
  ASSERT_EQ(installs.size(), 1U);
  install = installs.front().second;
  EXPECT_TRUE(install.admit);
  ASSERT_EQ(install.records.size(), 1U) << "what was committed meanwhile";
  EXPECT_EQ(install.records.front().record.bucket, "bucket 1");
  bench.installed("c", install.token, 2);
  EXPECT_TRUE(bench.seat.learners().empty());
}

/// The answers to a scan come when it has been repeated already, as on every way whose round trip
/// is longer than the time for repetition.
TEST(C2, AScanIsAnsweredAfterItWasRepeated) {
  Bench bench;
  owns_beside_a_new_store(bench);
  bench.tick({}, {{"c", 2}});
  bench.promises("a", true);
  bench.promises("b", true);
  bench.promises("c", false, {}, 2);
  bench.run(kConfig.retry_ns, {}, {{"c", 2}});
  const auto first = bench.sent<Scan>();
  ASSERT_EQ(first.size(), 2U);
  auto page = bench.by<ScanReply>("a");
  page.token = first.front().second.token;
  page.accepted = page.votes = page.last = true;
  bench.hear("a", page);
  bench.run(2 * kConfig.retry_ns, {}, {{"c", 2}});
  const auto repeated = bench.sent<Scan>();
  ASSERT_FALSE(repeated.empty());
  for (const auto& [to, scan] : repeated) {
    EXPECT_EQ(to, "b") << "the other has answered";
    EXPECT_EQ(scan.token, page.token);
  }
  EXPECT_TRUE(bench.sent<Install>().empty());
  page.store = {"b", 1};
  bench.hear("b", page);
  EXPECT_EQ(bench.sent<Install>().size(), 1U);
}

TEST(B8, RankTakesOwnershipBackByHandOverOnly) {
  Bench bench("b");
  bench.owns();
  bench.submit(1, 10);
  bench.hear("c", HandOver{kReg});
  bench.hear("a", HandOver{kReg});
  EXPECT_TRUE(bench.seat.active()) << "it drains first";
  LedgerRecord ledger;
  EXPECT_FALSE(bench.seat.submit(2, {{"y", ledger}}, bench.now_ns, bench.did)) << "takes no more";
  bench.accepts("b", 1);
  bench.accepts("c", 1);
  EXPECT_EQ(bench.did.committed, std::vector<std::uint64_t>{1});
  bench.did.committed.clear();
  bench.run(kConfig.retry_ns);
  EXPECT_FALSE(bench.seat.active());
  const auto releases = bench.sent<Release>();
  ASSERT_EQ(releases.size(), 1U);
  EXPECT_EQ(releases.front().first, "a") << "not c, which ranks below";
}

TEST(B8, ARetiringOwnerLeavesAsSoonAsItsCommitIsStored) {
  Bench bench;
  owns_beside_a_new_store(bench);
  bench.submit(1, 10);
  bench.seat.retire("b", bench.now_ns, bench.did);
  EXPECT_TRUE(bench.seat.releasing());
  bench.tick({}, {{"c", 2}});
  EXPECT_TRUE(bench.seat.active()) << "no new epoch for the store of c: the next owner's will do";
  bench.accepts("a", 1);
  bench.accepts("b", 1);
  EXPECT_EQ(bench.did.committed, std::vector<std::uint64_t>{1});
  EXPECT_LE(bench.seat.next_deadline(), bench.now_ns);
  bench.did.committed.clear();
  bench.tick({}, {{"c", 2}});
  const auto releases = bench.sent<Release>();
  ASSERT_EQ(releases.size(), 1U);
  EXPECT_EQ(releases.front().first, "b");
  bench.run(5 * kSecond);
  EXPECT_FALSE(bench.seat.trying()) << "for good";
}

TEST(B8, ARetiringOwnerWhoseSetChangesReleasesAllTheSame) {
  Bench bench;
  bench.owns();
  bench.submit(1, 10);
  bench.seat.retire("b", bench.now_ns, bench.did);
  Layout next;
  next.stage = 1;
  next.target = 2;
  next.quorums = {{{"a", "b", "c"}, {"b", "c", "d"}}};
  bench.seat.set_layout(next, bench.now_ns, bench.did);
  EXPECT_EQ(bench.sent<Release>().size(), 1U);
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::idle);
}

TEST(B8, AReleaseNeedsNoPoll) {
  Bench bench;
  const auto held = claim("b", kStart + kMinute);
  bench.tick(held);
  bench.hear("b", Release{kReg, {4, "b", 5}});
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::preparing);
  EXPECT_GT(bench.seat.epoch().counter, 4U);
}

TEST(B8, AReleaseBySomebodyElseIsNone) {
  Bench bench;
  bench.tick(claim("b", kStart + kMinute));
  bench.hear("c", Release{kReg, {4, "b", 5}});
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::idle);
}

TEST(C5, AfterAFailedWriteTheRegisterIsGivenUpForGood) {
  Bench bench;
  bench.owns();
  bench.submit(1, 10);
  bench.seat.resign(bench.did);
  EXPECT_TRUE(bench.did.deposed);
  EXPECT_EQ(bench.sent<Release>().size(), 1U);
  bench.run(kMinute);
  EXPECT_EQ(bench.seat.phase(), Seat::Phase::idle);
}

}  // namespace
}  // namespace weir::ownership
