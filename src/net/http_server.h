// A listening port with its threads. Each thread has an event loop and connections of its own;
// nothing on a request's path is shared between them but the service behind.
#pragma once

#include <cstddef>
#include <memory>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/topology.h"
#include "src/net/bearer.h"
#include "src/net/check_routes.h"
#include "src/net/http_session.h"
#include "src/net/service.h"
#include "src/net/tls.h"
#include "src/telemetry/log.h"

namespace weir::net {

/// Most connections of one port at a time. A further one is told 503 and closed.
inline constexpr std::size_t kMaxConnections = 32 * 1024;

struct HttpServerOptions {
  Endpoint listen;       ///< port 0: a free one is chosen
  unsigned threads = 1;  ///< at least 1
  std::size_t max_connections = kMaxConnections;
  HttpDeadlines deadlines;
  const TlsBook* tls = nullptr;  ///< whose certificates it shows; null: plain HTTP
  TokenBook* tokens = nullptr;   ///< who may ask; null: anybody
};

/// What the options point to outlives the server. Methods are called from one thread at a time,
/// which is none of the server's own.
class HttpServer {
 public:
  /// Serves the check API. `service`, `clock` and `log` outlive the server; see CheckApiOptions and
  /// CheckRoutes for what late completions need.
  HttpServer(const HttpServerOptions& options, const CheckApiOptions& api, CheckService& service,
             const Clock& clock, telemetry::Log& log);
  /// Serves an admin port.
  HttpServer(const HttpServerOptions& options, AdminService& service, const Clock& clock,
             telemetry::Log& log);
  /// Stops.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Listens and serves; gives the address that is bound. Once.
  Result<Endpoint> start();

  /// Stops listening, closes connections that wait for no answer, and lets the others finish:
  /// answers say `Connection: close`. Blocks until all are gone (true) or `patience_ns` of real
  /// time is over (false). `stop` is still to be called.
  bool drain(Nanos patience_ns);

  /// Closes everything and joins the threads. Late completions of the services do nothing from then
  /// on. May be called again.
  void stop();

  /// Connections that are open now.
  std::size_t connections() const;
  /// TLS handshakes that failed so far. From any thread.
  std::uint64_t refused_handshakes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::net
