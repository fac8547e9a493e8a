// Time as values. Pure code gets instants as arguments; the one interface that reads a clock is
// `Clock`, built in main and handed down. All instants and durations are signed 64-bit nanoseconds
// whose names end in `_ns`.
//
// Two clocks matter and are never mixed in one variable:
//   boot time   CLOCK_BOOTTIME: never steps, runs on through suspend, starts anew at each boot.
//               Every deadline and every refill uses it.
//   wall time   UTC since 1970: may step. Used for calendar windows and for ages across a reboot.
#pragma once

#include <cstdint>

namespace weir {

using Nanos = std::int64_t;

inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;
inline constexpr Nanos kMinute = 60 * kSecond;
inline constexpr Nanos kHour = 60 * kMinute;
inline constexpr Nanos kDay = 24 * kHour;
/// The longest period a rate may have (API.md: 1 ms to 1 year).
inline constexpr Nanos kYear = 365 * kDay;
/// "Never": later than every instant that is really used.
inline constexpr Nanos kForever = INT64_MAX;

/// a + b, held at the ends of the range instead of wrapping.
constexpr std::int64_t add_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? INT64_MAX : INT64_MIN;
}

/// a - b, held at the ends of the range instead of wrapping.
constexpr std::int64_t subtract_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b < 0 ? INT64_MAX : INT64_MIN;
}

/// a * b, held at the ends of the range instead of wrapping.
constexpr std::int64_t multiply_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

/// The only door to the operating system's clocks. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos boot_ns() const = 0;
  virtual Nanos wall_ns() const = 0;
};

}  // namespace weir
