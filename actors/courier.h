// Between this node's actors and its peers: batches and encodes what leaves, decodes and checks
// what arrives, keeps the heartbeats going (actors/peers.h decides).
//
// What gathers in one turn of its mailbox leaves in one frame per node, at once when it is idle.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/peers.h"
#include "actors/transport.h"
#include "src/edge/activity_table.h"
#include "src/telemetry/log.h"
#include "src/telemetry/metrics.h"

namespace weir::actors {

/// What the courier last knew of the peers. The mutex is there because the server's threads read
/// while the courier writes ten times a second; it is held for a copy.
class PeerBoard {
 public:
  struct Posted {
    std::vector<PeerState> peers;
    std::uint32_t live_edges = 1;
  };
  void post(Posted posted);
  Posted read() const;

 private:
  mutable std::mutex mutex_;
  Posted posted_;
};

struct CourierContext {
  codec::Hello self;
  std::shared_ptr<ShapeBoard> shape;
  regions::ParseTopology parse_topology;
  Transport* transport = nullptr;  ///< outlives the courier
  const Clock* clock = nullptr;
  telemetry::Log* log = nullptr;
  telemetry::Metrics* metrics = nullptr;
  std::shared_ptr<PeerBoard> board;
  std::shared_ptr<edge::ActivityTable> activity;
  SharedLinks links;
};

CourierActor spawn_courier(caf::actor_system& system, const CourierContext& context);

}  // namespace weir::actors
