// Random numbers as values: a small seeded generator for everything that must be reproducible, and
// the interface through which a process gets its first seed.
#pragma once

#include <cstdint>

namespace weir {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014).
/// A value: copied, compared, replayed. Not for secrets.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31);
  }

  /// Uniform in [0, bound); 0 when bound is 0. The bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

  /// Uniform in [low, high].
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                     (span == UINT64_MAX ? next() : below(span + 1)));
  }

  /// True with a chance of `permille` in a thousand.
  constexpr bool chance(unsigned permille) { return below(1000) < permille; }

  friend constexpr bool operator==(const Random&, const Random&) = default;

 private:
  std::uint64_t state_;
};

/// Where a process gets unpredictable seeds from. Thread-safe.
class SeedSource {
 public:
  virtual ~SeedSource() = default;
  virtual std::uint64_t next_seed() = 0;
};

}  // namespace weir
