#include <algorithm>
#include <utility>

#include "src/base/hash.h"
#include "src/base/limits.h"
#include "src/config/from_document.h"
#include "src/config/policy_overrides.h"
#include "src/config/reader.h"
#include "src/config/scalars.h"

namespace weir::config {
namespace {

constexpr const char* kLimitExample = "{name: api, scope: global, rate: 600/min}";

class PolicyParser {
 public:
  PolicyParser(const YamlDocument& document, Problems& problems, const LimitCheck& check_limit)
      : reader_(document, problems), problems_(problems), check_limit_(check_limit) {}

  PolicyDefinition parse(const YamlNode& root) {
    MapReader map(reader_, root, "policy", "version: 1");
    if (!map.is_map()) return {};
    if (const auto* node = map.require("version", "version: 1")) {
      if (const auto version = reader_.integer(*node, "version", 1, INT64_MAX)) {
        policy_.version = static_cast<std::uint64_t>(*version);
      }
    }
    const std::string example = std::string("limits: [") + kLimitExample + "]";
    const YamlNode* limits = map.require("limits", example);
    if (limits != nullptr) read_limits(*limits);
    if (const auto* node = map.take("plans")) read_plans(*node);
    if (const auto* node = map.take("default_plan")) {
      const auto plan = read_plan_name(*node, "default_plan");
      if (plan) policy_.default_plan = *plan;
    }
    if (const auto* node = map.take("customers")) read_customers(*node);
    map.finish();
    policy_.limits = limits_.take_definitions();
    return std::move(policy_);
  }

 private:
  void read_limits(const YamlNode& node) {
    const auto items = reader_.items(node, "limits", std::string("[") + kLimitExample + "]");
    if (!items) return;
    if (items->empty()) {
      reader_.error(node,
                    "limits: none, which would let everything through; write at least one such as "
                    "`" +
                        std::string(kLimitExample) + "`, with `shadow: true` if it must not deny");
    }
    for (const auto* item : *items) {
      if (limits_.size() >= kMaxLimitsPerPolicy) {
        reader_.error(*item, "limits: more than " + std::to_string(kMaxLimitsPerPolicy) +
                                 ", merge some with `by` or a trailing `*`");
        return;
      }
      read_limit(*item);
    }
  }

  void read_limit(const YamlNode& item) {
    const std::size_t errors_before = problems_.count();
    MapReader map(reader_, item, "limit", kLimitExample);
    if (!map.is_map()) return;
    LimitDefinition limit;
    bool is_new = false;
    if (const auto* node = map.require("name", "name: api")) is_new = read_name(*node, limit);
    const YamlNode* scope = map.require("scope", "scope: global");
    if (scope != nullptr) {
      const auto value = reader_.word<Scope>(
          *scope, "scope",
          {{"node", Scope::node}, {"region", Scope::region}, {"global", Scope::global}});
      scope_is_known_ = value.has_value();
      if (value) limit.scope = *value;
    } else {
      scope_is_known_ = false;
    }
    read_numbers(map, limit);
    if (const auto* node = map.take("match")) read_match(*node, limit);
    read_by(map, limit);
    if (const auto* node = map.take("shadow")) {
      if (const auto value = reader_.boolean(*node, "shadow")) limit.shadow = *value;
    }
    read_strictness(map, limit);
    map.finish();
    const bool sound = problems_.count() == errors_before;
    if (sound) ask_whether_supported(map, limit);
    if (is_new) limits_.add({std::move(limit), sound, item.line});
  }

  /// True when the name is right and not taken.
  bool read_name(const YamlNode& node, LimitDefinition& limit) {
    const auto name = reader_.scalar<std::string>(node, "name", "api", parse_name);
    if (!name) return false;
    limit.name = *name;
    const auto* first = limits_.find(*name);
    if (first == nullptr) return true;
    reader_.error(node, "name: " + in_quotes(*name) + " is taken by the limit on line " +
                            std::to_string(first->line) + ", each limit has its own name");
    return false;
  }

