// Goal: usage shows each bucket once, with the smaller remaining of what edge and owner know, and
// nothing that the policy has given up.
#include <gtest/gtest.h>

#include "src/config/parse.h"
#include "src/server/usage.h"

namespace weir::server {
namespace {

constexpr const char* kPolicy =
    "version: 1\n"
    "limits:\n"
    "  - {name: api, scope: global, rate: 60/min, burst: 100}\n"
    "  - {name: login, by: [customer, ip], scope: global, rate: 5/min}\n"
    "  - {name: near, scope: region, rate: 5/min}\n"
    "customers:\n"
    "  vip: {limits: {api: unlimited}}\n";

class UsageTest : public testing::Test {
 protected:
  policy::Policy policy_{*config::parse_policy(kPolicy, "policy.yaml").value};

  static ownership::BucketView view(const BucketKey& key, std::int64_t capacity, std::int64_t level,
                                    std::int64_t outstanding) {
    ownership::BucketView view;
    view.bucket = encode(key);
    view.capacity = capacity;
    view.level = level;
    view.outstanding = outstanding;
    view.reset_ns = 1'500'000;
    return view;
  }
  static BucketUsage at_edge(const std::string& name, std::int64_t remaining) {
    BucketUsage usage;
    usage.name = name;
    usage.limit = 100;
    usage.remaining = remaining;
    usage.used = 100 - remaining;
    return usage;
  }
  std::vector<BucketUsage> merge(std::vector<BucketUsage> edge,
                                 std::vector<ownership::BucketView> owners) {
    return merge_usage(std::move(edge), owners, policy_, "eu");
  }
};

TEST_F(UsageTest, AnOwnersBucketCountsWhatIsOutAsThere) {
  const auto usage = merge({}, {view({"acme", Scope::global, "", "api", {}}, 100, 30, 20)});
  ASSERT_EQ(usage.size(), 1U);
  EXPECT_EQ(usage[0].name, "api");
  EXPECT_EQ(usage[0].limit, 100);
  EXPECT_EQ(usage[0].remaining, 50);
  EXPECT_EQ(usage[0].used, 50);
  EXPECT_EQ(usage[0].reset_ms, 2) << "rounded up";
}

TEST_F(UsageTest, RemainingStaysWithinTheLimit) {
  const auto over = merge({}, {view({"acme", Scope::global, "", "api", {}}, 100, INT64_MAX, 20)});
  EXPECT_EQ(over[0].remaining, 100);
  EXPECT_EQ(over[0].used, 0);
  const auto lowered = merge({}, {view({"acme", Scope::global, "", "api", {}}, 10, 0, 60)});
  EXPECT_EQ(lowered[0].remaining, 10);
}

TEST_F(UsageTest, TheSmallerRemainingIsShown) {
  const std::vector<ownership::BucketView> owners{
      view({"acme", Scope::global, "", "api", {}}, 100, 30, 20)};
  EXPECT_EQ(merge({at_edge("api", 70)}, owners)[0].remaining, 50);
  EXPECT_EQ(merge({at_edge("api", 10)}, owners)[0].remaining, 10);
  EXPECT_EQ(merge({at_edge("api", 10)}, owners).size(), 1U);
  EXPECT_EQ(merge({at_edge("api", 10)}, {})[0].remaining, 10);
}

TEST_F(UsageTest, BucketsOfOneLimitAreToldApartByTheirAttributes) {
  const auto usage =
      merge({}, {view({"acme", Scope::global, "", "login", {{"ip", "1.1.1.1"}}}, 5, 5, 0),
                 view({"acme", Scope::global, "", "login", {{"ip", std::nullopt}}}, 5, 4, 0),
                 view({"acme", Scope::global, "", "api", {}}, 100, 1, 0)});
  ASSERT_EQ(usage.size(), 3U);
  EXPECT_EQ(usage[0].name, "api");
  EXPECT_TRUE(usage[1].attributes.empty());
  EXPECT_EQ(usage[2].attributes.at(0).second, "1.1.1.1");
}

TEST_F(UsageTest, WhatThePolicyNoLongerCountsIsLeftOut) {
  EXPECT_TRUE(merge({}, {view({"acme", Scope::global, "", "gone", {}}, 5, 5, 0)}).empty());
  EXPECT_TRUE(merge({}, {view({"vip", Scope::global, "", "api", {}}, 5, 5, 0)}).empty());
  EXPECT_TRUE(merge({}, {view({"acme", Scope::region, "us", "near", {}}, 5, 5, 0)}).empty())
      << "another region's";
  ownership::BucketView garbage;
  garbage.bucket = "\xff";
  EXPECT_TRUE(merge({}, {garbage}).empty());
}

}  // namespace
}  // namespace weir::server
