// Goal: a policy file means exactly what API.md says, and each mistake is one error at its place.
// Method: whole files read field by field, and a table with one mistake per file.
#include "src/base/hash.h"
#include "src/base/limits.h"
#include "src/config/parse.h"
#include "src/policy/supported.h"
#include "test/unit/config_test_support.h"

namespace weir::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A policy around one limit in flow style; the limit starts at line 2, column 10.
std::string with_limit(const std::string& limit) { return "version: 1\nlimits: [" + limit + "]\n"; }
/// A policy with three sound limits; `rest` starts at line 6.
std::string with_rest(const std::string& rest) {
  return "version: 1\n"
         "limits:\n"
         "  - {name: api, scope: global, rate: 600/min, burst: 100}\n"
         "  - {name: guard, scope: node, by: [], rate: 20000/s}\n"
         "  - {name: monthly, scope: global, quota: 1000000, window: month}\n" +
         rest;
}

PolicyDefinition good(const std::string& text) {
  auto parsed = parse_policy(text, "p.yaml");
  EXPECT_TRUE(parsed) << to_string(parsed.errors);
  EXPECT_TRUE(parsed.errors.empty());
  return parsed ? *parsed.value : PolicyDefinition{};
}

TEST(ConfigPolicy, DefaultsOfALimit) {
  const std::string text = with_limit("{name: api, scope: global, rate: 600/min}");
  const PolicyDefinition policy = good(text);
  EXPECT_EQ(policy.version, 1U);
  EXPECT_EQ(policy.content_hash, hash_bytes(text));
  LimitDefinition expected;
  expected.name = "api";
  expected.numbers = {600, 600, kMinute};
  EXPECT_THAT(policy.limits, ElementsAre(expected));
  EXPECT_EQ(policy.default_plan, "");
  EXPECT_TRUE(policy.plans.empty());
  EXPECT_TRUE(policy.customers.empty());
}

TEST(ConfigPolicy, EveryFieldOfEachAlgorithm) {
  const PolicyDefinition policy = good(
      "version: 9223372036854775807\n"
      "limits:\n"
      "  - name: Login-1\n"
      "    scope: region\n"
      "    algorithm: token_bucket\n"
      "    match: {route: \"POST /login*\", method: POST, all: '*', empty: ''}\n"
      "    by: [ip, customer]\n"
      "    rate: 1/5s\n"
      "    burst: 9223372036854775807\n"
      "    strict: true\n"
      "    shadow: true\n"
      "    on_unreachable: deny\n"
      "  - {name: w, scope: global, algorithm: fixed_window, quota: 7, window: week, timezone: "
      "Europe/Berlin}\n"
      "  - {name: s, scope: node, algorithm: sliding_window, rate: 10/5m, by: [ip]}\n");
  ASSERT_EQ(policy.limits.size(), 3U);
  EXPECT_EQ(policy.version, static_cast<std::uint64_t>(INT64_MAX));
  const LimitDefinition& login = policy.limits[0];
  EXPECT_EQ(login.scope, Scope::region);
  EXPECT_EQ(login.numbers, (LimitNumbers{INT64_MAX, 1, 5 * kSecond}));
  EXPECT_THAT(login.match,
              ElementsAre(AttributeMatch{"route", "POST /login", true},
                          AttributeMatch{"method", "POST", false}, AttributeMatch{"all", "", true},
                          AttributeMatch{"empty", "", false}));
  EXPECT_THAT(login.by, ElementsAre("ip", "customer"));
  EXPECT_TRUE(login.strict);
  EXPECT_TRUE(login.shadow);
  EXPECT_EQ(login.on_unreachable, FailurePolicy::deny);
  EXPECT_EQ(policy.limits[1].algorithm, Algorithm::fixed_window);
  EXPECT_EQ(policy.limits[1].numbers, (LimitNumbers{7, 0, 0}));
  EXPECT_EQ(policy.limits[1].window, Window::week);
  EXPECT_EQ(policy.limits[1].timezone, "Europe/Berlin");
  EXPECT_EQ(policy.limits[2].algorithm, Algorithm::sliding_window);
  EXPECT_EQ(policy.limits[2].numbers, (LimitNumbers{10, 10, 5 * kMinute}));
}