  /// An error at `key` when it is there: it contradicts the algorithm.
  void forbid(MapReader& map, std::string_view key, const std::string& why) {
    if (map.take(key) != nullptr) {
      reader_.error(*map.key_node(key), std::string(key) + ": " + why);
    }
  }

  void read_numbers(MapReader& map, LimitDefinition& limit) {
    const bool has_window = map.take("window") != nullptr || map.take("quota") != nullptr;
    limit.algorithm = has_window ? Algorithm::fixed_window : Algorithm::token_bucket;
    if (const auto* node = map.take("algorithm")) {
      const auto value = reader_.word<Algorithm>(*node, "algorithm",
                                                 {{"token_bucket", Algorithm::token_bucket},
                                                  {"fixed_window", Algorithm::fixed_window},
                                                  {"sliding_window", Algorithm::sliding_window}});
      if (!value) {  // which numbers are due is unknown: do not guess at them
        for (const auto* key : {"rate", "burst", "quota", "window", "timezone"}) map.take(key);
        return;
      }
      limit.algorithm = *value;
    }
    switch (limit.algorithm) {
      case Algorithm::token_bucket:
        read_token_bucket(map, limit);
        break;
      case Algorithm::fixed_window:
        read_fixed_window(map, limit);
        break;
      case Algorithm::sliding_window:
        read_sliding_window(map, limit);
        break;
    }
  }

  /// False when there is no `rate` or it is wrong; then `numbers` is as it was.
  bool read_rate(const YamlNode* node, LimitNumbers& numbers) {
    if (node == nullptr) return false;
    const auto rate = reader_.scalar<Rate>(*node, "rate", "600/min", parse_rate);
    if (rate) numbers = {rate->count, rate->count, rate->period_ns};
    return rate.has_value();
  }

  void read_token_bucket(MapReader& map, LimitDefinition& limit) {
    const auto* burst = map.take("burst");
    const auto* rate = map.take("rate");
    if (rate == nullptr && burst != nullptr) {
      reader_.error(*map.key_node("burst"),
                    "burst: without `rate`, write also how fast it fills, such as `rate: 600/min`");
    } else {
      read_rate(map.require("rate", "rate: 600/min"), limit.numbers);
    }
    if (burst != nullptr) {
      if (const auto value = reader_.integer(*burst, "burst", 1, INT64_MAX)) {
        limit.numbers.capacity = *value;
      }
    }
    const std::string why =
        "contradicts `algorithm: token_bucket`, remove it or write "
        "`algorithm: fixed_window` with `quota` and `window`";
    forbid(map, "quota", why);
    forbid(map, "window", why);
    forbid(map, "timezone", "a token bucket has no calendar, remove it");
  }

  void read_fixed_window(MapReader& map, LimitDefinition& limit) {
    if (const auto* quota = map.require("quota", "quota: 1000000")) {
      if (const auto value = reader_.integer(*quota, "quota", 1, INT64_MAX)) {
        limit.numbers.capacity = *value;
      }
    }
    if (const auto* window = map.require("window", "window: month")) {
      const auto value = reader_.word<Window>(*window, "window",
                                              {{"minute", Window::minute},
                                               {"hour", Window::hour},
                                               {"day", Window::day},
                                               {"week", Window::week},
                                               {"month", Window::month}});
      if (value) limit.window = *value;
    }
    if (const auto* timezone = map.take("timezone")) {
      const auto value =
          reader_.scalar<std::string>(*timezone, "timezone", "Europe/Berlin", parse_timezone);
      if (value) limit.timezone = *value;
    }
    const std::string why =
        "contradicts a fixed window, whose size is `quota` per `window`; "
        "remove it, or remove `quota` and `window`";
    forbid(map, "rate", why);
    forbid(map, "burst", why);
  }

  void read_sliding_window(MapReader& map, LimitDefinition& limit) {
    read_rate(map.require("rate", "rate: 600/min"), limit.numbers);
    forbid(map, "burst", "a sliding window has no burst, its size is the count in `rate`");
    forbid(map, "quota", "a sliding window takes `rate`, such as `rate: 600/min`");
    forbid(map, "window", "a sliding window takes `rate`, such as `rate: 600/min`");
    forbid(map, "timezone", "a sliding window has no calendar, remove it");
    if (scope_is_known_ && limit.scope != Scope::node) {
      reader_.error(*map.key_node("algorithm"),
                    "algorithm: sliding_window is for `scope: node` alone, write that or another "
                    "algorithm");
    }
  }

