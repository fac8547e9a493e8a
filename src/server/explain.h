// /v1/explain: which limits match a check and why, who owns their buckets, when it would pass.
// Consumes nothing: the edge is asked with cost 0, owners describe what they hold. Pure, but for
// `explain`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/model/check.h"
#include "src/model/limit.h"
#include "src/policy/policy.h"
#include "src/server/usage.h"

namespace weir::server {

/// What an explanation is put together from.
struct ExplainFacts {
  Check check;  ///< with the cost that is asked about, at least 0
  std::string node;
  std::string region;
  std::shared_ptr<const policy::Policy> policy;
  std::optional<Decision> look;  ///< the edge's answer to the check with cost 0; none at an owner
  OwnerAnswers owners;
};

/// The JSON document.
std::string explain_json(const ExplainFacts& facts, const regions::Placement& placement);

/// `600/min`, `10/5m`, `1/1500ms`.
std::string rate_text(const LimitNumbers& numbers);

/// When `cost` tokens fit, in ms: 0 now, -1 never. `remaining` are there now, the next one comes in
/// `next_token_ms`.
std::int64_t retry_after_ms(const LimitNumbers& numbers, std::int64_t cost, std::int64_t remaining,
                            std::int64_t next_token_ms);

}  // namespace weir::server
