#include "src/server/explain.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <utility>
#include <vector>

namespace weir::server {
namespace {

namespace json = boost::json;

json::object attributes_json(const std::vector<std::pair<std::string, std::string>>& attributes) {
  json::object object;
  for (const auto& [name, value] : attributes) object[name] = value;
  return object;
}

std::int64_t up_to_ms(Nanos duration_ns) {
  return duration_ns / kMillisecond + (duration_ns % kMillisecond > 0 ? 1 : 0);
}

std::string condition_text(const AttributeMatch& match) {
  return match.attribute + " = `" + match.value + (match.prefix ? "*`" : "`");
}

std::string match_text(const LimitDefinition& limit) {
  std::string text;
  for (const AttributeMatch& match : limit.match) {
    text += text.empty() ? "" : " and ";
    text += condition_text(match);
  }
  return text.empty() ? "every check" : text;
}

/// The first condition that does not hold, in words.
std::string mismatch_text(const LimitDefinition& limit, const Check& check) {
  for (const AttributeMatch& match : limit.match) {
    const std::string* value = check.attribute(match.attribute);
    if (value == nullptr) {
      return "it wants " + condition_text(match) + ", and the check has no such attribute";
    }
    const bool holds = match.prefix ? value->starts_with(match.value) : *value == match.value;
    if (!holds) return "it wants " + condition_text(match) + ", and the check has `" + *value + "`";
  }
  return "-";
}

std::string plan_of(const PolicyDefinition& policy, const std::string& customer) {
  const auto found = policy.customers.find(customer);
  if (found != policy.customers.end() && !found->second.plan.empty()) return found->second.plan;
  return policy.default_plan;
}

/// Who says the numbers: the customer's override, its plan, or the limit as written.
std::string numbers_from(const PolicyDefinition& policy, const std::string& customer,
                         const std::string& limit) {
  const auto found = policy.customers.find(customer);
  if (found != policy.customers.end() && found->second.limits.contains(limit)) {
    return "override of customer " + customer;
  }
  const std::string plan = plan_of(policy, customer);
  const auto plans = policy.plans.find(plan);
  if (plans != policy.plans.end() && plans->second.contains(limit)) return "plan " + plan;
  return "the limit as written";
}

const char* kind_text(policy::MatchedLimit::Kind kind) {
  switch (kind) {
    case policy::MatchedLimit::Kind::numbers:
      return "numbers";
    case policy::MatchedLimit::Kind::unlimited:
      return "unlimited";
    case policy::MatchedLimit::Kind::blocked:
      return "blocked";
  }
  return "unknown";
}

const ownership::BucketView* find_view(const actors::OwnerDescription& owner,
                                       const std::string& bucket) {
  for (const ownership::BucketView& view : owner.buckets) {
    if (view.bucket == bucket) return &view;
  }
  return nullptr;
}

json::object owner_json(const Result<actors::OwnerDescription>& owner,
                        const ownership::BucketView* view) {
  if (!owner) return {{"error", owner.error().message}};
  json::array replicas;
  for (const std::string& replica : owner->replicas) replicas.emplace_back(replica);
  json::object object{{"node", owner->node},
                      {"region", owner->region},
                      {"epoch", to_string(owner->epoch)},
                      {"register", to_string(owner->reg)},
                      {"replicas", std::move(replicas)},
                      {"asleep", view == nullptr}};
  if (view == nullptr) return object;
  json::array leases;
  for (const auto& lessee : view->lessees) {
    leases.push_back(json::object{{"node", lessee.node},
                                  {"relay", lessee.relay},
                                  {"outstanding", lessee.outstanding},
                                  {"expires_in_ms", up_to_ms(lessee.expires_in_ns)}});
  }
  object["level"] = view->level;
  object["outstanding"] = view->outstanding;
  object["leases"] = std::move(leases);
  return object;
}

/// How a limit stands now, as best known here.
struct Standing {
  std::int64_t remaining = 0;
  std::int64_t next_token_ms = 0;
  std::int64_t reset_ms = 0;
};

std::optional<Standing> standing_of(const ExplainFacts& facts, const LimitDefinition& limit,
                                    const ownership::BucketView* view) {
  // An edge holds nothing of a strict limit; only its owner knows.
  if (facts.look && !(limit.strict && view != nullptr)) {
    for (const LimitDecision& decision : facts.look->limits) {
      if (decision.name != limit.name) continue;
      return Standing{decision.remaining, decision.next_token_ms, decision.reset_ms};
    }
  }
  if (view == nullptr) return std::nullopt;
  return Standing{view->level, up_to_ms(view->next_token_ns), up_to_ms(view->reset_ns)};
}

/// `600/min`, or `100 per day (Europe/Berlin)`.
std::string pace_text(const LimitDefinition& limit, const LimitNumbers& numbers) {
  if (limit.algorithm != Algorithm::fixed_window) return rate_text(numbers);
  return std::to_string(numbers.capacity) + " per " + to_string(limit.window) + " (" +
         limit.timezone + ")";
}

class Explanation {
 public:
  Explanation(const ExplainFacts& facts, const regions::Placement& placement)
      : facts_(facts), placement_(placement) {}

