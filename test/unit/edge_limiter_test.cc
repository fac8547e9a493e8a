// Goal: an edge decides all limits or none out of what it holds, never after a lease's end, and
// asks its owner no more than PROTOCOL E and I allow.
// Method: one named test for each rule; the test plays the owner (edge_support.h), or a real one
// answers on a virtual clock (lease_cluster.h).
#include <gtest/gtest.h>

#include "test/unit/edge_support.h"

namespace weir::test {
namespace {

std::vector<LimitDefinition> one(std::int64_t capacity = 1000) {
  return {leased_limit("api", capacity, 1000, kSecond)};
}

ClusterOptions one_edge(std::vector<LimitDefinition> limits) {
  ClusterOptions options;
  options.limits = std::move(limits);
  return options;
}

TEST(E2, OnlyTheLatestSequenceCountsAndOnlyOnce) {
  LoneEdge edge(one());
  edge.check(check_of("acme"));
  const LeaseRequest first = edge.request();
  edge.pass(49 * kMillisecond);
  EXPECT_TRUE(edge.collect().empty()) << "E1: not before 50 ms";
  edge.check(check_of("acme"));
  edge.pass(kMillisecond);
  const LeaseRequest second = edge.request();
  EXPECT_EQ(second.sequence, first.sequence + 1);
  edge.grant(first, 100);
  EXPECT_EQ(edge.held(), 0) << "an older sequence";
  edge.grant(second, 100);
  EXPECT_EQ(edge.held(), 99);
  edge.grant(second, 100);
  EXPECT_EQ(edge.held(), 99) << "a copy";
}

TEST(E1, WhatWasAskedOfANodeThatIsGoneGoesOutAgainAtOnce) {
  LoneEdge edge(one());
  edge.check(check_of("acme"));
  const LeaseRequest first = edge.request();
  const Slot slot = slot_of("acme");
  edge.limiter().grantors_gone({{RegisterId::Kind::region, "eu", slot}});
  EXPECT_TRUE(edge.collect().empty()) << "another register's";
  edge.limiter().grantors_gone({{RegisterId::Kind::global, "", slot}});
  EXPECT_EQ(edge.request().sequence, first.sequence + 1);
}

TEST(E2, ParkedThenGrantedUnderTheSameSequenceCountsOnce) {
  LoneEdge edge(one());
  edge.check(check_of("acme"));
  const LeaseRequest request = edge.request();
  edge.empty(request, 300 * kMillisecond);
  ASSERT_TRUE(edge.last);
  EXPECT_FALSE(edge.last->allowed);
  EXPECT_EQ(edge.last->source, Source::owner);
  EXPECT_EQ(edge.last->retry_after_ms, 300);
  edge.grant(request, 5);
  edge.grant(request, 5);
  EXPECT_EQ(edge.held(), 5);
}

TEST(E3, DeadlineCountsFromTheFirstSendNotFromTheAnswer) {
  LoneEdge edge(one());
  edge.check(check_of("acme"));
  const LeaseRequest request = edge.request();
  edge.pass(40 * kMillisecond);
  edge.grant(request, 100);
  const Nanos end_ns = edge.clock.now_ns - 40 * kMillisecond + 4500 * kMillisecond;
  edge.clock.now_ns = end_ns - 1;
  edge.check(check_of("acme"));
  ASSERT_TRUE(edge.last);
  EXPECT_TRUE(edge.last->allowed);
  edge.clock.now_ns = end_ns;
  edge.check(check_of("acme"));
  EXPECT_FALSE(edge.last) << "the lease is over";
  EXPECT_EQ(edge.held(), 0);
}

TEST(E4, ClockIsReadAfterTheDecrementAndTheTokenPutBack) {
  LoneEdge edge(one());
  edge.hold(check_of("acme"), 100);
  // The first reading is before the lease's end, the second after it: between them the node slept.
  edge.clock.now_ns += 4499 * kMillisecond;
  edge.clock.step_ns = 10 * kMillisecond;
  edge.check(check_of("acme"));
  EXPECT_FALSE(edge.last) << "admitted after the deadline";
  edge.clock.step_ns = 0;
  EXPECT_EQ(edge.limiter().waiting_count(), 1U);
}

TEST(E5, DenialOfOneLimitLeavesAllTwentyUntouched) {
  std::vector<LimitDefinition> limits;
  for (int i = 0; i < 20; ++i) {
    limits.push_back(leased_limit("l" + std::to_string(i), i == 13 ? 1 : 1000, 1, kDay));
    limits.back().scope = i % 3 == 0 ? Scope::node : Scope::global;
  }
  Cluster cluster(one_edge(limits));
  ASSERT_TRUE(cluster.ask(0, check_of("acme")).allowed);
  cluster.run_for(kSecond);
  const auto before = cluster.limiter(0).usage("acme");
  ASSERT_EQ(before.size(), 20U);
  for (int i = 0; i < 5; ++i) {
    const Decision denied = cluster.ask(0, check_of("acme"));
    EXPECT_FALSE(denied.allowed);
    EXPECT_EQ(denied.name, "l13");
    EXPECT_EQ(denied.limits.size(), 20U);
    cluster.run_for(100 * kMillisecond);
  }
  std::map<std::string, std::int64_t> used;
  for (const auto& usage : before) used[usage.name] = usage.used;
  for (const auto& usage : cluster.limiter(0).usage("acme")) {
    EXPECT_EQ(usage.used, used[usage.name]) << usage.name;
    EXPECT_EQ(usage.used, 1) << usage.name;
  }
}

TEST(E5, CheckWaitingForOneLimitHoldsNoTokenOfAnother) {
  LoneEdge edge({leased_limit("a", 100, 1, kSecond), leased_limit("b", 100, 1, kSecond)});
  edge.check(check_of("acme"));
  auto asked = edge.collect();
  ASSERT_EQ(asked.size(), 2U);
  edge.grant(asked[0], 10);
  EXPECT_FALSE(edge.last);
  EXPECT_EQ(edge.held(), 10) << "nothing taken before all suffice";
  edge.grant(asked[1], 10);
  ASSERT_TRUE(edge.last);
  EXPECT_TRUE(edge.last->allowed);
  EXPECT_EQ(edge.held(), 18);
}

TEST(E7, DenialLastsAtMostASecondAndDiesWithThePolicy) {
  LoneEdge edge(one());
  edge.check(check_of("acme"));
  const LeaseRequest request = edge.request();
  edge.empty(request, kHour);
  edge.pass(999 * kMillisecond);
  edge.check(check_of("acme"));
  ASSERT_TRUE(edge.last);
  EXPECT_FALSE(edge.last->allowed);
  edge.pass(2 * kMillisecond);
  edge.check(check_of("acme"));
  EXPECT_FALSE(edge.last) << "older than a second";

  LoneEdge other(one());
  other.check(check_of("acme"));
  other.empty(other.request(), kHour);
  other.pass(60 * kMillisecond);
  other.limiter().set_policy(policy_of(one(), 2));
  other.check(check_of("acme"));
  EXPECT_FALSE(other.last) << "another policy";
  EXPECT_EQ(other.collect().size(), 1U) << "and the owner is asked anew";
}

TEST(E8, StrictHoldsNoLeaseAndReturnsWhatComesTooLate) {
  auto limits = one();
  limits[0].strict = true;
  LoneEdge edge(limits);
  edge.check(check_of("acme", 3));
  const LeaseRequest request = edge.request();
  EXPECT_TRUE(request.strict);
  EXPECT_EQ(request.want, 3);
  edge.pass(51 * kMillisecond);
  edge.collect();
  ASSERT_TRUE(edge.last);
  EXPECT_EQ(edge.last->source, Source::timeout);
  LoneEdge late(limits);
  late.check(check_of("acme", 3));
  const LeaseRequest asked = late.request();
  late.grant(asked, 4);
  ASSERT_TRUE(late.last && late.last->allowed);
  EXPECT_EQ(late.last->source, Source::owner);
  const LeaseRequest returned = late.request();
  EXPECT_EQ(returned.held, 0);
  EXPECT_EQ(returned.spent_total, 3);
  EXPECT_EQ(returned.want, 0);
}

TEST(E9, IdleKeyReturnsWhatItHoldsAndLeaves) {
  LoneEdge edge(one());
  edge.hold(check_of("acme"), 100);
  LeaseRequest returned;
  for (int i = 0; i < 40 && returned.sequence == 0; ++i) {
    edge.pass(100 * kMillisecond);
    for (const LeaseRequest& request : edge.collect()) {
      if (request.want == 0 && request.held == 0) {
        returned = request;
      } else {
        edge.grant(request, 0);
      }
    }
  }
  ASSERT_NE(returned.sequence, 0U);
  EXPECT_EQ(returned.spent_total, 1);
  edge.grant(returned, 0);
  edge.collect();
  EXPECT_EQ(edge.limiter().bucket_count(), 0U);
}

TEST(E9, ShutdownReturnsEverything) {
  Cluster cluster(one_edge(one()));
  for (int i = 0; i < 50; ++i) {
    cluster.check(0, check_of("customer " + std::to_string(i)));
    cluster.check(0, check_of("acme"));
    cluster.run_for(20 * kMillisecond);
  }
  EXPECT_FALSE(cluster.limiter(0).all_returned());
  cluster.limiter(0).begin_return();
  cluster.run_for(20 * kMillisecond);
  EXPECT_TRUE(cluster.limiter(0).all_returned());
  for (const auto& view : cluster.owner().view(cluster.now_ns())) EXPECT_EQ(view.outstanding, 0);
}

TEST(I1, CheckWaitsAtMostTheWaitOrTwoRoundTrips) {
  LoneEdge edge(one());
  edge.check(check_of("acme"));
  edge.request();
  edge.pass(50 * kMillisecond - 1);
  edge.collect();
  EXPECT_FALSE(edge.last);
  EXPECT_LE(edge.next_ns, edge.clock.now_ns + 1);
  edge.pass(1);
  edge.collect();
  ASSERT_TRUE(edge.last);
  EXPECT_FALSE(edge.last->allowed);
  EXPECT_EQ(edge.last->source, Source::timeout);

  LoneEdge far(one());
  far.limiter().set_round_trip(register_of(Scope::global, "", "acme"), 80 * kMillisecond);
  far.check(check_of("acme"));
  far.request();
  far.pass(159 * kMillisecond);
  far.collect();
  EXPECT_FALSE(far.last) << "a leisurely owner is no silent one";
  far.pass(kMillisecond);
  far.collect();
  EXPECT_TRUE(far.last);
}

TEST(Remaining, CountsDownExactlyForOneEdgeAndRetryIsExact) {
  Cluster cluster(one_edge({leased_limit("api", 10, 1, 5 * kSecond)}));
  const Nanos start_ns = cluster.now_ns();
  for (std::int64_t left = 9; left >= 0; --left) {
    const Decision decision = cluster.ask(0, check_of("acme"));
    ASSERT_TRUE(decision.allowed);
    EXPECT_EQ(decision.remaining, left);
    EXPECT_EQ(decision.limit, 10);
  }
  const Decision denied = cluster.ask(0, check_of("acme"));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.remaining, 0);
  EXPECT_GT(denied.retry_after_ms, 4900);
  const Nanos told_ns = cluster.now_ns() + denied.retry_after_ms * kMillisecond;
  EXPECT_LE(told_ns, start_ns + 5100 * kMillisecond);
  cluster.run_until(told_ns - 100 * kMillisecond);
  EXPECT_FALSE(cluster.ask(0, check_of("acme")).allowed) << "not before";
  cluster.run_until(told_ns);
  EXPECT_TRUE(cluster.ask(0, check_of("acme")).allowed) << "and then";
}

TEST(NodeScope, ComesFirstAndAsksNoOwnerWhenItRefuses) {
  auto limits = one();
  limits.push_back(leased_limit("node", 1, 1, kDay));
  limits[1].scope = Scope::node;
  LoneEdge edge(limits);
  edge.hold(check_of("acme"), 100);
  EXPECT_EQ(edge.last->limits[0].name, "node");
  edge.check(check_of("acme"));
  ASSERT_TRUE(edge.last);
  EXPECT_FALSE(edge.last->allowed);
  EXPECT_EQ(edge.last->source, Source::node);
  EXPECT_EQ(edge.held(), 99);
}

TEST(Cost, ZeroLooksWithoutTakingAndNeverDenies) {
  LoneEdge edge(one());
  edge.check(check_of("acme", 0));
  const LeaseRequest look = edge.request();
  EXPECT_EQ(look.want, 0);
  edge.grant(look, 0);
  ASSERT_TRUE(edge.last);
  EXPECT_TRUE(edge.last->allowed);
  EXPECT_EQ(edge.held(), 0);
}

TEST(Cost, NegativeIsToldToTheOwnerAndSpendableOnlyThen) {
  Cluster cluster(one_edge({leased_limit("api", 10, 1, kDay)}));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(cluster.ask(0, check_of("acme")).allowed);
  ASSERT_FALSE(cluster.ask(0, check_of("acme")).allowed);
  EXPECT_TRUE(cluster.ask(0, check_of("acme", -4)).allowed);
  cluster.run_for(2 * kSecond);
  int admitted = 0;
  for (int i = 0; i < 10; ++i) admitted += cluster.ask(0, check_of("acme")).allowed ? 1 : 0;
  EXPECT_EQ(admitted, 4);
}

TEST(Cost, AboveTheCapacityIsNeverAndWaitsForNobody) {
  LoneEdge edge(one(10));
  edge.check(check_of("acme", 11));
  ASSERT_TRUE(edge.last);
  EXPECT_FALSE(edge.last->allowed);
  EXPECT_EQ(edge.last->retry_after_ms, -1);
}

TEST(Shadow, TakesWhatIsThereNeverWaitsNeverDeniesAndCounts) {
  auto limits = one();
  limits.push_back(leased_limit("trial", 2, 1, kDay));
  limits[1].shadow = true;
  Cluster cluster(one_edge(limits));
  for (int i = 0; i < 10; ++i) {
    const Decision decision = cluster.ask(0, check_of("acme"));
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.name, "api");
    cluster.run_for(50 * kMillisecond);
  }
  std::uint64_t shadow_denied = 0;
  for (const auto& gauges : cluster.limiter(0).gauges()) shadow_denied += gauges.shadow_denied;
  EXPECT_GE(shadow_denied, 5U);
}

