// Goal: nothing that binds leaves an owner before its record is stored, whatever fails in between
// (PROTOCOL B6, B7, B9, B11).
// Method: events and instants by hand on one Owner; each test names the rule and the schedule.
#include "src/ownership/owner.h"

#include <gtest/gtest.h>

#include <memory>

namespace weir::ownership {
namespace {

constexpr Nanos kStart = 1000 * kSecond;
constexpr LimitNumbers kNumbers{100, 10, kSecond};

class Book : public LimitBook {
 public:
  explicit Book(std::optional<LimitNumbers> numbers, std::uint64_t version = 1)
      : numbers_(numbers), version_(version) {}
  std::optional<LimitNumbers> numbers(const BucketKey&) const override { return numbers_; }
  std::uint64_t version() const override { return version_; }

 private:
  std::optional<LimitNumbers> numbers_;
  std::uint64_t version_;
};

std::string bucket(const std::string& limit = "api") {
  return encode(BucketKey{"acme", Scope::global, "", limit, {}});
}

LeaseRequest request_of(const std::string& node, std::uint64_t sequence, std::int64_t want,
                        const std::string& name = bucket()) {
  LeaseRequest request;
  request.bucket = name;
  request.lessee = {node, 1};
  request.sequence = sequence;
  request.want = request.need = want;
  request.strict = true;
  return request;
}

struct Desk {
  explicit Desk(std::optional<LimitNumbers> numbers = kNumbers)
      : owner({}, {7, "n", 1}, std::make_shared<Book>(numbers), kStart) {}

  Owner::Effects step(Owner::Event event) {
    Owner::Effects effects;
    owner.step(std::move(event), now_ns, effects);
    return effects;
  }
  Owner::Effects ask(const LeaseRequest& request) { return step(Owner::Requested{request}); }
  /// The bucket is new.
  Owner::Effects load(const std::string& name = bucket()) {
    return step(Owner::Loaded{name, std::optional<AgedRecord>()});
  }

  Owner owner;
  Nanos now_ns = kStart;
};

TEST(B6, GrantLeavesOnlyWhenItsOwnRecordIsStored) {
  Desk desk;
  EXPECT_EQ(desk.ask(request_of("a", 1, 10)).loads, std::vector<std::string>{bucket()});
  const auto loaded = desk.load();
  EXPECT_TRUE(loaded.answers.empty());
  ASSERT_TRUE(loaded.commit);
  ASSERT_EQ(loaded.commit->records.size(), 1U);
  const LedgerRecord& record = loaded.commit->records[0].second;
  EXPECT_EQ(record.level, 90);
  ASSERT_EQ(record.lessees.size(), 1U);
  EXPECT_EQ(record.lessees[0].outstanding, 10);
  EXPECT_TRUE(desk.step(Owner::Committed{loaded.commit->id + 1}).answers.empty())
      << "somebody else's commit";
  const auto stored = desk.step(Owner::Committed{loaded.commit->id});
  ASSERT_EQ(stored.answers.size(), 1U);
  EXPECT_EQ(stored.answers[0].granted, 10);
  EXPECT_EQ(stored.answers[0].epoch, (Epoch{7, "n", 1}));
  EXPECT_TRUE(desk.step(Owner::Committed{loaded.commit->id}).answers.empty()) << "a copy";
}

TEST(B6, ExtensionOfATtlWaitsForItsCommitToo) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  desk.step(Owner::Committed{desk.load().commit->id});
  LeaseRequest report = request_of("a", 2, 0);
  report.held = 10;
  const auto reported = desk.ask(report);
  for (const LeaseAnswer& answer : reported.answers) EXPECT_EQ(answer.ttl_ns, 0);
  ASSERT_TRUE(reported.commit);
  const auto stored = desk.step(Owner::Committed{reported.commit->id});
  ASSERT_EQ(stored.answers.size(), 1U);
  EXPECT_GT(stored.answers[0].ttl_ns, 0);
}

TEST(B7, AnswersGatherWhileACommitIsUnderWayAndOneCarriesThemAll) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  const auto first = desk.load();
  EXPECT_FALSE(desk.ask(request_of("b", 1, 20)).commit) << "one at a time";
  EXPECT_FALSE(desk.ask(request_of("c", 1, 30)).commit);
  const auto stored = desk.step(Owner::Committed{first.commit->id});
  ASSERT_EQ(stored.answers.size(), 1U) << "only what the stored record books";
  EXPECT_EQ(stored.answers[0].lessee.node, "a");
  ASSERT_TRUE(stored.commit);
  EXPECT_EQ(stored.commit->records[0].second.level, 40);
  EXPECT_EQ(desk.step(Owner::Committed{stored.commit->id}).answers.size(), 2U);
}

TEST(B6, FailedCommitResignsAndReleasesNothingEver) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  const auto first = desk.load();
  desk.ask(request_of("b", 1, 20));
  const auto failed = desk.step(Owner::CommitFailed{first.commit->id});
  EXPECT_TRUE(failed.resign);
  EXPECT_TRUE(failed.answers.empty());
  EXPECT_FALSE(failed.commit);
  for (const auto& effects : {desk.step(Owner::Committed{first.commit->id}),
                              desk.ask(request_of("c", 1, 1)), desk.step(Owner::Tick{})}) {
    EXPECT_TRUE(effects.answers.empty());
    EXPECT_FALSE(effects.commit);
    EXPECT_TRUE(effects.loads.empty());
  }
}

