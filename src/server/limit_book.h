// A policy as a grantor reads it: ownership::LimitBook over policy::Policy. Immutable, shared by
// all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/limit/calendar.h"
#include "src/ownership/owner.h"
#include "src/policy/policy.h"

namespace weir::server {

class PolicyLimitBook final : public ownership::LimitBook {
 public:
  explicit PolicyLimitBook(std::shared_ptr<const policy::Policy> policy);

  std::optional<LimitNumbers> numbers(const BucketKey& bucket) const override;
  std::optional<limit::WindowSpan> window(const BucketKey& bucket, Nanos wall_ns) const override;
  std::uint64_t version() const override { return policy_->version(); }

 private:
  std::shared_ptr<const policy::Policy> policy_;
  std::vector<std::optional<limit::Calendar>> calendars_;  ///< by index of the limit
};

}  // namespace weir::server
