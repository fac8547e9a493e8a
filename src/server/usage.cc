#include "src/server/usage.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace weir::server {
namespace {

Nanos round_up_to_ms(Nanos duration_ns) {
  return duration_ns / kMillisecond + (duration_ns % kMillisecond > 0 ? 1 : 0);
}

/// A bucket as the owner sees it, or nothing when the policy does not count it any more.
std::optional<BucketUsage> usage_of(const ownership::BucketView& view, const policy::Policy& policy,
                                    const std::string& region) {
  const auto key = decode_bucket_key(view.bucket);
  if (!key) return std::nullopt;
  if (key->scope == Scope::region && key->region != region) return std::nullopt;
  const auto found = policy.find(key->limit, key->customer);
  if (!found || found->kind != policy::MatchedLimit::Kind::numbers) return std::nullopt;
  BucketUsage usage;
  usage.name = key->limit;
  usage.scope = key->scope;
  for (const auto& [name, value] : key->attributes) {
    if (value) usage.attributes.emplace_back(name, *value);
  }
  usage.limit = view.capacity;
  // Tokens out on lease count as there: edges report what they have spent as they go.
  usage.remaining =
      std::clamp(add_saturating(view.level, view.outstanding), std::int64_t{0}, view.capacity);
  usage.used = view.capacity - usage.remaining;
  usage.reset_ms = round_up_to_ms(view.reset_ns);
  return usage;
}

}  // namespace

void ask_owners(actors::Node& node, const regions::Placement& placement,
                const policy::Policy& policy, const std::string& region,
                const std::string& customer, std::function<void(const OwnerAnswers&)> done) {
  std::set<RegisterId> registers;
  for (const LimitDefinition& limit : policy.definition().limits) {
    if (limit.scope == Scope::node) continue;
    registers.insert(placement.register_for(limit.scope, region, customer));
  }
  if (registers.empty()) {
    done({});
    return;
  }
  struct Pending {
    std::mutex mutex;  // answers may come on several threads
    std::size_t missing = 0;
    OwnerAnswers answers;
    std::function<void(const OwnerAnswers&)> done;
  };
  auto pending = std::make_shared<Pending>();
  pending->missing = registers.size();
  pending->done = std::move(done);
  for (const RegisterId& reg : registers) {
    node.describe(reg, customer, [pending, reg](Result<actors::OwnerDescription> answer) {
      bool last = false;
      {
        const std::lock_guard lock(pending->mutex);
        pending->answers.emplace(reg, std::move(answer));
        last = --pending->missing == 0;
      }
      if (last) pending->done(pending->answers);
    });
  }
}

std::vector<BucketUsage> merge_usage(std::vector<BucketUsage> at_edge,
                                     const std::vector<ownership::BucketView>& at_owners,
                                     const policy::Policy& policy, const std::string& region) {
  using Name = std::pair<std::string, std::vector<std::pair<std::string, std::string>>>;
  const auto name_of = [](const BucketUsage& usage) {
    Name name{usage.name, usage.attributes};
    std::sort(name.second.begin(), name.second.end());
    return name;
  };
  std::map<Name, BucketUsage> merged;
  for (BucketUsage& usage : at_edge) merged.insert_or_assign(name_of(usage), std::move(usage));
  for (const ownership::BucketView& view : at_owners) {
    auto usage = usage_of(view, policy, region);
    if (!usage) continue;
    const auto [entry, is_new] = merged.try_emplace(name_of(*usage), *usage);
    if (!is_new && usage->remaining < entry->second.remaining) entry->second = *std::move(usage);
  }
  std::vector<BucketUsage> all;
  all.reserve(merged.size());
  for (auto& [name, usage] : merged) all.push_back(std::move(usage));
  return all;
}

}  // namespace weir::server