TEST(B6, FailureOfAnEarlierCommitIsNoFailureOfThis) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  const auto first = desk.load();
  EXPECT_FALSE(desk.step(Owner::CommitFailed{first.commit->id + 5}).resign);
  EXPECT_EQ(desk.step(Owner::Committed{first.commit->id}).answers.size(), 1U);
}

TEST(B9, BucketIsLoadedOnceAndItsRequestsWait) {
  Desk desk;
  EXPECT_EQ(desk.ask(request_of("a", 1, 10)).loads.size(), 1U);
  const auto second = desk.ask(request_of("b", 1, 10));
  EXPECT_TRUE(second.loads.empty());
  EXPECT_TRUE(second.answers.empty());
  const auto loaded = desk.load();
  ASSERT_TRUE(loaded.commit);
  EXPECT_EQ(loaded.commit->records[0].second.level, 80);
  EXPECT_TRUE(desk.load().answers.empty()) << "a second record is not believed";
  EXPECT_EQ(desk.owner.view(kStart)[0].outstanding, 20);
}

TEST(B10, UnreadableRecordIsNotNew) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  const auto failed =
      desk.step(Owner::Loaded{bucket(), failure(ErrorCode::io, "bucket", "the disk is on fire")});
  ASSERT_EQ(failed.answers.size(), 1U);
  EXPECT_EQ(failed.answers[0].status, LeaseStatus::pending);
  EXPECT_FALSE(failed.commit);
  EXPECT_TRUE(desk.owner.view(kStart).empty());
  EXPECT_EQ(desk.ask(request_of("a", 2, 10)).loads.size(), 1U) << "read anew";
}

TEST(B9, RecordIsAgedNotTakenAsOfNow) {
  Desk desk;
  desk.ask(request_of("a", 1, 100));
  LedgerRecord record;
  record.level = 5;
  record.numbers = kNumbers;
  const auto loaded = desk.step(
      Owner::Loaded{bucket(), std::optional(AgedRecord{{bucket(), {}, record}, 2 * kSecond})});
  EXPECT_FALSE(loaded.commit);
  ASSERT_EQ(loaded.answers.size(), 1U);
  EXPECT_EQ(loaded.answers[0].level, 25);
  EXPECT_EQ(loaded.answers[0].retry_ns, 7500 * kMillisecond);
}

TEST(B11, QuietBucketLeavesOnlyWhenStoredThenTheOwnerIsPassive) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  desk.step(Owner::Committed{desk.load().commit->id});
  LeaseRequest back = request_of("a", 2, 0);
  const auto returned = desk.ask(back);
  ASSERT_TRUE(returned.commit) << "quiet and not stored";
  desk.now_ns += 3 * kSecond;
  const auto early = desk.step(Owner::Tick{});
  EXPECT_FALSE(early.passive);
  EXPECT_EQ(desk.owner.view(desk.now_ns).size(), 1U) << "its commit is under way";
  desk.step(Owner::Committed{returned.commit->id});
  EXPECT_LE(desk.owner.next_deadline(), desk.now_ns + 2 * kSecond);
  desk.now_ns += 2 * kSecond;
  EXPECT_TRUE(desk.step(Owner::Tick{}).passive);
  EXPECT_TRUE(desk.owner.view(desk.now_ns).empty());
}

TEST(Bounds, RequestsThatWaitForARecordAreBounded) {
  Desk desk;
  for (std::size_t i = 0; i < kMaxWaitingForRecord; ++i) {
    EXPECT_TRUE(desk.ask(request_of("n" + std::to_string(i), 1, 1)).answers.empty());
  }
  const auto full = desk.ask(request_of("late", 1, 1));
  ASSERT_EQ(full.answers.size(), 1U);
  EXPECT_EQ(full.answers[0].status, LeaseStatus::pending);
}

TEST(Bounds, NonsenseBucketIsIgnored) {
  Desk desk;
  const auto effects = desk.ask(request_of("a", 1, 1, "\xFF\xFF"));
  EXPECT_TRUE(effects.loads.empty());
  EXPECT_TRUE(effects.answers.empty());
}

TEST(Policy, LimitThatIsGoneGrantsNothingButStillBooks) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  desk.step(Owner::Committed{desk.load().commit->id});
  desk.step(Owner::PolicyChanged{std::make_shared<Book>(std::nullopt, 2)});
  LeaseRequest more = request_of("a", 2, 50);
  more.spent_total = 10;
  const auto effects = desk.ask(more);
  bool refused = false;
  for (const LeaseAnswer& answer : effects.answers) {
    refused = refused || answer.status == LeaseStatus::no_limit;
    EXPECT_EQ(answer.granted, 0);
  }
  EXPECT_TRUE(refused);
  EXPECT_EQ(desk.owner.view(kStart)[0].outstanding, 0);
}

