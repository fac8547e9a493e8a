// Goal: the ledger books what lessees say by PROTOCOL D1 to D8 and never credits a token twice.
// Method: one named test for each rule with the schedule that breaks a ledger without it, on exact
// instants, in the numbers of PROTOCOL.md (100 tokens, 10/s, TTL 10 s); then random histories of
// true and false requests against a count of what was really granted and spent.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "src/base/random.h"
#include "test/unit/lease_ledger_support.h"

namespace weir::lease::test {
namespace {

TEST(D3, UnknownLesseeThatSaysItHeldSomethingHearsUnknownAndCreditsNothing) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("b", 1, {.want = 40}), kStart);
  for (const Ask& ask :
       {Ask{.held = 5}, Ask{.spent = 5}, Ask{.given_back = 5}, Ask{.want = 9, .held = -50'000}}) {
    const auto outcome = ledger.request(request_of("a", 7, ask), kStart);
    EXPECT_EQ(answer_to(outcome, "a").status, LeaseStatus::unknown);
    EXPECT_EQ(answer_to(outcome, "a").sequence, 7U);
    EXPECT_FALSE(outcome.changed);
    EXPECT_TRUE(outcome.after_commit.empty());
  }
  EXPECT_EQ(ledger.level(), 60);
  EXPECT_EQ(ledger.outstanding(), 40);
}

TEST(D1D2, SecondIncarnationIsASecondLesseeAndTheFirstKeepsWhatItHas) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 80}, 1), kStart);
  const auto outcome = ledger.request(request_of("a", 1, {.want = 80, .need = 80}, 2), kStart);
  EXPECT_EQ(ledger.outstanding(), 80) << "the restarted edge got what its old self still spends";
  EXPECT_TRUE(outcome.after_commit.empty());
  EXPECT_EQ(ledger.lessees().size(), 2U);
}

TEST(D4, BookingReturnsWhatIsNeitherHeldNorSpent) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 50}), kStart);
  ledger.request(request_of("a", 2, {.held = 10, .spent = 15}), kStart);
  EXPECT_EQ(ledger.level(), 75);
  EXPECT_EQ(ledger.outstanding(), 10);
  ledger.request(request_of("a", 3, {.held = 0, .spent = 20}), kStart);
  EXPECT_EQ(ledger.level(), 80);
  EXPECT_EQ(ledger.outstanding(), 0);
}

TEST(D4, BreachesAreCountedAnsweredUnknownAndNeverCredit) {
  const Ask breaches[] = {{.held = -1, .spent = 10},
                          {.held = 0, .spent = 9},
                          {.held = 41, .spent = 10},
                          {.held = 0, .spent = 51},
                          {.held = 30, .spent = 21},
                          {.held = INT64_MAX, .spent = INT64_MAX},
                          {.held = 0, .spent = INT64_MIN},
                          {.want = -1, .held = 40, .spent = 10},
                          {.need = -1, .held = 40, .spent = 10}};
  for (const Ask& breach : breaches) {
    Ledger ledger = full_ledger();
    ledger.request(request_of("a", 1, {.want = 50}), kStart);
    ledger.request(request_of("a", 2, {.held = 40, .spent = 10}), kStart);
    ASSERT_EQ(ledger.level(), 50);
    const auto outcome = ledger.request(request_of("a", 3, breach), kStart);
    EXPECT_EQ(answer_to(outcome, "a").status, LeaseStatus::unknown);
    EXPECT_EQ(answer_to(outcome, "a").sequence, 3U);
    EXPECT_EQ(ledger.level(), 50);
    EXPECT_EQ(ledger.outstanding(), 40);
    EXPECT_EQ(ledger.counters().breaches, 1U);
  }
}

