#include "src/config/policy_overrides.h"

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/config/scalars.h"

namespace weir::config {

const DeclaredLimits::Limit* DeclaredLimits::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &limits_[found->second];
}

void DeclaredLimits::add(Limit limit) {
  const bool inserted = index_.emplace(limit.definition.name, limits_.size()).second;
  WEIR_ASSERT(inserted);
  limits_.push_back(std::move(limit));
}

std::vector<std::string_view> DeclaredLimits::names() const {
  std::vector<std::string_view> names;
  for (const auto& limit : limits_) names.push_back(limit.definition.name);
  return names;
}

std::vector<LimitDefinition> DeclaredLimits::take_definitions() {
  std::vector<LimitDefinition> definitions;
  definitions.reserve(limits_.size());
  for (auto& limit : limits_) definitions.push_back(std::move(limit.definition));
  limits_.clear();
  index_.clear();
  return definitions;
}

bool is_keyed_by(const LimitDefinition& limit, std::string_view attribute) {
  return std::find(limit.by.begin(), limit.by.end(), attribute) != limit.by.end();
}

LimitOverrides OverrideReader::read(const YamlNode& node, std::string_view what,
                                    const LimitOverrides* base) {
  LimitOverrides overrides;
  const auto entries = reader_.entries(node, what, "{api: {rate: 6000/min}}");
  if (!entries) return overrides;
  for (const auto& entry : *entries) {
    const auto* limit = limits_.find(entry.key);
    if (limit == nullptr) {
      reader_.error(*entry.key_node, std::string(what) + ": unknown limit " + in_quotes(entry.key) +
                                         reader_.suggestion(entry.key, limits_.names()));
    } else if (limit->sound) {
      if (const auto read = read_one(*entry.value, limit->definition, base)) {
        overrides.emplace(entry.key, *read);
      }
    }
  }
  return overrides;
}

std::optional<LimitOverride> OverrideReader::read_one(const YamlNode& node,
                                                      const LimitDefinition& limit,
                                                      const LimitOverrides* base) {
  const std::string example = limit.algorithm == Algorithm::fixed_window
                                  ? "{quota: 5000000}"
                                  : "{rate: 6000/min, burst: 1000}";
  if (node.kind == YamlNode::Kind::plain && reader_.text(node) == "unlimited") {
    return LimitOverride{LimitOverride::Kind::unlimited, {}};
  }
  if (node.kind == YamlNode::Kind::plain && reader_.text(node) == "blocked") {
    return LimitOverride{LimitOverride::Kind::blocked, {}};
  }
  if (node.kind == YamlNode::Kind::broken) return std::nullopt;
  if (node.kind != YamlNode::Kind::map) {
    reader_.error(node, "override of " + in_quotes(limit.name) +
                            (node.is_scalar() ? ": unknown " + in_quotes(reader_.text(node)) : "") +
                            ", write `unlimited`, `blocked` or `" + example + "`");
    return std::nullopt;
  }
  if (!is_keyed_by(limit, "customer")) {
    reader_.error(node, "override of " + in_quotes(limit.name) +
                            ": its `by` lacks `customer`, so all share one bucket with one size; "
                            "write `unlimited` or `blocked`, or change the limit itself");
    return std::nullopt;
  }
  LimitNumbers numbers = limit.numbers;
  if (base != nullptr) {
    const auto found = base->find(limit.name);
    if (found != base->end() && found->second.kind == LimitOverride::Kind::numbers) {
      numbers = found->second.numbers;
    }
  }
  const auto read = read_numbers(node, limit, numbers);
  if (!read) return std::nullopt;
  return LimitOverride{LimitOverride::Kind::numbers, *read};
}

std::optional<LimitNumbers> OverrideReader::read_numbers(const YamlNode& node,
                                                         const LimitDefinition& limit,
                                                         LimitNumbers numbers) {
  const std::string what = "override of " + in_quotes(limit.name);
  MapReader map(reader_, node, what, "{rate: 6000/min}");
  const std::size_t errors_before = reader_.problems().count();
  bool says_something = false;
  if (limit.algorithm == Algorithm::fixed_window) {
    if (const auto* quota = map.take("quota")) {
      says_something = true;
      if (const auto value = reader_.integer(*quota, "quota", 1, INT64_MAX)) {
        numbers.capacity = *value;
      }
    }
  } else {
    if (const auto* rate = map.take("rate")) {
      says_something = true;
      if (const auto value = reader_.scalar<Rate>(*rate, "rate", "6000/min", parse_rate)) {
        numbers = {value->count, value->count, value->period_ns};
      }
    }
    const bool has_burst = limit.algorithm == Algorithm::token_bucket;
    if (const auto* burst = has_burst ? map.take("burst") : nullptr) {
      says_something = true;
      if (const auto value = reader_.integer(*burst, "burst", 1, INT64_MAX)) {
        numbers.capacity = *value;
      }
    }
  }
  map.finish();
  if (reader_.problems().count() != errors_before) return std::nullopt;
  if (!says_something) {
    reader_.error(node, what + ": empty, write what it changes, `unlimited` or `blocked`");
    return std::nullopt;
  }
  return numbers;
}

}  // namespace weir::config
