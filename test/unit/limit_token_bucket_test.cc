// Goal: the token bucket is exact over its whole range: it never admits above its bound, never
// loses a part of a token, and its times are right to the nanosecond.
// Method: a slow reference in exact rationals (GMP) is driven beside the bucket through thousands
// of seeded sequences of ordinary and extreme operations and must agree at every step; a checker
// looks at all intervals of a history at once; then one named test for each kind of fault. A
// failing sequence prints its seed.
#include <gmpxx.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/limit/token_bucket.h"
#include "test/unit/limit_reference.h"

namespace weir::limit {
namespace {

using test::amount;
using test::ceil_of;
using test::Generator;
using test::held;
using test::kMost;
using test::rational;
using test::Reference;
using test::text;

void expect_same(const TokenBucket& bucket, const Reference& reference, Nanos now_ns) {
  const Level level = bucket.level_at(now_ns);
  const LimitNumbers& numbers = reference.numbers();
  EXPECT_EQ(amount(level, numbers.rate_period_ns), reference.level_at(now_ns));
  EXPECT_GE(level.tokens, 0);
  EXPECT_LE(level.tokens, numbers.capacity);
  EXPECT_LT(level.fraction, static_cast<std::uint64_t>(numbers.rate_period_ns));
  EXPECT_EQ(bucket.time_to_full(now_ns), reference.time_to_full(now_ns));
  EXPECT_EQ(bucket.time_to_next_token(now_ns), reference.time_to_next_token(now_ns));
}

void expect_same(TokenBucket::Outcome actual, TokenBucket::Outcome expected) {
  EXPECT_EQ(actual.allowed, expected.allowed);
  EXPECT_EQ(actual.retry_after_ns, expected.retry_after_ns);
}

void run_sequence(std::uint64_t seed) {
  constexpr int kSteps = 40;
  Generator generator(seed);
  const LimitNumbers first = generator.numbers();
  Nanos now_ns = generator.any(0, kYear);
  TokenBucket bucket(first, now_ns);
  Reference reference(first, now_ns);
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step) + ", now " +
                 std::to_string(now_ns) + ", " + text(bucket.numbers()));
    const std::int64_t cost = generator.cost(bucket.level_at(now_ns), bucket.numbers());
    switch (generator.below(10)) {
      case 0: {
        const LimitNumbers changed = generator.numbers();
        bucket.set_numbers(changed, now_ns);
        reference.set_numbers(changed, now_ns);
        break;
      }
      case 1:
        bucket.give_back(cost, now_ns);
        reference.give_back(cost, now_ns);
        break;
      case 2:
      case 3:
        expect_same(bucket.peek(cost, now_ns), reference.peek(cost, now_ns));
        break;
      default:
        expect_same(bucket.take(cost, now_ns), reference.take(cost, now_ns));
    }
    expect_same(bucket, reference, now_ns);
    if (testing::Test::HasFailure()) return;
    now_ns = generator.later(now_ns);
  }
}

TEST(TokenBucketProperty, AgreesWithExactRationalsStepByStep) {
  for (std::uint64_t seed = 1; seed <= 3000 && !HasFailure(); ++seed) run_sequence(seed);
}

TEST(TokenBucketProperty, RefillAndTimeUntilAgreeWithExactRationals) {
  for (std::uint64_t seed = 1; seed <= 50'000 && !HasFailure(); ++seed) {
    Generator generator(seed);
    const LimitNumbers numbers = generator.numbers();
    const auto period = static_cast<std::uint64_t>(numbers.rate_period_ns);
    const Level level{generator.any(0, kMost), generator.below(period)};
    const Nanos elapsed_ns = generator.any(-1, kMost);
    const std::int64_t ceiling = generator.any(-1, kMost);
    const std::int64_t target = generator.any(-1, kMost);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text(numbers));

    const mpz_class gained = mpz_class(std::max<Nanos>(elapsed_ns, 0)) * numbers.rate_count;
    const mpq_class expected = std::min<mpq_class>(
        std::max<std::int64_t>(ceiling, 0),
        amount(level, numbers.rate_period_ns) + rational(gained, numbers.rate_period_ns));
    const Level refilled = refill(level, numbers, elapsed_ns, ceiling);
    EXPECT_EQ(amount(refilled, numbers.rate_period_ns), expected);
    EXPECT_LT(refilled.fraction, period);

    const mpq_class missing = target - amount(level, numbers.rate_period_ns);
    const mpq_class wait_ns = missing * rational(numbers.rate_period_ns, numbers.rate_count);
    EXPECT_EQ(time_until(level, numbers, target), missing <= 0 ? 0 : held(ceil_of(wait_ns)));
  }
}

