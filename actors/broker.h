// The shell around edge::Limiter: fetches what should be asked, brings it to the owners (of this
// node or, through the courier, of others) and brings the answers back.
//
// The hot path wakes it through `WakeFlag`, which keeps all but the first of many wakes from
// becoming messages.
#pragma once

#include <atomic>
#include <memory>

#include "actors/messages.h"
#include "src/edge/limiter.h"
#include "src/telemetry/metrics.h"

namespace weir::actors {

/// True while a wake is on its way to the broker.
using WakeFlag = std::atomic<bool>;

/// A peer's round trip that changed by less than this, or by less than a quarter, is no news.
inline constexpr Nanos kNotableRoundTripNs = 1 * kMillisecond;

struct BrokerContext {
  edge::Limiter* limiter = nullptr;
  const Clock* clock = nullptr;
  telemetry::Metrics* metrics = nullptr;
  std::shared_ptr<const ShapeBoard> shape;
  std::string region;  ///< of this edge
  std::shared_ptr<WakeFlag> wake;
  SharedLinks links;
};

BrokerActor spawn_broker(caf::actor_system& system, const BrokerContext& context);

}  // namespace weir::actors