TEST(ConfigPolicy, OverridesAreFilledIn) {
  const PolicyDefinition policy =
      good(with_rest("customers:\n"  // before the plans: the order of sections does not matter
                     "  rate-alone: {limits: {api: {rate: 5/s}}}\n"
                     "  burst-alone: {limits: {api: {burst: 7}}}\n"
                     "  burst-on-pro: {plan: pro, limits: {api: {burst: 7}}}\n"
                     "  burst-on-free: {plan: free, limits: {api: {burst: 7}}}\n"
                     "  both: {limits: {api: {rate: 5/s, burst: 9}, monthly: {quota: 3}}}\n"
                     "  words: {limits: {api: blocked, monthly: unlimited, guard: unlimited}}\n"
                     "  nothing: {}\n"
                     "default_plan: team\n"
                     "plans:\n"
                     "  free: {}\n"
                     "  team: {api: {burst: 50}}\n"
                     "  pro: {api: {rate: 6000/min, burst: 1000}, monthly: unlimited}\n"));
  const auto numbers = [&](const char* customer) {
    return policy.customers.at(customer).limits.at("api").numbers;
  };
  EXPECT_EQ(policy.default_plan, "team");
  EXPECT_TRUE(policy.plans.at("free").empty());
  EXPECT_EQ(policy.plans.at("team").at("api").numbers, (LimitNumbers{50, 600, kMinute}));
  EXPECT_EQ(policy.plans.at("pro").at("api").numbers, (LimitNumbers{1000, 6000, kMinute}));
  EXPECT_EQ(policy.plans.at("pro").at("monthly").kind, LimitOverride::Kind::unlimited);
  EXPECT_EQ(numbers("rate-alone"), (LimitNumbers{5, 5, kSecond}));
  EXPECT_EQ(numbers("burst-alone"), (LimitNumbers{7, 600, kMinute}));
  EXPECT_EQ(numbers("burst-on-pro"), (LimitNumbers{7, 6000, kMinute}));
  EXPECT_EQ(numbers("burst-on-free"), (LimitNumbers{7, 600, kMinute}));
  EXPECT_EQ(numbers("both"), (LimitNumbers{9, 5, kSecond}));
  EXPECT_EQ(policy.customers.at("both").limits.at("monthly").numbers, (LimitNumbers{3, 0, 0}));
  EXPECT_EQ(policy.customers.at("words").limits.at("api").kind, LimitOverride::Kind::blocked);
  EXPECT_EQ(policy.customers.at("words").limits.at("guard").kind, LimitOverride::Kind::unlimited);
  EXPECT_EQ(policy.customers.at("nothing"), CustomerDefinition{});
}

TEST(ConfigPolicy, CustomersAreTextWhateverTheyLookLike) {
  const std::string longest(kMaxKeyBytes, 'x');
  const PolicyDefinition policy = good(with_rest(
      "customers:\n  123: {}\n  010: {}\n  true: {}\n  \"null\": {}\n  1.5: {}\n  \"a b: c\": {}\n"
      "  caf\xC3\xA9: {}\n  \"{acme}\": {}\n  ? " +
      longest + "\n  : {}\n"));
  for (const std::string& id : {std::string("123"), std::string("010"), std::string("true"),
                                std::string("null"), std::string("1.5"), std::string("a b: c"),
                                std::string("caf\xC3\xA9"), std::string("{acme}"), longest}) {
    EXPECT_TRUE(policy.customers.contains(id)) << id;
  }
  EXPECT_EQ(policy.customers.size(), 9U);
}

class PolicyMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PolicyMistake, IsOneErrorAtItsPlace) {
  expect_one_error(GetParam(), parse_policy(GetParam().text, "p.yaml"));
}

