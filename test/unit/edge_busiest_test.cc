// Goal: an edge knows who asks it most and whom it denies most, each check counted once, in bounded
// space, and the counting allocates nothing.
// Method: one edge whose owner is the test, on a clock set by hand.
#include <gtest/gtest.h>

#include "src/edge/stripe.h"
#include "test/unit/edge_support.h"
#include "test/unit/policy_count_allocations.h"

namespace weir::test {
namespace {

using Listed = std::vector<CustomerActivity>;

std::vector<LimitDefinition> one(std::int64_t capacity = 1000) {
  return {leased_limit("api", capacity, 1000, kSecond)};
}

void ask(LoneEdge& edge, const Check& check, int times) {
  for (int i = 0; i < times; ++i) edge.check(check);
}

Check check_from(const std::string& customer, const std::string& ip) {
  Check check = check_of(customer);
  check.attributes.emplace_back("ip", ip);
  return check;
}

TEST(Busiest, RatesAreOfTheTimeSinceTheLastCall) {
  LoneEdge edge(one());
  edge.hold(check_of("acme"), 500);
  ask(edge, check_of("acme"), 19);
  edge.pass(2 * kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), (Listed{{"acme", 10, 0}}));
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), Listed{}) << "nobody has asked since";
  edge.check(check_of("acme"));
  edge.pass(4 * kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), (Listed{{"acme", 1, 0}})) << "rounded up";
}

TEST(Busiest, DenialsAreCountedWhoeverDecidesThem) {
  LoneEdge edge(one());
  edge.check(check_of("acme"));
  edge.empty(edge.request(), 500 * kMillisecond);
  ask(edge, check_of("acme"), 3);
  edge.check(check_of("slow"));
  edge.collect();
  edge.pass(50 * kMillisecond);
  edge.collect();
  ASSERT_TRUE(edge.last);
  EXPECT_EQ(edge.last->source, Source::timeout);
  edge.pass(950 * kMillisecond);
  EXPECT_EQ(edge.limiter().busiest(5), (Listed{{"acme", 4, 4}, {"slow", 1, 1}}));
}

TEST(Busiest, ACheckCountsOnceAndACustomerIsTheSumOfItsBuckets) {
  auto limits = one();
  limits.push_back(leased_limit("login", 1000, 1000, kSecond));
  for (LimitDefinition& limit : limits) limit.by = {"customer", "ip"};
  LoneEdge edge(limits);
  for (const char* ip : {"192.0.2.1", "192.0.2.2", "192.0.2.3"}) {
    edge.hold(check_from("acme", ip), 100);
    ask(edge, check_from("acme", ip), 3);
  }
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), (Listed{{"acme", 12, 0}}));
}

TEST(Busiest, CustomersWithoutALeasedBucketAreThereToo) {
  PolicyDefinition policy;
  policy.version = 1;
  policy.limits = one();
  policy.customers["mallory"].limits["api"].kind = LimitOverride::Kind::blocked;
  policy.customers["vip"].limits["api"].kind = LimitOverride::Kind::unlimited;
  LoneEdge edge(one());
  edge.limiter().set_policy(std::make_shared<policy::Policy>(std::move(policy)));
  ask(edge, check_of("mallory"), 7);
  ask(edge, check_of("vip"), 3);
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), (Listed{{"mallory", 7, 7}, {"vip", 3, 0}}));
}

TEST(Busiest, OnlyTheFirstOfEachListAreNamed) {
  LoneEdge edge(one());
  // Customer i asks i times; only the three that ask least are ever denied.
  for (int i = 1; i <= 30; ++i) {
    const Check check = check_of("c" + std::to_string(i));
    if (i > 3) {
      edge.hold(check, 100);
      ask(edge, check, i - 1);
    } else {
      edge.check(check);
      edge.empty(edge.request(), 900 * kMillisecond);
      ask(edge, check, i - 1);
    }
  }
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(2),
            (Listed{{"c30", 30, 0}, {"c29", 29, 0}, {"c3", 3, 3}, {"c2", 2, 2}}));
}

TEST(Busiest, CustomersBeyondTheBoundAreNotCounted) {
  LoneEdge edge({});
  const int many = 64 * 1024;
  for (int i = 0; i < many; ++i) edge.check(check_of("c" + std::to_string(i)));
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(many).size(), edge::kMaxOthersPerStripe * edge::kStripes);
  // Whoever was idle since makes room.
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), Listed{});
  edge.check(check_of("late"));
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), (Listed{{"late", 1, 0}}));
}

TEST(Busiest, AnEvictedBucketHidesNobody) {
  edge::LimiterConfig config;
  config.max_buckets = edge::kStripes;  // one in each stripe
  LoneEdge edge(one(), config);
  const auto stripe_of = [](const std::string& name) { return slot_of(name) % edge::kStripes; };
  std::string second = "b";
  while (stripe_of(second) != stripe_of("a")) second += "b";
  edge.hold(check_of("a"), 100);
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(5).size(), 1U);
  edge.pass(kMillisecond);
  // Decided at once, because it never fits: its new bucket is one too many, and the idle one goes
  // behind it in the order that is looked through.
  edge.check(check_of(second, 2000));
  ASSERT_TRUE(edge.last && !edge.last->allowed);
  edge.pass(kSecond);
  EXPECT_EQ(edge.limiter().busiest(5), (Listed{{second, 1, 1}}));
}

TEST(Busiest, CountingAllocatesNothing) {
  LoneEdge edge(one());
  edge.hold(check_of("acme"), 500);
  const Check check = check_of("acme");
  Decision decision;
  ASSERT_TRUE(edge.limiter().decide(check, decision));
  edge.pass(kMillisecond);
  edge.limiter().busiest(5);
  const std::size_t before = policy::allocations_so_far();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(*edge.limiter().decide(check, decision));
  EXPECT_EQ(policy::allocations_so_far(), before);
}

}  // namespace
}  // namespace weir::test
