#include "src/server/collector.h"

#include "src/telemetry/names.h"

namespace weir::server {
namespace {

namespace metric = telemetry::metric;
using telemetry::MetricName;

}  // namespace

telemetry::Metrics::Collector limiter_collector(const edge::Limiter& limiter) {
  return [&limiter](telemetry::MetricSink& sink) {
    for (const edge::CheckCount& count : limiter.check_counts()) {
      sink.counter(metric::kChecks.name, metric::kChecks.help,
                   {{"limit", count.limit},
                    {"result", count.allowed ? "allowed" : "denied"},
                    {"source", to_string(count.source)}},
                   static_cast<double>(count.count));
    }
    const auto gauge = [&sink](const MetricName& name, const telemetry::Labels& labels,
                               double value) { sink.gauge(name.name, name.help, labels, value); };
    for (const edge::LimitGauges& limit : limiter.gauges()) {
      const telemetry::Labels labels{{"limit", limit.limit}};
      gauge(metric::kLeaseTokens, labels, static_cast<double>(limit.lease_tokens));
      gauge(metric::kOvershootBoundTokens, labels, static_cast<double>(limit.overshoot_tokens));
      gauge(metric::kDegraded, {{"limit", limit.limit}, {"policy", to_string(limit.policy)}},
            limit.degraded ? 1 : 0);
      sink.counter(metric::kShadowDenied.name, metric::kShadowDenied.help, labels,
                   static_cast<double>(limit.shadow_denied));
    }
  };
}

}  // namespace weir::server