TEST(Policy, BlockedAndUnlimitedAskNobody) {
  PolicyDefinition definition;
  definition.version = 1;
  definition.limits = one();
  definition.customers["mallory"].limits["api"].kind = LimitOverride::Kind::blocked;
  definition.customers["root"].limits["api"].kind = LimitOverride::Kind::unlimited;
  LoneEdge edge({});
  edge.limiter().set_policy(std::make_shared<policy::Policy>(definition));
  edge.check(check_of("mallory"));
  ASSERT_TRUE(edge.last);
  EXPECT_FALSE(edge.last->allowed);
  EXPECT_EQ(edge.last->retry_after_ms, -1);
  EXPECT_EQ(edge.last->source, Source::policy);
  edge.check(check_of("root"));
  ASSERT_TRUE(edge.last);
  EXPECT_TRUE(edge.last->allowed);
  EXPECT_TRUE(edge.last->limits.empty());
  EXPECT_TRUE(edge.collect().empty());
}

TEST(Policy, TooManyLimitsAreRefusedNotTruncated) {
  std::vector<LimitDefinition> limits;
  for (std::size_t i = 0; i <= kMaxLimitsPerCheck; ++i) {
    limits.push_back(leased_limit("l" + std::to_string(i), 1, 1, kSecond));
  }
  LoneEdge edge(limits);
  Decision decision;
  EXPECT_FALSE(edge.limiter().decide(check_of("acme"), decision).has_value());
}

