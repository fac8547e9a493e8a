#include "src/telemetry/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>

#include "src/base/assert.h"
#include "src/telemetry/escape.h"

namespace weir::telemetry {
namespace {

constexpr std::size_t kBoundCount = 19;
constexpr std::array<Nanos, kBoundCount> kBounds = {
    1 * kMicrosecond,   2 * kMicrosecond,   5 * kMicrosecond,   10 * kMicrosecond,
    20 * kMicrosecond,  50 * kMicrosecond,  100 * kMicrosecond, 200 * kMicrosecond,
    500 * kMicrosecond, 1 * kMillisecond,   2 * kMillisecond,   5 * kMillisecond,
    10 * kMillisecond,  20 * kMillisecond,  50 * kMillisecond,  100 * kMillisecond,
    200 * kMillisecond, 500 * kMillisecond, 1 * kSecond};

/// A longer duration counts as this much in the sum, so that no single one can wrap it.
constexpr Nanos kLongestObserved = kDay;

constexpr std::size_t kShardCount = 16;
constexpr std::size_t kCacheLineBytes = 64;

/// Threads are numbered as they first observe something; sixteen of them share no cache line. The
/// number belongs to the thread, not to a histogram, hence the one counter of the process.
std::size_t shard_of_this_thread() {
  static std::atomic<std::size_t> next_thread{0};
  thread_local const std::size_t shard =
      next_thread.fetch_add(1, std::memory_order_relaxed) % kShardCount;
  return shard;
}

bool is_name(std::string_view name, bool colon_allowed) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (c == ':' && colon_allowed);
  });
}

/// Sorted by name, values in valid UTF-8: the order in which a caller lists them does not matter.
Labels normalized(const Labels& labels) {
  Labels sorted;
  sorted.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    WEIR_ASSERT(is_name(name, false) && name != "le");
    sorted.emplace_back(name, to_valid_utf8(value));
  }
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    WEIR_ASSERT(sorted[i - 1].first != sorted[i].first);
  }
  return sorted;
}

/// Where samples beyond kMaxSeriesPerName go.
Labels folded(Labels labels) {
  for (auto& label : labels) label.second = "other";
  return labels;
}

std::vector<prometheus::ClientMetric::Label> to_prometheus(const Labels& labels) {
  std::vector<prometheus::ClientMetric::Label> result;
  result.reserve(labels.size());
  for (const auto& [name, value] : labels) result.push_back({name, value});
  return result;
}

prometheus::ClientMetric::Histogram to_prometheus(const DurationHistogram::Snapshot& snapshot) {
  prometheus::ClientMetric::Histogram histogram;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < kBoundCount; ++i) {
    cumulative += snapshot.counts[i];
    histogram.bucket.push_back({cumulative, static_cast<double>(kBounds[i]) / kSecond});
  }
  histogram.sample_count = cumulative + snapshot.counts[kBoundCount];
  histogram.sample_sum = snapshot.sum_s;
  return histogram;
}

/// What one scrape has gathered under one name.
struct Samples {
  std::string help;
  prometheus::MetricType type = prometheus::MetricType::Untyped;
  std::map<Labels, double> values;
  std::map<Labels, DurationHistogram::Snapshot> histograms;
};

/// All that one scrape gathers. Used by one thread.
class Gathering final : public MetricSink {
 public:
  void counter(std::string_view name, std::string_view help, const Labels& labels,
               double value) override {
    add(name, help, prometheus::MetricType::Counter, labels, value);
  }
  void gauge(std::string_view name, std::string_view help, const Labels& labels,
             double value) override {
    add(name, help, prometheus::MetricType::Gauge, labels, value);
  }
  void histogram(std::string_view name, std::string_view help, const Labels& labels,
                 DurationHistogram::Snapshot snapshot) {
    family(name, help, prometheus::MetricType::Histogram).histograms[labels] = std::move(snapshot);
  }

  std::vector<prometheus::MetricFamily> families() const {
    std::vector<prometheus::MetricFamily> result;
    for (const auto& [name, samples] : families_) {
      prometheus::MetricFamily family;
      family.name = name;
      family.help = samples.help;
      family.type = samples.type;
      for (const auto& [labels, value] : samples.values) {
        prometheus::ClientMetric metric;
        metric.label = to_prometheus(labels);
        metric.counter.value = value;
        metric.gauge.value = value;
        family.metric.push_back(std::move(metric));
      }
      for (const auto& [labels, snapshot] : samples.histograms) {
        prometheus::ClientMetric metric;
        metric.label = to_prometheus(labels);
        metric.histogram = to_prometheus(snapshot);
        family.metric.push_back(std::move(metric));
      }
      result.push_back(std::move(family));
    }
    return result;
  }

 private:
  Samples& family(std::string_view name, std::string_view help, prometheus::MetricType type) {
    const auto [position, inserted] = families_.try_emplace(std::string(name));
    Samples& samples = position->second;
    if (inserted) {
      WEIR_ASSERT(is_name(name, true));
      samples.help = help;
      samples.type = type;
    }
    WEIR_ASSERT(samples.type == type && samples.help == help);
    return samples;
  }

  void add(std::string_view name, std::string_view help, prometheus::MetricType type,
           const Labels& labels, double value) {
    auto& values = family(name, help, type).values;
    Labels key = normalized(labels);
    if (values.size() >= Metrics::kMaxSeriesPerName && !values.contains(key)) {
      key = folded(std::move(key));
    }
    values[std::move(key)] += value;
  }

