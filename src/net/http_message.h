// HTTP as values: what a session hands to a handler and gets back. Knows no socket and no parser.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"

namespace weir::net {

enum class Method : std::uint8_t { get, head, post, put, remove, other };

/// A request as views into its session's memory: valid during `RequestHandler::handle` only.
struct HttpRequest {
  Method method = Method::other;
  std::string_view method_name;
  std::string_view path;   ///< percent-encoded as sent, without the query
  std::string_view query;  ///< percent-encoded as sent, without the `?`
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  std::string_view body;

  /// The value of the first header called `name` (ASCII case ignored), or an empty view.
  std::string_view header(std::string_view name) const;
};

/// An answer. Reused between requests.
struct HttpResponse {
  int status = 200;
  std::string_view content_type;  ///< a constant; empty: `headers` has it, or there is no body
  std::string headers;            ///< complete lines, each `Name: value\r\n`
  std::string body;

  void clear();
};

/// Makes the answers of one port. Each I/O thread has a handler of its own, which is called by that
/// thread alone.
class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  /// Delivers an answer. Called at most once, on any thread, at any time: the connection or the
  /// whole server may be gone, and then it does nothing.
  using Later = std::function<void(HttpResponse)>;

  /// Where a handler gets a Later from when it cannot answer at once.
  class Deferral {
   public:
    virtual ~Deferral() = default;
    virtual Later defer() = 0;
  };

  /// Most bytes of body for a request to `target`; more is refused with 413.
  virtual std::size_t max_body_bytes(std::string_view target) const = 0;

  /// Fills in `response` and returns true, or takes a Later and returns false; it must be called in
  /// the end. Answers to HEAD are written without their body.
  virtual bool handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) = 0;

  /// Fills in the answer to a request that the session refuses itself; of `request` only what was
  /// understood is set.
  virtual void refuse(const HttpRequest& request, int status, const Error& error,
                      HttpResponse& response) = 0;
};

/// The HTTP status for an error of ours.
int status_of(ErrorCode code);

/// Appends status line, headers and body. `date` is an HTTP date.
void append_response(const HttpResponse& response, bool with_body, bool keep_alive, bool http_1_0,
                     std::string_view date, std::string& out);

/// True when `a` and `b` are equal but for the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// The decoded segments of a path: `/v1/owners/a%2Fb` gives `v1`, `owners`, `a/b`. An error for a
/// path that does not start with `/` or has a broken escape.
Result<std::vector<std::string>> split_path(std::string_view path);

}  // namespace weir::net
