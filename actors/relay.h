// The shell around regions::Relay: requests of edges in, sub-leases out; what it lacks is asked of
// the owners as an edge's broker does (PROTOCOL F). One on each owner node.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "actors/messages.h"
#include "regions/relay.h"
#include "src/telemetry/metrics.h"

namespace weir::actors {

/// What the node shows of its relay. Written by the relay, read by any thread.
struct RelayBoard {
  std::atomic<std::uint64_t> buckets{0};
};

struct RelayContext {
  regions::RelayConfig config;
  std::uint64_t seed = 0;
  const Clock* clock = nullptr;
  telemetry::Metrics* metrics = nullptr;
  std::shared_ptr<const ShapeBoard> shape;
  std::shared_ptr<RelayBoard> board;
  SharedLinks links;
};

RelayActor spawn_relay(caf::actor_system& system, const RelayContext& context);

}  // namespace weir::actors