INSTANTIATE_TEST_SUITE_P(
    Top, PolicyMistake,
    testing::Values(
        Mistake{"unknown_key", with_rest("limit: []\n"), 6, 1, "unknown key `limit`", "`limits`"},
        Mistake{"far_unknown_key", with_rest("zzzzzz: 1\n"), 6, 1, "unknown key `zzzzzz`",
                "write one of `version`, `limits`"},
        Mistake{"no_version", "limits: [{name: a, scope: node, rate: 1/s}]\n", 1, 1,
                "`version` is missing", "version: 1"},
        Mistake{"version_0", "version: 0\n" + with_rest("").substr(11), 1, 10, "`0` is too small",
                "from 1"},
        Mistake{"version_text", "version: \"1\"\n" + with_rest("").substr(11), 1, 10, "quoted text",
                "`1`"},
        Mistake{"version_octal", "version: 010\n" + with_rest("").substr(11), 1, 10, "leading zero",
                "write 10"},
        Mistake{"version_null", "version:\n" + with_rest("").substr(11), 1, 1,
                "nothing where a number", "`1`"},
        Mistake{"no_limits", "version: 1\n", 1, 1, "`limits` is missing", "limits: ["},
        Mistake{"empty_limits", "version: 1\nlimits: []\n", 2, 9, "none", "at least one"},
        Mistake{"null_limits", "version: 1\nlimits:\n", 2, 1, "nothing where a list", "["},
        Mistake{"limits_map", "version: 1\nlimits: {api: {}}\n", 2, 9, "a map where a list", "["},
        Mistake{"limit_word", "version: 1\nlimits: [api]\n", 2, 10, "a plain value where a map",
                "{name: api"}),
    mistake_name);

INSTANTIATE_TEST_SUITE_P(
    Limit, PolicyMistake,
    testing::Values(
        Mistake{"no_name", with_limit("{scope: global, rate: 1/s}"), 2, 10, "`name` is missing",
                "name: api"},
        Mistake{"no_scope", with_limit("{name: a, rate: 1/s}"), 2, 10, "`scope` is missing",
                "scope: global"},
        Mistake{"misspelt_key", with_limit("{name: a, scope: node, rate: 1/s, brust: 5}"), 2, 44,
                "unknown key `brust`", "`burst`"},
        Mistake{"duplicate_key", with_limit("{name: a, scope: node, rate: 1/s, rate: 2/s}"), 2, 44,
                "duplicate key `rate`", "keep one"},
        Mistake{"bad_name", with_limit("{name: a/b, scope: node, rate: 1/s}"), 2, 17, "not a name",
                "write a letter"},
        Mistake{"digit_name", with_limit("{name: 1a, scope: node, rate: 1/s}"), 2, 17, "not a name",
                "write a letter"},
        Mistake{"long_name",
                with_limit("{name: " + std::string(65, 'a') + ", scope: node, rate: 1/s}"), 2, 17,
                "not a name", "at most 64"},
        Mistake{"name_list", with_limit("{name: [a], scope: node, rate: 1/s}"), 2, 17,
                "a list where a single value", "api"},
        Mistake{"taken_name",
                "version: 1\nlimits:\n  - {name: api, scope: node, rate: 1/s}\n"
                "  - {name: api, scope: node, rate: 2/s}\n",
                4, 12, "`api` is taken by the limit on line 3", "each limit has its own name"},
        Mistake{"bad_scope", with_limit("{name: a, scope: globl, rate: 1/s}"), 2, 27,
                "unknown `globl`", "`global`"},
        Mistake{"bad_algorithm", with_limit("{name: a, scope: node, algorithm: leaky, rate: 1/s}"),
                2, 44, "unknown `leaky`", "token_bucket"},
        Mistake{"no_rate", with_limit("{name: a, scope: node}"), 2, 10, "`rate` is missing",
                "rate: 600/min"},
        Mistake{"empty_rate", with_limit("{name: a, scope: node, rate: }"), 2, 33,
                "nothing where a single value", "600/min"},
        Mistake{"rate_number", with_limit("{name: a, scope: node, rate: 600}"), 2, 39, "not a rate",
                "600/min"},
        Mistake{"rate_zero", with_limit("{name: a, scope: node, rate: 0/s}"), 2, 39,
                "lets nothing through", "blocked"},
        Mistake{"rate_octal", with_limit("{name: a, scope: node, rate: 010/s}"), 2, 39,
                "leading zero", "write 10"},
        Mistake{"rate_float", with_limit("{name: a, scope: node, rate: 1.5/s}"), 2, 39,
                "whole number", "plain digits"},
        Mistake{"rate_map", with_limit("{name: a, scope: node, rate: {count: 1}}"), 2, 39,
                "a map where a single value", "600/min"},
        Mistake{"burst_zero", with_limit("{name: a, scope: node, rate: 1/s, burst: 0}"), 2, 51,
                "too small", "from 1"},
        Mistake{"burst_negative", with_limit("{name: a, scope: node, rate: 1/s, burst: -1}"), 2, 51,
                "negative", "from 1"},
        Mistake{"burst_hex", with_limit("{name: a, scope: node, rate: 1/s, burst: 0x10}"), 2, 51,
                "not decimal", "plain digits"},
        Mistake{"burst_underscore", with_limit("{name: a, scope: node, rate: 1/s, burst: 1_000}"),
                2, 51, "separators", "digits alone"},
        Mistake{"burst_exponent", with_limit("{name: a, scope: node, rate: 1/s, burst: 1e3}"), 2,
                51, "whole number", "plain digits"},
        Mistake{"burst_overflow",
                with_limit("{name: a, scope: node, rate: 1/s, burst: 9223372036854775808}"), 2, 51,
                "too large", "9223372036854775807"},
        Mistake{"burst_text", with_limit("{name: a, scope: node, rate: 1/s, burst: \"5\"}"), 2, 51,
                "quoted text where a number", "`1`"},
        Mistake{"burst_without_rate", with_limit("{name: a, scope: node, burst: 5}"), 2, 33,
                "without `rate`", "rate: 600/min"}),
    mistake_name);