TEST(Wake, IsCalledWithoutALockWhenACheckMakesARequestDue) {
  FakeClock clock;
  edge::Limiter* limiter_at = nullptr;
  std::vector<LeaseRequest> requests;
  // Whoever is woken may come at once: with a stripe still locked this would never end.
  edge::Limiter limiter({}, clock, 1, [&] { limiter_at->collect(requests); });
  limiter_at = &limiter;
  limiter.set_policy(policy_of(one()));
  Decision decision;
  ASSERT_EQ(limiter.decide(check_of("acme"), decision), Result<bool>(false));
  limiter.decide_later(check_of("acme"), [](const Decision&) {});
  EXPECT_EQ(requests.size(), 1U);
  limiter.on_answer(LoneEdge::answer(requests.at(0), LeaseStatus::granted, 1));
  clock.now_ns += kMillisecond;
  limiter.begin_return();
  EXPECT_GE(requests.size(), 2U);
}

TEST(Order, WaitersAreServedFirstComeFirstServed) {
  LoneEdge edge(one());
  std::vector<int> served;
  for (int i = 0; i < 3; ++i) {
    Decision decision;
    const auto decided = edge.limiter().decide(check_of("acme", i == 0 ? 5 : 1), decision);
    ASSERT_TRUE(decided && !*decided);
    edge.limiter().decide_later(check_of("acme", i == 0 ? 5 : 1),
                                [&served, i](const Decision&) { served.push_back(i); });
  }
  const LeaseRequest request = edge.request();
  EXPECT_EQ(request.need, 5);
  EXPECT_EQ(request.want, 7);
  edge.grant(request, 6);
  EXPECT_EQ(served, (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace weir::test
