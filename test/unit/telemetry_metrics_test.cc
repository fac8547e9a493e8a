// Goal: what is counted is what a scraper reads back: names, label escaping, bucket bounds, sums
// under concurrent writers, and lifetimes of collectors.
// Method: scrape, parse the text format with a small parser of this test's own, compare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "src/telemetry/metrics.h"
#include "src/telemetry/names.h"

namespace weir::telemetry {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Scraped {
  std::map<std::string, std::string> kinds;
  std::map<std::string, std::string> helps;
  std::map<std::pair<std::string, Labels>, double> samples;

  double value(const std::string& name, const Labels& labels = {}) const {
    const auto found = samples.find({name, labels});
    return found == samples.end() ? -1 : found->second;
  }
};

/// Reads `name="value",...}` after the opening brace, undoing the escapes of the text format.
Labels parse_labels(const std::string& line, std::size_t& at) {
  Labels labels;
  while (line.at(at) != '}') {
    const std::size_t equals = line.find("=\"", at);
    std::string name = line.substr(at, equals - at);
    std::string value;
    for (at = equals + 2; line.at(at) != '"'; ++at) {
      if (line[at] != '\\') {
        value.push_back(line[at]);
      } else {
        ++at;
        value.push_back(line.at(at) == 'n' ? '\n' : line[at]);
      }
    }
    ++at;
    if (line.at(at) == ',') ++at;
    labels.emplace_back(std::move(name), std::move(value));
  }
  ++at;
  return labels;
}

Scraped parse(const std::string& text) {
  Scraped scraped;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (line.rfind("# ", 0) == 0) {
      std::string hash, what, name, rest;
      words >> hash >> what >> name;
      std::getline(words >> std::ws, rest);
      auto& into = what == "TYPE" ? scraped.kinds : scraped.helps;
      EXPECT_TRUE(into.emplace(name, rest).second) << "said twice: " << line;
      continue;
    }
    std::size_t at = line.find_first_of("{ ");
    const std::string name = line.substr(0, at);
    Labels labels;
    if (line.at(at) == '{') labels = parse_labels(line, ++at);
    const double value = std::stod(line.substr(at));
    EXPECT_TRUE(scraped.samples.emplace(std::pair(name, labels), value).second)
        << "sampled twice: " << line;
  }
  return scraped;
}

TEST(Metrics, CountersAreReadBackByNameAndLabels) {
  Metrics metrics;
  metrics.counter("weir_a_total", "Things.", {{"limit", "api"}, {"result", "allowed"}}).add(3);
  metrics.counter("weir_a_total", "Things.", {{"limit", "api"}, {"result", "denied"}}).add();
  metrics.counter("weir_b_total", "Other things.");
  const Scraped scraped = parse(metrics.scrape());
  EXPECT_EQ(scraped.kinds.at("weir_a_total"), "counter");
  EXPECT_EQ(scraped.helps.at("weir_a_total"), "Things.");
  EXPECT_EQ(scraped.value("weir_a_total", {{"limit", "api"}, {"result", "allowed"}}), 3);
  EXPECT_EQ(scraped.value("weir_a_total", {{"limit", "api"}, {"result", "denied"}}), 1);
  EXPECT_EQ(scraped.value("weir_b_total"), 0);
  EXPECT_EQ(scraped.samples.size(), 3U);
}

TEST(Metrics, TheSameNameAndLabelsInAnyOrderAreOneCounter) {
  Metrics metrics;
  Counter& one = metrics.counter("c_total", "h", {{"a", "1"}, {"b", "2"}});
  Counter& same = metrics.counter("c_total", "h", {{"b", "2"}, {"a", "1"}});
  EXPECT_EQ(&one, &same);
  EXPECT_NE(&one, &metrics.counter("c_total", "h", {{"a", "1"}, {"b", "3"}}));
}

TEST(Metrics, LargeCountsKeepTheirLowDigits) {
  Metrics metrics;
  metrics.counter("c_total", "h").add(1'234'567'890'123);
  EXPECT_THAT(metrics.scrape(), HasSubstr("c_total 1234567890123\n"));
}