INSTANTIATE_TEST_SUITE_P(
    Contradiction, PolicyMistake,
    testing::Values(
        Mistake{"rate_and_window",
                with_limit("{name: a, scope: global, quota: 5, window: day, rate: 1/s}"), 2, 58,
                "contradicts a fixed window", "remove"},
        Mistake{"burst_and_window",
                with_limit("{name: a, scope: global, quota: 5, window: day, burst: 1}"), 2, 58,
                "contradicts a fixed window", "remove"},
        Mistake{"window_without_quota", with_limit("{name: a, scope: global, window: day}"), 2, 10,
                "`quota` is missing", "quota: 1000000"},
        Mistake{"quota_without_window", with_limit("{name: a, scope: global, quota: 5}"), 2, 10,
                "`window` is missing", "window: month"},
        Mistake{"bad_window", with_limit("{name: a, scope: global, quota: 5, window: year}"), 2, 53,
                "unknown `year`", "`month`"},
        Mistake{"quota_zero", with_limit("{name: a, scope: global, quota: 0, window: day}"), 2, 42,
                "too small", "from 1"},
        Mistake{"bad_timezone",
                with_limit("{name: a, scope: global, quota: 5, window: day, timezone: Mars/Base}"),
                2, 68, "not a time zone", "Europe/Berlin"},
        Mistake{
            "bucket_with_window",
            with_limit("{name: a, scope: global, algorithm: token_bucket, rate: 1/s, window: day}"),
            2, 71, "contradicts `algorithm: token_bucket`", "fixed_window"},
        Mistake{"bucket_with_timezone",
                with_limit("{name: a, scope: global, rate: 1/s, timezone: UTC}"), 2, 46,
                "no calendar", "remove"},
        Mistake{"sliding_not_node",
                with_limit("{name: a, scope: global, algorithm: sliding_window, rate: 1/s}"), 2, 35,
                "`scope: node` alone", "another algorithm"},
        Mistake{
            "sliding_burst",
            with_limit("{name: a, scope: node, algorithm: sliding_window, rate: 1/s, burst: 2}"), 2,
            71, "no burst", "count in `rate`"},
        Mistake{"sliding_without_rate",
                with_limit("{name: a, scope: node, algorithm: sliding_window}"), 2, 10,
                "`rate` is missing", "rate: 600/min"},
        Mistake{"strict_node", with_limit("{name: a, scope: node, rate: 1/s, strict: true}"), 2, 52,
                "scope node", "scope: global"},
        Mistake{"unreachable_node",
                with_limit("{name: a, scope: node, rate: 1/s, on_unreachable: deny}"), 2, 44,
                "no owner", "remove"},
        Mistake{"bad_unreachable",
                with_limit("{name: a, scope: global, rate: 1/s, on_unreachable: static}"), 2, 62,
                "unknown `static`", "write one of `static_share`, `allow`, `deny`"},
        Mistake{"yes", with_limit("{name: a, scope: global, rate: 1/s, shadow: yes}"), 2, 54,
                "`yes`", "`true` or `false`"},
        Mistake{"capital_true", with_limit("{name: a, scope: global, rate: 1/s, strict: True}"), 2,
                54, "`True`", "`true` or `false`"},
        Mistake{"quoted_true", with_limit("{name: a, scope: global, rate: 1/s, strict: \"true\"}"),
                2, 54, "quoted text", "`true` or `false`"},
        Mistake{"by_lacks_customer", with_limit("{name: a, scope: global, rate: 1/s, by: [ip]}"), 2,
                50, "owned by a customer", "add `customer`"},
        Mistake{"by_empty", with_limit("{name: a, scope: region, rate: 1/s, by: []}"), 2, 50,
                "owned by a customer", "scope: node"},
        Mistake{"by_twice", with_limit("{name: a, scope: node, rate: 1/s, by: [ip, ip]}"), 2, 53,
                "twice", "once"},
        Mistake{"by_word", with_limit("{name: a, scope: node, rate: 1/s, by: customer}"), 2, 48,
                "a plain value where a list", "[customer, ip]"},
        Mistake{"by_cost", with_limit("{name: a, scope: node, rate: 1/s, by: [cost]}"), 2, 49,
                "no attribute", "another"},
        Mistake{"by_many",
                with_limit("{name: a, scope: node, rate: 1/s, by: [a, b, c, d, e, f, g, h, i]}"), 2,
                48, "more than 8", "the few"},
        Mistake{"match_empty", with_limit("{name: a, scope: node, rate: 1/s, match: {}}"), 2, 51,
                "empty", "remove it"},
        Mistake{"match_null", with_limit("{name: a, scope: node, rate: 1/s, match: {route: }}"), 2,
                52, "nothing where a single value", "POST /login"},
        Mistake{"match_star_inside",
                with_limit("{name: a, scope: node, rate: 1/s, match: {route: \"/a*b\"}}"), 2, 59,
                "`*` inside", "only end"},
        Mistake{"match_two_stars",
                with_limit("{name: a, scope: node, rate: 1/s, match: {route: /a**}}"), 2, 59,
                "`*` inside", "only end"},
        Mistake{"match_list",
                with_limit("{name: a, scope: node, rate: 1/s, match: {route: [a, b]}}"), 2, 59,
                "a list where a single value", "POST /login"}),
    mistake_name);

