// Goal: when the owner is silent the failure policy decides, not earlier and not for longer, and
// what it lets through is counted (PROTOCOL I2, I3).
// Method: one edge whose owner never answers, on a clock set by hand.
#include <gtest/gtest.h>

#include "test/unit/edge_support.h"

namespace weir::test {
namespace {

std::vector<LimitDefinition> limit_with(FailurePolicy policy) {
  auto limit = leased_limit("api", 100, 10, kSecond);
  limit.on_unreachable = policy;
  return {limit};
}

/// One check every `every_ns` for `span_ns`, nobody answers; the sources that decided, in order.
std::vector<Source> silent(LoneEdge& edge, Nanos every_ns, Nanos span_ns) {
  std::vector<Source> sources;
  const Nanos end_ns = edge.clock.now_ns + span_ns;
  Nanos check_ns = edge.clock.now_ns;
  while (edge.clock.now_ns < end_ns) {
    if (edge.clock.now_ns >= check_ns) {
      edge.check(check_of("acme"));
      check_ns += every_ns;
    }
    for (int i = 0; i < 60 && !edge.last; ++i) {
      edge.collect();
      if (!edge.last) edge.pass(kMillisecond);
    }
    if (!edge.last) return sources;
    if (sources.empty() || edge.clock.now_ns <= end_ns) sources.push_back(edge.last->source);
    while (edge.clock.now_ns < check_ns && edge.clock.now_ns < end_ns) {
      edge.collect();
      edge.pass(kMillisecond);
    }
  }
  return sources;
}

std::int64_t overshoot(LoneEdge& edge) {
  std::int64_t sum = 0;
  for (const auto& gauges : edge.limiter().gauges()) sum += gauges.overshoot_tokens;
  return sum;
}

TEST(I2, PolicyAppliesAfterHalfASecondOfSilenceNotBefore) {
  for (const auto& [policy, source] : {std::pair{FailurePolicy::allow, Source::allow},
                                       {FailurePolicy::deny, Source::deny},
                                       {FailurePolicy::static_share, Source::static_share}}) {
    LoneEdge edge(limit_with(policy));
    const Nanos start_ns = edge.clock.now_ns;
    Nanos first_ns = 0;
    for (int i = 0; i < 100 && first_ns == 0; ++i) {
      const auto sources = silent(edge, 10 * kMillisecond, 10 * kMillisecond);
      ASSERT_FALSE(sources.empty());
      if (sources.back() == source) {
        first_ns = edge.clock.now_ns;
      } else {
        EXPECT_EQ(sources.back(), Source::timeout);
      }
    }
    EXPECT_GE(first_ns - start_ns, 500 * kMillisecond);
    EXPECT_LE(first_ns - start_ns, 700 * kMillisecond);
    const auto degradations = edge.limiter().take_degradations();
    ASSERT_EQ(degradations.size(), 1U);
    EXPECT_TRUE(degradations[0].degraded);
    EXPECT_EQ(degradations[0].reg, register_of(Scope::global, "", "acme"));
  }
}

TEST(I2, SparseTrafficIsNotDeniedForEverBecauseEachCheckAsksAlone) {
  LoneEdge edge(limit_with(FailurePolicy::allow));
  const auto sources = silent(edge, 700 * kMillisecond, 7 * kSecond);
  ASSERT_GE(sources.size(), 9U);
  EXPECT_EQ(sources.front(), Source::timeout);
  EXPECT_EQ(sources.back(), Source::allow);
  EXPECT_LE(std::count(sources.begin(), sources.end(), Source::timeout), 2);
}

TEST(I2, OneLostRequestLongAgoIsNoSilence) {
  LoneEdge edge(limit_with(FailurePolicy::allow));
  edge.check(check_of("acme"));
  edge.request();
  edge.pass(60 * kMillisecond);
  for (const LeaseRequest& probe : edge.collect()) edge.grant(probe, 0);
  edge.pass(kMinute);
  edge.collect();
  edge.check(check_of("acme"));
  EXPECT_FALSE(edge.last) << "ask first";
}

TEST(I2, AnyWordOfAnOwnerCountsButNotMeDoesNot) {
  for (const LeaseStatus status : {LeaseStatus::granted, LeaseStatus::empty, LeaseStatus::unknown,
                                   LeaseStatus::pending, LeaseStatus::not_owner}) {
    LoneEdge edge(limit_with(FailurePolicy::allow));
    const Nanos end_ns = edge.clock.now_ns + 2 * kSecond;
    bool applied = false;
    while (edge.clock.now_ns < end_ns) {
      edge.check(check_of("acme"));
      for (const LeaseRequest& request : edge.collect()) {
        auto answer = LoneEdge::answer(request, status);
        answer.level = 0;
        answer.retry_ns = status == LeaseStatus::empty ? kSecond : 0;
        edge.limiter().on_answer(answer);
      }
      applied = applied || (edge.last && edge.last->source == Source::allow);
      edge.pass(10 * kMillisecond);
    }
    EXPECT_EQ(applied, status == LeaseStatus::not_owner) << to_string(status);
  }
}

TEST(I3, StaticShareIsDividedCountedAndKeepsItsLevelAcrossReEntries) {
  edge::LimiterConfig config;
  config.expected_edges = 4;
  LoneEdge edge(limit_with(FailurePolicy::static_share), config);
  silent(edge, 10 * kMillisecond, 600 * kMillisecond);
  std::uint64_t admitted = 0;
  for (int i = 0; i < 200; ++i) {
    edge.check(check_of("acme"));
    ASSERT_TRUE(edge.last);
    admitted += edge.last->allowed ? 1U : 0U;
  }
  EXPECT_LE(overshoot(edge), 27) << "a quarter of 100, and of 10/s";
  EXPECT_GE(overshoot(edge), 25);
  // The owner speaks for a moment, then is silent again: no second burst.
  edge.pass(100 * kMillisecond);
  edge.check(check_of("acme"));
  LeaseRequest request;
  for (int i = 0; i < 30 && request.sequence == 0; ++i) {
    for (const LeaseRequest& due : edge.collect()) request = due;
    edge.pass(100 * kMillisecond);
    edge.check(check_of("acme"));
  }
  ASSERT_NE(request.sequence, 0U);
  edge.empty(request, 100 * kMillisecond);
  ASSERT_EQ(edge.limiter().take_degradations().size(), 2U);
  const std::int64_t before = overshoot(edge);
  const Nanos from_ns = edge.clock.now_ns;
  silent(edge, 10 * kMillisecond, 2 * kSecond);
  const std::int64_t flowed = (edge.clock.now_ns - from_ns) * 10 / 4 / kSecond;
  EXPECT_LE(overshoot(edge) - before, flowed + 2);
}

TEST(I3, IdleKeyDoesNotComeBackWithAFullShare) {
  LoneEdge edge(limit_with(FailurePolicy::static_share));
  silent(edge, 5 * kMillisecond, 600 * kMillisecond);
  for (int i = 0; i < 200; ++i) edge.check(check_of("acme"));
  const std::int64_t before = overshoot(edge);
  EXPECT_GE(before, 100);
  for (int i = 0; i < 400; ++i) {  // 4 s: idle
    edge.collect();
    edge.pass(10 * kMillisecond);
  }
  for (int i = 0; i < 200; ++i) edge.check(check_of("acme"));
  EXPECT_LE(overshoot(edge) - before, 42) << "4 s at 10/s";
  for (int i = 0; i < 2000; ++i) {  // full again after 10 s: now it may leave
    edge.collect();
    edge.pass(10 * kMillisecond);
  }
  EXPECT_EQ(edge.limiter().bucket_count(), 0U);
}

TEST(I3, OvershootSaturates) {
  auto limits = limit_with(FailurePolicy::allow);
  limits[0].numbers.capacity = INT64_MAX;
  LoneEdge edge(limits);
  silent(edge, 5 * kMillisecond, 600 * kMillisecond);
  for (int i = 0; i < 3; ++i) edge.check(check_of("acme", INT64_MAX - 1));
  EXPECT_EQ(overshoot(edge), INT64_MAX);
}

TEST(I2, RecoversWithTheOwnersFirstWord) {
  LoneEdge edge(limit_with(FailurePolicy::allow));
  silent(edge, 5 * kMillisecond, 600 * kMillisecond);
  edge.limiter().take_degradations();
  LeaseRequest request;
  for (int i = 0; i < 200 && request.sequence == 0; ++i) {
    edge.check(check_of("acme"));
    for (const LeaseRequest& due : edge.collect()) request = due;
    edge.pass(10 * kMillisecond);
  }
  ASSERT_NE(request.sequence, 0U) << "it still asks in the background";
  edge.grant(request, 50);
  const auto degradations = edge.limiter().take_degradations();
  ASSERT_EQ(degradations.size(), 1U);
  EXPECT_FALSE(degradations[0].degraded);
  edge.check(check_of("acme"));
  ASSERT_TRUE(edge.last);
  EXPECT_EQ(edge.last->source, Source::lease);
}

TEST(I1, WhoWaitsForARelayWaitsForItsOwnRoundTripToo) {
  LoneEdge edge({leased_limit("api", 100, 10, kSecond)});
  edge.check(check_of("acme"));
  const LeaseRequest request = edge.request();
  edge.pass(kMillisecond);
  LeaseAnswer pending = LoneEdge::answer(request, LeaseStatus::pending);
  pending.hop = LeaseHop::to_relay;
  pending.upstream_round_trip_ns = 80 * kMillisecond;
  edge.limiter().on_answer(pending);
  edge.pass(100 * kMillisecond);
  edge.collect();
  EXPECT_FALSE(edge.last.has_value()) << "denied after 50 ms, as if the relay were the owner";
  edge.pass(62 * kMillisecond);  // twice 81 ms since it was asked
  edge.collect();
  ASSERT_TRUE(edge.last.has_value());
  EXPECT_EQ(edge.last->source, Source::timeout);
}

}  // namespace
}  // namespace weir::test
