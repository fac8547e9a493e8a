// Goal: the ledger gives out what is free fairly, early enough and without polling (PROTOCOL E6,
// G2, G3, G4).
// Method: exact instants and amounts on one ledger, its own deadlines deciding when it ticks; each
// schedule that starved somebody is a test.
#include <gtest/gtest.h>

#include <algorithm>

#include "test/unit/lease_ledger_support.h"

namespace weir::lease::test {
namespace {

/// Everything is spent: level 0, nothing out.
Ledger drained(const LimitNumbers& numbers) {
  Ledger ledger = full_ledger(numbers);
  ledger.request(request_of("first", 1, {.want = numbers.capacity}), kStart);
  ledger.request(request_of("first", 2, {.spent = numbers.capacity}), kStart);
  EXPECT_EQ(ledger.level(), 0);
  return ledger;
}

TEST(B6, GrantsAndExtensionsWaitForTheCommitRefusalsDoNot) {
  Ledger ledger = full_ledger();
  const auto grant = ledger.request(request_of("a", 1, {.want = 100}), kStart);
  EXPECT_TRUE(grant.now.empty());
  ASSERT_EQ(grant.after_commit.size(), 1U);
  const auto empty = ledger.request(request_of("b", 1, {.want = 1, .need = 1}), kStart);
  ASSERT_FALSE(empty.now.empty());
  EXPECT_EQ(answer_to(empty, "b").ttl_ns, 0);
  const auto report = ledger.request(request_of("a", 2, {.held = 90, .spent = 10}), kStart);
  for (const LeaseAnswer& answer : report.now) EXPECT_EQ(answer.ttl_ns, 0);
  ASSERT_FALSE(report.after_commit.empty()) << "it extends a TTL";
  // What parks while it holds something keeps it alive, but only by a commit.
  const auto parked =
      ledger.request(request_of("a", 3, {.want = 50, .held = 90, .spent = 10}), kStart);
  for (const LeaseAnswer& answer : parked.now) EXPECT_EQ(answer.ttl_ns, 0);
}

TEST(G2, TaperGivesHalfOfTheShareButAtLeastTheNeedAndOne) {
  Ledger ledger = full_ledger();
  EXPECT_EQ(
      answer_to(ledger.request(request_of("a", 1, {.want = 1000, .strict = false}), kStart), "a")
          .granted,
      50);
  Ledger needy = full_ledger();
  EXPECT_EQ(
      answer_to(
          needy.request(request_of("a", 1, {.want = 80, .need = 80, .strict = false}), kStart), "a")
          .granted,
      80);
  Ledger small = full_ledger({1, 10, kSecond});
  EXPECT_EQ(answer_to(small.request(request_of("a", 1, {.want = 9, .strict = false}), kStart), "a")
                .granted,
            1);
}

TEST(G2, OverstatingTakesNothingFromWhoIsBelowTheFairShare) {
  Ledger ledger = full_ledger();
  ledger.request(request_of("greedy", 1, {.want = 1'000'000, .strict = false}), kStart);
  const auto modest =
      ledger.request(request_of("modest", 1, {.want = 10, .strict = false}), kStart);
  EXPECT_GE(answer_to(modest, "modest").granted, 5);
}

TEST(E8, StrictIsGrantedExactlyItsCost) {
  Ledger ledger = full_ledger();
  EXPECT_EQ(
      answer_to(ledger.request(request_of("a", 1, {.want = 3, .need = 3}), kStart), "a").granted,
      3);
  EXPECT_EQ(ledger.outstanding(), 3);
}

TEST(G3, EmptyIsAnsweredAtOnceWithTheExactRetryAndTheGrantIsPushedThen) {
  Ledger ledger = drained({100, 10, kSecond});
  const Nanos asked_ns = kStart + 30 * kMillisecond;
  const auto empty =
      ledger.request(request_of("a", 1, {.want = 5, .need = 5, .strict = false}), asked_ns);
  EXPECT_EQ(answer_to(empty, "a").status, LeaseStatus::empty);
  EXPECT_EQ(answer_to(empty, "a").retry_ns, 470 * kMillisecond);
  EXPECT_EQ(ledger.next_deadline(), kStart + 500 * kMillisecond);
  EXPECT_TRUE(ledger.tick(kStart + 500 * kMillisecond - 1).after_commit.empty());
  const auto pushed = ledger.tick(kStart + 500 * kMillisecond);
  ASSERT_EQ(pushed.after_commit.size(), 1U);
  EXPECT_EQ(pushed.after_commit[0].granted, 5);
  EXPECT_EQ(pushed.after_commit[0].sequence, 1U) << "under the same sequence (E2)";
}

TEST(G3, OldParkedRequestIsBiddenToAskAgainAndItsTokensWaitForIt) {
  Ledger ledger = drained({10, 1, 4 * kSecond});
  ledger.request(request_of("a", 1, {.want = 1, .need = 1}), kStart);
  ledger.tick(kStart + kSecond);
  const auto outcome = run_until(ledger, kStart + 4 * kSecond);
  std::size_t bidden = 0;
  for (const LeaseAnswer& answer : outcome.now)
    bidden += answer.status == LeaseStatus::ask_again ? 1U : 0U;
  EXPECT_EQ(bidden, 1U);
  EXPECT_TRUE(outcome.after_commit.empty());
  const Nanos now_ns = kStart + 4 * kSecond + 100 * kMillisecond;
  ledger.request(request_of("b", 1, {.want = 1, .need = 1}), now_ns);
  EXPECT_EQ(ledger.level(), 1) << "kept for the one that was bidden";
  EXPECT_EQ(
      answer_to(ledger.request(request_of("a", 2, {.want = 1, .need = 1}), now_ns), "a").granted,
      1);
}

TEST(G3, TokensOfOneThatDoesNotAskAgainGoToTheOthers) {
  Ledger ledger = drained({10, 1, 4 * kSecond});
  ledger.request(request_of("gone", 1, {.want = 1, .need = 1}), kStart);
  run_until(ledger, kStart + 4 * kSecond);
  ledger.request(request_of("b", 1, {.want = 1, .need = 1}), kStart + 4 * kSecond);
  const auto outcome = run_until(ledger, kStart + 4 * kSecond + kAskAgainNs);
  EXPECT_EQ(answer_to(outcome, "b").granted, 1);
}

TEST(G3, ParkedRequestIsForgottenAfterHalfATtl) {
  Ledger ledger = drained({10, 1, kDay});
  ledger.request(request_of("a", 1, {.want = 1, .need = 1}), kStart);
  run_until(ledger, kStart + kTerms.ttl_ns / 2 - 1);
  EXPECT_FALSE(ledger.quiet());
  run_until(ledger, kStart + kTerms.ttl_ns / 2);
  EXPECT_TRUE(ledger.quiet());
}

TEST(E7, ParkedLesseesHearTheirDenialAgainBeforeItIsASecondOld) {
  Ledger ledger = drained({10, 1, kDay});
  ledger.request(request_of("a", 1, {.want = 1, .need = 1}), kStart);
  const auto outcome = run_until(ledger, kStart + kTerms.ttl_ns / 2 - 1);
  const auto heard = answers_to(outcome, "a");
  EXPECT_EQ(heard.size(), 6U);
  for (const LeaseAnswer& answer : heard) EXPECT_EQ(answer.status, LeaseStatus::empty);
}

TEST(G3, CostAboveTheCapacityIsNeverAndDoesNotPark) {
  Ledger ledger = full_ledger();
  const auto outcome = ledger.request(request_of("a", 1, {.want = 101, .need = 101}), kStart);
  EXPECT_EQ(answer_to(outcome, "a").status, LeaseStatus::empty);
  EXPECT_EQ(answer_to(outcome, "a").retry_ns, -1);
  EXPECT_TRUE(ledger.quiet());
  EXPECT_EQ(ledger.level(), 100);
}

TEST(E6, LimitFiveCostThreeThreeEdgesSaveUpAndAreServedInTurn) {  // 0 of 201
  Ledger ledger = drained({5, 1, kSecond});
  Nanos now_ns = kStart;
  std::map<std::string, int> served;
  std::map<std::string, std::uint64_t> sequence;
  std::map<std::string, std::int64_t> spent;
  for (const char* node : {"a", "b", "c"}) {
    ledger.request(request_of(node, ++sequence[node], {.want = 3, .need = 3}), now_ns);
  }
  for (int i = 0; i < 60 * 20; ++i) {
    now_ns += 50 * kMillisecond;
    const auto outcome = run_until(ledger, now_ns);
    for (const char* node : {"a", "b", "c"}) {
      for (const LeaseAnswer& answer : answers_to(outcome, node)) {
        if (answer.granted == 3) {
          ++served[node];
          spent[node] += 3;
        }
      }
      // Everybody asks again twice a second, as waiting checks do.
      if (i % 10 == 0) {
        const auto asked = ledger.request(
            request_of(node, ++sequence[node], {.want = 3, .need = 3, .spent = spent[node]}),
            now_ns);
        for (const char* other : {"a", "b", "c"}) {
          for (const LeaseAnswer& answer : answers_to(asked, other)) {
            if (answer.granted == 3) {
              ++served[other];
              spent[other] += 3;
            }
          }
        }
      }
    }
  }
  EXPECT_GE(served["a"] + served["b"] + served["c"], 18) << "of 20";
  for (const auto& [node, count] : served) EXPECT_GE(count, 4) << node;
  EXPECT_EQ(served.size(), 3U);
}

TEST(E6, TwoNeedsThatDoNotFitSideBySideDoNotBlockEachOther) {
  Ledger ledger = drained({100, 10, kSecond});
  ledger.request(request_of("a", 1, {.want = 60, .need = 60}), kStart);
  ledger.request(request_of("b", 1, {.want = 55, .need = 55}), kStart);
  Ledger quick("bucket", drained({100, 100, kSecond}).record(kStart), 0, kTerms, kStart);
  quick.request(request_of("a", 1, {.want = 60, .need = 60}), kStart);
  quick.request(request_of("b", 1, {.want = 55, .need = 55}), kStart);
  const auto outcome = run_until(quick, kStart + 2 * kSecond);
  EXPECT_FALSE(outcome.after_commit.empty()) << "one of them at the latest when the bucket is full";
}

TEST(G4, PortionNeverExceedsWhatTheBucketHolds) {  // capacity 3 at 100/s: 0.15 % were used
  Ledger ledger = drained({3, 100, kSecond});
  for (const char* node : {"a", "b", "c"}) {
    LeaseRequest request = request_of(node, 1, {.want = 250, .need = 1, .strict = false});
    request.rate_per_s = 1000;
    ledger.request(request, kStart);
  }
  const auto outcome = run_until(ledger, kStart + 100 * kMillisecond);
  EXPECT_EQ(outcome.after_commit.size(), 3U);
  EXPECT_EQ(ledger.outstanding(), 3);
}

TEST(E6, FreshGrantIsNotRecalledBeforeItsCallerCanComeBack) {
  Ledger ledger = full_ledger({10, 1, kMinute});
  ledger.request(request_of("a", 1, {.want = 10}), kStart);
  ledger.request(request_of("b", 1, {.want = 5, .need = 5}), kStart);
  EXPECT_TRUE(answers_to(run_until(ledger, kStart + kComeBackNs - 1), "a").empty());
  EXPECT_FALSE(answers_to(run_until(ledger, kStart + 2 * kSecond), "a").empty());
}

TEST(E6, IdleHoldersAreRecalledUntilItIsBooked) {
  Ledger ledger = full_ledger({10, 1, kMinute});
  ledger.request(request_of("idle", 1, {.want = 10}), kStart);
  const auto asked =
      ledger.request(request_of("busy", 1, {.want = 5, .need = 5}), kStart + kComeBackNs);
  EXPECT_EQ(answer_to(asked, "idle").status, LeaseStatus::recall);
  const auto later = run_until(ledger, kStart + 3 * kSecond);
  EXPECT_GE(answers_to(later, "idle").size(), 2U);
  const auto returned = ledger.request(request_of("idle", 2, {}), kStart + 3 * kSecond);
  EXPECT_EQ(answer_to(returned, "busy").granted, 5);
  for (const LeaseAnswer& answer : answers_to(run_until(ledger, kStart + 6 * kSecond), "idle")) {
    EXPECT_NE(answer.status, LeaseStatus::recall);
  }
}

TEST(Deadline, NothingParkedAndNothingOutSleepsUntilTheEntryEnds) {
  Ledger ledger = full_ledger();
  EXPECT_EQ(ledger.next_deadline(), kForever);
  ledger.request(request_of("a", 1, {.want = 5}), kStart);
  EXPECT_EQ(ledger.next_deadline(), kStart + kTerms.grantor_ns());
}

TEST(G2, ARelayForThreeEdgesHasThePartOfThree) {
  Ledger ledger = full_ledger({12, 4, kSecond});
  ledger.request(request_of("drain", 1, {.want = 12, .need = 12}), kStart);
  ledger.request(request_of("drain", 2, {.held = 0, .spent = 12}), kStart);
  LeaseRequest edge = request_of("edge", 1, {.want = 12, .need = 12});
  LeaseRequest relay = request_of("relay", 1, {.want = 9, .need = 9});
  relay.hop = LeaseHop::from_relay;
  relay.weight = 3;
  ledger.request(edge, kStart);
  ledger.request(relay, kStart);
  // Four tokens a second, one by one: three of each four are the relay's.
  const auto early = run_until(ledger, kStart + 2900 * kMillisecond);
  for (const LeaseAnswer& said : answers_to(early, "relay")) EXPECT_EQ(said.granted, 0);
  const auto late = run_until(ledger, kStart + 3100 * kMillisecond);
  EXPECT_EQ(answers_to(late, "relay").back().granted, 9);
}

}  // namespace
}  // namespace weir::lease::test