INSTANTIATE_TEST_SUITE_P(
    PlansAndCustomers, PolicyMistake,
    testing::Values(
        Mistake{"null_plan", with_rest("plans: {free: }\n"), 6, 9, "nothing where a map", "{api:"},
        Mistake{"bad_plan_name", with_rest("plans: {1st: {}}\n"), 6, 9, "not a name", "letter"},
        Mistake{"duplicate_plan", with_rest("plans: {free: {}, free: {}}\n"), 6, 19,
                "duplicate key `free`", "keep one"},
        Mistake{"unknown_limit", with_rest("plans: {free: {apy: {rate: 1/s}}}\n"), 6, 16,
                "unknown limit `apy`", "`api`"},
        Mistake{"unknown_limit_of_customer", with_rest("customers: {a: {limits: {x1: blocked}}}\n"),
                6, 26, "unknown limit `x1`", "write one of `api`, `guard`, `monthly`"},
        Mistake{"undeclared_default_plan", with_rest("plans: {free: {}}\ndefault_plan: fre\n"), 7,
                15, "unknown plan `fre`", "`free`"},
        Mistake{"undeclared_plan", with_rest("customers:\n  a: {plan: pro}\n"), 7, 13,
                "unknown plan `pro`", "declare it"},
        Mistake{"empty_override", with_rest("plans: {free: {api: {}}}\n"), 6, 21, "empty",
                "unlimited"},
        Mistake{"null_override", with_rest("plans: {free: {api: }}\n"), 6, 16, "override of `api`",
                "`unlimited`, `blocked`"},
        Mistake{"bad_word", with_rest("plans: {free: {api: unlimitd}}\n"), 6, 21,
                "unknown `unlimitd`", "`unlimited`"},
        Mistake{"quoted_word", with_rest("plans: {free: {api: \"blocked\"}}\n"), 6, 21,
                "unknown `blocked`", "`unlimited`, `blocked`"},
        Mistake{"quota_for_a_bucket", with_rest("plans: {free: {api: {quota: 5}}}\n"), 6, 22,
                "unknown key `quota`", "`rate`, `burst`"},
        Mistake{"rate_for_a_window", with_rest("plans: {free: {monthly: {rate: 5/s}}}\n"), 6, 26,
                "unknown key `rate`", "`quota`"},
        Mistake{"burst_zero_in_a_plan", with_rest("plans: {free: {api: {burst: 0}}}\n"), 6, 29,
                "too small", "from 1"},
        Mistake{"numbers_for_a_shared_bucket", with_rest("plans: {free: {guard: {rate: 1/s}}}\n"),
                6, 23, "lacks `customer`", "`unlimited`"},
        Mistake{"customers_list", with_rest("customers: [acme]\n"), 6, 12, "a list where a map",
                "{acme:"},
        Mistake{"customer_word", with_rest("customers: {acme: pro}\n"), 6, 19,
                "a plain value where a map", "{plan: pro}"},
        Mistake{"duplicate_customer", with_rest("customers:\n  a: {}\n  b: {}\n  \"a\": {}\n"), 9,
                3, "duplicate key `a`", "first on line 7"},
        Mistake{"customer_key", with_rest("customers: {a: {limit: {}}}\n"), 6, 17,
                "unknown key `limit`", "`limits`"},
        Mistake{"long_customer",
                with_rest("customers:\n  ? " + std::string(kMaxKeyBytes + 1, 'x') + "\n  : {}\n"),
                7, 5, "longer than 1024", "shorten"}),
    mistake_name);

