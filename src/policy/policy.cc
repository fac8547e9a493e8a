#include "src/policy/policy.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <span>
#include <unordered_map>
#include <utility>

#include "src/base/assert.h"
#include "src/base/hash.h"
#include "src/model/ids.h"

namespace weir::policy {
namespace {

MatchedLimit::Kind kind_of(LimitOverride::Kind kind) {
  switch (kind) {
    case LimitOverride::Kind::numbers:
      return MatchedLimit::Kind::numbers;
    case LimitOverride::Kind::unlimited:
      return MatchedLimit::Kind::unlimited;
    case LimitOverride::Kind::blocked:
      return MatchedLimit::Kind::blocked;
  }
  return MatchedLimit::Kind::numbers;
}

bool matches(const LimitDefinition& limit, const Check& check) {
  return std::all_of(limit.match.begin(), limit.match.end(), [&](const AttributeMatch& condition) {
    const std::string* value = check.attribute(condition.attribute);
    if (value == nullptr) return false;
    return condition.prefix ? value->starts_with(condition.value) : *value == condition.value;
  });
}

}  // namespace

/// Plans are resolved once and shared by their customers; a customer costs one map entry and what
/// it changes itself. Views point into the definition, which its Policy never changes.
struct Policy::Compiled {
  struct Resolved {
    MatchedLimit::Kind kind = MatchedLimit::Kind::numbers;
    LimitNumbers numbers;
  };
  using Plan = std::vector<Resolved>;  ///< by index of the limit

  struct Override {
    std::uint32_t limit = 0;  ///< index
    Resolved resolved;
  };
  struct Customer {
    std::uint32_t plan = 0;   ///< index into plans
    std::uint32_t first = 0;  ///< into overrides
    std::uint32_t count = 0;
  };

  explicit Compiled(const PolicyDefinition& definition);

  Plan resolve_plan(const PolicyDefinition& definition, const LimitOverrides& overrides) const;
  void add_customer(std::string_view id, const CustomerDefinition& customer);

  Customer customer(std::string_view id) const {
    const auto found = customers.find(id);
    return found == customers.end() ? Customer{default_plan, 0, 0} : found->second;
  }
  const Resolved& resolve(const Customer& customer, std::uint32_t limit) const {
    const auto own = std::span(overrides).subspan(customer.first, customer.count);
    for (const auto& change : own) {
      if (change.limit == limit) return change.resolved;
    }
    return plans[customer.plan][limit];
  }

  std::vector<std::uint32_t> order;  ///< of limits: scope node first, then as in the file
  std::unordered_map<std::string_view, std::uint32_t, StringHash> limit_index;
  std::vector<Plan> plans;  ///< the limits as written, then the definition's plans in their order
  std::unordered_map<std::string_view, std::uint32_t, StringHash> plan_index;
  std::uint32_t default_plan = 0;
  std::vector<Override> overrides;  ///< of all customers, each one's together
  boost::unordered_flat_map<std::string_view, Customer, StringHash> customers;
  /// By index of the limit: `by` without the customer, in byte order.
  std::vector<std::vector<std::string_view>> key_attributes;
  std::vector<bool> keyed_by_customer;
};

Policy::Compiled::Compiled(const PolicyDefinition& definition) {
  const auto count = static_cast<std::uint32_t>(definition.limits.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& limit = definition.limits[i];
    order.push_back(i);
    const bool is_new = limit_index.emplace(limit.name, i).second;
    WEIR_ASSERT(is_new);
    auto& attributes = key_attributes.emplace_back(limit.by.begin(), limit.by.end());
    std::sort(attributes.begin(), attributes.end());
    const auto customer_name = std::find(attributes.begin(), attributes.end(), "customer");
    keyed_by_customer.push_back(customer_name != attributes.end());
    if (customer_name != attributes.end()) attributes.erase(customer_name);
  }
  std::stable_partition(order.begin(), order.end(), [&](std::uint32_t index) {
    return definition.limits[index].scope == Scope::node;
  });

  plans.push_back(resolve_plan(definition, {}));
  for (const auto& [name, plan] : definition.plans) {
    plan_index.emplace(name, static_cast<std::uint32_t>(plans.size()));
    plans.push_back(resolve_plan(definition, plan));
  }
  if (!definition.default_plan.empty()) {
    const auto found = plan_index.find(definition.default_plan);
    WEIR_ASSERT(found != plan_index.end());
    default_plan = found->second;
  }

  customers.reserve(definition.customers.size());
  for (const auto& [id, customer] : definition.customers) add_customer(id, customer);
  overrides.shrink_to_fit();
}

Policy::Compiled::Plan Policy::Compiled::resolve_plan(const PolicyDefinition& definition,
                                                      const LimitOverrides& changes) const {
  Plan plan;
  plan.reserve(definition.limits.size());
  for (const auto& limit : definition.limits) {
    plan.push_back({MatchedLimit::Kind::numbers, limit.numbers});
  }
  for (const auto& [name, change] : changes) {
    const auto found = limit_index.find(name);
    WEIR_ASSERT(found != limit_index.end());
    plan[found->second] = {kind_of(change.kind), change.numbers};
  }
  return plan;
}

void Policy::Compiled::add_customer(std::string_view id, const CustomerDefinition& definition) {
  Customer entry{default_plan, static_cast<std::uint32_t>(overrides.size()), 0};
  if (!definition.plan.empty()) {
    const auto found = plan_index.find(definition.plan);
    WEIR_ASSERT(found != plan_index.end());
    entry.plan = found->second;
  }
  for (const auto& [name, change] : definition.limits) {
    const auto found = limit_index.find(name);
    WEIR_ASSERT(found != limit_index.end());
    overrides.push_back({found->second, {kind_of(change.kind), change.numbers}});
    ++entry.count;
  }
  customers.emplace(id, entry);
}

Policy::Policy(PolicyDefinition definition)
    : definition_(std::move(definition)),
      compiled_(std::make_shared<const Compiled>(definition_)) {}

void Policy::match(const Check& check, std::vector<MatchedLimit>& out) const {
  out.clear();
  const Compiled::Customer customer = compiled_->customer(check.customer);
  for (const std::uint32_t index : compiled_->order) {
    const LimitDefinition& limit = definition_.limits[index];
    if (!matches(limit, check)) continue;
    const auto& resolved = compiled_->resolve(customer, index);
    out.push_back({&limit, index, resolved.kind, resolved.numbers});
  }
}

std::optional<MatchedLimit> Policy::find(std::string_view name, std::string_view customer) const {
  const auto found = compiled_->limit_index.find(name);
  if (found == compiled_->limit_index.end()) return std::nullopt;
  const auto& resolved = compiled_->resolve(compiled_->customer(customer), found->second);
  return MatchedLimit{&definition_.limits[found->second], found->second, resolved.kind,
                      resolved.numbers};
}

void Policy::append_bucket_key(const LimitDefinition& limit, const Check& check,
                               std::string_view region, std::string& out) const {
  const LimitDefinition* first = definition_.limits.data();
  WEIR_ASSERT(&limit >= first && &limit < first + definition_.limits.size());
  const auto index = static_cast<std::size_t>(&limit - first);
  BucketKeyWriter writer(out);
  writer.begin(
      compiled_->keyed_by_customer[index] ? std::string_view(check.customer) : std::string_view(),
      limit.scope, region, limit.name);
  for (const auto name : compiled_->key_attributes[index]) {
    writer.attribute(name, check.attribute(name));
  }
}

}  // namespace weir::policy
