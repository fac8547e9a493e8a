// How commands talk to a node: one request over HTTP, with a deadline, and what the answer means
// for the exit status. One thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/topology.h"

namespace weir::cli {

/// How long a command waits for a node's answer.
inline constexpr Nanos kRequestTimeoutNs = 5 * kSecond;

struct Reply {
  int status = 0;
  std::string body;
};

/// `http://host:port`, `http://host:port/` or `host:port`. The error's field is empty.
Result<Endpoint> parse_target(std::string_view url);

/// Fails with `unavailable` when nobody answers in time.
Result<Reply> http_get(const Endpoint& endpoint, const std::string& target,
                       Nanos timeout_ns = kRequestTimeoutNs);
Result<Reply> http_post(const Endpoint& endpoint, const std::string& target,
                        const std::string& json, Nanos timeout_ns = kRequestTimeoutNs);

/// `key=value` pairs of `-a`; the error names the one that is wrong.
Result<std::vector<std::pair<std::string, std::string>>> parse_attributes(
    const std::vector<std::string>& attributes);

/// `text` for a query string: everything but unreserved characters as %XX.
std::string percent_encode(std::string_view text);

/// `invalid_argument: customer: ...` from an error body of API.md, or the bare body.
std::string describe_error(const Reply& reply);

}  // namespace weir::cli
