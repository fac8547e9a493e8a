// The seam between nodes: whole frames (an encoded weir.v1.Envelope) go to a node by name and may
// be lost, delayed, repeated or reordered. The CAF middleman is one backend (caf_transport.cc); the
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
};

}  // namespace weir::actors
