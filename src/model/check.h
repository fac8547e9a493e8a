// A check and its answer, as values. Produced by src/codec from a request, decided by src/edge.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/model/limit.h"

namespace weir {

/// "May this customer do this now?"
struct Check {
  std::string customer;
  /// Names are unique; the order does not matter.
  std::vector<std::pair<std::string, std::string>> attributes;
  /// Tokens: 1 by default, 0 looks without consuming, negative gives back.
  std::int64_t cost = 1;

  /// The value of attribute `name`, or nullptr when it is absent ("" is a value). `customer` is an
  /// attribute of every check.
  const std::string* attribute(std::string_view name) const;

  friend bool operator==(const Check&, const Check&) = default;
};

/// Refuses what no policy could decide: an empty or overlong customer, invalid UTF-8, too many or
/// duplicate attributes, an attribute called `customer` or `cost`. The error's field is the
/// member's name.
Status validate(const Check& check);

/// True when `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, no NUL byte).
bool is_valid_utf8(std::string_view text);

/// Who decided. Values are on the wire (proto/weir/v1/check.proto) and are for ever.
enum class Source : std::uint8_t {
  lease = 1,         ///< tokens held at this edge
  owner = 2,         ///< the owner said so, now or within its retry time
  node = 3,          ///< a limit of scope `node`
  policy = 4,        ///< blocked, unlimited, or nothing matched
  timeout = 5,       ///< no answer within `wait`
  static_share = 6,  ///< failure policy in force
  allow = 7,         ///< failure policy in force
  deny = 8,          ///< failure policy in force
};
const char* to_string(Source source);

/// What one matching limit said. Times are milliseconds, rounded up.
struct LimitDecision {
  std::string name;
  Scope scope = Scope::global;
  bool allowed = true;
  bool shadow = false;
  std::int64_t limit = 0;           ///< capacity, tokens
  std::int64_t remaining = 0;       ///< tokens, in [0, limit]
  std::int64_t retry_after_ms = 0;  ///< 0 when allowed, -1 when this cost can never fit
  std::int64_t reset_ms = 0;        ///< until full
  std::int64_t next_token_ms = 0;   ///< until one more token than now; 0 when full (header field t)
  std::int64_t window_s = 0;  ///< ceil(capacity / rate) in seconds, at least 1 (header field w)

  friend bool operator==(const LimitDecision&, const LimitDecision&) = default;
};

/// The answer to a check. Reused between requests: every field is set by each decision.
struct Decision {
  bool allowed = true;
  std::string name;  ///< the limit that decided: the denying one, else the tightest; empty: none
  std::int64_t limit = 0;
  std::int64_t remaining = 0;
  std::int64_t retry_after_ms = 0;
  std::int64_t reset_ms = 0;
  Source source = Source::policy;
  std::vector<LimitDecision> limits;

  friend bool operator==(const Decision&, const Decision&) = default;
};

/// One bucket of a customer in GET /v1/usage.
struct BucketUsage {
  std::string name;
  Scope scope = Scope::global;
  std::vector<std::pair<std::string, std::string>>
      attributes;  ///< values of `by` but for the customer
  std::int64_t limit = 0;
  std::int64_t used = 0;
  std::int64_t remaining = 0;
  std::int64_t reset_ms = 0;

  friend bool operator==(const BucketUsage&, const BucketUsage&) = default;
};

}  // namespace weir