  std::map<std::string, Samples, std::less<>> families_;
};

}  // namespace

/// One cache-aligned set of buckets; a thread writes to one set only.
struct DurationHistogram::Shards {
  struct alignas(kCacheLineBytes) Shard {
    std::array<std::atomic<std::uint64_t>, kBoundCount + 1> counts{};
    std::atomic<std::uint64_t> sum_ns{0};
  };
  std::array<Shard, kShardCount> shards;
};

DurationHistogram::DurationHistogram() : shards_(std::make_unique<Shards>()) {}
DurationHistogram::~DurationHistogram() = default;

void DurationHistogram::observe(Nanos duration_ns) {
  const Nanos counted = std::clamp<Nanos>(duration_ns, 0, kLongestObserved);
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), counted);
  Shards::Shard& shard = shards_->shards[shard_of_this_thread()];
  shard.counts[static_cast<std::size_t>(bound - kBounds.begin())].fetch_add(
      1, std::memory_order_relaxed);
  shard.sum_ns.fetch_add(static_cast<std::uint64_t>(counted), std::memory_order_relaxed);
}

const std::vector<Nanos>& DurationHistogram::bounds_ns() {
  static const std::vector<Nanos> bounds(kBounds.begin(), kBounds.end());
  return bounds;
}

DurationHistogram::Snapshot DurationHistogram::snapshot() const {
  Snapshot snapshot;
  snapshot.counts.resize(kBoundCount + 1);
  std::uint64_t sum_ns = 0;
  for (const Shards::Shard& shard : shards_->shards) {
    for (std::size_t i = 0; i <= kBoundCount; ++i) {
      snapshot.counts[i] += shard.counts[i].load(std::memory_order_relaxed);
    }
    sum_ns += shard.sum_ns.load(std::memory_order_relaxed);
  }
  snapshot.sum_s = static_cast<double>(sum_ns) / kSecond;
  return snapshot;
}

struct Metrics::Impl final : public prometheus::Collectable {
  template <typename T>
  struct Family {
    std::string help;
    std::map<Labels, std::unique_ptr<T>> series;  ///< never shrinks: references are handed out
  };
  template <typename T>
  using Families = std::map<std::string, Family<T>, std::less<>>;

  /// Finds or makes a series. The caller holds `series_mutex`.
  template <typename T>
  static T& find_or_make(Families<T>& families, std::string_view name, std::string_view help,
                         const Labels& labels) {
    WEIR_ASSERT(is_name(name, true));
    const auto [position, inserted] = families.try_emplace(std::string(name));
    Family<T>& family = position->second;
    if (inserted) family.help = help;
    WEIR_ASSERT(family.help == help);
    Labels key = normalized(labels);
    if (family.series.size() >= kMaxSeriesPerName && !family.series.contains(key)) {
      key = folded(std::move(key));
    }
    auto& series = family.series[std::move(key)];
    if (series == nullptr) series = std::make_unique<T>();
    return *series;
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    Gathering gathering;
    {
      const std::lock_guard lock(series_mutex);
      for (const auto& [name, family] : counters) {
        for (const auto& [labels, counter] : family.series) {
          gathering.counter(name, family.help, labels, static_cast<double>(counter->value()));
        }
      }
      for (const auto& [name, family] : histograms) {
        for (const auto& [labels, histogram] : family.series) {
          gathering.histogram(name, family.help, labels, histogram->snapshot());
        }
      }
    }
    const std::lock_guard lock(collectors_mutex);
    for (const auto& [id, collector] : collectors) collector(gathering);
    return gathering.families();
  }

  // Guards the maps, not the values in them: taken when a series is looked up (once, by whoever
  // counts) and at a scrape.
  mutable std::mutex series_mutex;
  Families<Counter> counters;
  Families<DurationHistogram> histograms;
  // Held while collectors run, so that a collector is never running once it has been removed.
  mutable std::mutex collectors_mutex;
  std::map<std::uint64_t, Collector> collectors;
  std::uint64_t next_collector = 1;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

Counter& Metrics::counter(std::string_view name, std::string_view help, const Labels& labels) {
  const std::lock_guard lock(impl_->series_mutex);
  WEIR_ASSERT(!impl_->histograms.contains(name));
  return Impl::find_or_make(impl_->counters, name, help, labels);
}

DurationHistogram& Metrics::histogram(std::string_view name, std::string_view help,
                                      const Labels& labels) {
  const std::lock_guard lock(impl_->series_mutex);
  WEIR_ASSERT(!impl_->counters.contains(name));
  return Impl::find_or_make(impl_->histograms, name, help, labels);
}

std::uint64_t Metrics::add_collector(Collector collector) {
  const std::lock_guard lock(impl_->collectors_mutex);
  const std::uint64_t id = impl_->next_collector++;
  impl_->collectors.emplace(id, std::move(collector));
  return id;
}

void Metrics::remove_collector(std::uint64_t id) {
  const std::lock_guard lock(impl_->collectors_mutex);
  impl_->collectors.erase(id);
}

std::string Metrics::scrape() const {
  return prometheus::TextSerializer().Serialize(impl_->Collect());
}

}  // namespace weir::telemetry
