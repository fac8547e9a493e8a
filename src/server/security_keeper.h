// Tokens and certificates in force: read at start and again at each reload; a bad file keeps what
// was good and is shown. Thread-safe; `start` and `reload` by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/config/node_config.h"
#include "src/net/bearer.h"
#include "src/net/tls.h"
#include "src/telemetry/log.h"
#include "src/telemetry/metrics.h"

namespace weir::server {

class SecurityKeeper {
 public:
  /// All outlive the keeper.
  SecurityKeeper(const config::NodeConfig& config, const Clock& clock, telemetry::Log& log);

  /// Reads everything; a bad file ends the start.
  Status start();
  /// Reads everything again. What is bad keeps what was; the first error, after all was tried.
  Status reload();
  /// To be called now and then: logs how many requests were refused since.
  void housekeep();
  void collect(telemetry::MetricSink& sink) const;

  /// Null when the node has none of them.
  net::TokenBook* tokens();
  const net::TlsBook* http_tls() const;

  /// What an operator wants to know of one kind of file: `tokens`, `tls.http`, `tls.cluster`.
  struct Part {
    std::string name;
    Nanos loaded_wall_ns = 0;
    Nanos not_after_wall_ns = 0;            ///< 0: no certificate
    std::optional<std::string> last_error;  ///< of the last reload, when it failed
  };
  std::vector<Part> state() const;

 private:
  struct Source {
    Part part;
    std::uint64_t reloaded = 0;
    std::uint64_t failed = 0;
    std::function<Result<Nanos>()> read;  ///< puts it in force; gives not_after_wall_ns
  };
  void keep(const char* name, std::function<Result<Nanos>()> read);
  Status read(Source& source);

  const config::NodeConfig& config_;
  const Clock& clock_;
  telemetry::Log& log_;
  net::TokenBook token_book_;
  net::TlsBook http_book_;
  net::TokenBook::Refusals logged_;
  // Admin threads look while the main thread reloads.
  mutable std::mutex mutex_;
  std::vector<Source> sources_;
};

}  // namespace weir::server
