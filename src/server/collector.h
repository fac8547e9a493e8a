// What the limiter counts, as metrics; read at each scrape.
#pragma once

#include <functional>

#include "src/edge/limiter.h"
#include "src/telemetry/metrics.h"

namespace weir::server {

/// `limiter` outlives the collector's registration.
telemetry::Metrics::Collector limiter_collector(const edge::Limiter& limiter);

}  // namespace weir::server
