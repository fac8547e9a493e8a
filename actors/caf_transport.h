// The transport over CAF's middleman: one gateway actor per node, published on the cluster port.
//
// A node dials the gateways of the topology that it has no link to, with jittered back-off, and
// answers every other node (edges are in no topology) over the handle that its frames came with.
// Nothing here trusts CAF's node ids (MAC and PID): a peer is its name and the random incarnation
// of its process, which travel with each frame.
//
// Thread rule: as Transport's. The gateway runs on the actor system's threads.
#pragma once

#include <caf/actor_system.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/cluster_tls.h"
#include "actors/transport.h"
#include "src/base/time.h"
#include "src/telemetry/metrics.h"

namespace weir::actors {

/// Wait before dialling again: doubles from the first to the last, plus up to a half at random.
inline constexpr Nanos kFirstRedialNs = 100 * kMillisecond;
inline constexpr Nanos kLastRedialNs = 1 * kSecond;
/// Most peers with a link at one node; a further one's frames are dropped.
inline constexpr std::size_t kMaxPeers = 4096;

/// What the names of nodes begin with that are dialled by their addresses alone (`join`): no node
/// may be called so. Their own names come with their first frames.
inline constexpr const char* kJoinPrefix = "join:";

struct CafTransportConfig {
  std::string name;                 ///< of this node
  std::uint64_t incarnation = 0;    ///< of this process
  std::optional<Endpoint> listen;   ///< port 0: any free one; nothing: only dials
  std::vector<TopologyNode> dials;  ///< without this node
  std::uint64_t seed = 0;           ///< of the jitter
  bool tls = false;                 ///< the system has loaded openssl::manager
  SharedRefusals refusals;          ///< where peers are named with which no connection comes about
};

class CafTransport final : public Transport {
 public:
  /// `system` has loaded io::middleman and outlives this; so do `metrics`.
  CafTransport(caf::actor_system& system, CafTransportConfig config, telemetry::Metrics& metrics);
  ~CafTransport() override;

  Status start(TransportEvents events) override;
  void stop() override;
  void send(const std::string& node, std::string frame) override;
  void sever(const std::string& node) override;
  void set_dials(std::vector<TopologyNode> nodes) override;
  std::uint16_t port() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::actors
