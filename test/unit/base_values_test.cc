// Goal: the values that everything else is built on are right at the ends of their ranges, and the
// hash and the random numbers are the published ones, on every machine and for ever.
// Method: the algorithms' own test vectors; saturating sums checked against 128-bit ones over all
// pairs of extreme values.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/assert.h"
#include "src/base/hash.h"
#include "src/base/limits.h"
#include "src/base/random.h"
#include "src/base/result.h"
#include "src/base/time.h"

namespace weir {
namespace {

__extension__ using Wide = __int128;

std::int64_t held(Wide exact) {
  if (exact > INT64_MAX) return INT64_MAX;
  if (exact < INT64_MIN) return INT64_MIN;
  return static_cast<std::int64_t>(exact);
}

TEST(Saturating, AgreesWithWideArithmeticAtAllExtremes) {
  std::vector<std::int64_t> values = {0, 1, 2, 3, 10, kSecond, kYear};
  for (int bit = 29; bit < 63; bit += 3) values.push_back(std::int64_t{1} << bit);
  for (std::int64_t i = 0; i < 3; ++i) values.push_back(INT64_MAX - i);
  for (std::size_t i = values.size(); i > 0; --i) values.push_back(-values[i - 1]);
  values.push_back(INT64_MIN);
  values.push_back(INT64_MIN + 1);
  for (const std::int64_t a : values) {
    for (const std::int64_t b : values) {
      ASSERT_EQ(add_saturating(a, b), held(Wide{a} + b)) << a << " + " << b;
      ASSERT_EQ(subtract_saturating(a, b), held(Wide{a} - b)) << a << " - " << b;
      ASSERT_EQ(multiply_saturating(a, b), held(Wide{a} * b)) << a << " * " << b;
    }
  }
}

TEST(Saturating, ForeverStaysForever) {
  static_assert(add_saturating(kForever, kYear) == kForever);
  static_assert(add_saturating(kForever, 0) == kForever);
  static_assert(subtract_saturating(INT64_MIN, kForever) == INT64_MIN);
  static_assert(multiply_saturating(kYear, 1000) == kForever);
}

// Vectors: https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64 and the reference
// implementation (prng.di.unimi.it/splitmix64.c) from seed 0.
TEST(Random, IsSplitMix64) {
  Random random(1234567);
  for (const std::uint64_t expected :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U, 4593380528125082431U,
        16408922859458223821U}) {
    EXPECT_EQ(random.next(), expected);
  }
  Random zero(0);
  for (const std::uint64_t expected :
       {0xe220a8397b1dcdafU, 0x6e789e6aa1b965f4U, 0x06c45d188009454fU}) {
    EXPECT_EQ(zero.next(), expected);
  }
}

TEST(Random, IsAValue) {
  Random first(9);
  (void)first.next();
  Random copy = first;
  EXPECT_EQ(first, copy);
  EXPECT_EQ(first.next(), copy.next());
  (void)copy.next();
  EXPECT_NE(first, copy);
}

TEST(Random, BelowIsUniformAndStaysBelow) {
  constexpr int kDraws = 100'000;
  Random random(5);
  std::array<int, 7> seen{};
  for (int i = 0; i < kDraws; ++i) ++seen.at(random.below(7));
  for (const int count : seen) EXPECT_NEAR(count, kDraws / 7, kDraws / 100);
  EXPECT_EQ(random.below(0), 0U);
  EXPECT_EQ(random.below(1), 0U);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(UINT64_MAX), UINT64_MAX);
}

TEST(Random, BetweenReachesBothEndsOfEveryRange) {
  Random random(6);
  std::array<int, 3> seen{};
  for (int i = 0; i < 1000; ++i) ++seen.at(static_cast<std::size_t>(random.between(-1, 1) + 1));
  for (const int count : seen) EXPECT_GT(count, 250);
  EXPECT_EQ(random.between(INT64_MIN, INT64_MIN), INT64_MIN);
  EXPECT_EQ(random.between(INT64_MAX, INT64_MAX), INT64_MAX);
  int negative = 0;
  for (int i = 0; i < 1000; ++i) {
    if (random.between(INT64_MIN, INT64_MAX) < 0) ++negative;
    EXPECT_GE(random.between(INT64_MIN + 1, INT64_MAX), INT64_MIN + 1);
    EXPECT_LE(random.between(INT64_MIN, -1), -1);
  }
  EXPECT_NEAR(negative, 500, 100);
}

