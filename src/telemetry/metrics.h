// Metrics: names and labels as API.md lists them (prefix weir_). Counters and histograms live here
// or are read from their owner at the scrape; the hot path takes no lock. No customer id is a
// label.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/time.h"

namespace weir::telemetry {

using Labels = std::vector<std::pair<std::string, std::string>>;

/// Takes samples at a scrape. The same name must come with the same help and kind each time (names
/// and help texts: names.h). Samples of the same name and labels are added up, also with a Counter
/// of Metrics.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual void counter(std::string_view name, std::string_view help, const Labels& labels,
                       double value) = 0;
  virtual void gauge(std::string_view name, std::string_view help, const Labels& labels,
                     double value) = 0;
};

/// A count that only grows. Thread-safe, relaxed.
class Counter {
 public:
  void add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Durations in fixed buckets from 1 us to 1 s (1, 2, 5, 10, ... 20 ms included), as
/// `check_duration_seconds` wants them. Thread-safe; threads write to their own cache lines.
class DurationHistogram {
 public:
  DurationHistogram();
  ~DurationHistogram();
  void observe(Nanos duration_ns);
  /// Upper bounds in nanoseconds, ascending, without +Inf.
  static const std::vector<Nanos>& bounds_ns();
  struct Snapshot {
    std::vector<std::uint64_t>
        counts;  ///< not cumulative; one more than bounds_ns, the last is +Inf
    double sum_s = 0;
  };
  Snapshot snapshot() const;

 private:
  struct Shards;
  std::unique_ptr<Shards> shards_;
};

/// The process's metrics. Built in main, handed down. Thread-safe.
class Metrics {
 public:
  /// Most combinations of label values under one name; further ones are counted together under the
  /// value `other`.
  static constexpr std::size_t kMaxSeriesPerName = 16'384;

  Metrics();
  ~Metrics();

  /// A counter or histogram that lives as long as this object; the same name and labels (in any
  /// order) give the same one. Takes a lock: keep the reference.
  Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
  DurationHistogram& histogram(std::string_view name, std::string_view help,
                               const Labels& labels = {});

  using Collector = std::function<void(MetricSink&)>;
  /// Called at every scrape, on the scraping thread, until `remove_collector`, which waits for a
  /// scrape in progress. A collector may not add or remove collectors.
  std::uint64_t add_collector(Collector collector);
  void remove_collector(std::uint64_t id);

  /// The Prometheus text format (version 0.0.4).
  std::string scrape() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::telemetry