TEST(ConfigPolicy, TenDifferentMistakesAreTenErrors) {
  const auto parsed = parse_policy(
      "version: 010\n"                                     // 1 leading zero
      "limits:\n"                                          //
      "  - name: api\n"                                    //
      "    scope: globl\n"                                 // 2 unknown word
      "    rate: 600\n"                                    // 3 no rate
      "  - name: 1login\n"                                 // 4 no name
      "    scope: global\n"                                //
      "    by: [ip]\n"                                     // 5 no customer
      "    rate: 5/min\n"                                  //
      "    brust: 3\n"                                     // 6 unknown key
      "  - {name: b, scope: node, rate: 1/s, burst: 0}\n"  // 7 burst 0
      "plans:\n"                                           //
      "  free: {}\n"                                       //
      "  free: {}\n"                                       // 8 duplicate
      "default_plan: fee\n"                                // 9 undeclared
      "customers:\n"                                       //
      "  acme: {plan: free, limits: {nope: blocked}}\n",   // 10 unknown limit
      "p.yaml");
  EXPECT_FALSE(parsed);
  std::vector<std::pair<int, int>> places;
  for (const auto& error : parsed.errors) places.emplace_back(error.line, error.column);
  EXPECT_THAT(places,
              ElementsAre(std::pair(1, 10), std::pair(4, 12), std::pair(5, 11), std::pair(6, 11),
                          std::pair(8, 9), std::pair(10, 5), std::pair(11, 46), std::pair(14, 3),
                          std::pair(15, 15), std::pair(17, 31)))
      << to_string(parsed.errors);
}

