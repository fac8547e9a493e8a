#include "actors/describe.h"

#include <map>
#include <string>
#include <utility>

namespace weir::actors {
namespace {

std::int64_t to_ms_up(Nanos duration_ns) {
  return duration_ns / kMillisecond + (duration_ns % kMillisecond > 0 ? 1 : 0);
}

}  // namespace

std::vector<ownership::BucketView> stored_views(
    const std::vector<AgedRecord>& records, const ownership::OwnerConfig& config,
    const Epoch& epoch, const std::shared_ptr<const ownership::LimitBook>& book,
    const ownership::Instant& now) {
  ownership::Owner reader(config, epoch, book, now.boot_ns);
  for (const AgedRecord& aged : records) {
    // A look: nothing held, nothing wanted. It makes the owner take the record in and no more.
    LeaseRequest look;
    look.bucket = aged.record.bucket;
    look.sequence = 1;
    ownership::Owner::Effects unused;
    reader.step(ownership::Owner::Requested{look}, now, unused);
    reader.step(ownership::Owner::Loaded{aged.record.bucket, std::optional<AgedRecord>(aged)}, now,
                unused);
  }
  return reader.view(now.boot_ns);
}

std::vector<ownership::BucketView> merge_views(std::vector<ownership::BucketView> stored,
                                               std::vector<ownership::BucketView> active) {
  std::map<std::string, ownership::BucketView> merged;
  for (auto* views : {&active, &stored}) {
    for (ownership::BucketView& view : *views) {
      std::string bucket = view.bucket;
      merged.try_emplace(std::move(bucket), std::move(view));
    }
  }
  std::vector<ownership::BucketView> views;
  for (auto& [bucket, view] : merged) views.push_back(std::move(view));
  return views;
}

std::vector<codec::BucketDescription> describe_buckets(
    const std::vector<ownership::BucketView>& views) {
  std::vector<codec::BucketDescription> buckets;
  for (const ownership::BucketView& view : views) {
    codec::BucketDescription bucket;
    bucket.bucket = view.bucket;
    bucket.capacity = view.capacity;
    bucket.level = view.level;
    bucket.outstanding = view.outstanding;
    bucket.reset_ms = to_ms_up(view.reset_ns);
    bucket.next_token_ms = to_ms_up(view.next_token_ns);
    for (const auto& lessee : view.lessees) {
      bucket.lessees.push_back(
          {lessee.node, lessee.outstanding, to_ms_up(lessee.expires_in_ns), lessee.relay});
    }
    buckets.push_back(std::move(bucket));
  }
  return buckets;
}

Result<OwnerDescription> read_reply(const codec::OwnerReply& reply, const codec::OwnerQuery& query,
                                    const regions::Placement& placement) {
  if (reply.forbidden && query.kind == codec::OwnerQuery::Kind::propose) {
    return failure(ErrorCode::invalid_argument, "", reply.error);
  }
  if (reply.forbidden) return failure(ErrorCode::unsupported, "chaos", reply.error);
  if (!reply.error.empty()) return failure(ErrorCode::unavailable, "", reply.error);
  if (!reply.found) {
    return failure(ErrorCode::not_found, "customer",
                   "no owner of this customer is active on node " + reply.node);
  }
  const RegisterId& reg = query.reg;
  OwnerDescription description{
      reg, reply.node, placement.home(reg), reply.epoch, placement.replicas(reg), {}};
  for (const codec::BucketDescription& bucket : reply.buckets) {
    ownership::BucketView view;
    view.bucket = bucket.bucket;
    view.capacity = bucket.capacity;
    view.level = bucket.level;
    view.outstanding = bucket.outstanding;
    view.reset_ns = multiply_saturating(bucket.reset_ms, kMillisecond);
    view.next_token_ns = multiply_saturating(bucket.next_token_ms, kMillisecond);
    for (const auto& lessee : bucket.lessees) {
      view.lessees.push_back({lessee.node, lessee.outstanding,
                              multiply_saturating(lessee.expires_in_ms, kMillisecond),
                              lessee.relay});
    }
    description.buckets.push_back(std::move(view));
  }
  return description;
}

}  // namespace weir::actors
