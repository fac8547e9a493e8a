// Goal: sizes follow PROTOCOL G1 and G2 to the ends of the range.
// Method: named cases, and random ones against the definition of max-min fairness.
#include <gtest/gtest.h>

#include <numeric>

#include "src/base/random.h"
#include "src/lease/sizing.h"

namespace weir::lease {
namespace {

using Shares = std::vector<std::int64_t>;

/// Of claims that all weigh the same.
Shares equal_shares(std::int64_t amount, const Shares& wants) {
  std::vector<Claim> claims;
  for (const std::int64_t want : wants) claims.push_back({want, 1});
  return max_min_shares(amount, claims);
}

TEST(MaxMin, NobodyGetsMoreThanItWantsAndTheRestIsShared) {
  EXPECT_EQ(equal_shares(10, {2, 8, 8}), (Shares{2, 4, 4}));
  EXPECT_EQ(equal_shares(10, {100, 1}), (Shares{9, 1}));
  EXPECT_EQ(equal_shares(0, {5, 5}), (Shares{0, 0}));
  EXPECT_EQ(equal_shares(-3, {5}), (Shares{0}));
  EXPECT_EQ(equal_shares(5, {}), (Shares{}));
  EXPECT_EQ(equal_shares(7, {-1, INT64_MAX}), (Shares{0, 7}));
}

TEST(MaxMin, OverstatingTakesNothingFromWhoIsBelowTheFairShare) {
  EXPECT_EQ(equal_shares(30, {10, 20, 1000})[0], equal_shares(30, {10, 20, INT64_MAX})[0]);
  EXPECT_EQ(equal_shares(30, {10, 20, 1000})[0], 10);
}

TEST(MaxMin, SumsAndFairnessHoldForRandomWants) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    Shares wants(1 + random.below(10));
    for (auto& want : wants) want = random.between(0, 100);
    const std::int64_t amount = random.between(0, 400);
    const Shares shares = equal_shares(amount, wants);
    const std::int64_t wanted = std::accumulate(wants.begin(), wants.end(), std::int64_t{0});
    ASSERT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}),
              std::min(amount, wanted));
    for (std::size_t a = 0; a < wants.size(); ++a) {
      ASSERT_LE(shares[a], wants[a]);
      // Whoever lacks something has at least as much as everybody else, but for an odd token.
      for (std::size_t b = 0; b < wants.size(); ++b) {
        if (shares[a] < wants[a]) {
          ASSERT_GE(shares[a] + 1, shares[b]);
        }
      }
    }
  }
}

TEST(MaxMin, AClaimOfWeightThreeHasThePartOfThree) {
  EXPECT_EQ(max_min_shares(40, {{100, 1}, {100, 3}}), (Shares{10, 30}));
  EXPECT_EQ(max_min_shares(40, {{2, 1}, {100, 1}, {100, 3}}), (Shares{2, 9, 29}));
  EXPECT_EQ(max_min_shares(40, {{100, 1}, {12, 3}}), (Shares{28, 12}));
  EXPECT_EQ(max_min_shares(INT64_MAX, {{INT64_MAX, 64}, {INT64_MAX, 64}})[0], INT64_MAX / 2 + 1);
}

TEST(Demand, SteadyRateIsMeasuredAndFadesWhenItEnds) {
  DemandMeter meter;
  Nanos now_ns = 1000 * kSecond;
  for (int i = 0; i < 4000; ++i) {
    meter.add(1, now_ns);
    now_ns += kMillisecond;
  }
  EXPECT_GE(meter.rate_per_s(now_ns), 950);
  EXPECT_LE(meter.rate_per_s(now_ns), 1050);
  EXPECT_LT(meter.rate_per_s(now_ns + 2 * kSecond), 10);
  EXPECT_EQ(meter.rate_per_s(now_ns + kHour), 0);
}

TEST(Demand, BurstOfAColdKeyIsNoDemandYet) {
  DemandMeter meter;
  for (int i = 0; i < 100; ++i) meter.add(1, 1000 * kSecond);
  EXPECT_EQ(meter.rate_per_s(1000 * kSecond + 200 * kMillisecond), 0);
}

TEST(Demand, HoldsAtTheEndOfTheRange) {
  DemandMeter meter;
  Nanos now_ns = kSecond;
  for (int i = 0; i < 100; ++i) {
    meter.add(INT64_MAX, now_ns);
    now_ns += 50 * kMillisecond;
    EXPECT_GE(meter.rate_per_s(now_ns), 0);
  }
  EXPECT_EQ(tokens_in(INT64_MAX, kHour), INT64_MAX);
  EXPECT_EQ(tokens_in(3, kSecond / 2), 1);
  EXPECT_EQ(tokens_in(5, -kSecond), 0);
}

TEST(Horizon, BetweenAQuarterSecondAndAQuarterTtlButAtLeastThreeRoundTrips) {
  constexpr Nanos kTtl = 8 * kSecond;
  EXPECT_EQ(horizon_ns(0, kMillisecond, kTtl), 2 * kSecond);
  EXPECT_EQ(horizon_ns(INT64_MAX, kMillisecond, kTtl), 250 * kMillisecond);
  EXPECT_EQ(horizon_ns(500, kMillisecond, kTtl), 500 * kMillisecond);
  EXPECT_EQ(horizon_ns(100'000, 200 * kMillisecond, kTtl), 600 * kMillisecond);
  EXPECT_LE(horizon_ns(1, kMinute, kTtl), kTtl / 2);
}

}  // namespace
}  // namespace weir::lease