TEST(D4, OlderSequenceChangesNothingAndIsNotAnswered) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 50}), kStart);
  ledger.request(request_of("a", 3, {.held = 40, .spent = 10}), kStart);
  const auto outcome = ledger.request(request_of("a", 2, {.want = 50, .held = 50}), kStart);
  EXPECT_TRUE(outcome.now.empty());
  EXPECT_TRUE(outcome.after_commit.empty());
  EXPECT_FALSE(outcome.changed);
  EXPECT_EQ(ledger.level(), 50);
  EXPECT_EQ(ledger.outstanding(), 40);
}

TEST(D4, EqualSequenceGetsTheSameAnswerOnceMoreAfterACommit) {
  Ledger ledger = full_ledger();
  const auto first = ledger.request(request_of("a", 1, {.want = 30}), kStart);
  const auto again = ledger.request(request_of("a", 1, {.want = 30}), kStart + kSecond);
  ASSERT_EQ(again.after_commit.size(), 1U);
  EXPECT_EQ(again.after_commit, first.after_commit);
  EXPECT_TRUE(again.now.empty());
  EXPECT_TRUE(again.changed) << "the copy waits for a commit";
  EXPECT_EQ(ledger.outstanding(), 30);
}

TEST(D4, EqualSequenceAfterATakeOverFollowsFromTheRecordWithoutDoubleCredit) {
  Ledger before = full_ledger();
  before.request(request_of("a", 1, {.want = 30}), kStart);
  const LedgerRecord record = before.record(kStart);
  Ledger after("bucket", record, 2 * kSecond, kTerms, kStart + 50 * kSecond);
  const Nanos now_ns = kStart + 50 * kSecond;
  EXPECT_EQ(after.level(), 70) << "the clamp: 30 are out";
  const auto outcome = after.request(request_of("a", 1, {.want = 30}), now_ns);
  ASSERT_EQ(outcome.after_commit.size(), 1U);
  EXPECT_TRUE(outcome.now.empty()) << "another activation commits first";
  EXPECT_EQ(outcome.after_commit[0].granted, 30);
  EXPECT_EQ(after.outstanding(), 30);
  EXPECT_EQ(after.level(), 70);
  after.request(request_of("a", 2, {.held = 0, .spent = 30}), now_ns);
  EXPECT_EQ(after.outstanding(), 0);
  EXPECT_EQ(after.level(), 70) << "spent once, credited never";
}

TEST(D4, EqualSequenceWithAnotherContentAfterATakeOverIsABreach) {
  Ledger before = full_ledger();
  before.request(request_of("a", 1, {.want = 30}), kStart);
  before.request(request_of("a", 2, {.held = 20, .spent = 10}), kStart);
  for (const Ask& ask :
       {Ask{.held = 20, .spent = 9}, Ask{.held = 21, .spent = 10}, Ask{.held = -5, .spent = 10},
        Ask{.held = 5, .spent = 10, .given_back = 1}}) {
    Ledger after("bucket", before.record(kStart), 0, kTerms, kStart);
    const auto outcome = after.request(request_of("a", 2, ask), kStart);
    EXPECT_EQ(answer_to(outcome, "a").status, LeaseStatus::unknown);
    EXPECT_EQ(after.outstanding(), 20);
    EXPECT_EQ(after.level(), 70);
  }
}

TEST(D5, RefillAndExpiriesAreReplayedInTimeOrder) {  // burning first credits the gap: 200
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 100}), kStart);
  const Nanos expiry_ns = kStart + kTerms.grantor_ns();
  ledger.tick(expiry_ns - 1);
  EXPECT_EQ(ledger.level(), 0) << "until its expiry the clamp counts the lease";
  EXPECT_EQ(ledger.outstanding(), 100);
  ledger.tick(expiry_ns + kSecond);
  EXPECT_EQ(ledger.outstanding(), 0);
  EXPECT_EQ(ledger.level(), 10) << "only what flowed in after the expiry";
}