TEST(D8, LoweredLimitAppliesToLiveBucketsAtOnce) {
  Desk desk;
  desk.ask(request_of("a", 1, 10));
  desk.step(Owner::Committed{desk.load().commit->id});
  desk.step(Owner::PolicyChanged{std::make_shared<Book>(LimitNumbers{20, 10, kSecond}, 2)});
  const auto view = desk.owner.view(kStart);
  ASSERT_EQ(view.size(), 1U);
  EXPECT_EQ(view[0].capacity, 20);
  EXPECT_EQ(view[0].level, 10);
  EXPECT_EQ(view[0].outstanding, 10);
}

/// A record that was committed under another version of the policy.
Owner::Loaded stored_under(std::uint64_t version, const LimitNumbers& numbers, std::int64_t level) {
  AgedRecord aged;
  aged.record.bucket = bucket();
  aged.record.ledger.level = level;
  aged.record.ledger.numbers = numbers;
  aged.record.ledger.policy_version = version;
  return {bucket(), std::optional<AgedRecord>(aged)};
}

constexpr LimitNumbers kSlow{10, 1, kMinute};

TEST(D8, AnOwnerWithAnOlderPolicyThanTheRecordGrantsNothingUntilItHasIt) {
  Desk desk;
  desk.ask(request_of("a", 1, 5));
  auto did = desk.step(stored_under(6, kSlow, 8));
  ASSERT_EQ(did.answers.size(), 1U);
  EXPECT_EQ(did.answers[0].status, LeaseStatus::pending);
  EXPECT_FALSE(did.commit);
  // Ten seconds of the old numbers would be a hundred tokens.
  desk.now_ns += 10 * kSecond;
  did = desk.ask(request_of("a", 2, 9));
  ASSERT_FALSE(did.commit && !did.commit->records.empty() &&
               did.commit->records[0].second.level > 8);
  EXPECT_EQ(desk.owner.view(desk.now_ns).at(0).capacity, kSlow.capacity);
  did = desk.step(Owner::PolicyChanged{std::make_shared<Book>(LimitNumbers{10, 2, kMinute}, 5)});
  EXPECT_FALSE(did.commit) << "not that one either";
  did = desk.step(Owner::PolicyChanged{std::make_shared<Book>(kSlow, 6)});
  // Eight and what ten seconds brought at one a minute: the need of nine does not fit.
  for (const LeaseAnswer& answer : did.answers) EXPECT_EQ(answer.granted, 0);
  did = desk.ask(request_of("a", 3, 8));
  ASSERT_TRUE(did.commit);
  EXPECT_EQ(did.commit->records[0].second.policy_version, 6U);
  EXPECT_EQ(desk.step(Owner::Committed{did.commit->id}).answers.at(0).granted, 8);
}

TEST(D8, ARequestThatNamesAHigherPolicyWaitsForIt) {
  Desk desk;
  LeaseRequest request = request_of("a", 1, 5);
  request.policy_version = 2;
  desk.ask(request);
  auto did = desk.load();
  ASSERT_EQ(did.answers.size(), 1U);
  EXPECT_EQ(did.answers[0].status, LeaseStatus::pending) << "new under the old numbers";
  // One who waits already gets nothing any more either.
  desk.ask(request_of("b", 1, 50));
  did = desk.load();
  ASSERT_TRUE(did.commit);
  desk.step(Owner::Committed{did.commit->id});
  LeaseRequest spent = request_of("b", 2, 0);
  spent.spent_total = 50;
  did = desk.ask(spent);
  ASSERT_TRUE(did.commit) << "nothing is out any more";
  desk.step(Owner::Committed{did.commit->id});
  desk.ask(request_of("c", 1, 60));
  request.sequence = 2;
  did = desk.ask(request);
  ASSERT_EQ(did.answers.size(), 1U);
  EXPECT_EQ(did.answers[0].status, LeaseStatus::pending);
  desk.now_ns += kSecond;
  did = desk.step(Owner::Tick{});
  EXPECT_FALSE(did.commit) << "c's need has flowed in by the old numbers";
  for (const LeaseAnswer& answer : did.answers) EXPECT_EQ(answer.status, LeaseStatus::pending);
  did = desk.step(Owner::PolicyChanged{std::make_shared<Book>(LimitNumbers{200, 10, kSecond}, 2)});
  ASSERT_TRUE(did.commit);
  const auto granted = desk.step(Owner::Committed{did.commit->id}).answers;
  ASSERT_FALSE(granted.empty());
  EXPECT_GT(granted[0].granted, 0);
  EXPECT_EQ(granted[0].policy_version, 2U);
}

TEST(D8, ALimitThatOnlyAHigherPolicyKnowsIsNotDenied) {
  Desk desk(std::nullopt);
  LeaseRequest request = request_of("a", 1, 5);
  request.policy_version = 2;
  desk.ask(request);
  const auto did = desk.load();
  ASSERT_EQ(did.answers.size(), 1U);
  EXPECT_EQ(did.answers[0].status, LeaseStatus::pending);
}

}  // namespace
}  // namespace weir::ownership