TEST(TokenBucketProperty, RefillInManyStepsIsRefillInOne) {
  for (std::uint64_t seed = 1; seed <= 2000 && !HasFailure(); ++seed) {
    Generator generator(seed);
    const LimitNumbers numbers = generator.numbers();
    Level level{0, generator.below(static_cast<std::uint64_t>(numbers.rate_period_ns))};
    const Level start = level;
    const std::int64_t ceiling = generator.below(2) == 0 ? numbers.capacity : kMost;
    Nanos total_ns = 0;
    for (int step = 0; step < 20; ++step) {
      const Nanos step_ns = generator.any(0, kSecond);
      level = refill(level, numbers, step_ns, ceiling);
      total_ns += step_ns;
    }
    EXPECT_EQ(level, refill(start, numbers, total_ns, ceiling)) << "seed " << seed;
  }
}

/// What one call took and when.
struct Taken {
  Nanos at_ns;
  std::int64_t tokens;
};

/// The promise of DESIGN.md: over every interval [i, j] of a history,
/// admitted <= capacity + rate x T. All intervals in one pass: with
/// excess(i, j) = admitted(i..j) x period - (t_j - t_i) x count, the worst i for each j is carried
/// on.
bool within_bound(const std::vector<Taken>& history, const LimitNumbers& numbers) {
  const mpz_class bound = mpz_class(numbers.capacity) * numbers.rate_period_ns;
  mpz_class worst = 0;
  Nanos last_ns = history.empty() ? 0 : history.front().at_ns;
  for (const Taken& taken : history) {
    worst -= mpz_class(taken.at_ns - last_ns) * numbers.rate_count;
    worst = std::max<mpz_class>(worst, 0) + mpz_class(taken.tokens) * numbers.rate_period_ns;
    if (worst > bound) return false;
    last_ns = taken.at_ns;
  }
  return true;
}

TEST(TokenBucketBound, TheCheckerSeesOneTokenTooMany) {
  const LimitNumbers numbers{10, 1, kSecond};
  EXPECT_TRUE(within_bound({{0, 10}, {kSecond, 1}}, numbers));
  EXPECT_FALSE(within_bound({{0, 11}}, numbers));
  EXPECT_FALSE(within_bound({{0, 10}, {kSecond - 1, 1}}, numbers));
  // Idle time before or after the interval must not hide it.
  EXPECT_FALSE(within_bound({{0, 1}, {kHour, 10}, {kHour + 1, 1}, {kDay, 1}}, numbers));
}

TEST(TokenBucketBound, HoldsOverEveryIntervalOfRandomSchedules) {
  for (std::uint64_t seed = 1; seed <= 500 && !HasFailure(); ++seed) {
    Generator generator(seed);
    const LimitNumbers numbers = generator.numbers();
    Nanos now_ns = 0;
    TokenBucket bucket(numbers, now_ns);
    std::vector<Taken> history;
    for (int call = 0; call < 400; ++call) {
      const std::int64_t cost = generator.cost(bucket.level_at(now_ns), numbers);
      if (bucket.take(cost, now_ns).allowed) history.push_back({now_ns, cost});
      now_ns = std::max(now_ns, generator.later(now_ns));
    }
    EXPECT_TRUE(within_bound(history, numbers)) << "seed " << seed << ", " << text(numbers);
  }
}

// FIELD 1: overshoot.

TEST(TokenBucketOvershoot, IdleTimeNeverGivesMoreThanTheCapacity) {
  TokenBucket bucket({100, 10, kSecond}, 0);
  EXPECT_TRUE(bucket.take(100, 0).allowed);
  for (const Nanos idle_until_ns : {kDay, 250 * kYear, kMost}) {
    EXPECT_TRUE(bucket.take(100, idle_until_ns).allowed);
    EXPECT_FALSE(bucket.take(1, idle_until_ns).allowed);
  }
}