TEST(D5, SeveralExpiriesInOneGapEachOpenTheirOwnRoom) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 50}), kStart);
  ledger.request(request_of("b", 1, {.want = 50}), kStart + 4 * kSecond);
  // a ends at +grantor, then 50 are free to flow in within 5 s; b ends 4 s after a.
  ledger.tick(kStart + kTerms.grantor_ns() + 4 * kSecond - 1);
  EXPECT_EQ(ledger.level(), 39);
  ledger.tick(kStart + kTerms.grantor_ns() + 20 * kSecond);
  EXPECT_EQ(ledger.level(), 100);
  EXPECT_EQ(ledger.counters().burnt, 100U);
}

TEST(D5, LoweredLimitClampsToZeroAndNeverBelow) {  // level -800
  Ledger ledger = full_ledger({1000, 10, kSecond});
  ledger.request(request_of("a", 1, {.want = 900}), kStart);
  ledger.set_numbers({100, 10, kSecond}, 2, kStart);
  EXPECT_EQ(ledger.level(), 0);
  EXPECT_EQ(ledger.outstanding(), 900);
  ledger.request(request_of("a", 2, {.held = 0, .spent = 0}), kStart);
  EXPECT_EQ(ledger.level(), 100) << "a return fills up to the new capacity only";
}

TEST(D6, ExpiredIsSpentAndALateReportFindsNoEntry) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 60}), kStart);
  const Nanos late_ns = kStart + kTerms.grantor_ns();
  const auto outcome = ledger.request(request_of("a", 2, {.held = 60}), late_ns);
  EXPECT_EQ(answer_to(outcome, "a").status, LeaseStatus::unknown);
  EXPECT_EQ(ledger.counters().burnt, 60U);
  EXPECT_EQ(ledger.outstanding(), 0);
  EXPECT_EQ(ledger.level(), 40) << "at its expiry, after a clamp of 40";
}

TEST(D7, GiveBacksAreBookedOnceWithinTheClamp) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 50}), kStart);
  ledger.request(request_of("a", 2, {.spent = 50, .given_back = 20}), kStart);
  EXPECT_EQ(ledger.level(), 70);
  ledger.request(request_of("a", 2, {.spent = 50, .given_back = 20}), kStart);
  ledger.request(request_of("a", 3, {.spent = 50, .given_back = 20}), kStart);
  EXPECT_EQ(ledger.level(), 70) << "a counter, not an amount";
  ledger.request(request_of("a", 4, {.spent = 50, .given_back = INT64_MAX}), kStart);
  EXPECT_EQ(ledger.level(), 100);
  const auto less = ledger.request(request_of("a", 5, {.spent = 50, .given_back = 3}), kStart);
  EXPECT_EQ(answer_to(less, "a").status, LeaseStatus::unknown) << "it never shrinks";
}

TEST(D8, LoweredLimitExtendsNoTtlGrantsNothingAndRecalls) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 90}), kStart);
  ledger.set_numbers({50, 10, kSecond}, 2, kStart);
  const Nanos now_ns = kStart + kComeBackNs;
  const auto report = ledger.request(request_of("a", 2, {.held = 80, .spent = 10}), now_ns);
  for (const LeaseAnswer& answer : answers_to(report, "a")) EXPECT_EQ(answer.ttl_ns, 0);
  const auto other = ledger.request(request_of("b", 1, {.want = 1, .need = 1}), now_ns);
  EXPECT_EQ(answer_to(other, "b").status, LeaseStatus::empty);
  bool recalled = false;
  for (const auto* outcome : {&report, &other}) {
    for (const LeaseAnswer& answer : answers_to(*outcome, "a")) {
      recalled = recalled || answer.status == LeaseStatus::recall;
    }
  }
  EXPECT_TRUE(recalled);
  run_until(ledger, kStart + kTerms.grantor_ns());
  EXPECT_LE(ledger.outstanding(), 50) << "the excess is gone within one TTL";
}

