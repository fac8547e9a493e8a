// Goal: the one door to the operating system's clocks and seeds gives what it says.
// Method: order and plausibility only; nothing here depends on how fast the machine is.
#include <gtest/gtest.h>

#include <set>

#include "src/base/system_clock.h"

namespace weir {
namespace {

TEST(SystemClock, BootTimeNeverRunsBackwardsAndIsNotTheWallClock) {
  const SystemClock clock;
  Nanos last_ns = clock.boot_ns();
  EXPECT_GT(last_ns, 0);
  for (int i = 0; i < 1000; ++i) {
    const Nanos now_ns = clock.boot_ns();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
  constexpr Nanos kYear2020 = 50 * kYear;
  EXPECT_GT(clock.wall_ns(), kYear2020);
  EXPECT_LT(clock.boot_ns(), clock.wall_ns());
}

TEST(SystemSeedSource, SeedsDiffer) {
  SystemSeedSource seeds;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) seen.insert(seeds.next_seed());
  EXPECT_EQ(seen.size(), 100U);
}

TEST(SystemBootId, IsStableAndWithoutANewline) {
  const std::string id = system_boot_id();
  EXPECT_EQ(id, system_boot_id());
  EXPECT_EQ(id.find_first_of("\r\n "), std::string::npos);
}

}  // namespace
}  // namespace weir
