// /v1/status as a value and as JSON. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/node.h"
#include "src/base/time.h"
#include "src/config/node_config.h"
#include "src/edge/limiter.h"
#include "src/model/topology.h"
#include "src/net/service.h"
#include "src/server/policy_keeper.h"
#include "src/server/security_keeper.h"

namespace weir::server {

struct StatusFacts {
  const config::NodeConfig* config = nullptr;
  const Topology* topology = nullptr;
  net::Readiness readiness = net::Readiness::serving;
  Nanos uptime_ns = 0;
  Nanos now_boot_ns = 0;
  std::string policy_path;
  PolicyKeeper::State policy;
  std::vector<SecurityKeeper::Part> security;
  actors::Node::State node;
  std::optional<Endpoint> http;
  std::uint64_t owners_dormant = 0;
  std::size_t buckets = 0;
  std::size_t waiting = 0;
  std::vector<edge::LimitGauges> gauges;
};

std::string status_json(const StatusFacts& facts);

/// `2026-11-29T19:40:00Z` of nanoseconds since 1970.
std::string utc_text(Nanos wall_ns);

/// `serving`, `draining`, `no_policy`.
const char* to_string(net::Readiness readiness);

}  // namespace weir::server
