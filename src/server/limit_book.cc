#include "src/server/limit_book.h"

namespace weir::server {

std::optional<LimitNumbers> PolicyLimitBook::numbers(const BucketKey& bucket) const {
  const auto found = policy_->find(bucket.limit, bucket.customer);
  if (!found || found->kind != policy::MatchedLimit::Kind::numbers) return std::nullopt;
  // A limit whose scope has changed has other buckets; an old one has no numbers any more.
  if (found->limit->scope != bucket.scope) return std::nullopt;
  return found->numbers;
}

}  // namespace weir::server
