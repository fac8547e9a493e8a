// Goal: the compiled policy says what a reader of the definition would say, bucket keys are
// injective, and matching allocates nothing. Method: a naive implementation straight from API.md,
// random policies and checks against it; a counting operator new.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/base/random.h"
#include "src/model/ids.h"
#include "src/policy/policy.h"
#include "test/unit/policy_count_allocations.h"

namespace weir::policy {
namespace {

using testing::ElementsAre;
using Kind = MatchedLimit::Kind;

LimitDefinition limit(std::string name, Scope scope, LimitNumbers numbers,
                      std::vector<AttributeMatch> match = {},
                      std::vector<std::string> by = {"customer"}) {
  LimitDefinition definition;
  definition.name = std::move(name);
  definition.scope = scope;
  definition.numbers = numbers;
  definition.match = std::move(match);
  definition.by = std::move(by);
  return definition;
}

LimitOverride to(LimitNumbers numbers) { return {LimitOverride::Kind::numbers, numbers}; }
const LimitOverride kUnlimited{LimitOverride::Kind::unlimited, {}};
const LimitOverride kBlocked{LimitOverride::Kind::blocked, {}};

std::vector<std::string> names(const std::vector<MatchedLimit>& matched) {
  std::vector<std::string> out;
  for (const auto& one : matched) out.push_back(one.limit->name);
  return out;
}

std::vector<std::string> names_for(const Policy& policy, const Check& check) {
  std::vector<MatchedLimit> out(3);  // what stood in it goes
  policy.match(check, out);
  return names(out);
}

TEST(PolicyMatch, NodeScopeFirstThenTheFilesOrder) {
  PolicyDefinition definition;
  definition.limits = {limit("z", Scope::global, {1, 1, 1}), limit("b", Scope::node, {1, 1, 1}),
                       limit("y", Scope::region, {1, 1, 1}), limit("a", Scope::node, {1, 1, 1})};
  const Policy policy(definition);
  EXPECT_THAT(names_for(policy, {"acme", {}, 1}), ElementsAre("b", "a", "z", "y"));
  std::vector<MatchedLimit> out;
  policy.match({"acme", {}, 1}, out);
  EXPECT_EQ(out[0].index, 1U);
  EXPECT_EQ(out[0].limit, &policy.definition().limits[1]);
}

TEST(PolicyMatch, AllConditionsMustHold) {
  PolicyDefinition definition;
  definition.limits = {
      limit("exact", Scope::global, {1, 1, 1}, {{"route", "POST /login", false}}),
      limit("prefix", Scope::global, {1, 1, 1}, {{"route", "POST /", true}}),
      limit("present", Scope::global, {1, 1, 1}, {{"ip", "", true}}),
      limit("empty", Scope::global, {1, 1, 1}, {{"ip", "", false}}),
      limit("both", Scope::global, {1, 1, 1}, {{"route", "POST ", true}, {"ip", "1", false}}),
      limit("who", Scope::global, {1, 1, 1}, {{"customer", "ac", true}})};
  const Policy policy(definition);
  EXPECT_THAT(names_for(policy, {"x", {}, 1}), ElementsAre());
  EXPECT_THAT(names_for(policy, {"acme", {}, 1}), ElementsAre("who"));
  EXPECT_THAT(names_for(policy, {"x", {{"route", "POST /login"}}, 1}),
              ElementsAre("exact", "prefix"));
  EXPECT_THAT(names_for(policy, {"x", {{"route", "POST /login2"}}, 1}), ElementsAre("prefix"));
  EXPECT_THAT(names_for(policy, {"x", {{"route", "POST"}}, 1}), ElementsAre());
  EXPECT_THAT(names_for(policy, {"x", {{"ip", ""}}, 1}), ElementsAre("present", "empty"));
  EXPECT_THAT(names_for(policy, {"x", {{"ip", "1"}, {"route", "POST x"}}, 1}),
              ElementsAre("present", "both"));
}

TEST(PolicyMatch, TheCustomersWordBeatsThePlansBeatsTheLimits) {
  PolicyDefinition definition;
  definition.limits = {limit("api", Scope::global, {10, 10, 1}),
                       limit("other", Scope::global, {20, 20, 1})};
  definition.plans = {{"free", {}},
                      {"pro", {{"api", to({100, 100, 1})}, {"other", kUnlimited}}},
                      {"team", {{"api", to({50, 50, 1})}}}};
  definition.default_plan = "team";
  definition.customers = {{"acme", {"pro", {{"api", to({7, 7, 1})}}}},
                          {"bob", {"pro", {}}},
                          {"carol", {"free", {}}},
                          {"dave", {"", {{"other", kBlocked}}}}};
  const Policy policy(definition);
  const auto look = [&](const char* name, const char* customer) {
    const auto found = policy.find(name, customer);
    return std::pair(found->kind, found->numbers.capacity);
  };
  EXPECT_EQ(look("api", "acme"), std::pair(Kind::numbers, std::int64_t{7}));
  EXPECT_EQ(look("other", "acme").first, Kind::unlimited);
  EXPECT_EQ(look("api", "bob"), std::pair(Kind::numbers, std::int64_t{100}));
  EXPECT_EQ(look("api", "carol"), std::pair(Kind::numbers, std::int64_t{10}));
  EXPECT_EQ(look("api", "dave"), std::pair(Kind::numbers, std::int64_t{50}));
  EXPECT_EQ(look("other", "dave").first, Kind::blocked);
  EXPECT_EQ(look("api", "stranger"), std::pair(Kind::numbers, std::int64_t{50}));
  EXPECT_EQ(look("other", "stranger"), std::pair(Kind::numbers, std::int64_t{20}));
  EXPECT_FALSE(policy.find("none", "acme"));
  // Unlimited and blocked limits match like any other.
  EXPECT_THAT(names_for(policy, {"dave", {}, 1}), ElementsAre("api", "other"));
}

/// API.md read literally, with a search for everything.
std::vector<MatchedLimit> naive_match(const PolicyDefinition& policy, const Check& check) {
  std::vector<MatchedLimit> out;
  for (const bool node_scope : {true, false}) {
    for (std::uint32_t i = 0; i < policy.limits.size(); ++i) {
      const auto& limit = policy.limits[i];
      if ((limit.scope == Scope::node) != node_scope) continue;
      bool holds = true;
      for (const auto& condition : limit.match) {
        const auto* value = check.attribute(condition.attribute);
        holds = holds && value != nullptr &&
                (condition.prefix ? value->substr(0, condition.value.size()) == condition.value
                                  : *value == condition.value);
      }
      if (!holds) continue;
      MatchedLimit matched{&limit, i, Kind::numbers, limit.numbers};
      const auto apply = [&](const LimitOverrides& overrides) {
        const auto found = overrides.find(limit.name);
        if (found == overrides.end()) return;
        matched.kind = static_cast<Kind>(found->second.kind);
        matched.numbers = found->second.numbers;
      };
      std::string plan = policy.default_plan;
      const auto customer = policy.customers.find(check.customer);
      if (customer != policy.customers.end() && !customer->second.plan.empty()) {
        plan = customer->second.plan;
      }
      if (!plan.empty()) apply(policy.plans.at(plan));
      if (customer != policy.customers.end()) apply(customer->second.limits);
      out.push_back(matched);
    }
  }
  return out;
}

const std::vector<std::string> kWords = {"", "a", "ab", "abc", "b", "/x", "/x/y"};
const std::vector<std::string> kAttributes = {"customer", "ip", "method", "route"};

std::string pick(const std::vector<std::string>& from, Random& random) {
  return from[random.below(from.size())];
}

LimitOverrides random_overrides(const PolicyDefinition& policy, Random& random) {
  LimitOverrides overrides;
  for (const auto& limit : policy.limits) {
    if (!random.chance(300)) continue;
    LimitOverride change;
    change.kind = static_cast<LimitOverride::Kind>(1 + random.below(3));
    if (change.kind == LimitOverride::Kind::numbers) {
      change.numbers = {random.between(1, 99), random.between(1, 99), random.between(1, 99)};
    }
    overrides.emplace(limit.name, change);
  }
  return overrides;
}

PolicyDefinition random_policy(Random& random) {
  PolicyDefinition policy;
  policy.version = 1;
  for (std::uint64_t i = random.below(12); i > 0; --i) {
    auto next = limit("l" + std::to_string(i), static_cast<Scope>(1 + random.below(3)),
                      {random.between(1, 99), random.between(1, 99), random.between(1, 99)});
    std::set<std::string> used;
    for (std::uint64_t j = random.below(3); j > 0; --j) {
      const std::string attribute = pick(kAttributes, random);
      if (!used.insert(attribute).second) continue;
      next.match.push_back({attribute, pick(kWords, random), random.chance(500)});
    }
    policy.limits.push_back(std::move(next));
  }
  for (const char* plan : {"free", "pro", "team"}) {
    if (random.chance(700)) policy.plans.emplace(plan, random_overrides(policy, random));
  }
  const auto some_plan = [&]() -> std::string {
    if (policy.plans.empty() || random.chance(300)) return "";
    return std::next(policy.plans.begin(),
                     static_cast<std::ptrdiff_t>(random.below(policy.plans.size())))
        ->first;
  };
  policy.default_plan = some_plan();
  for (const auto& id : kWords) {
    if (id.empty() || random.chance(400)) continue;
    policy.customers[id] = {some_plan(), random_overrides(policy, random)};
  }
  return policy;
}

Check random_check(Random& random) {
  Check check;
  check.customer = kWords[1 + random.below(kWords.size() - 1)];
  for (std::size_t i = 1; i < kAttributes.size(); ++i) {
    if (random.chance(600)) check.attributes.emplace_back(kAttributes[i], pick(kWords, random));
  }
  return check;
}

TEST(PolicyMatch, AgreesWithANaiveReading) {
  Random random(11);
  std::size_t matched_in_all = 0;
  for (int round = 0; round < 300; ++round) {
    const Policy policy(random_policy(random));
    for (int i = 0; i < 30; ++i) {
      const Check check = random_check(random);
      std::vector<MatchedLimit> found;
      policy.match(check, found);
      const auto expected = naive_match(policy.definition(), check);
      ASSERT_EQ(found.size(), expected.size());
      matched_in_all += found.size();
      for (std::size_t j = 0; j < found.size(); ++j) {
        EXPECT_EQ(found[j].limit, expected[j].limit);
        EXPECT_EQ(found[j].index, expected[j].index);
        EXPECT_EQ(found[j].kind, expected[j].kind);
        EXPECT_EQ(found[j].numbers, expected[j].numbers);
        const auto alone = policy.find(expected[j].limit->name, check.customer);
        ASSERT_TRUE(alone);
        EXPECT_EQ(alone->index, expected[j].index);
        EXPECT_EQ(alone->kind, expected[j].kind);
        EXPECT_EQ(alone->numbers, expected[j].numbers);
      }
    }
  }
  EXPECT_GT(matched_in_all, 10'000U);
}

TEST(PolicyMatch, AllocatesNothingOnceTheBuffersAreGrown) {
  Random random(12);
  PolicyDefinition definition = random_policy(random);
  for (int i = 0; i < 1000; ++i) {
    definition.customers["customer-" + std::to_string(i)] = {"",
                                                             random_overrides(definition, random)};
  }
  definition.limits.push_back(limit("wide", Scope::global, {1, 1, 1}, {}, {"route", "customer"}));
  const Policy policy(definition);
  const Check check{"customer-77", {{"route", "/a/route/too/long/for/small/strings"}}, 1};
  std::vector<MatchedLimit> out;
  out.reserve(definition.limits.size());
  std::string key;
  key.reserve(1024);
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 10; ++i) {
    policy.match(check, out);
    for (const auto& matched : out) {
      key.clear();
      policy.append_bucket_key(*matched.limit, check, "eu", key);
    }
    (void)policy.find("wide", "customer-78");
  }
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_FALSE(out.empty());
}

std::string key_of(const Policy& policy, std::size_t index, const Check& check,
                   std::string_view region = "eu") {
  std::string key;
  policy.append_bucket_key(policy.definition().limits[index], check, region, key);
  return key;
}

TEST(PolicyKey, IsTheEncodedTuple) {
  PolicyDefinition definition;
  definition.limits = {
      limit("api", Scope::global, {1, 1, 1}, {}, {"route", "customer", "ip"}),
      limit("near", Scope::region, {1, 1, 1}),
      limit("guard", Scope::node, {1, 1, 1}, {}, {}),
      limit("by-ip", Scope::node, {1, 1, 1}, {}, {"ip"}),
  };
  const Policy policy(definition);
  const Check check{"acme", {{"route", "/x"}, {"unused", "1"}}, 1};
  EXPECT_EQ(decode_bucket_key(key_of(policy, 0, check)).value(),
            (BucketKey{"acme", Scope::global, "", "api", {{"ip", std::nullopt}, {"route", "/x"}}}));
  EXPECT_EQ(decode_bucket_key(key_of(policy, 1, check)).value(),
            (BucketKey{"acme", Scope::region, "eu", "near", {}}));
  EXPECT_EQ(decode_bucket_key(key_of(policy, 2, check)).value(),
            (BucketKey{"", Scope::node, "", "guard", {}}));
  EXPECT_EQ(decode_bucket_key(key_of(policy, 3, check)).value(),
            (BucketKey{"", Scope::node, "", "by-ip", {{"ip", std::nullopt}}}));
  EXPECT_NE(key_of(policy, 1, check, "eu"), key_of(policy, 1, check, "us"));
  std::string appended = "prefix";
  policy.append_bucket_key(policy.definition().limits[2], check, "eu", appended);
  EXPECT_EQ(appended, "prefix" + key_of(policy, 2, check));
}

TEST(PolicyKey, DoesNotDependOnTheOrderOfAttributesOrOfBy) {
  PolicyDefinition one;
  one.limits = {limit("api", Scope::global, {1, 1, 1}, {}, {"customer", "a", "b"})};
  PolicyDefinition other;
  other.limits = {limit("api", Scope::global, {1, 1, 1}, {}, {"b", "a", "customer"})};
  const Check check{"acme", {{"a", "1"}, {"b", "2"}}, 1};
  const Check turned{"acme", {{"b", "2"}, {"a", "1"}}, 1};
  const std::string key = key_of(Policy(one), 0, check);
  EXPECT_EQ(key_of(Policy(one), 0, turned), key);
  EXPECT_EQ(key_of(Policy(other), 0, check), key);
  EXPECT_EQ(key_of(Policy(other), 0, turned), key);
}

TEST(PolicyKey, IsInjectiveOverCustomersAndAttributes) {
  PolicyDefinition definition;
  definition.limits = {limit("l", Scope::global, {1, 1, 1}, {}, {"customer", "ip", "route"}),
                       limit("l1", Scope::global, {1, 1, 1}, {}, {"customer", "ip", "route"})};
  const Policy policy(definition);
  const std::vector<std::string> values = {"", "a", "a_", "_a", "ab", "\x01", "1", "ip", "a:b"};
  std::map<std::string, std::string> seen;  // key -> what it is of
  std::size_t tuples = 0;
  for (std::size_t index = 0; index < 2; ++index) {
    for (const auto& customer : values) {
      // One past the end stands for an absent attribute.
      for (std::size_t ip = 0; ip <= values.size(); ++ip) {
        for (std::size_t route = 0; route <= values.size(); ++route) {
          Check check{customer, {}, 1};
          if (ip < values.size()) check.attributes.emplace_back("ip", values[ip]);
          if (route < values.size()) check.attributes.emplace_back("route", values[route]);
          seen.emplace(key_of(policy, index, check), customer);
          ++tuples;
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), tuples);
}

}  // namespace
}  // namespace weir::policy
