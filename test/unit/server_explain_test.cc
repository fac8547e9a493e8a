// Goal: an explanation names every limit, says why it does or does not match, whose numbers apply,
// and when the check would pass; arithmetic holds at the ends of the range.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "src/config/parse.h"
#include "src/server/explain.h"

namespace weir::server {
namespace {

namespace json = boost::json;

constexpr const char* kPolicy =
    "version: 3\n"
    "limits:\n"
    "  - {name: api, scope: global, rate: 60/min, burst: 100}\n"
    "  - {name: login, match: {route: \"POST /login\"}, by: [customer, ip], scope: global, rate: "
    "5/min}\n"
    "  - {name: reads, match: {route: \"GET *\"}, scope: node, rate: 9/s, shadow: true}\n"
    "plans:\n"
    "  free: {}\n"
    "  pro: {api: {rate: 600/min, burst: 1000}}\n"
    "default_plan: free\n"
    "customers:\n"
    "  acme: {plan: pro}\n"
    "  vip: {limits: {api: unlimited}}\n"
    "  mallory: {limits: {api: blocked}}\n";

class ExplainTest : public testing::Test {
 protected:
  void SetUp() override {
    auto parsed = config::parse_policy(kPolicy, "policy.yaml");
    ASSERT_TRUE(parsed) << config::to_string(parsed.errors);
    facts_.policy = std::make_shared<const policy::Policy>(*std::move(parsed.value));
    facts_.node = "eu-1";
    facts_.region = "eu";
    facts_.check.customer = "acme";
  }

  static Topology topology() {
    Topology topology;
    topology.version = 1;
    TopologyRegion region;
    region.name = "eu";
    region.nodes.push_back({"eu-1", "a", {"127.0.0.1", 1}});
    topology.regions.push_back(region);
    return topology;
  }

  json::object explain() const { return json::parse(explain_json(facts_, placement_)).as_object(); }
  static json::object limit(const json::object& document, const std::string& name) {
    for (const auto& item : document.at("limits").as_array()) {
      if (item.at("name").as_string() == name) return item.as_object();
    }
    ADD_FAILURE() << name << " is not among the limits";
    return {};
  }
  void look(const std::string& name, std::int64_t remaining, std::int64_t next_token_ms) {
    if (!facts_.look) facts_.look.emplace();
    LimitDecision decision;
    decision.name = name;
    decision.remaining = remaining;
    decision.next_token_ms = next_token_ms;
    facts_.look->limits.push_back(decision);
  }

  const regions::Placement placement_{topology()};
  ExplainFacts facts_;
};

TEST_F(ExplainTest, SaysWhyLimitsMatchAndWhyNot) {
  facts_.check.attributes = {{"route", "GET /v1/items"}};
  const json::object document = explain();
  EXPECT_EQ(limit(document, "api").at("match").as_string(), "every check");
  EXPECT_EQ(limit(document, "reads").at("match").as_string(), "route = `GET *`");
  const json::array others = document.at("not_matching").as_array();
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].at("name").as_string(), "login");
  EXPECT_EQ(others[0].at("because").as_string(),
            "it wants route = `POST /login`, and the check has `GET /v1/items`");
  facts_.check.attributes.clear();
  EXPECT_EQ(explain().at("not_matching").as_array().size(), 2U);
  EXPECT_NE(json::serialize(explain()).find("no such attribute"), std::string::npos);
}

TEST_F(ExplainTest, SaysWhoseNumbersApply) {
  EXPECT_EQ(limit(explain(), "api").at("numbers_from").as_string(), "plan pro");
  EXPECT_EQ(limit(explain(), "api").at("limit").as_int64(), 1000);
  EXPECT_EQ(limit(explain(), "api").at("rate").as_string(), "600/min");
  facts_.check.customer = "nobody";
  EXPECT_EQ(limit(explain(), "api").at("numbers_from").as_string(), "the limit as written");
  EXPECT_EQ(explain().at("plan").as_string(), "free");
  facts_.check.customer = "vip";
  EXPECT_EQ(limit(explain(), "api").at("kind").as_string(), "unlimited");
  EXPECT_EQ(limit(explain(), "api").at("numbers_from").as_string(), "override of customer vip");
}

TEST_F(ExplainTest, ABlockedCustomerNeverPasses) {
  facts_.check.customer = "mallory";
  EXPECT_FALSE(explain().at("allowed").as_bool());
  EXPECT_EQ(explain().at("retry_after_ms").as_int64(), -1);
}

