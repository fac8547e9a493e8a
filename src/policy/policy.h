// A compiled policy: which limits match a check, with which numbers. Immutable, shared by all
// threads; a reload makes a new one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/model/check.h"
#include "src/model/limit.h"

namespace weir::policy {

/// One limit that applies to a check.
struct MatchedLimit {
  enum class Kind : std::uint8_t { numbers = 1, unlimited = 2, blocked = 3 };
  const LimitDefinition* limit = nullptr;  ///< owned by the Policy
  std::uint32_t index = 0;                 ///< of the limit in definition().limits
  Kind kind = Kind::numbers;
  LimitNumbers numbers;  ///< for this customer; for kind numbers
};

class Policy {
 public:
  explicit Policy(PolicyDefinition definition);
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  const PolicyDefinition& definition() const { return definition_; }
  std::uint64_t version() const { return definition_.version; }

  /// Replaces `out` with the limits that match: scope `node` first, then in the file's order.
  /// Allocates nothing once `out` has its capacity.
  void match(const Check& check, std::vector<MatchedLimit>& out) const;

  /// The numbers of limit `name` for `customer` (plan and overrides applied). Nothing when there is
  /// no such limit; kind says when it is unlimited or blocked. The grantor's question.
  std::optional<MatchedLimit> find(std::string_view name, std::string_view customer) const;

  /// Appends the encoded BucketKey of `limit` for `check` (src/model/ids.h) to `out`. `region` is
  /// the region of this edge.
  void append_bucket_key(const LimitDefinition& limit, const Check& check, std::string_view region,
                         std::string& out) const;

 private:
  struct Compiled;
  PolicyDefinition definition_;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace weir::policy
