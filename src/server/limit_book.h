// A policy as a grantor reads it: ownership::LimitBook over policy::Policy. Immutable, shared by
// all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "src/ownership/owner.h"
#include "src/policy/policy.h"

namespace weir::server {

class PolicyLimitBook final : public ownership::LimitBook {
 public:
  explicit PolicyLimitBook(std::shared_ptr<const policy::Policy> policy)
      : policy_(std::move(policy)) {}

  std::optional<LimitNumbers> numbers(const BucketKey& bucket) const override;
  std::uint64_t version() const override { return policy_->version(); }

 private:
  std::shared_ptr<const policy::Policy> policy_;
};

}  // namespace weir::server
