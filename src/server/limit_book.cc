#include "src/server/limit_book.h"

#include <utility>

namespace weir::server {

PolicyLimitBook::PolicyLimitBook(std::shared_ptr<const policy::Policy> policy)
    : policy_(std::move(policy)) {
  for (const LimitDefinition& limit : policy_->definition().limits) {
    auto& calendar = calendars_.emplace_back();
    if (limit.algorithm != Algorithm::fixed_window) continue;
    if (auto made = limit::Calendar::make(limit.window, limit.timezone)) calendar = *made;
  }
}

std::optional<limit::WindowSpan> PolicyLimitBook::window(const BucketKey& bucket,
                                                         Nanos wall_ns) const {
  const auto found = policy_->find(bucket.limit, bucket.customer);
  if (!found || !calendars_[found->index]) return std::nullopt;
  return calendars_[found->index]->containing(wall_ns);
}

std::optional<LimitNumbers> PolicyLimitBook::numbers(const BucketKey& bucket) const {
  const auto found = policy_->find(bucket.limit, bucket.customer);
  if (!found || found->kind != policy::MatchedLimit::Kind::numbers) return std::nullopt;
  // A limit whose scope has changed has other buckets; an old one has no numbers any more.
  if (found->limit->scope != bucket.scope) return std::nullopt;
  return found->numbers;
}

}  // namespace weir::server