  std::string text() {
    std::vector<policy::MatchedLimit> matched;
    facts_.policy->match(facts_.check, matched);
    std::vector<bool> matches(facts_.policy->definition().limits.size());
    json::array limits;
    for (const policy::MatchedLimit& limit : matched) {
      matches[limit.index] = true;
      limits.push_back(limit_json(limit));
    }
    json::array others;
    for (std::size_t i = 0; i < matches.size(); ++i) {
      if (matches[i]) continue;
      const LimitDefinition& limit = facts_.policy->definition().limits[i];
      others.push_back(
          json::object{{"name", limit.name}, {"because", mismatch_text(limit, facts_.check)}});
    }
    const std::string plan = plan_of(facts_.policy->definition(), facts_.check.customer);
    json::object document{{"customer", facts_.check.customer},
                          {"attributes", attributes_json(facts_.check.attributes)},
                          {"cost", facts_.check.cost},
                          {"node", facts_.node},
                          {"region", facts_.region},
                          {"policy_version", facts_.policy->version()},
                          {"plan", plan.empty() ? json::value(nullptr) : json::value(plan)},
                          {"allowed", allowed_},
                          {"retry_after_ms", never_ ? -1 : retry_after_ms_},
                          {"limits", std::move(limits)},
                          {"not_matching", std::move(others)}};
    return json::serialize(document);
  }

 private:
  json::object limit_json(const policy::MatchedLimit& matched) {
    const LimitDefinition& limit = *matched.limit;
    const PolicyDefinition& policy = facts_.policy->definition();
    json::object object{{"name", limit.name},
                        {"scope", to_string(limit.scope)},
                        {"algorithm", to_string(limit.algorithm)},
                        {"strict", limit.strict},
                        {"shadow", limit.shadow},
                        {"on_unreachable", to_string(limit.on_unreachable)},
                        {"match", match_text(limit)},
                        {"numbers_from", numbers_from(policy, facts_.check.customer, limit.name)},
                        {"kind", kind_text(matched.kind)}};
    if (matched.kind != policy::MatchedLimit::Kind::numbers) {
      const bool blocked = matched.kind == policy::MatchedLimit::Kind::blocked;
      object["allowed"] = !blocked;
      count(limit, !blocked, blocked ? -1 : 0);
      return object;
    }
    object["limit"] = matched.numbers.capacity;
    object["rate"] = pace_text(limit, matched.numbers);
    std::string bucket;
    facts_.policy->append_bucket_key(limit, facts_.check, facts_.region, bucket);
    object["bucket"] = bucket_json(bucket);
    const ownership::BucketView* view = nullptr;
    if (limit.scope != Scope::node) {
      const auto answer = facts_.owners.find(
          placement_.register_for(limit.scope, facts_.region, facts_.check.customer));
      if (answer != facts_.owners.end()) {
        if (answer->second) view = find_view(*answer->second, bucket);
        object["owner"] = owner_json(answer->second, view);
      }
    }
    add_standing(limit, matched.numbers, view, object);
    return object;
  }