TEST(TokenBucketOvershoot, AFractionAboveTheCeilingIsNotSavedUp) {
  const LimitNumbers numbers{10, 1, 3 * kSecond};
  TokenBucket bucket(numbers, 0);
  EXPECT_TRUE(bucket.take(10, 2 * kSecond).allowed);  // full for 2 s: two thirds of a token lost
  EXPECT_EQ(bucket.peek(1, 2 * kSecond).retry_after_ns, 3 * kSecond);
  EXPECT_EQ(refill({10, 0}, numbers, 2 * kSecond, 10), (Level{10, 0}));
}

// FIELD 2: false denials.

TEST(TokenBucketFalseDenial, DeniedCallsConsumeNothing) {
  const LimitNumbers numbers{5, 1, kSecond};
  TokenBucket asked(numbers, 0);
  TokenBucket quiet(numbers, 0);
  EXPECT_TRUE(asked.take(5, 0).allowed);
  EXPECT_TRUE(quiet.take(5, 0).allowed);
  for (Nanos now_ns = 0; now_ns < 3 * kSecond; now_ns += kMillisecond + 7) {
    EXPECT_FALSE(asked.take(4, now_ns).allowed);
    EXPECT_FALSE(asked.take(6, now_ns).allowed);
  }
  EXPECT_EQ(asked.level_at(3 * kSecond), quiet.level_at(3 * kSecond));
}

TEST(TokenBucketFalseDenial, OneTokenIn3SecondsAskedEvery100MsGives200InTenMinutes) {
  TokenBucket bucket({10, 1, 3 * kSecond}, 0);
  EXPECT_TRUE(bucket.take(10, 0).allowed);
  int admitted = 0;
  for (Nanos now_ns = 100 * kMillisecond; now_ns <= 10 * kMinute; now_ns += 100 * kMillisecond) {
    if (bucket.take(1, now_ns).allowed) ++admitted;
  }
  EXPECT_EQ(admitted, 200);
}

TEST(TokenBucketFalseDenial, NeverBelowZeroSoNeverLockedForLong) {
  TokenBucket bucket({100, 100, kSecond}, 0);
  bucket.set_numbers({1, 1, kSecond}, 0);
  EXPECT_TRUE(bucket.take(1, 0).allowed);
  EXPECT_EQ(bucket.level_at(0), (Level{0, 0}));
  EXPECT_EQ(bucket.peek(1, 0).retry_after_ns, kSecond);
}

// FIELD 4: numbers.

