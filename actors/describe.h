// What an owner says of a customer, on its way to `explain` and `usage`. Pure functions.
#pragma once

#include <vector>

#include "actors/node.h"
#include "regions/placement.h"
#include "src/codec/envelope.h"
#include "src/model/lease.h"
#include "src/ownership/owner.h"

namespace weir::actors {

/// Records that no owner holds in memory, as an owner that started now would see them.
std::vector<ownership::BucketView> stored_views(
    const std::vector<AgedRecord>& records, const ownership::OwnerConfig& config,
    const Epoch& epoch, const std::shared_ptr<const ownership::LimitBook>& book,
    const ownership::Instant& now);

/// By bucket; what is in memory replaces what is stored.
std::vector<ownership::BucketView> merge_views(std::vector<ownership::BucketView> stored,
                                               std::vector<ownership::BucketView> active);

/// Times are rounded up to milliseconds.
std::vector<codec::BucketDescription> describe_buckets(
    const std::vector<ownership::BucketView>& views);

/// The reply to a query about `reg`. `not_found` when nobody owned it, `unsupported` when the owner
/// is forbidden to do it, `unavailable` when it gave another reason.
Result<OwnerDescription> read_reply(const codec::OwnerReply& reply, const codec::OwnerQuery& query,
                                    const regions::Placement& placement);

}  // namespace weir::actors