  void add_standing(const LimitDefinition& limit, const LimitNumbers& numbers,
                    const ownership::BucketView* view, json::object& object) {
    const auto standing = standing_of(facts_, limit, view);
    if (!standing) return;
    const std::int64_t retry_ms =
        retry_after_ms(numbers, facts_.check.cost, standing->remaining, standing->next_token_ms);
    object["remaining"] = standing->remaining;
    object["allowed"] = retry_ms == 0;
    object["retry_after_ms"] = retry_ms;
    object["next_token_ms"] = standing->next_token_ms;
    object["reset_ms"] = standing->reset_ms;
    count(limit, retry_ms == 0, retry_ms);
  }

  json::object bucket_json(const std::string& encoded) const {
    const auto key = decode_bucket_key(encoded);
    if (!key) return {};
    json::object object;
    if (!key->customer.empty()) object["customer"] = key->customer;
    if (!key->region.empty()) object["region"] = key->region;
    for (const auto& [name, value] : key->attributes) {
      object[name] = value ? json::value(*value) : json::value(nullptr);
    }
    return object;
  }

  void count(const LimitDefinition& limit, bool allowed, std::int64_t retry_ms) {
    if (allowed || limit.shadow) return;
    allowed_ = false;
    if (retry_ms < 0) never_ = true;
    retry_after_ms_ = std::max(retry_after_ms_, retry_ms);
  }

  const ExplainFacts& facts_;
  const regions::Placement& placement_;
  bool allowed_ = true;
  bool never_ = false;
  std::int64_t retry_after_ms_ = 0;
};

}  // namespace

std::string rate_text(const LimitNumbers& numbers) {
  struct Unit {
    Nanos ns;
    const char* alone;  ///< after the slash when the period is one of it
    const char* many;
  };
  static constexpr std::array<Unit, 5> kUnits{{{kDay, "d", "d"},
                                               {kHour, "h", "h"},
                                               {kMinute, "min", "m"},
                                               {kSecond, "s", "s"},
                                               {kMillisecond, "1ms", "ms"}}};
  const std::string count = std::to_string(numbers.rate_count) + "/";
  for (const Unit& unit : kUnits) {
    if (numbers.rate_period_ns == unit.ns) return count + unit.alone;
    if (numbers.rate_period_ns % unit.ns != 0) continue;
    return count + std::to_string(numbers.rate_period_ns / unit.ns) + unit.many;
  }
  return count + std::to_string(numbers.rate_period_ns) + "ns";
}

std::int64_t retry_after_ms(const LimitNumbers& numbers, std::int64_t cost, std::int64_t remaining,
                            std::int64_t next_token_ms) {
  if (cost > numbers.capacity) return -1;
  if (cost <= remaining) return 0;
  __extension__ using Wide = __int128;
  const Wide further = static_cast<Wide>(cost) - remaining - 1;
  const Wide count = std::max<std::int64_t>(numbers.rate_count, 1);
  const Wide wait_ns = (further * numbers.rate_period_ns + count - 1) / count;
  const Wide wait_ms = (wait_ns + kMillisecond - 1) / kMillisecond + next_token_ms;
  // A token that is not here and has no time of coming is out on lease: it may come back any time.
  return static_cast<std::int64_t>(std::clamp<Wide>(wait_ms, 1, INT64_MAX));
}

std::string explain_json(const ExplainFacts& facts, const regions::Placement& placement) {
  return Explanation(facts, placement).text();
}

}  // namespace weir::server