TEST(TokenBucketNumbers, AMillionCallsNanosecondsApartNeitherLoseNorGain) {
  // One token in 700.0...03 ns: takes and refusals alternate, with a fraction left at each.
  const LimitNumbers numbers{1'000'000'007, 1'428'571, kSecond};
  Random random(42);
  TokenBucket bucket(numbers, 0);
  ASSERT_TRUE(bucket.take(numbers.capacity, 0).allowed);
  Nanos now_ns = 0;
  std::int64_t admitted = 0;
  for (int call = 0; call < 1'000'000; ++call) {
    now_ns += random.between(1, kMicrosecond);
    if (bucket.take(1, now_ns).allowed) ++admitted;
  }
  const mpz_class units = mpz_class(now_ns) * numbers.rate_count;
  const mpq_class due = rational(units, numbers.rate_period_ns);
  EXPECT_EQ(admitted + amount(bucket.level_at(now_ns), numbers.rate_period_ns), due);
  EXPECT_GT(admitted, 700'000);
  EXPECT_LT(admitted, 730'000);
}

TEST(TokenBucketNumbers, AMillionCallsOneNanosecondApartAtOneTokenPerMicrosecond) {
  TokenBucket bucket({5, 1000, kMillisecond}, 0);
  ASSERT_TRUE(bucket.take(5, 0).allowed);
  int admitted = 0;
  for (Nanos now_ns = 1; now_ns <= kMillisecond; ++now_ns) {
    if (bucket.take(1, now_ns).allowed) ++admitted;
  }
  EXPECT_EQ(admitted, 1000);
}

TEST(TokenBucketNumbers, TheLargestLimitWithTheFastestRateAfterTheLongestIdleTime) {
  TokenBucket bucket({kMost, kMost, kMillisecond}, 0);
  EXPECT_TRUE(bucket.take(kMost, 0).allowed);
  EXPECT_EQ(bucket.peek(kMost, 0).retry_after_ns, kMillisecond);
  EXPECT_EQ(bucket.peek(1, 0).retry_after_ns, 1);
  EXPECT_EQ(bucket.level_at(kMillisecond - 1).tokens,
            kMost / kMillisecond * (kMillisecond - 1) +
                kMost % kMillisecond * (kMillisecond - 1) / kMillisecond);
  EXPECT_TRUE(bucket.take(kMost, kMost).allowed);
  EXPECT_EQ(bucket.level_at(kMost), (Level{0, 0}));
}

TEST(TokenBucketNumbers, TheLargestLimitWithTheSlowestRate) {
  TokenBucket bucket({kMost, 1, kYear}, 0);
  EXPECT_TRUE(bucket.take(kMost, 0).allowed);
  EXPECT_EQ(bucket.peek(1, 0).retry_after_ns, kYear);
  EXPECT_EQ(bucket.peek(292, 0).retry_after_ns, 292 * kYear);
  EXPECT_EQ(bucket.peek(293, 0).retry_after_ns, kForever);  // 293 years do not fit an int64
  EXPECT_EQ(bucket.time_to_full(0), kForever);
  EXPECT_EQ(bucket.level_at(kMost).tokens, kMost / kYear);
}

TEST(TokenBucketNumbers, CostsAtTheEdges) {
  TokenBucket bucket({3, 1, kSecond}, 0);
  EXPECT_EQ(bucket.peek(4, 0).retry_after_ns, -1);
  EXPECT_FALSE(bucket.peek(4, 0).allowed);
  EXPECT_EQ(bucket.take(kMost, 0).retry_after_ns, -1);
  EXPECT_TRUE(bucket.take(0, 0).allowed);
  EXPECT_TRUE(bucket.take(-5, 0).allowed);  // counts as 0: takes nothing, gives nothing
  EXPECT_EQ(bucket.level_at(0), (Level{3, 0}));
  EXPECT_TRUE(bucket.take(3, 0).allowed);
  EXPECT_TRUE(bucket.take(0, 0).allowed);
  EXPECT_TRUE(bucket.take(-2, 0).allowed);
  EXPECT_EQ(bucket.level_at(0), (Level{0, 0}));
  EXPECT_TRUE(bucket.take(INT64_MIN, 0).allowed);
  EXPECT_EQ(bucket.level_at(0), (Level{0, 0}));
}

TEST(TokenBucketNumbers, GiveBackStopsAtTheCapacityAndKeepsTheFractionBelowIt) {
  TokenBucket bucket({10, 1, kSecond}, 0);
  EXPECT_TRUE(bucket.take(10, 0).allowed);
  bucket.give_back(4, kSecond / 2);
  EXPECT_EQ(bucket.level_at(kSecond / 2), (Level{4, static_cast<std::uint64_t>(kSecond / 2)}));
  bucket.give_back(-3, kSecond / 2);
  EXPECT_EQ(bucket.level_at(kSecond / 2).tokens, 4);
  bucket.give_back(kMost, kSecond / 2);
  EXPECT_EQ(bucket.level_at(kSecond / 2), (Level{10, 0}));
}

TEST(TokenBucketNumbers, OutOfRangeInputsNeverAddAToken) {
  const LimitNumbers numbers{10, 1, kSecond};
  EXPECT_EQ(refill({INT64_MIN, 0}, numbers, 0, 10), (Level{0, 0}));
  EXPECT_EQ(refill({1, UINT64_MAX}, numbers, 0, 10),
            (Level{1, static_cast<std::uint64_t>(kSecond - 1)}));
  EXPECT_EQ(refill({1, UINT64_MAX}, numbers, 1, 10), (Level{2, 0}));
  EXPECT_EQ(refill({5, 0}, numbers, INT64_MIN, 10), (Level{5, 0}));
  EXPECT_EQ(refill({5, 7}, numbers, kSecond, INT64_MIN), (Level{0, 0}));
  EXPECT_EQ(rescale({3, UINT64_MAX}, kSecond, kMinute).tokens, 3);
  EXPECT_LT(rescale({3, UINT64_MAX}, kSecond, kMinute).fraction,
            static_cast<std::uint64_t>(kMinute));
  EXPECT_EQ(time_until({INT64_MIN, 0}, numbers, 1), kSecond);
}

TEST(TokenBucketNumbers, NumbersOfAWindowDoNotRefill) {
  const LimitNumbers window{10, 0, 0};
  EXPECT_EQ(refill({3, 0}, window, kYear, 10), (Level{3, 0}));
  EXPECT_EQ(refill({3, 99}, window, kYear, 10), (Level{3, 0}));
  EXPECT_EQ(refill({30, 0}, window, 0, 10), (Level{10, 0}));
  EXPECT_EQ(time_until({3, 0}, window, 3), 0);
  EXPECT_EQ(time_until({3, 0}, window, 4), kForever);
  EXPECT_EQ(rescale({3, 5}, kSecond, 0), (Level{3, 0}));
  EXPECT_EQ(rescale({3, 5}, 0, kSecond), (Level{3, 0}));
}

// FIELD 5: time.

TEST(TokenBucketTime, RefusedOneNanosecondBeforeRetryAfterAdmittedAtIt) {
  int exercised = 0;
  for (std::uint64_t seed = 1; seed <= 3000 && !HasFailure(); ++seed) {
    Generator generator(seed);
    const LimitNumbers numbers = generator.numbers();
    TokenBucket bucket(numbers, 0);
    ASSERT_TRUE(bucket.take(numbers.capacity - generator.any(0, numbers.capacity), 0).allowed);
    const Nanos now_ns = generator.any(0, kMinute);
    const std::int64_t level = bucket.level_at(now_ns).tokens;
    const std::int64_t cost = level + generator.any(0, numbers.capacity - level);
    const auto refused = bucket.peek(cost, now_ns);
    if (refused.allowed || refused.retry_after_ns >= kMost - now_ns) continue;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text(numbers));
    ASSERT_GT(refused.retry_after_ns, 0);
    const Nanos due_ns = now_ns + refused.retry_after_ns;
    EXPECT_FALSE(bucket.take(cost, due_ns - 1).allowed);
    EXPECT_EQ(bucket.peek(cost, due_ns - 1).retry_after_ns, 1);
    EXPECT_TRUE(bucket.take(cost, due_ns).allowed);
    ++exercised;
  }
  EXPECT_GT(exercised, 500);
}

TEST(TokenBucketTime, TheInstantsAnnouncedDoNotWobbleBetweenCalls) {
  // 7 per 3 s: no whole number of nanoseconds for one token.
  TokenBucket bucket({20, 7, 3 * kSecond}, 0);
  ASSERT_TRUE(bucket.take(20, 0).allowed);
  const Nanos retry_at_ns = bucket.peek(5, 0).retry_after_ns;
  const Nanos full_at_ns = bucket.time_to_full(0);
  EXPECT_EQ(retry_at_ns, (5 * 3 * kSecond + 6) / 7);
  EXPECT_EQ(full_at_ns, (20 * 3 * kSecond + 6) / 7);
  Random random(7);
  for (Nanos now_ns = 0; now_ns < retry_at_ns; now_ns += random.between(1, kMillisecond)) {
    ASSERT_EQ(now_ns + bucket.take(5, now_ns).retry_after_ns, retry_at_ns);
    ASSERT_EQ(now_ns + bucket.time_to_full(now_ns), full_at_ns);
  }
}

TEST(TokenBucketTime, AnEarlierNowChangesNothingAndNamesTheSameInstants) {
  TokenBucket bucket({10, 1, kSecond}, kHour);
  ASSERT_TRUE(bucket.take(10, kHour).allowed);
  const TokenBucket before = bucket;
  for (const Nanos now_ns : {kHour - 1, kHour - kMinute, Nanos{0}, Nanos{-5}, -kYear}) {
    EXPECT_EQ(bucket.level_at(now_ns), (Level{0, 0}));
    EXPECT_EQ(now_ns + bucket.take(1, now_ns).retry_after_ns, kHour + kSecond);
    EXPECT_EQ(now_ns + bucket.time_to_next_token(now_ns), kHour + kSecond);
    EXPECT_EQ(now_ns + bucket.time_to_full(now_ns), kHour + 10 * kSecond);
    bucket.give_back(0, now_ns);
    bucket.set_numbers(bucket.numbers(), now_ns);
    EXPECT_EQ(bucket.level_at(kHour + kSecond), before.level_at(kHour + kSecond));
  }
  EXPECT_EQ(bucket.peek(1, INT64_MIN).retry_after_ns, kForever);
}

TEST(TokenBucketTime, NextTokenIsTheNextWholeOneAndNothingWhenFull) {
  TokenBucket bucket({2, 1, kSecond}, 0);
  EXPECT_EQ(bucket.time_to_next_token(0), 0);
  EXPECT_EQ(bucket.time_to_full(0), 0);
  ASSERT_TRUE(bucket.take(2, 0).allowed);
  EXPECT_EQ(bucket.time_to_next_token(0), kSecond);
  EXPECT_EQ(bucket.time_to_next_token(kSecond - 1), 1);
  EXPECT_EQ(bucket.time_to_next_token(kSecond), kSecond);
  EXPECT_EQ(bucket.time_to_next_token(2 * kSecond), 0);
}

// FIELD 6, as far as numbers go: policy changes.

TEST(TokenBucketPolicy, AChangeNeverAddsATokenAndNeverLosesAWholeOne) {
  for (std::uint64_t seed = 1; seed <= 20'000 && !HasFailure(); ++seed) {
    Generator generator(seed);
    const LimitNumbers old_numbers = generator.numbers();
    const LimitNumbers new_numbers = generator.numbers();
    TokenBucket bucket(old_numbers, 0);
    ASSERT_TRUE(bucket.take(generator.any(0, old_numbers.capacity), 0).allowed);
    const Nanos now_ns = generator.any(0, kDay);
    const Level before = bucket.level_at(now_ns);
    bucket.set_numbers(new_numbers, now_ns);
    const Level after = bucket.level_at(now_ns);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + text(old_numbers) + " to " +
                 text(new_numbers));
    EXPECT_LE(amount(after, new_numbers.rate_period_ns),
              amount(before, old_numbers.rate_period_ns));
    EXPECT_EQ(after.tokens, std::min(before.tokens, new_numbers.capacity));
  }
}

TEST(TokenBucketPolicy, RescaleLosesLessThanOneUnit) {
  for (std::uint64_t seed = 1; seed <= 20'000 && !HasFailure(); ++seed) {
    Generator generator(seed);
    const Nanos from_ns = generator.numbers().rate_period_ns;
    const Nanos to_ns = generator.numbers().rate_period_ns;
    const Level level{generator.any(0, kMost),
                      generator.below(static_cast<std::uint64_t>(from_ns))};
    const mpq_class lost = amount(level, from_ns) - amount(rescale(level, from_ns, to_ns), to_ns);
    EXPECT_GE(lost, 0) << "seed " << seed;
    EXPECT_LT(lost, rational(1, to_ns)) << "seed " << seed;
    EXPECT_EQ(rescale(level, from_ns, from_ns), level) << "seed " << seed;
  }
}

TEST(TokenBucketPolicy, TimeBeforeAChangeCountsAtTheOldRate) {
  TokenBucket bucket({1000, 1, kSecond}, 0);
  ASSERT_TRUE(bucket.take(1000, 0).allowed);
  bucket.set_numbers({1000, 100, kSecond}, 10 * kSecond);
  EXPECT_EQ(bucket.level_at(10 * kSecond), (Level{10, 0}));
  EXPECT_EQ(bucket.level_at(11 * kSecond), (Level{110, 0}));
}

TEST(TokenBucketPolicy, ChangedBackAndForthUnderLoadStaysBelowTheFasterBound) {
  const LimitNumbers slow{50, 3, 7 * kSecond};
  const LimitNumbers fast{100, 10, kSecond};
  Random random(99);
  TokenBucket bucket(fast, 0);
  std::vector<Taken> history;
  Nanos now_ns = 0;
  for (int call = 0; call < 20'000; ++call) {
    if (random.chance(100)) bucket.set_numbers(random.chance(500) ? slow : fast, now_ns);
    if (bucket.take(1, now_ns).allowed) history.push_back({now_ns, 1});
    now_ns += random.between(0, 50 * kMillisecond);
  }
  EXPECT_TRUE(within_bound(history, fast));
}

TEST(TokenBucketPolicy, ARaisedCapacityKeepsTheLevelALoweredOneCutsIt) {
  TokenBucket bucket({100, 1, kSecond}, 0);
  bucket.set_numbers({1000, 1, kSecond}, 0);
  EXPECT_EQ(bucket.level_at(0), (Level{100, 0}));
  bucket.set_numbers({40, 1, kSecond}, 0);
  EXPECT_EQ(bucket.level_at(0), (Level{40, 0}));
  bucket.set_numbers({100, 1, kSecond}, kSecond / 2);  // was full: nothing saved up
  EXPECT_EQ(bucket.level_at(kSecond / 2), (Level{40, 0}));
}

}  // namespace
}  // namespace weir::limit
