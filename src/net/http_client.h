// A small blocking HTTP/1.1 client for the command line, for tools and tests. Every call has a
// deadline. One thread per object.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/topology.h"

namespace weir::net {

/// Largest answer that is taken. Larger is an error.
inline constexpr std::size_t kMaxClientBodyBytes = 64 * 1024 * 1024;

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpClientResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;

  /// The value of the first header called `name` (ASCII case ignored), or nullptr.
  const std::string* header(std::string_view name) const;
};

/// What an https:// client goes by.
struct ClientTls {
  std::string ca;           ///< PEM file of who must have signed; empty: the system's
  std::string certificate;  ///< PEM files to show; empty: none
  std::string key;
};

/// A keep-alive connection.
class HttpClient {
 public:
  /// ErrorCode::unavailable when it cannot be reached within the timeout. With `tls`, TLS 1.2 or
  /// later, and the certificate must be the host's; invalid_argument for files that cannot be used.
  static Result<HttpClient> connect(const Endpoint& endpoint, Nanos timeout_ns,
                                    const ClientTls* tls = nullptr);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  /// Sends one request and waits for its answer. `Host`, and with a body `Content-Length`, are
  /// added. After an error (unavailable: timed out or broken off; io: not HTTP) the connection is
  /// not usable any more.
  Result<HttpClientResponse> request(std::string_view method, std::string_view target,
                                     const HttpHeaders& headers, std::string_view body,
                                     Nanos timeout_ns);

  /// False after an error, and after an answer with `Connection: close`.
  bool usable() const;

 private:
  class Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct HttpUrl {
  Endpoint endpoint;
  std::string target;  ///< path and query, at least `/`
  bool tls = false;

  friend bool operator==(const HttpUrl&, const HttpUrl&) = default;
};
/// Takes `http://host[:port][/path][?query]`, or `https://`.
Result<HttpUrl> parse_url(std::string_view url);

/// One request on a connection of its own; the timeout is for all of it.
Result<HttpClientResponse> http_request(std::string_view method, std::string_view url,
                                        const HttpHeaders& headers, std::string_view body,
                                        Nanos timeout_ns, const ClientTls& tls = {});

}  // namespace weir::net