TEST(Random, ChanceIsInThousandths) {
  Random random(7);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(1000));
    if (random.chance(30)) ++hits;
  }
  EXPECT_NEAR(hits, 3000, 300);
}

// The sanity buffer and values of xxHash's own self-test (cli/xsum_sanity_check.c).
std::string xxhash_sanity_buffer(std::size_t length) {
  std::string buffer;
  std::uint64_t generator = 2654435761U;
  for (std::size_t i = 0; i < length; ++i) {
    buffer.push_back(static_cast<char>(generator >> 56));
    generator *= 11400714785074694797ULL;
  }
  return buffer;
}

TEST(Hash, IsXxh64ByItsOwnVectors) {
  constexpr std::uint64_t kSeed = 2654435761U;
  struct Vector {
    std::size_t length;
    std::uint64_t seed;
    std::uint64_t hash;
  };
  const Vector vectors[] = {
      {0, 0, 0xEF46DB3751D8E999U},       {0, kSeed, 0xAC75FDA2929B17EFU},
      {1, 0, 0xE934A84ADB052768U},       {1, kSeed, 0x5014607643A9B4C3U},
      {4, 0, 0x9136A0DCA57457EEU},       {14, 0, 0x8282DCC4994E35C8U},
      {14, kSeed, 0xC3BD6BF63DEB6DF0U},  {222, 0, 0xB641AE8CB691C174U},
      {222, kSeed, 0x20CB8AB7AE10C14AU},
  };
  for (const auto& vector : vectors) {
    EXPECT_EQ(hash_bytes(xxhash_sanity_buffer(vector.length), vector.seed), vector.hash)
        << vector.length << " bytes, seed " << vector.seed;
  }
}

TEST(Hash, KnownTexts) {
  EXPECT_EQ(hash_bytes("a"), 0xD24EC4F1A98C6E5BU);
  EXPECT_EQ(hash_bytes("abc"), 0x44BC2CF5AD770999U);
  EXPECT_EQ(hash_bytes({}), hash_bytes(""));
  EXPECT_NE(hash_bytes(std::string_view("\0", 1)), hash_bytes(""));
  EXPECT_NE(hash_bytes("abc", 1), hash_bytes("abc", 2));
}

TEST(Hash, DoesNotDependOnAlignment) {
  const std::string text = xxhash_sanity_buffer(100);
  const std::uint64_t expected = hash_bytes(text);
  for (std::size_t shift = 0; shift < 9; ++shift) {
    const std::string padded = std::string(shift, 'x') + text;
    EXPECT_EQ(hash_bytes(std::string_view(padded).substr(shift)), expected);
  }
}

TEST(Hash, MapsAreAskedWithViews) {
  std::unordered_map<std::string, int, StringHash, std::equal_to<>> map;
  map["acme"] = 1;
  EXPECT_NE(map.find(std::string_view("acme")), map.end());
  EXPECT_EQ(map.find(std::string_view("acm")), map.end());
}

TEST(Result, CarriesTheErrorWithItsField) {
  const Result<int> failed = failure(ErrorCode::too_large, "cost", "too much");
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error(), (Error{ErrorCode::too_large, "cost", "too much"}));
  const Result<int> fine = 7;
  EXPECT_EQ(fine.value(), 7);
  EXPECT_TRUE(Status{}.has_value());
}

TEST(Result, EveryCodeHasAWordOfItsOwn) {
  std::unordered_map<std::string, int> words;
  for (const auto code :
       {ErrorCode::invalid_argument, ErrorCode::not_found, ErrorCode::too_large,
        ErrorCode::unavailable, ErrorCode::io, ErrorCode::corrupt, ErrorCode::unsupported}) {
    ++words[to_string(code)];
  }
  EXPECT_EQ(words.size(), 7U);
  EXPECT_EQ(words.count("unknown"), 0U);
  EXPECT_STREQ(to_string(ErrorCode::invalid_argument), "invalid_argument");
}

TEST(AssertDeathTest, StaysOnAndNamesItsPlace) {
  WEIR_ASSERT(1 + 1 == 2);
  EXPECT_DEATH(WEIR_ASSERT(1 + 1 == 3),
               "base_values_test.cc:[0-9]+: assertion failed: 1 \\+ 1 == 3");
}

}  // namespace
}  // namespace weir