TEST_F(ExplainTest, TheSlowestLimitSaysWhen) {
  facts_.check.customer = "nobody";
  facts_.check.attributes = {{"route", "POST /login"}, {"ip", "1.1.1.1"}};
  facts_.check.cost = 2;
  look("api", 5, 1000);
  look("login", 0, 7000);
  const json::object document = explain();
  EXPECT_FALSE(document.at("allowed").as_bool());
  EXPECT_EQ(document.at("retry_after_ms").as_int64(), 7000 + 12'000);
  EXPECT_TRUE(limit(document, "api").at("allowed").as_bool());
  EXPECT_EQ(limit(document, "login").at("bucket").at("ip").as_string(), "1.1.1.1");
}

TEST_F(ExplainTest, AShadowLimitDeniesNothing) {
  facts_.check.attributes = {{"route", "GET /"}};
  look("api", 5, 0);
  look("reads", 0, 100);
  EXPECT_TRUE(explain().at("allowed").as_bool());
  EXPECT_FALSE(limit(explain(), "reads").at("allowed").as_bool());
}

TEST_F(ExplainTest, ShowsTheOwnersBooks) {
  actors::OwnerDescription owner;
  owner.reg = register_of(Scope::global, "eu", "acme");
  owner.node = "eu-1";
  owner.region = "eu";
  owner.epoch = {7, "eu-1", 99};
  owner.replicas = {"eu-1"};
  ownership::BucketView view;
  view.bucket = encode({"acme", Scope::global, "", "api", {}});
  view.level = 40;
  view.outstanding = 60;
  view.lessees.push_back({"us-1", 60, 1'500'001, true});
  owner.buckets.push_back(view);
  facts_.owners.emplace(placement_.register_for(Scope::global, "eu", "acme"), owner);
  const json::object books = limit(explain(), "api").at("owner").as_object();
  EXPECT_EQ(books.at("node").as_string(), "eu-1");
  EXPECT_EQ(books.at("epoch").as_string(), to_string(owner.epoch));
  EXPECT_EQ(books.at("replicas").as_array().size(), 1U);
  EXPECT_EQ(books.at("level").as_int64(), 40);
  EXPECT_EQ(books.at("leases").at(0).at("outstanding").as_int64(), 60);
  EXPECT_EQ(books.at("leases").at(0).at("expires_in_ms").as_int64(), 2);
  EXPECT_TRUE(books.at("leases").at(0).at("relay").as_bool());
  // Without an edge's look the owner's own numbers stand.
  EXPECT_EQ(limit(explain(), "api").at("remaining").as_int64(), 40);
}

TEST_F(ExplainTest, OnlyTheOwnerKnowsAStrictLimit) {
  auto parsed = config::parse_policy(
      "version: 1\nlimits:\n  - {name: pay, scope: global, rate: 5/h, strict: true}\n",
      "policy.yaml");
  facts_.policy = std::make_shared<const policy::Policy>(*std::move(parsed.value));
  look("pay", 0, 100);
  actors::OwnerDescription owner;
  ownership::BucketView view;
  view.bucket = encode({"acme", Scope::global, "", "pay", {}});
  view.level = 4;
  owner.buckets.push_back(view);
  facts_.owners.emplace(placement_.register_for(Scope::global, "eu", "acme"), owner);
  EXPECT_EQ(limit(explain(), "pay").at("remaining").as_int64(), 4);
  EXPECT_TRUE(explain().at("allowed").as_bool());
}

TEST_F(ExplainTest, AnOwnerThatDoesNotAnswerIsSaid) {
  facts_.owners.emplace(placement_.register_for(Scope::global, "eu", "acme"),
                        failure(ErrorCode::unavailable, "", "no answer in time"));
  EXPECT_EQ(limit(explain(), "api").at("owner").at("error").as_string(), "no answer in time");
}

TEST(RetryAfter, CountsWholeTokensAndNeverComesEarly) {
  const LimitNumbers numbers{10, 3, kSecond};  // a token each 333.3 ms
  EXPECT_EQ(retry_after_ms(numbers, 1, 1, 0), 0);
  EXPECT_EQ(retry_after_ms(numbers, 1, 0, 100), 100);
  EXPECT_EQ(retry_after_ms(numbers, 2, 0, 100), 434);
  EXPECT_EQ(retry_after_ms(numbers, 11, 10, 0), -1);
  EXPECT_EQ(retry_after_ms(numbers, 0, 0, 100), 0);
  EXPECT_GE(retry_after_ms(numbers, 1, 0, 0), 1) << "a denial is never answered with `now`";
}

TEST(RetryAfter, HoldsAtTheEndsOfTheRange) {
  const LimitNumbers slow{INT64_MAX, 1, kYear};
  EXPECT_EQ(retry_after_ms(slow, INT64_MAX, 0, 0), INT64_MAX);
  EXPECT_GT(retry_after_ms(slow, 1'000'000, 0, INT64_MAX), 0);
}

TEST(RateText, UsesTheFilesNotation) {
  EXPECT_EQ(rate_text({1, 100, kSecond}), "100/s");
  EXPECT_EQ(rate_text({1, 600, kMinute}), "600/min");
  EXPECT_EQ(rate_text({1, 10, 5 * kMinute}), "10/5m");
  EXPECT_EQ(rate_text({1, 1, 1500 * kMillisecond}), "1/1500ms");
  EXPECT_EQ(rate_text({1, 1, kMillisecond}), "1/1ms");
}

}  // namespace
}  // namespace weir::server