TEST(D8, ChangedRateCountsFromTheChangeOn) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 100}), kStart);
  ledger.request(request_of("a", 2, {.spent = 100}), kStart);
  ledger.set_numbers({100, 1, kSecond}, 2, kStart + 2 * kSecond);
  EXPECT_EQ(ledger.level(), 20);
  ledger.tick(kStart + 5 * kSecond);
  EXPECT_EQ(ledger.level(), 23);
}

TEST(D9, AtMostFiftySixEdgesThenCrowdedAndIdleEntriesLeaveFirst) {
  constexpr std::size_t kMostEdges = kMaxLesseesPerRecord - kRelayPlacesPerRecord;
  Ledger ledger = full_ledger({1000, 10, kSecond});
  for (std::size_t i = 0; i < kMostEdges; ++i) {
    ledger.request(request_of("n" + std::to_string(i), 1, {.want = 1}), kStart);
  }
  const auto crowded = ledger.request(request_of("late", 1, {.want = 1}), kStart);
  EXPECT_EQ(answer_to(crowded, "late").status, LeaseStatus::crowded);
  EXPECT_EQ(ledger.record(kStart).lessees.size(), kMostEdges);
  ledger.request(request_of("n5", 2, {.spent = 1}), kStart);
  const auto served = ledger.request(request_of("late", 1, {.want = 1}), kStart);
  EXPECT_EQ(answer_to(served, "late").granted, 1);
}

TEST(B9, RestoredRecordIsCreditedAndAgedByItsAge) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 50}), kStart);
  ledger.request(request_of("a", 2, {.held = 20, .spent = 30}), kStart);
  const LedgerRecord record = ledger.record(kStart);
  EXPECT_EQ(record.level, 50);
  Ledger young("bucket", record, 2 * kSecond, kTerms, kSecond);
  EXPECT_EQ(young.level(), 70);
  EXPECT_EQ(young.outstanding(), 20);
  Ledger old("bucket", record, kTerms.grantor_ns(), kTerms, kSecond);
  EXPECT_EQ(old.outstanding(), 0);
  EXPECT_EQ(old.level(), 80) << "at the expiry; the clamp counted it until then";
  Ledger unaged("bucket", record, -5, kTerms, kSecond);
  EXPECT_EQ(unaged.level(), 50) << "an age is never negative";
}

TEST(Record, PartsOfATokenSurviveARecord) {
  Ledger ledger = full_ledger({10, 1, 5 * kSecond});
  ledger.request(request_of("a", 1, {.want = 10}), kStart);
  ledger.request(request_of("a", 2, {.spent = 10}), kStart);
  Nanos now_ns = kStart;
  for (int i = 0; i < 50; ++i) {
    now_ns += 99 * kMillisecond;
    ledger = Ledger("bucket", ledger.record(now_ns), 0, kTerms, now_ns);
  }
  EXPECT_EQ(ledger.level(), 0) << "4.95 s";
  ledger.tick(kStart + 5 * kSecond);
  EXPECT_EQ(ledger.level(), 1);
}

TEST(E3, ExpiryNeverMovesEarlierAndTheGrantorWaitsLonger) {
  EXPECT_EQ(kTerms.lessee_ns(), 9 * kSecond);
  EXPECT_GT(kTerms.grantor_ns(), 11'111'111'111 + kGuardNs - kMicrosecond);
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 10}), kStart);
  const Nanos expiry_ns = ledger.lessees().front().expires_ns;
  ledger.request(request_of("a", 2, {.held = 10}), kStart - kSecond);
  EXPECT_GE(ledger.lessees().front().expires_ns, expiry_ns);
}