  /// True when `name` may name an attribute of a check.
  bool check_attribute(const YamlNode& node, std::string_view name, const char* what) {
    if (name == "cost") {
      reader_.error(node, std::string(what) + ": `cost` is no attribute, name another");
      return false;
    }
    if (!name.empty() && name.size() <= kMaxAttributeNameBytes) return true;
    reader_.error(node, std::string(what) + ": " + in_quotes(name) +
                            " is not the name of an attribute, write 1 to " +
                            std::to_string(kMaxAttributeNameBytes) + " bytes such as `route`");
    return false;
  }

  void read_match(const YamlNode& node, LimitDefinition& limit) {
    const auto entries = reader_.entries(node, "match", "{route: \"POST /login\"}");
    if (!entries) return;
    if (entries->empty()) {
      reader_.error(node,
                    "match: empty, write conditions such as `{route: \"POST /login\"}`, or "
                    "remove it to match every check");
    }
    if (entries->size() > kMaxAttributes) {
      reader_.error(node, "match: more than " + std::to_string(kMaxAttributes) +
                              " attributes, which no check has");
    }
    for (const auto& entry : *entries) {
      if (!check_attribute(*entry.key_node, entry.key, "match")) continue;
      auto value = reader_.text_value(*entry.value, "match", "route: \"POST /login\"");
      if (!value) continue;
      if (value->size() > kMaxKeyBytes) {
        reader_.error(*entry.value, "match: longer than " + std::to_string(kMaxKeyBytes) +
                                        " bytes, which no attribute is");
        continue;
      }
      const bool prefix = value->ends_with('*');
      if (prefix) value->pop_back();
      if (value->find('*') != std::string::npos) {
        reader_.error(*entry.value, "match: " + in_quotes(reader_.text(*entry.value)) +
                                        " has `*` inside, it may only end the text");
        continue;
      }
      limit.match.push_back({std::string(entry.key), std::move(*value), prefix});
    }
  }

  void read_by(MapReader& map, LimitDefinition& limit) {
    const auto* node = map.take("by");
    if (node == nullptr) return;
    const auto items = reader_.items(*node, "by", "[customer, ip]");
    if (!items) return;
    if (items->size() > kMaxByAttributes) {
      reader_.error(*node, "by: more than " + std::to_string(kMaxByAttributes) +
                               " attributes, name the few that tell buckets apart");
    }
    limit.by.clear();
    for (const auto* item : *items) {
      const auto name = reader_.text_value(*item, "by", "[customer, ip]");
      if (!name || !check_attribute(*item, *name, "by")) continue;
      if (is_keyed_by(limit, *name)) {
        reader_.error(*item, "by: " + in_quotes(*name) + " stands twice, name each attribute once");
        continue;
      }
      limit.by.push_back(*name);
    }
    if (scope_is_known_ && limit.scope != Scope::node && !is_keyed_by(limit, "customer")) {
      reader_.error(*node, std::string("by: a limit of scope ") + to_string(limit.scope) +
                               " is owned by a customer, add `customer`, or write `scope: node`");
    }
  }

  void read_strictness(MapReader& map, LimitDefinition& limit) {
    const bool is_node = scope_is_known_ && limit.scope == Scope::node;
    if (const auto* node = map.take("strict")) {
      const auto value = reader_.boolean(*node, "strict");
      if (value) limit.strict = *value;
      if (is_node && limit.strict) {
        reader_.error(*node,
                      "strict: a limit of scope node asks no owner and is exact already, "
                      "remove it, or write `scope: global`");
      }
    }
    if (const auto* node = map.take("on_unreachable")) {
      const auto value = reader_.word<FailurePolicy>(*node, "on_unreachable",
                                                     {{"static_share", FailurePolicy::static_share},
                                                      {"allow", FailurePolicy::allow},
                                                      {"deny", FailurePolicy::deny}});
      if (value) limit.on_unreachable = *value;
      if (is_node) {
        reader_.error(*map.key_node("on_unreachable"),
                      "on_unreachable: a limit of scope node has no owner to reach, remove it");
      }
    }
  }

