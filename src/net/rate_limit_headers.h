// The response headers that tell a client about its limits. Names and forms stand in the .cc alone:
// the IETF draft (draft-ietf-httpapi-ratelimit-headers-11) may still change. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/model/check.h"

namespace weir::net {

enum class HeaderStyle : std::uint8_t {
  draft11,  ///< RateLimit-Policy and RateLimit, every limit
  draft03,  ///< RateLimit-Limit, -Remaining, -Reset (s), the deciding limit
  legacy,   ///< X-RateLimit-Limit, -Remaining, -Reset (s), the deciding limit
  none,
};

/// Appends header lines. Shadow limits are left out; no limit, no lines.
void append_rate_limit_headers(const Decision& decision, HeaderStyle style, std::string& out);

/// Seconds for Retry-After: the denial's retry time rounded up, at least 1, at least every denying
/// limit's `t`, and up to 10 % more by `random`, so that clients denied together do not come back
/// together. Nothing when allowed or when the cost can never fit.
std::optional<std::int64_t> retry_after_s(const Decision& decision, std::uint64_t random);

}  // namespace weir::net