TEST(Metrics, LabelValuesCannotEndTheirStringOrTheLine) {
  Metrics metrics;
  const std::string evil = "a\"} 9\nweir_forged_total{x=\"\\";
  metrics.counter("c_total", "h", {{"limit", evil}}).add(2);
  metrics.counter("d_total", "h", {{"limit", "bad\xFF\xC0utf8"}}).add(4);
  const Scraped scraped = parse(metrics.scrape());
  EXPECT_EQ(scraped.value("c_total", {{"limit", evil}}), 2);
  EXPECT_EQ(scraped.value("d_total", {{"limit", "bad\xEF\xBF\xBD\xEF\xBF\xBDutf8"}}), 4);
  EXPECT_EQ(scraped.samples.size(), 2U);
}

TEST(Metrics, CollectorsAddUpAndAreGoneOnceRemoved) {
  Metrics metrics;
  metrics.counter("c_total", "h", {{"shard", "x"}}).add(1);
  const auto collect = [](MetricSink& sink) {
    sink.counter("c_total", "h", {{"shard", "x"}}, 10);
    sink.gauge("g", "level", {}, -2.5);
  };
  const std::uint64_t first = metrics.add_collector(collect);
  const std::uint64_t second = metrics.add_collector(collect);
  EXPECT_NE(first, second);
  Scraped scraped = parse(metrics.scrape());
  EXPECT_EQ(scraped.value("c_total", {{"shard", "x"}}), 21);
  EXPECT_EQ(scraped.value("g"), -5);
  EXPECT_EQ(scraped.kinds.at("g"), "gauge");
  metrics.remove_collector(first);
  metrics.remove_collector(first);
  scraped = parse(metrics.scrape());
  EXPECT_EQ(scraped.value("c_total", {{"shard", "x"}}), 11);
  EXPECT_EQ(scraped.value("g"), -2.5);
}

TEST(Metrics, ACollectorMayRegisterACounter) {
  Metrics metrics;
  metrics.add_collector([&](MetricSink&) { metrics.counter("late_total", "h").add(); });
  metrics.scrape();
  EXPECT_GE(parse(metrics.scrape()).value("late_total"), 1);
}

TEST(Metrics, SeriesBeyondTheMostAreCountedTogether) {
  Metrics metrics;
  const std::size_t extra = 5;
  for (std::size_t i = 0; i < Metrics::kMaxSeriesPerName + extra; ++i) {
    metrics.counter("c_total", "h", {{"limit", "l" + std::to_string(i)}}).add();
  }
  const Scraped scraped = parse(metrics.scrape());
  EXPECT_EQ(scraped.samples.size(), Metrics::kMaxSeriesPerName + 1);
  EXPECT_EQ(scraped.value("c_total", {{"limit", "other"}}), static_cast<double>(extra));
  EXPECT_EQ(scraped.value("c_total", {{"limit", "l7"}}), 1);
}

TEST(MetricsDeathTest, MixedUpKindsAndNamesAreBugs) {
  Metrics metrics;
  metrics.counter("c_total", "h");
  EXPECT_DEATH(metrics.histogram("c_total", "h"), "metrics.cc");
  EXPECT_DEATH(metrics.counter("c_total", "another help"), "metrics.cc");
  EXPECT_DEATH(metrics.counter("not a name", "h"), "metrics.cc");
  EXPECT_DEATH(metrics.counter("x_total", "h", {{"le", "1"}}), "metrics.cc");
  EXPECT_DEATH(metrics.counter("x_total", "h", {{"a", "1"}, {"a", "2"}}), "metrics.cc");
}

TEST(DurationHistogram, BoundsReachFromOneMicrosecondToOneSecond) {
  const std::vector<Nanos>& bounds = DurationHistogram::bounds_ns();
  EXPECT_EQ(bounds.front(), kMicrosecond);
  EXPECT_EQ(bounds.back(), kSecond);
  EXPECT_THAT(bounds, Contains(5 * kMicrosecond));
  EXPECT_THAT(bounds, Contains(20 * kMillisecond));
  EXPECT_EQ(std::set<Nanos>(bounds.begin(), bounds.end()).size(), bounds.size());
  EXPECT_TRUE(std::is_sorted(bounds.begin(), bounds.end()));
}

