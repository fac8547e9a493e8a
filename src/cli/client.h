// How commands talk to a node: one request over HTTP, with a deadline, and what the answer means
// for the exit status. One thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/cli/commands.h"
#include "src/model/topology.h"
#include "src/net/http_client.h"

namespace weir::cli {

/// How long a command waits for a node's answer.
inline constexpr Nanos kRequestTimeoutNs = 5 * kSecond;

struct Reply {
  int status = 0;
  std::string body;
};

/// A node's port, and what a command shows there.
struct Target {
  Endpoint endpoint{};
  bool tls = false;
  std::string token{};    ///< empty: none
  net::ClientTls with{};  ///< of https://
};

/// `http://host:port`, `https://host:port`, each with or without a last `/`, or `host:port`. The
/// error's field is empty.
Result<Target> parse_target(std::string_view url);
/// The same with what the command was given to show; reads the token's file. The error's field is
/// the flag that is wrong, `flag` for the URL.
Result<Target> parse_target(const char* flag, std::string_view url, const Credentials& credentials);

/// Fails with `unavailable` when nobody answers in time.
Result<Reply> http_get(const Target& target, const std::string& path,
                       Nanos timeout_ns = kRequestTimeoutNs);
Result<Reply> http_post(const Target& target, const std::string& path, const std::string& json,
                        Nanos timeout_ns = kRequestTimeoutNs);

/// `key=value` pairs of `-a`; the error names the one that is wrong.
Result<std::vector<std::pair<std::string, std::string>>> parse_attributes(
    const std::vector<std::string>& attributes);

/// `text` for a query string: everything but unreserved characters as %XX.
std::string percent_encode(std::string_view text);

/// `invalid_argument: customer: ...` from an error body of API.md, or the bare body.
std::string describe_error(const Reply& reply);

}  // namespace weir::cli
