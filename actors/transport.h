// The seam between nodes: whole frames (an encoded weir.v1.Envelope) go to a node by name and may
// be lost, delayed, repeated or reordered. The CAF middleman is one backend (caf_transport.h); the
// simulator is another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/model/topology.h"

namespace weir::actors {

struct PeerState {
  std::string node;
  std::string region;
  std::uint64_t incarnation = 0;
  bool connected = false;
  bool edge = false;
  bool owner = false;
  std::int64_t heard_ns = 0;       ///< boot clock of the last frame; 0: never
  std::int64_t round_trip_ns = 0;  ///< smoothed; 0: not measured

  friend bool operator==(const PeerState&, const PeerState&) = default;
};

/// What a transport tells its node. Called on the transport's threads, one call at a time; must not
/// block.
struct TransportEvents {
  /// A frame of the node `from`, as that node calls itself.
  std::function<void(std::string from, std::string frame)> frame;
  /// There is a way to `node` now, or none any more. A peer that restarted goes down and up.
  std::function<void(std::string node, bool up)> link;
};

/// Thread rule: `start` once, before the rest, and `stop` once, after it; between them any method
/// from any thread.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Status start(TransportEvents events) = 0;
  /// No event comes after it has returned; the events are destroyed.
  virtual void stop() = 0;
  /// Never blocks and never queues for a node without a link: such a frame is lost, as any may be.
  virtual void send(const std::string& node, std::string frame) = 0;
  /// Gives up a link over which nothing is heard, so that a new connection takes its place.
  virtual void sever(const std::string& node) = 0;
  /// From now on links are kept up to these nodes, as far as this transport makes links itself.
  virtual void set_dials(std::vector<TopologyNode> nodes) { static_cast<void>(nodes); }
  /// The port that peers reach this node at; 0: none.
  virtual std::uint16_t port() const = 0;
};

}  // namespace weir::actors
