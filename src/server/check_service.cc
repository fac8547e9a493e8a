#include "src/server/check_service.h"

#include <utility>

#include "src/server/usage.h"

namespace weir::server {

Result<bool> LimiterCheckService::decide(const Check& check, Decision& decision) {
  return parts_.limiter.decide(check, decision);
}

void LimiterCheckService::decide_later(const Check& check, Completion done) {
  parts_.limiter.decide_later(check, std::move(done));
}

net::Readiness LimiterCheckService::readiness() const {
  if (draining_.load(std::memory_order_acquire)) return net::Readiness::draining;
  return parts_.policy.has_policy() ? net::Readiness::serving : net::Readiness::no_policy;
}

void LimiterCheckService::usage(const std::string& customer, UsageCompletion done) {
  const auto policy = parts_.policy.policy();
  if (policy == nullptr) {
    done(failure(ErrorCode::unavailable, "", "no policy yet"));
    return;
  }
  ask_owners(parts_.node, parts_.node.shape()->placement(), *policy, parts_.region, customer,
             [this, policy, customer, done = std::move(done)](const OwnerAnswers& answers) {
               std::vector<ownership::BucketView> views;
               for (const auto& [reg, answer] : answers) {
                 if (answer)
                   views.insert(views.end(), answer->buckets.begin(), answer->buckets.end());
               }
               // What an owner that does not answer would add is missing; what is known here is
               // still worth showing.
               done(merge_usage(parts_.limiter.usage(customer), views, *policy, parts_.region));
             });
}

}  // namespace weir::server
