// The token bucket again, slow and in exact rationals (GMP), and random inputs that like the ends
// of the range: what the tests of src/limit drive beside the real one.
#pragma once

#include <gmpxx.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "src/base/random.h"
#include "src/limit/token_bucket.h"

namespace weir::limit::test {

inline constexpr std::int64_t kMost = INT64_MAX;

inline std::string text(const LimitNumbers& numbers) {
  return "capacity " + std::to_string(numbers.capacity) + ", " +
         std::to_string(numbers.rate_count) + " per " + std::to_string(numbers.rate_period_ns) +
         " ns";
}

inline mpq_class rational(const mpz_class& numerator, const mpz_class& denominator) {
  mpq_class value(numerator, denominator);
  value.canonicalize();
  return value;
}

inline mpz_class floor_of(const mpq_class& value) {
  mpz_class result;
  mpz_fdiv_q(result.get_mpz_t(), value.get_num_mpz_t(), value.get_den_mpz_t());
  return result;
}

inline mpz_class ceil_of(const mpq_class& value) {
  mpz_class result;
  mpz_cdiv_q(result.get_mpz_t(), value.get_num_mpz_t(), value.get_den_mpz_t());
  return result;
}

inline Nanos held(const mpz_class& nanos) { return nanos > kMost ? kForever : nanos.get_si(); }

inline mpq_class amount(Level level, Nanos period_ns) {
  return level.tokens + rational(mpz_class(level.fraction), period_ns);
}

/// The bucket again, in exact rationals and without a thought for speed.
class Reference {
 public:
  Reference(const LimitNumbers& numbers, Nanos now_ns)
      : numbers_(numbers), level_(numbers.capacity), as_of_ns_(now_ns) {}

  mpq_class level_at(Nanos now_ns) const {
    const mpz_class elapsed_ns = mpz_class(now_ns) - as_of_ns_;
    if (elapsed_ns <= 0) return level_;
    const mpz_class units = elapsed_ns * numbers_.rate_count;
    return std::min<mpq_class>(numbers_.capacity,
                               level_ + rational(units, numbers_.rate_period_ns));
  }

  Nanos time_to(const mpz_class& tokens, Nanos now_ns) const {
    const mpq_class missing = tokens - level_at(now_ns);
    if (missing <= 0) return 0;
    const mpq_class wait_ns = missing * rational(numbers_.rate_period_ns, numbers_.rate_count);
    return held(ceil_of(wait_ns) + std::max<mpz_class>(0, mpz_class(as_of_ns_) - now_ns));
  }

  TokenBucket::Outcome peek(std::int64_t cost, Nanos now_ns) const {
    if (level_at(now_ns) >= cost) return {true, 0};
    if (cost > numbers_.capacity) return {false, -1};
    return {false, time_to(cost, now_ns)};
  }

  TokenBucket::Outcome take(std::int64_t cost, Nanos now_ns) {
    const auto outcome = peek(cost, now_ns);
    if (outcome.allowed) settle(level_at(now_ns) - cost, now_ns);
    return outcome;
  }

  void give_back(std::int64_t tokens, Nanos now_ns) {
    settle(std::min<mpq_class>(numbers_.capacity, level_at(now_ns) + tokens), now_ns);
  }

  void set_numbers(const LimitNumbers& numbers, Nanos now_ns) {
    const mpz_class units = floor_of(level_at(now_ns) * numbers.rate_period_ns);
    settle(std::min<mpq_class>(numbers.capacity, rational(units, numbers.rate_period_ns)), now_ns);
    numbers_ = numbers;
  }

  Nanos time_to_full(Nanos now_ns) const { return time_to(numbers_.capacity, now_ns); }

  Nanos time_to_next_token(Nanos now_ns) const {
    const mpq_class level = level_at(now_ns);
    return level == numbers_.capacity ? 0 : time_to(floor_of(level) + 1, now_ns);
  }

  const LimitNumbers& numbers() const { return numbers_; }

 private:
  void settle(const mpq_class& level, Nanos now_ns) {
    level_ = level;
    as_of_ns_ = std::max(as_of_ns_, now_ns);
  }

  LimitNumbers numbers_;
  mpq_class level_;
  Nanos as_of_ns_;
};

/// Random values that like the ends of the range, powers of two and their neighbours.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }

  /// In [low, high], with every order of magnitude as likely as the next.
  std::int64_t any(std::int64_t low, std::int64_t high) {
    switch (random_.below(8)) {
      case 0:
        return low;
      case 1:
        return high;
      case 2:
        return random_.between(low, high);
      default: {
        const std::int64_t magnitude = std::int64_t{1} << random_.below(63);
        const std::int64_t value = magnitude + random_.between(-2, 2);
        const std::int64_t inside = random_.chance(500) ? value : random_.between(0, magnitude);
        return std::clamp(add_saturating(low, std::max<std::int64_t>(inside, 0)), low, high);
      }
    }
  }

  LimitNumbers numbers() {
    constexpr Nanos kPeriods[] = {kMillisecond, kSecond, 3 * kSecond,   7 * kSecond + 1,
                                  kMinute,      kHour,   31 * kDay - 1, kYear};
    const Nanos period_ns = random_.chance(700) ? kPeriods[random_.below(std::size(kPeriods))]
                                                : any(kMillisecond, kYear);
    if (random_.chance(500)) return {any(1, 200), any(1, 200), period_ns};
    return {any(1, kMost), any(1, kMost), period_ns};
  }

  /// The next call's instant: mostly forward, by nothing up to all the time there is.
  Nanos later(Nanos now_ns) {
    switch (random_.below(10)) {
      case 0:
        return now_ns;
      case 1:
        return std::max<Nanos>(0, now_ns - any(0, kHour));
      case 2:
        return add_saturating(now_ns, any(0, kMost));
      case 3:
      case 4:
        return add_saturating(now_ns, random_.between(1, kMicrosecond));
      default:
        return add_saturating(now_ns, any(1, kHour));
    }
  }

  std::int64_t cost(Level level, const LimitNumbers& numbers) {
    switch (random_.below(6)) {
      case 0:
        return random_.between(0, 3);
      case 1:
        return level.tokens;
      case 2:
        return add_saturating(level.tokens, 1);
      case 3:
        return add_saturating(numbers.capacity, random_.between(-1, 1));
      default:
        return any(0, kMost);
    }
  }

 private:
  Random random_;
};

}  // namespace weir::limit::test
