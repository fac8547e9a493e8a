// Goal: a window counted in one place gives its quota once per calendar window, whatever the clock
// does. Method: known instants.

#include <gtest/gtest.h>

#include "src/limit/fixed_window.h"

namespace weir::limit {
namespace {

Calendar calendar(Window unit, const char* zone = "UTC") { return *Calendar::make(unit, zone); }

TEST(FixedWindow, GivesItsQuotaOncePerWindow) {
  const Calendar minutes = calendar(Window::minute);
  FixedWindow window(3);
  window.advance(minutes, 90 * kSecond);
  EXPECT_TRUE(window.take(3, 90 * kSecond).allowed);
  const auto refused = window.take(1, 90 * kSecond);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after_ns, 30 * kSecond);
  window.advance(minutes, 120 * kSecond - 1);
  EXPECT_EQ(window.remaining(), 0);
  window.advance(minutes, 120 * kSecond);
  EXPECT_EQ(window.remaining(), 3);
  EXPECT_EQ(window.peek(4, 120 * kSecond).retry_after_ns, -1);
}

TEST(FixedWindow, AClockSetBackDoesNotGiveASecondQuota) {
  const Calendar minutes = calendar(Window::minute);
  FixedWindow window(3);
  window.advance(minutes, 120 * kSecond);
  EXPECT_TRUE(window.take(3, 120 * kSecond).allowed);
  window.advance(minutes, 118 * kSecond);
  EXPECT_FALSE(window.take(1, 118 * kSecond).allowed);
  window.advance(minutes, 120 * kSecond);
  EXPECT_FALSE(window.take(1, 120 * kSecond).allowed);
}

TEST(FixedWindow, ANewZoneCountsFromTheOldWindowsEnd) {
  FixedWindow window(3);
  const Nanos noon_ns = 12 * kHour;
  window.advance(calendar(Window::day), noon_ns);
  EXPECT_TRUE(window.take(3, noon_ns).allowed);
  const Calendar tokyo = calendar(Window::day, "Asia/Tokyo");
  window.advance(tokyo, 16 * kHour);  // a new day in Tokyo
  EXPECT_EQ(window.remaining(), 0);
  window.advance(tokyo, kDay);
  EXPECT_EQ(window.remaining(), 3);
  EXPECT_EQ(window.span(), (WindowSpan{kDay, 39 * kHour}));
}

TEST(FixedWindow, GiveBacksNeverExceedWhatWasUsed) {
  FixedWindow window(3);
  window.advance(calendar(Window::minute), 0);
  EXPECT_TRUE(window.take(2, 0).allowed);
  window.give_back(1);
  EXPECT_EQ(window.remaining(), 2);
  window.give_back(INT64_MAX);
  EXPECT_EQ(window.remaining(), 3);
}

}  // namespace
}  // namespace weir::limit
