// Goal: an edge's memory is bounded: keys leave when nobody uses them, the oldest when there are
// too many, and no more checks wait than allowed.
// Method: many distinct customers against a real owner's answers, or none, on a virtual clock.
#include <gtest/gtest.h>

#include "test/unit/edge_support.h"

namespace weir::test {
namespace {

std::vector<LimitDefinition> one() { return {leased_limit("api", 100, 10, kSecond)}; }

/// Grants each request exactly its need.
void answer_all(LoneEdge& edge, const std::vector<LeaseRequest>& requests) {
  for (const LeaseRequest& request : requests) edge.grant(request, request.need);
}

TEST(Memory, DistinctKeysLeaveAgain) {
  LoneEdge edge(one());
  for (int i = 0; i < 100'000; ++i) {
    edge.check(check_of("customer " + std::to_string(i)));
    if (i % 100 == 0) {
      answer_all(edge, edge.collect());
      edge.pass(kMillisecond);
    }
  }
  for (int i = 0; i < 3000 && edge.limiter().bucket_count() > 0; ++i) {
    answer_all(edge, edge.collect());
    edge.pass(10 * kMillisecond);
  }
  EXPECT_EQ(edge.limiter().bucket_count(), 0U);
  EXPECT_EQ(edge.limiter().waiting_count(), 0U);
}

TEST(Memory, KeysOfASilentOwnerLeaveToo) {
  LoneEdge edge(one());
  for (int i = 0; i < 1000; ++i) edge.check(check_of("customer " + std::to_string(i)));
  for (int i = 0; i < 3000; ++i) {
    edge.collect();
    edge.pass(10 * kMillisecond);
  }
  EXPECT_EQ(edge.limiter().bucket_count(), 0U);
}

TEST(Memory, NodeScopeBucketsLeaveWhenFull) {
  auto limits = one();
  limits[0].scope = Scope::node;
  LoneEdge edge(limits);
  for (int i = 0; i < 10'000; ++i) edge.check(check_of("customer " + std::to_string(i)));
  EXPECT_EQ(edge.limiter().bucket_count(), 10'000U);
  edge.pass(3 * kSecond);
  edge.collect();
  edge.pass(3 * kSecond);
  edge.collect();
  EXPECT_EQ(edge.limiter().bucket_count(), 0U);
}

TEST(Memory, BeyondMaxBucketsTheLongestIdleIsReturned) {
  edge::LimiterConfig config;
  config.max_buckets = 640;  // ten in each stripe
  LoneEdge edge(one(), config);
  std::size_t returned = 0;
  std::size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    edge.check(check_of("customer " + std::to_string(i)));
    for (int turn = 0; turn < 2; ++turn) {
      for (const LeaseRequest& request : edge.collect()) {
        returned += request.want == 0 ? 1U : 0U;
        edge.grant(request, request.need > 0 ? request.need + 5 : 0);
      }
    }
    edge.pass(20 * kMicrosecond);
    most = std::max(most, edge.limiter().bucket_count());
  }
  EXPECT_GT(returned, 15'000U);
  EXPECT_LE(most, 900U);
}

TEST(Memory, BeyondMaxBucketsTheyLeaveEvenWhenNobodyAnswersTheirReturn) {
  edge::LimiterConfig config;
  config.max_buckets = 640;
  LoneEdge edge(one(), config);
  std::size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    edge.check(check_of("customer " + std::to_string(i)));
    for (const LeaseRequest& request : edge.collect()) {
      if (request.need > 0) edge.grant(request, request.need + 5);
    }
    edge.pass(100 * kMicrosecond);
    most = std::max(most, edge.limiter().bucket_count());
  }
  // 10,000 keys a second, each kept until its unanswered return is given up.
  EXPECT_LE(most, 6000U);
}

TEST(Memory, WaitingChecksAreBounded) {
  LoneEdge edge(one());
  std::size_t denied = 0;
  for (std::size_t i = 0; i < edge::kMaxWaitingChecks + 10; ++i) {
    edge.check(check_of("acme"));
    if (edge.last) ++denied;
  }
  EXPECT_EQ(edge.limiter().waiting_count(), edge::kMaxWaitingChecks);
  EXPECT_EQ(denied, 10U);
  EXPECT_EQ(edge.last->source, Source::timeout);
  edge.pass(50 * kMillisecond);
  edge.collect();
  EXPECT_EQ(edge.limiter().waiting_count(), 0U);
}

}  // namespace
}  // namespace weir::test