TEST(ConfigPolicy, TooManyLimitsIsOneErrorAtTheFirstTooMany) {
  std::string text = "version: 1\nlimits:\n";
  for (std::size_t i = 0; i < kMaxLimitsPerPolicy; ++i) {
    text += "  - {name: l" + std::to_string(i) + ", scope: node, rate: 1/s}\n";
  }
  EXPECT_EQ(good(text).limits.size(), kMaxLimitsPerPolicy);
  text += "  - {name: x, scope: node, rate: 1/s}\n  - {name: y, scope: node, rate: 1/s}\n";
  const auto parsed = parse_policy(text, "p.yaml");
  ASSERT_EQ(parsed.errors.size(), 1U) << to_string(parsed.errors);
  EXPECT_EQ(parsed.errors[0].line, 259);
  EXPECT_THAT(parsed.errors[0].message, HasSubstr("more than 256"));
}

TEST(ConfigPolicy, ManyCustomersEachKeepTheirOwn) {
  constexpr int kCustomers = 20'000;
  std::string text = with_rest("plans: {pro: {api: {burst: 1000}}}\ncustomers:\n");
  for (int i = 1; i <= kCustomers; ++i) {
    const std::string number = std::to_string(i);
    text += "  customer-" + number + ": {plan: pro, limits: {api: {rate: " + number + "/min}}}\n";
  }
  const PolicyDefinition policy = good(text);
  ASSERT_EQ(policy.customers.size(), static_cast<std::size_t>(kCustomers));
  for (const int i : {1, 777, kCustomers}) {
    const auto& customer = policy.customers.at("customer-" + std::to_string(i));
    EXPECT_EQ(customer.plan, "pro");
    EXPECT_EQ(customer.limits.at("api").numbers, (LimitNumbers{i, i, kMinute}));
  }
}

TEST(ConfigPolicy, ABrokenLimitIsNotReportedAgainByItsOverrides) {
  const auto parsed = parse_policy(
      "version: 1\n"
      "limits: [{name: api, scope: global, rate: 600}]\n"
      "plans: {pro: {api: {rate: 1/s}}}\n"
      "customers: {acme: {plan: pro, limits: {api: {burst: 5}}}}\n",
      "p.yaml");
  ASSERT_EQ(parsed.errors.size(), 1U) << to_string(parsed.errors);
  EXPECT_EQ(parsed.errors[0].line, 2);
}

TEST(ConfigPolicy, EveryAlgorithmIsServed) {
  const std::string text =
      "version: 1\n"
      "limits:\n"
      "  - {name: api, scope: global, rate: 1/s}\n"
      "  - {name: m, scope: global, quota: 5, window: month}\n"
      "  - {name: s, scope: node, algorithm: sliding_window, rate: 1/s}\n";
  const auto parsed = parse_policy(text, "p.yaml", policy::check_limit_supported);
  EXPECT_TRUE(parsed) << to_string(parsed.errors);
  EXPECT_TRUE(policy::check_supported(good(text)));
}

TEST(ConfigPolicy, LimitsThatAreNotServedAreRefusedWhereTheyAsk) {
  const std::string text =
      "version: 1\n"
      "limits:\n"
      "  - {name: api, scope: global, rate: 1/s}\n"
      "  - {name: m, scope: global, quota: 5, window: month}\n";
  const auto serves_no_windows = [](const LimitDefinition& limit) -> Status {
    if (limit.algorithm != Algorithm::fixed_window) return {};
    return failure(ErrorCode::unsupported, "algorithm", "fixed_window is not served here");
  };
  const auto parsed = parse_policy(text, "p.yaml", serves_no_windows);
  ASSERT_EQ(parsed.errors.size(), 1U) << to_string(parsed.errors);
  EXPECT_THAT(to_string(parsed.errors[0]),
              HasSubstr("p.yaml:4:40: limit `m`: fixed_window is not served here"));

  // What a later build's policy may name.
  PolicyDefinition definition = good(text);
  definition.limits[1].algorithm = static_cast<Algorithm>(200);
  const Status status = policy::check_supported(definition);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::unsupported);
  EXPECT_THAT(status.error().message, HasSubstr("`m`"));
  definition.limits.resize(1);
  EXPECT_TRUE(policy::check_supported(definition));
}

}  // namespace
}  // namespace weir::config
