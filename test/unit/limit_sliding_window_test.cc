// Goal: the two-window counter does exactly what its formula says, with exact retry times.
// Method: the formula again in big integers beside it, on random operations that like the ends of
// the range; and the retry instant tried, and the nanosecond before it.

#include <gmpxx.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/base/random.h"
#include "src/limit/sliding_window.h"

namespace weir::limit {
namespace {

/// The formula of sliding_window.h, slow and exact.
class Reference {
 public:
  Reference(const LimitNumbers& numbers, Nanos now_ns) : numbers_(numbers) { roll(now_ns); }

  bool fits(std::int64_t cost, Nanos now_ns) {
    roll(now_ns);
    const mpz_class period = numbers_.rate_period_ns;
    const mpz_class elapsed = mpz_class(now_ns) - window_ * period;
    return previous_ * (period - elapsed) + (current_ + cost) * period <=
           mpz_class(numbers_.capacity) * period;
  }
  void take(std::int64_t cost) { current_ += cost; }
  void give_back(std::int64_t tokens) {
    const mpz_class first = std::min<mpz_class>(tokens, current_);
    current_ -= first;
    previous_ = std::max<mpz_class>(0, previous_ - (tokens - first));
  }

 private:
  void roll(Nanos now_ns) {
    const mpz_class window = mpz_class(now_ns) / numbers_.rate_period_ns;
    if (window == window_) return;
    previous_ = window == window_ + 1 ? current_ : mpz_class(0);
    current_ = 0;
    window_ = window;
  }

  LimitNumbers numbers_;
  mpz_class window_ = 0;
  mpz_class previous_ = 0;
  mpz_class current_ = 0;
};

LimitNumbers numbers_of(Random& random) {
  const std::int64_t shapes[] = {1, 2, 5, 100, 1'000'000, INT64_MAX};
  const Nanos periods[] = {kMillisecond, kSecond, kMinute, kDay, kYear};
  const std::int64_t count = shapes[random.below(6)];
  return {count, count, periods[random.below(5)]};
}

TEST(SlidingWindow, DoesWhatTheFormulaSays) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const LimitNumbers numbers = numbers_of(random);
    Nanos now_ns = random.between(0, kDay);
    SlidingWindow window(numbers, now_ns);
    Reference reference(numbers, now_ns);
    for (int i = 0; i < 200; ++i) {
      now_ns += random.between(0, numbers.rate_period_ns / (random.chance(100) ? 1 : 20));
      const std::int64_t cost = random.between(1, std::max<std::int64_t>(1, numbers.capacity / 3));
      const bool expected = reference.fits(cost, now_ns);
      const auto outcome = window.take(cost, now_ns);
      ASSERT_EQ(outcome.allowed, expected) << "seed " << seed << " step " << i;
      if (expected) {
        reference.take(cost);
        ASSERT_EQ(outcome.retry_after_ns, 0);
      } else {
        Reference later = reference;
        Reference earlier = reference;
        ASSERT_GT(outcome.retry_after_ns, 0);
        ASSERT_FALSE(earlier.fits(cost, now_ns + outcome.retry_after_ns - 1)) << seed;
        ASSERT_TRUE(later.fits(cost, now_ns + outcome.retry_after_ns)) << seed;
      }
      const std::int64_t rest = window.remaining(now_ns);
      ASSERT_TRUE(rest == 0 || reference.fits(rest, now_ns));
      ASSERT_TRUE(rest == numbers.capacity || !reference.fits(rest + 1, now_ns));
      if (random.chance(100)) {
        window.give_back(cost / 2, now_ns);
        reference.give_back(cost / 2);
      }
    }
  }
}

TEST(SlidingWindow, WeighsTheLastWindowByWhatIsLeftOfIt) {
  const LimitNumbers numbers{100, 100, kMinute};
  SlidingWindow window(numbers, 0);
  EXPECT_TRUE(window.take(80, 30 * kSecond).allowed);
  // A quarter into the next window three quarters of the 80 still count.
  EXPECT_EQ(window.remaining(kMinute + 15 * kSecond), 40);
  EXPECT_FALSE(window.take(41, kMinute + 15 * kSecond).allowed);
  EXPECT_TRUE(window.take(40, kMinute + 15 * kSecond).allowed);
  EXPECT_EQ(window.time_to_full(kMinute + 15 * kSecond), 105 * kSecond);
}

TEST(SlidingWindow, RetryAfterCrossesIntoTheNextWindow) {
  SlidingWindow window({10, 10, kSecond}, 0);
  EXPECT_TRUE(window.take(10, 0).allowed);
  // 10 x (1 - e) + 4 <= 10 from e = 0.4 of the next window.
  EXPECT_EQ(window.peek(4, 0).retry_after_ns, 1400 * kMillisecond);
  EXPECT_EQ(window.peek(11, 0).retry_after_ns, -1);
}

TEST(SlidingWindow, ForgetsAfterTwoWindowsAndNeverRunsBackwards) {
  SlidingWindow window({10, 10, kSecond}, 0);
  EXPECT_TRUE(window.take(10, 500 * kMillisecond).allowed);
  EXPECT_EQ(window.remaining(2 * kSecond), 10);
  EXPECT_EQ(window.time_to_full(2 * kSecond), 0);
  EXPECT_TRUE(window.take(10, 2 * kSecond).allowed);
  EXPECT_EQ(window.remaining(0), 0);
  EXPECT_EQ(window.peek(1, 0).retry_after_ns,
            2 * kSecond + window.peek(1, 2 * kSecond).retry_after_ns);
}

TEST(SlidingWindow, AChangedPolicyKeepsWhatIsCounted) {
  SlidingWindow window({10, 10, kSecond}, 0);
  EXPECT_TRUE(window.take(8, 0).allowed);
  window.set_numbers({20, 20, kSecond}, 0);
  EXPECT_EQ(window.remaining(0), 12);
  window.set_numbers({20, 20, kMinute}, 1500 * kMillisecond);
  EXPECT_EQ(window.remaining(1500 * kMillisecond), 16);
}

}  // namespace
}  // namespace weir::limit