/// True and false requests in any order: what the ledger calls free and out never exceeds what an
/// exact count of true spending leaves.
TEST(Random, FreePlusOutNeverExceedsTheCapacityLessWhatWasSpent) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const LimitNumbers numbers{random.between(1, 200), 0, kSecond};  // no refill: an exact sum
    Ledger ledger = full_ledger(numbers);
    struct Lessee {
      std::uint64_t sequence = 0;
      std::int64_t held = 0, spent = 0;
      LeaseRequest last;
    };
    std::map<std::string, Lessee> lessees;
    std::int64_t spent = 0;
    for (int i = 0; i < 200; ++i) {
      const std::string node(1, static_cast<char>('a' + random.below(4)));
      Lessee& lessee = lessees[node];
      const std::int64_t used = random.between(0, lessee.held);
      lessee.held -= used;
      lessee.spent += used;
      spent += used;
      const bool stale = random.chance(200) && lessee.sequence > 1;
      if (stale) {
        ledger.request(lessee.last, kStart);
        continue;
      }
      Ask ask{.want = random.between(0, 50), .held = lessee.held, .spent = lessee.spent};
      ask.strict = random.chance(500);
      const LeaseRequest request = request_of(node, ++lessee.sequence, ask);
      const auto outcome = ledger.request(request, kStart);
      lessee.last = request;
      for (const auto* answers : {&outcome.now, &outcome.after_commit}) {
        for (const LeaseAnswer& answer : *answers) {
          Lessee& to = lessees[answer.lessee.node];
          if (answer.status == LeaseStatus::granted && answer.sequence == to.sequence) {
            to.held += answer.granted;
          }
        }
      }
      std::int64_t held = 0;
      for (const auto& [name, one] : lessees) held += one.held;
      ASSERT_EQ(ledger.level() + held + spent, numbers.capacity);
      ASSERT_GE(ledger.outstanding(), held);
      ASSERT_LE(ledger.level() + ledger.outstanding(), numbers.capacity);
    }
    ASSERT_EQ(ledger.counters().breaches, 0U);
  }
}

TEST(D9, EightPlacesAreKeptForRelays) {
  Ledger ledger = full_ledger({1000, 1, kSecond});
  const auto ask = [&](const std::string& node, LeaseHop hop) {
    LeaseRequest request = request_of(node, 1, {.want = 1, .need = 1});
    request.hop = hop;
    return answer_to(ledger.request(request, kStart), node);
  };
  for (int i = 0; i < 56; ++i) {
    EXPECT_EQ(ask("edge " + std::to_string(i), LeaseHop::direct).status, LeaseStatus::granted);
  }
  EXPECT_EQ(ask("edge 56", LeaseHop::direct).status, LeaseStatus::crowded);
  for (int i = 0; i < 8; ++i) {
    const LeaseAnswer granted = ask("relay " + std::to_string(i), LeaseHop::from_relay);
    EXPECT_EQ(granted.status, LeaseStatus::granted);
    EXPECT_EQ(granted.hop, LeaseHop::from_relay);
  }
  EXPECT_EQ(ask("relay 8", LeaseHop::from_relay).status, LeaseStatus::crowded);
  // Who is a relay is in the record: the next owner keeps the places, too.
  Ledger next("bucket", ledger.record(kStart), 0, kTerms, kStart);
  LeaseRequest gone = request_of("edge 0", 2, {.held = 0, .spent = 1});
  next.request(gone, kStart);
  EXPECT_EQ(
      answer_to(next.request(request_of("edge 57", 1, {.want = 1, .need = 1}), kStart), "edge 57")
          .status,
      LeaseStatus::granted);
  EXPECT_EQ(
      answer_to(next.request(request_of("edge 58", 1, {.want = 1, .need = 1}), kStart), "edge 58")
          .status,
      LeaseStatus::crowded);
}

TEST(F3, CountersBegunWithARelayAreUnknownToTheOwner) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("a", 1, {.want = 5, .need = 5}), kStart);
  LeaseRequest report = request_of("a", 2, {.given_back = 3});
  report.grantor = 99;
  EXPECT_EQ(answer_to(ledger.request(report, kStart), "a").status, LeaseStatus::unknown);
  EXPECT_EQ(ledger.level(), 95);
}

}  // namespace
}  // namespace weir::lease::test
