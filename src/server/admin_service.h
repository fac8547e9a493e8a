// Everything under the admin port (API.md): metrics, probes, status, owners, explain, chaos.
// Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "actors/node.h"
#include "src/config/node_config.h"
#include "src/edge/limiter.h"
#include "src/net/service.h"
#include "src/server/policy_keeper.h"
#include "src/server/security_keeper.h"
#include "src/store/store.h"
#include "src/telemetry/metrics.h"

namespace weir::server {

class NodeAdminService final : public net::AdminService {
 public:
  /// All outlive the service. Null: this node has none.
  struct Parts {
    const Clock* clock = nullptr;
    const config::NodeConfig* config = nullptr;
    const PolicyKeeper* policy = nullptr;
    const SecurityKeeper* security = nullptr;
    const telemetry::Metrics* metrics = nullptr;
    actors::Node* node = nullptr;
    edge::Limiter* limiter = nullptr;  ///< null at a node that is no edge
    const store::Store* store = nullptr;
    std::function<net::Readiness()> readiness;
    std::optional<Endpoint> http;  ///< where checks are answered
  };
  explicit NodeAdminService(Parts parts);

  void handle(const net::AdminRequest& request, Completion done) override;

 private:
  net::AdminResponse healthz() const;
  net::AdminResponse readyz() const;
  net::AdminResponse metrics() const;
  net::AdminResponse status() const;
  net::AdminResponse top() const;
  void owners(const std::string& customer, Completion done) const;
  void explain(const net::AdminRequest& request, Completion done) const;
  net::AdminResponse topology() const;
  Result<std::pair<std::uint64_t, std::string>> topology_of(const net::AdminRequest& request) const;
  void change_topology(const net::AdminRequest& request, bool recover, Completion done) const;
  void kill_owner(const net::AdminRequest& request, Completion done) const;
  void cut_off(const net::AdminRequest& request, Completion done) const;

  Parts parts_;
  Nanos started_ns_;
};

}  // namespace weir::server