  void ask_whether_supported(MapReader& map, const LimitDefinition& limit) {
    if (!check_limit_) return;
    const Status status = check_limit_(limit);
    if (status) return;
    const YamlNode* at = map.take("algorithm");
    if (at == nullptr) at = map.key_node("window");
    reader_.error(at != nullptr ? *at : map.node(),
                  "limit " + in_quotes(limit.name) + ": " + status.error().message);
  }

  void read_plans(const YamlNode& node) {
    const auto entries = reader_.entries(node, "plans", "{free: {}}");
    if (!entries) return;
    OverrideReader overrides(reader_, limits_);
    for (const auto& entry : *entries) {
      if (policy_.plans.size() >= kMaxPlans) {
        reader_.error(*entry.key_node, "plans: more than " + std::to_string(kMaxPlans) +
                                           ", give single customers `limits` instead");
        return;
      }
      reader_.scalar<std::string>(*entry.key_node, "plan", "free", parse_name);
      const std::string what = "plan " + in_quotes(entry.key);
      // A plan with mistakes is declared too, so that its customers are not reported as well.
      policy_.plans.emplace(entry.key, overrides.read(*entry.value, what, nullptr));
    }
  }

  std::optional<std::string> read_plan_name(const YamlNode& node, const char* what) {
    auto plan = reader_.text_value(node, what, "free");
    if (!plan) return std::nullopt;
    if (policy_.plans.contains(*plan)) return plan;
    std::vector<std::string_view> names;
    for (const auto& [name, overrides] : policy_.plans) names.push_back(name);
    reader_.error(node, std::string(what) + ": unknown plan " + in_quotes(*plan) +
                            (names.empty() ? ", declare it under `plans`"
                                           : reader_.suggestion(*plan, names)));
    return std::nullopt;
  }

  void read_customers(const YamlNode& node) {
    const auto entries = reader_.entries(node, "customers", "{acme: {plan: pro}}");
    if (!entries) return;
    OverrideReader overrides(reader_, limits_);
    for (const auto& entry : *entries) {
      if (entry.key.size() > kMaxKeyBytes) {
        reader_.error(*entry.key_node, "customers: an id longer than " +
                                           std::to_string(kMaxKeyBytes) +
                                           " bytes, which no check may carry: shorten it");
      }
      MapReader map(reader_, *entry.value, "customer", "{plan: pro}");
      CustomerDefinition customer;
      if (const auto* plan = map.take("plan")) {
        if (const auto name = read_plan_name(*plan, "plan")) customer.plan = *name;
      }
      if (const auto* limits = map.take("limits")) {
        const auto& plan = customer.plan.empty() ? policy_.default_plan : customer.plan;
        const auto base = policy_.plans.find(plan);
        customer.limits = overrides.read(*limits, "limits",
                                         base == policy_.plans.end() ? nullptr : &base->second);
      }
      map.finish();
      policy_.customers.emplace(entry.key, std::move(customer));
    }
  }

  Reader reader_;
  Problems& problems_;
  const LimitCheck& check_limit_;
  bool scope_is_known_ = false;  ///< of the limit being read
  DeclaredLimits limits_;
  PolicyDefinition policy_;
};

}  // namespace

PolicyDefinition policy_from(const YamlDocument& document, const YamlNode& root,
                             std::string_view text, const LimitCheck& check_limit,
                             Problems& problems) {
  PolicyDefinition policy = PolicyParser(document, problems, check_limit).parse(root);
  policy.content_hash = hash_bytes(text);
  return policy;
}

Parsed<PolicyDefinition> parse_policy(std::string_view text, std::string file_name,
                                      const LimitCheck& check_limit) {
  Problems problems(std::move(file_name));
  const YamlDocument document(text, problems);
  const YamlNode* root = document.root();
  if (root == nullptr) return problems.finish(PolicyDefinition());
  return problems.finish(policy_from(document, *root, text, check_limit, problems));
}

}  // namespace weir::config
