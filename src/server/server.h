// One running node: policy, limiter, actors, check API and admin API wired together. The whole
// world comes in through `World`, so that all of it runs in a test on fakes and on port 0; only
// run_node builds the real one.
//
// Thread rule: one thread starts, reloads, keeps house, drains and destroys.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/random.h"
#include "src/base/result.h"
#include "src/base/time.h"
#include "src/config/node_config.h"
#include "src/model/topology.h"
#include "src/store/store.h"
#include "src/telemetry/log.h"
#include "src/telemetry/metrics.h"

namespace weir::server {

/// From SIGTERM to the end, whatever happens.
inline constexpr Nanos kDrainNs = 10 * kSecond;
/// How often `housekeep` wants to be called.
inline constexpr Nanos kHousekeepingNs = 1 * kSecond;

class Server {
 public:
  /// All outlive the server. `store` may be null at a node that does not own.
  struct World {
    const Clock* clock = nullptr;
    SeedSource* seeds = nullptr;
    store::Store* store = nullptr;
    telemetry::Log* log = nullptr;
    telemetry::Metrics* metrics = nullptr;
  };

  /// Reads topology and policy, starts everything and serves. `config` is complete but for the
  /// region, which the topology may say. Errors name the member of node.yaml, or carry the
  /// mistakes of a file, one a line.
  static Result<std::unique_ptr<Server>> start(config::NodeConfig config, World world);
  /// Stops at once; after `drain`, without loss.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Where this node really listens.
  struct Addresses {
    std::optional<Endpoint> http;
    std::optional<Endpoint> admin;
    std::optional<Endpoint> probe;
    std::uint16_t cluster_port = 0;  ///< 0: none
  };
  Addresses addresses() const;
  const config::NodeConfig& config() const;

  /// Re-reads policy, tokens and certificates. A bad file keeps the last good one; log, metric and
  /// status say so.
  Status reload();
  /// To be called every kHousekeepingNs: reports what began or ceased to be degraded, and requests
  /// refused for their token; tells the peers who asks most.
  void housekeep();
  /// Not ready; requests that have begun are finished; leases go back; what is unstored is stored.
  /// Returns when that is done, at the latest after kDrainNs.
  void drain();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::server
