// Goal: a seat tries when it should, becomes active only by majorities, and releases nothing of an
// epoch that is over (PROTOCOL B1, B4, B7-B9, C2, C3).
// Method: one Seat on exact instants; the rest of its replica set is played by hand.
#include <gtest/gtest.h>

#include "src/ownership/seat.h"

namespace weir::ownership {
namespace {

const RegisterId kReg{RegisterId::Kind::global, "", 7};
constexpr SeatConfig kConfig;
constexpr Nanos kStart = 1000 * kSecond;

/// The seat of `self` in the set a, b, c; what it sends is kept by kind.
class Bench {
 public:
  explicit Bench(std::string self = "a")
      : self_(std::move(self)), seat(kReg, self_, 77, kConfig, Random(1), kStart) {
    Layout layout;
    layout.quorums = {{{"a", "b", "c"}}};
    seat.set_layout(layout, now_ns, did);
  }

  void tick(const Seat::Claim& claim = {}, const std::vector<StoreMark>& known = {}) {
    seat.tick(claim, known, now_ns, did);
  }
  /// Ticks whenever the seat wants it, for `span_ns`.
  void run(Nanos span_ns, const Seat::Claim& claim = {}, const std::vector<StoreMark>& known = {}) {
    const Nanos end_ns = now_ns + span_ns;
    while (seat.next_deadline() <= end_ns) {
      now_ns = std::max(now_ns + 1, seat.next_deadline());
      tick(claim, known);
    }
    now_ns = end_ns;
  }
  /// The same once, at a later time: a claim has grown old.
  void tick_after(Nanos span_ns, const Seat::Claim& claim) {
    now_ns += span_ns;
    tick(claim);
  }
  template <typename Reply>
  void hear(const std::string& from, const Reply& reply) {
    seat.on(from, reply, now_ns, did);
  }
  /// Messages of one kind that have been sent since the last call, with their receivers.
  template <typename Message>
  std::vector<std::pair<std::string, Message>> sent() {
    std::vector<std::pair<std::string, Message>> result;
    for (const auto& [to, message] : did.send) {
      if (const auto* found = std::get_if<Message>(&message)) result.emplace_back(to, *found);
    }
    std::erase_if(did.send,
                  [](const auto& item) { return std::holds_alternative<Message>(item.second); });
    return result;
  }
  void poll_replies(const std::string& from, bool misses, const std::string& owner = {}) {
    const auto polls = sent<Poll>();
    if (!polls.empty()) poll_token_ = polls.back().second.token;
    PollReply reply;
    reply.reg = kReg;
    reply.token = poll_token_;
    reply.misses = misses;
    reply.owner = owner;
    hear(from, reply);
  }
  /// Everybody misses the owner, if there was one: it prepares.
  void prepares() {
    run(3 * kSecond);
    for (const char* node : {"a", "b", "c"}) poll_replies(node, true);
  }
  void promises(const std::string& from, bool votes, std::vector<StoreMark> first_start = {},
                std::uint32_t number = 1) {
    auto reply = by<Promise>(from, number);
    reply.promised = true;
    reply.votes = votes;
    reply.first_start = std::move(first_start);
    hear(from, reply);
  }
  /// Owns with the votes of all.
  void owns() {
    prepares();
    for (const char* node : {"a", "b", "c"}) promises(node, true);
    ASSERT_TRUE(seat.active());
    did = {};
  }
  void submit(std::uint64_t ticket, std::int64_t level) {
    LedgerRecord ledger;
    ledger.level = level;
    EXPECT_TRUE(seat.submit(ticket, {{"bucket " + std::to_string(ticket), ledger}}, now_ns, did));
  }
  void accepts(const std::string& from, std::uint64_t commit, std::uint32_t number = 1) {
    auto reply = by<Accepted>(from, number);
    reply.commit = commit;
    reply.accepted = true;
    hear(from, reply);
  }
  void refuses(const std::string& from, const Epoch& highest) {
    auto reply = by<Accepted>(from, 1);
    reply.highest = highest;
    hear(from, reply);
  }
  void installed(const std::string& from, std::uint64_t token, std::uint32_t number) {
    auto reply = by<Installed>(from, number);
    reply.token = token;
    reply.accepted = true;
    hear(from, reply);
  }
  /// An answer to this seat's epoch by the store of a node.
  template <typename Reply>
  Reply by(const std::string& node, std::uint32_t number = 1) const {
    Reply reply;
    reply.reg = kReg;
    reply.epoch = reply.highest = seat.epoch();
    reply.store = {node, number};
    return reply;
  }

 private:
  std::string self_;
  std::uint64_t poll_token_ = 0;

 public:
  Nanos now_ns = kStart;
  Seat::Effects did;
  Seat seat;
};

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

AgedRecord aged(std::uint64_t sequence, std::int64_t level, Nanos age_ns) {
  AgedRecord result;
  result.record.bucket = "x";
  result.record.version = {{1, "z", 1}, sequence};
  result.record.ledger.level = level;
  result.age_ns = age_ns;
  return result;
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

/// The new set lacks voters, and no owner can teach them as there is none without them.
TEST(J2, WhoeverHasTheOldSetsMajorityTeachesTheNewSetBeforeItOwns) {
  Bench bench;
  Layout joint;
  joint.stage = 1;
  joint.target = 2;
  joint.quorums = {{{"a", "b", "c"}, {"a", "c", "d"}}};
  joint.listed = {{"d", 1}};
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