TEST(DurationHistogram, ADurationOnABoundBelongsToIt) {
  for (std::size_t i = 0; i < DurationHistogram::bounds_ns().size(); ++i) {
    DurationHistogram histogram;
    histogram.observe(DurationHistogram::bounds_ns()[i]);
    histogram.observe(DurationHistogram::bounds_ns()[i] + 1);
    const auto snapshot = histogram.snapshot();
    EXPECT_EQ(snapshot.counts[i], 1U) << i;
    EXPECT_EQ(snapshot.counts[i + 1], 1U) << i;
  }
}

TEST(DurationHistogram, ImpossibleDurationsDoNotSpoilTheSum) {
  DurationHistogram histogram;
  histogram.observe(-5);
  for (int i = 0; i < 10; ++i) histogram.observe(kForever);
  const auto snapshot = histogram.snapshot();
  EXPECT_EQ(snapshot.counts.front(), 1U);
  EXPECT_EQ(snapshot.counts.back(), 10U);
  EXPECT_DOUBLE_EQ(snapshot.sum_s, 10 * 86400.0);
}

TEST(DurationHistogram, IsScrapedCumulatively) {
  Metrics metrics;
  DurationHistogram& histogram = metrics.histogram("d_seconds", "h", {{"kind", "x"}});
  histogram.observe(3 * kMicrosecond);
  histogram.observe(15 * kMillisecond);
  histogram.observe(2 * kSecond);
  const Scraped scraped = parse(metrics.scrape());
  EXPECT_EQ(scraped.kinds.at("d_seconds"), "histogram");
  const auto bucket = [&](const char* le) {
    return scraped.value("d_seconds_bucket", {{"kind", "x"}, {"le", le}});
  };
  EXPECT_EQ(bucket("1e-06"), 0);
  EXPECT_EQ(bucket("2e-06"), 0);
  EXPECT_EQ(bucket("5e-06"), 1);
  EXPECT_EQ(bucket("0.01"), 1);
  EXPECT_EQ(bucket("0.02"), 2);
  EXPECT_EQ(bucket("1"), 2);
  EXPECT_EQ(bucket("+Inf"), 3);
  EXPECT_EQ(scraped.value("d_seconds_count", {{"kind", "x"}}), 3);
  EXPECT_DOUBLE_EQ(scraped.value("d_seconds_sum", {{"kind", "x"}}), 2.015003);
}

TEST(DurationHistogram, NothingIsLostBetweenThreads) {
  constexpr int kThreads = 24;  // more than there are shards
  constexpr int kEach = 5'000;
  Metrics metrics;
  Counter& counter = metrics.counter("c_total", "h");
  DurationHistogram& histogram = metrics.histogram("d_seconds", "h");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        counter.add(2);
        histogram.observe(kMicrosecond);
        histogram.observe(20 * kMillisecond);
      }
    });
  }
  for (int i = 0; i < 20; ++i) metrics.scrape();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 2ULL * kThreads * kEach);
  const Scraped scraped = parse(metrics.scrape());
  EXPECT_EQ(scraped.value("d_seconds_count"), 2.0 * kThreads * kEach);
  EXPECT_EQ(scraped.value("d_seconds_bucket", {{"le", "1e-06"}}), 1.0 * kThreads * kEach);
  EXPECT_DOUBLE_EQ(scraped.value("d_seconds_sum"), kThreads * kEach * 0.020001);
}

TEST(MetricNames, AreUniquePrefixedAndSuffixedByKind) {
  std::set<std::string_view> names;
  for (const MetricName& metric : kAllMetrics) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_EQ(metric.name.rfind("weir_", 0), 0U) << metric.name;
    EXPECT_FALSE(metric.help.empty()) << metric.name;
    EXPECT_EQ(metric.help.find_first_of("\n\\"), std::string_view::npos) << metric.name;
    EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == MetricKind::counter) << metric.name;
    EXPECT_EQ(metric.name.ends_with("_seconds"), metric.kind == MetricKind::histogram)
        << metric.name;
    EXPECT_EQ(metric.labels.find("customer"), std::string_view::npos) << metric.name;
  }
}

}  // namespace
}  // namespace weir::telemetry
