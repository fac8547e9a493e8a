// What a test asks of a node: one check, its status, its metrics. Every call ends within a deadline
// and says in its result what went wrong. Any thread.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/time.h"
#include "src/model/topology.h"
#include "src/net/http_client.h"
#include "test/support/history.h"

namespace weir::test {

/// Longest wait for anything that ought to happen soon.
inline constexpr Nanos kPatienceNs = 30 * kSecond;

/// CLOCK_BOOTTIME.
Nanos now_ns();

/// Asks again and again, with short pauses, until `happened` says yes; false when it never did.
bool eventually(const std::function<bool()>& happened, Nanos patience_ns = kPatienceNs);

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// The JSON body of POST /v1/check.
std::string check_body(std::string_view customer, std::int64_t cost = 1,
                       const Attributes& attributes = {});

/// One answer of the check API.
struct Answer {
  int status = 0;  ///< 0: no answer; then `text` says why
  std::string text;
  boost::json::object json;  ///< empty when the answer is none
  net::HttpHeaders headers;

  bool allowed() const { return status == 200; }
  std::int64_t number(std::string_view member) const;
  std::string word(std::string_view member) const;
  const std::string* header(std::string_view name) const;
};

/// A request on a connection of its own.
Answer ask(const Endpoint& node, const char* method, const std::string& target,
           const std::string& body = "");
Answer check(const Endpoint& node, std::string_view customer, std::int64_t cost = 1,
             const Attributes& attributes = {});

/// What a client of POST /v1/check saw; `complaint` says more about a failed one.
CheckRecord record_of(const Result<net::HttpClientResponse>& response, std::string& complaint);

/// The sum of a metric's values over all label sets that contain `label` (`result="granted"`;
/// empty: all). 0 when there is none.
double metric(const Endpoint& admin, std::string_view name, std::string_view label = "");

/// Sends `bytes` on a connection of its own and gives all that comes back until the node closes, or
/// until it has been silent for a while.
std::string exchange_raw(const Endpoint& node, std::string_view bytes);

}  // namespace weir::test
