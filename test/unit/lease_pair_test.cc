// Goal: one owner and its edges together keep the promise, whatever the network and the owner's
// host do: never more than capacity + rate x T over any interval, nothing lost for good, nobody
// starved, and few calls.
// Method: the production classes on a virtual clock (lease_cluster.h). Seeded random histories
// with loss, copies, delay, reordering, partitions and owners killed in mid-commit are judged by an
// ideal bucket; then named schedules that once broke a rule of PROTOCOL.md, and the two loads whose
// figures DESIGN.md section 1 promises. A failing history prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "test/unit/lease_cluster.h"

namespace weir::test {
namespace {

struct Named {
  std::string name;
  std::uint64_t seed;
};

ClusterOptions random_options(Random& random) {
  constexpr std::int64_t kCapacities[] = {1, 3, 5, 20, 100, 1000};
  constexpr std::int64_t kRates[] = {1, 10, 100, 1000};
  constexpr unsigned kLost[] = {0, 50, 200};
  constexpr Nanos kDelays[] = {20 * kMillisecond, 300 * kMillisecond, 4 * kSecond};
  ClusterOptions options;
  options.edges = 1 + random.below(4);
  options.limits = {leased_limit("api", kCapacities[random.below(6)], kRates[random.below(4)],
                                 random.chance(500) ? kSecond : 3 * kSecond)};
  options.limits[0].strict = random.chance(150);
  options.limits[0].on_unreachable = FailurePolicy::deny;
  options.terms.ttl_ns = random.between(1, 5) * kSecond;
  options.one_way_ns = random.between(100 * kMicrosecond, 20 * kMillisecond);
  options.commit_ns = random.between(100 * kMicrosecond, 20 * kMillisecond);
  options.wait_ns = 200 * kMillisecond;
  options.lost = kLost[random.below(3)];
  options.copied = 100;
  options.delayed = 200;
  options.delay_ns = kDelays[random.below(3)];
  options.seed = random.next();
  return options;
}

/// Traffic of one edge: bursts, pauses, costs up to the capacity and a little above, give-backs.
void drive(Cluster& cluster, std::size_t edge, std::int64_t capacity, Nanos end_ns) {
  if (cluster.now_ns() >= end_ns) return;
  Random& random = cluster.random();
  std::int64_t cost = 1;
  if (random.chance(200)) cost = random.between(0, std::min<std::int64_t>(capacity + 1, 10));
  if (random.chance(20)) cost = -random.between(1, 3);
  const int count = random.chance(50) ? 20 : 1;
  for (int i = 0; i < count; ++i) cluster.check(edge, check_of("acme", cost));
  const Nanos pause_ns =
      random.chance(10) ? random.between(0, 4 * kSecond) : random.between(0, 30 * kMillisecond);
  cluster.after(pause_ns,
                [&cluster, edge, capacity, end_ns] { drive(cluster, edge, capacity, end_ns); });
}

void kill_now_and_then(Cluster& cluster, Nanos mean_ns, Nanos end_ns) {
  if (cluster.now_ns() >= end_ns) return;
  if (cluster.owner_is_up()) cluster.kill_owner(cluster.random().between(0, kSecond));
  cluster.after(cluster.random().between(0, 2 * mean_ns),
                [&cluster, mean_ns, end_ns] { kill_now_and_then(cluster, mean_ns, end_ns); });
}

void watch(Cluster& cluster, Nanos end_ns) {
  if (cluster.now_ns() >= end_ns) return;
  cluster.expect_conservation();
  cluster.after(50 * kMillisecond, [&cluster, end_ns] { watch(cluster, end_ns); });
}

class RandomHistory : public testing::TestWithParam<int> {};

TEST_P(RandomHistory, NeverAboveTheBoundAndNothingLostForGood) {
  for (std::uint64_t i = 0; i < 25; ++i) {
    const std::uint64_t seed = static_cast<std::uint64_t>(GetParam()) * 1000 + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const ClusterOptions options = random_options(random);
    const LimitNumbers numbers = options.limits[0].numbers;
    Cluster cluster(options);
    const Nanos end_ns = cluster.now_ns() + 20 * kSecond;
    for (std::size_t edge = 0; edge < options.edges; ++edge) {
      drive(cluster, edge, numbers.capacity, end_ns);
    }
    if (random.chance(700)) {
      const Nanos mean_ns = random.between(300 * kMillisecond, 5 * kSecond);
      cluster.after(mean_ns,
                    [&cluster, mean_ns, end_ns] { kill_now_and_then(cluster, mean_ns, end_ns); });
    }
    if (random.chance(300)) {
      const Nanos cut_ns = cluster.now_ns() + random.between(0, 10 * kSecond);
      const Nanos back_ns = cut_ns + random.between(0, 8 * kSecond);
      cluster.connected = [&cluster, cut_ns, back_ns](std::size_t edge) {
        return edge != 0 || cluster.now_ns() < cut_ns || cluster.now_ns() >= back_ns;
      };
    }
    watch(cluster, end_ns);
    cluster.run_until(end_ns);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_FALSE(cluster.ideal("api").violated())
        << cluster.ideal("api").worst() << " above the bound";

    cluster.heal();
    const Nanos full_ns = numbers.capacity * numbers.rate_period_ns / numbers.rate_count;
    cluster.run_for(full_ns + 3 * options.terms.grantor_ns() + 10 * kSecond);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(cluster.stored().size(), 1U);
    const auto ledger = cluster.stored_ledger(cluster.stored().begin()->first);
    ASSERT_EQ(ledger.outstanding(), 0);
    ASSERT_EQ(ledger.level(), numbers.capacity);
    for (std::size_t edge = 0; edge < options.edges; ++edge) {
      ASSERT_EQ(cluster.limiter(edge).bucket_count(), 0U);
      ASSERT_EQ(cluster.limiter(edge).waiting_count(), 0U);
    }
    // The first may still believe the owner silent (I2); its question brings the owner back.
    cluster.ask(0, check_of("acme", numbers.capacity));
    cluster.run_for(full_ns + kSecond);
    const Decision decision = cluster.ask(0, check_of("acme", numbers.capacity));
    ASSERT_TRUE(decision.allowed) << "the whole bucket at one edge: " << to_string(decision.source);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomHistory, testing::Range(1, 13));

TEST(Checker, SeesASingleTokenTooMany) {
  IdealBucket bucket({10, 1, kSecond});
  bucket.admit(10, 0);
  bucket.admit(1, kSecond);
  EXPECT_FALSE(bucket.violated());
  bucket.admit(1, 2 * kSecond - 1);
  EXPECT_TRUE(bucket.violated());
  EXPECT_EQ(bucket.worst(), 1);
}

/// Percent of capacity + rate x T, rounded down.
std::int64_t use_percent(Cluster& cluster, const LimitNumbers& numbers, Nanos span_ns) {
  const std::int64_t quota = numbers.capacity + numbers.rate_count * (span_ns / kMillisecond) /
                                                    (numbers.rate_period_ns / kMillisecond);
  return cluster.ideal("api").admitted() * 100 / quota;
}

void print_figures(Cluster& cluster, const char* what, const LimitNumbers& numbers, Nanos span_ns) {
  const auto per_mille = [&](std::uint64_t count) { return count * 1000 / cluster.checks; };
  std::printf("%s: %ld %% of the quota, %lu lease requests per 1000 checks (%lu of %lu)\n", what,
              use_percent(cluster, numbers, span_ns), per_mille(cluster.requests), cluster.requests,
              cluster.checks);
}

TEST(Figures, SixHundredAMinuteOverThreeEdgesAtFourTimesTheRate) {
  ClusterOptions options;
  options.edges = 3;
  options.limits = {leased_limit("api", 100, 600, kMinute)};
  Cluster cluster(options);
  const Nanos span_ns = 10 * kMinute;
  const Nanos end_ns = cluster.now_ns() + span_ns;
  for (std::size_t edge = 0; edge < 3; ++edge) {
    cluster.after(static_cast<Nanos>(edge) * 7 * kMillisecond, [&cluster, edge, end_ns] {
      cluster.load(edge, check_of("acme"), 75 * kMillisecond, end_ns);
    });
  }
  cluster.run_until(end_ns);
  print_figures(cluster, "600/min, burst 100, three edges, 4 x", options.limits[0].numbers,
                span_ns);
  EXPECT_FALSE(cluster.ideal("api").violated());
  EXPECT_GE(use_percent(cluster, options.limits[0].numbers, span_ns), 99);
  EXPECT_LE(cluster.requests * 100, cluster.checks * 5);
}

TEST(Figures, AThousandChecksASecondAtEachOfThreeEdges) {
  ClusterOptions options;
  options.edges = 3;
  options.limits = {leased_limit("api", 2000, 2000, kSecond)};
  Cluster cluster(options);
  const Nanos span_ns = kMinute;
  const Nanos end_ns = cluster.now_ns() + span_ns;
  for (std::size_t edge = 0; edge < 3; ++edge) {
    cluster.after(static_cast<Nanos>(edge) * 300 * kMicrosecond, [&cluster, edge, end_ns] {
      cluster.load(edge, check_of("acme"), kMillisecond, end_ns);
    });
  }
  cluster.run_until(end_ns);
  print_figures(cluster, "2000/s, three edges at 1000/s", options.limits[0].numbers, span_ns);
  EXPECT_FALSE(cluster.ideal("api").violated());
  EXPECT_GE(use_percent(cluster, options.limits[0].numbers, span_ns), 99);
  EXPECT_LE(cluster.requests * 100, cluster.checks);
}

struct Load {
  std::int64_t cost;
  Nanos every_ns;
  Nanos from_ns;
};

/// Drives one edge for each load and returns what each was admitted, in checks.
std::vector<std::uint64_t> admitted_under(const LimitDefinition& limit, std::vector<Load> loads,
                                          Nanos span_ns, std::int64_t least_percent) {
  ClusterOptions options;
  options.edges = loads.size();
  options.limits = {limit};
  Cluster cluster(options);
  const Nanos end_ns = cluster.now_ns() + span_ns;
  for (std::size_t edge = 0; edge < loads.size(); ++edge) {
    const Load load = loads[edge];
    cluster.after(load.from_ns, [&cluster, load, edge, end_ns] {
      cluster.load(edge, check_of("acme", load.cost), load.every_ns, end_ns);
    });
  }
  cluster.run_until(end_ns);
  EXPECT_FALSE(cluster.ideal("api").violated());
  EXPECT_GE(use_percent(cluster, limit.numbers, span_ns), least_percent);
  return cluster.allowed_at;
}

TEST(Fairness, LimitFiveCostThreeOverThreeEdgesStarvesNobody) {  // E6
  const auto admitted = admitted_under(
      leased_limit("api", 5, 1, kSecond),
      {{3, kSecond, 0}, {3, kSecond, 130 * kMillisecond}, {3, kSecond, 260 * kMillisecond}},
      600 * kSecond, 75);
  for (const std::uint64_t count : admitted) EXPECT_GE(count, 20U);
}

TEST(Fairness, CostSixtyBesideCostOneLeavesBothAShare) {  // E6
  const auto admitted =
      admitted_under(leased_limit("api", 100, 10, kSecond),
                     {{60, kSecond, 0}, {1, 50 * kMillisecond, 0}}, 600 * kSecond, 99);
  EXPECT_GE(admitted[0] * 60, 6100U * 35 / 100);
  EXPECT_GE(admitted[1], 6100U * 35 / 100);
}

TEST(Fairness, NeedsThatDoNotFitSideBySideTakeTurns) {  // E6: 60 + 55 > 100
  const auto admitted = admitted_under(leased_limit("api", 100, 10, kSecond),
                                       {{60, kSecond, 0}, {55, kSecond, 0}}, 600 * kSecond, 90);
  EXPECT_GE(admitted[0], 35U);
  EXPECT_GE(admitted[1], 35U);
}

TEST(Fairness, BurstBelowTheRateIsStillServed) {  // portions never exceed the bucket
  admitted_under(leased_limit("api", 20, 1000, kSecond),
                 {{1, kMillisecond, 0}, {1, kMillisecond, 100}, {1, kMillisecond, 200}},
                 10 * kSecond, 98);
  admitted_under(leased_limit("api", 3, 100, kSecond),
                 {{1, kMillisecond, 0}, {1, kMillisecond, 100}, {1, kMillisecond, 200}},
                 10 * kSecond, 80);
}

TEST(Fairness, BurstOfATenthOfASecondIsUsedToTheFull) {  // portions left no room to refill: 63 %
  admitted_under(leased_limit("api", 200, 2000, kSecond),
                 {{1, kMillisecond, 0}, {1, kMillisecond, 100}, {1, kMillisecond, 200}},
                 30 * kSecond, 98);
}

TEST(Fairness, LimitFiveOverTwentyEdgesStarvesNobody) {
  std::vector<Load> loads;
  for (int i = 0; i < 20; ++i) loads.push_back({1, kSecond, i * 13 * kMillisecond});
  const auto admitted =
      admitted_under(leased_limit("api", 5, 5, kSecond), loads, 120 * kSecond, 60);
  for (const std::uint64_t count : admitted) EXPECT_GE(count, 5U);
}

}  // namespace
}  // namespace weir::test
