// Bytes to one HTTP/1 request at a time. The grammar is Beast's; it stays in the .cc. Owned and
// called by one session.
#pragma once

#include <memory>
#include <string_view>

#include "src/net/http_message.h"

namespace weir::net {

/// Largest request line and headers, together. Larger is refused with 431.
inline constexpr std::size_t kMaxHeadBytes = 8 * 1024;

class RequestParser {
 public:
  enum class State { head, body, done, failed };

  /// Asks `handler` for the limit of a body.
  explicit RequestParser(const RequestHandler& handler);
  ~RequestParser();

  /// Makes ready for the next request.
  void reset();

  /// Takes what it can from `bytes` and says how much that was. The rest is to be presented again,
  /// with more behind it when the state is still head or body.
  std::size_t feed(std::string_view bytes);

  State state() const;
  /// Once done; when failed, what was understood until then.
  const HttpRequest& request();
  Method method() const;
  bool keep_alive() const;
  bool http_1_0() const;
  /// The client waits for `100 Continue` before it sends the body.
  bool expects_continue() const;

  /// When failed.
  int error_status() const;
  Error error() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::net
