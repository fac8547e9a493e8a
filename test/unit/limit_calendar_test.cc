// Goal: calendar windows are what a person with a wall calendar expects, in the nastiest zones.
// Method: known instants of known changes, and walks over decades that check the tiling.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/limit/calendar.h"

namespace weir::limit {
namespace {

/// Seconds since 1970 of a UTC date (days from civil, Howard Hinnant's algorithm, checked below).
std::int64_t utc(std::int64_t year, std::int64_t month, std::int64_t day, std::int64_t hour = 0,
                 std::int64_t minute = 0) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = year / 400;
  const std::int64_t of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t days =
      era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
  return days * 86400 + hour * 3600 + minute * 60;
}

Calendar calendar(Window unit, const std::string& zone) {
  auto made = Calendar::make(unit, zone);
  EXPECT_TRUE(made) << zone;
  return *made;
}

WindowSpan at(Window unit, const std::string& zone, std::int64_t instant_s) {
  return calendar(unit, zone).containing(instant_s * kSecond);
}

WindowSpan span(std::int64_t start_s, std::int64_t end_s) {
  return {start_s * kSecond, end_s * kSecond};
}

const std::vector<std::string> kNastyZones = {"UTC",
                                              "Europe/Berlin",
                                              "America/Sao_Paulo",
                                              "Asia/Kathmandu",
                                              "Pacific/Apia",
                                              "Africa/Casablanca",
                                              "Australia/Lord_Howe",
                                              "America/St_Johns",
                                              "Africa/Monrovia",
                                              "Pacific/Kwajalein",
                                              "America/Toronto",
                                              "Antarctica/Troll"};

TEST(Calendar, KnowsUtcUnits) {
  const std::int64_t instant = utc(2024, 2, 29, 13, 14) + 15;  // a Thursday
  EXPECT_EQ(utc(1970, 1, 1), 0);
  EXPECT_EQ(at(Window::minute, "UTC", instant),
            span(utc(2024, 2, 29, 13, 14), utc(2024, 2, 29, 13, 15)));
  EXPECT_EQ(at(Window::hour, "UTC", instant), span(utc(2024, 2, 29, 13), utc(2024, 2, 29, 14)));
  EXPECT_EQ(at(Window::day, "UTC", instant), span(utc(2024, 2, 29), utc(2024, 3, 1)));
  EXPECT_EQ(at(Window::week, "UTC", instant), span(utc(2024, 2, 26), utc(2024, 3, 4)));
  EXPECT_EQ(at(Window::month, "UTC", instant), span(utc(2024, 2, 1), utc(2024, 3, 1)));
}

TEST(Calendar, WeeksStartOnMonday) {
  EXPECT_EQ(at(Window::week, "UTC", utc(2024, 12, 30)).start_ns, utc(2024, 12, 30) * kSecond);
  EXPECT_EQ(at(Window::week, "UTC", utc(2024, 12, 30) - 1).start_ns, utc(2024, 12, 23) * kSecond);
}

TEST(Calendar, EndsAreNotInside) {
  const Calendar month = calendar(Window::month, "UTC");
  const Nanos end_ns = utc(2025, 2, 1) * kSecond;
  EXPECT_EQ(month.containing(end_ns - 1).end_ns, end_ns);
  EXPECT_EQ(month.containing(end_ns).start_ns, end_ns);
}

TEST(Calendar, DaysOfDaylightSavingHave23And25Hours) {
  // Berlin: 2024-03-31 lost an hour, 2024-10-27 got one.
  EXPECT_EQ(at(Window::day, "Europe/Berlin", utc(2024, 3, 31, 12)),
            span(utc(2024, 3, 30, 23), utc(2024, 3, 31, 22)));
  EXPECT_EQ(at(Window::day, "Europe/Berlin", utc(2024, 10, 27, 12)),
            span(utc(2024, 10, 26, 22), utc(2024, 10, 27, 23)));
  EXPECT_EQ(at(Window::month, "Europe/Berlin", utc(2024, 10, 27, 12)),
            span(utc(2024, 9, 30, 22), utc(2024, 10, 31, 23)));
}

TEST(Calendar, HoursStayHoursAcrossDaylightSaving) {
  // Berlin 2024-10-27: 02:00 to 03:00 comes twice, from 00:00 and from 01:00 UTC.
  const std::int64_t first = utc(2024, 10, 27, 0);
  EXPECT_EQ(at(Window::hour, "Europe/Berlin", first + 1800), span(first, first + 3600));
  EXPECT_EQ(at(Window::hour, "Europe/Berlin", first + 5400), span(first + 3600, first + 7200));
}

TEST(Calendar, AMidnightThatDoesNotExistIsTheJump) {
  // Sao Paulo 2018-11-04 began at 01:00 local, 03:00 UTC.
  EXPECT_EQ(at(Window::day, "America/Sao_Paulo", utc(2018, 11, 4, 12)),
            span(utc(2018, 11, 4, 3), utc(2018, 11, 5, 2)));
}

TEST(Calendar, ClocksSetBackOverMidnightMakeALongerDay) {
  // Sao Paulo 2018-02-18 00:00 became 2018-02-17 23:00.
  EXPECT_EQ(at(Window::day, "America/Sao_Paulo", utc(2018, 2, 18, 2, 30)),
            span(utc(2018, 2, 17, 2), utc(2018, 2, 18, 3)));
}

TEST(Calendar, ASkippedDayHasNoWindow) {
  // Apia went from 2011-12-29 to 2011-12-31 at 10:00 UTC.
  const std::int64_t jump = utc(2011, 12, 30, 10);
  EXPECT_EQ(at(Window::day, "Pacific/Apia", jump - 1), span(jump - 86400, jump));
  EXPECT_EQ(at(Window::day, "Pacific/Apia", jump), span(jump, jump + 86400));
}

TEST(Calendar, OddOffsetsShiftHours) {
  // Kathmandu is 5:45 ahead: its hours begin at a quarter past.
  EXPECT_EQ(at(Window::hour, "Asia/Kathmandu", utc(2024, 1, 1, 0, 20)),
            span(utc(2024, 1, 1, 0, 15), utc(2024, 1, 1, 1, 15)));
}

TEST(Calendar, AnHourIsCutWhereTheOffsetChanges) {
  // Lord Howe 2024-04-07: 02:00 (+11:00) became 01:30 (+10:30) at 15:00 UTC the day before.
  const std::int64_t change = utc(2024, 4, 6, 15);
  EXPECT_EQ(at(Window::hour, "Australia/Lord_Howe", change - 1), span(change - 3600, change));
  EXPECT_EQ(at(Window::hour, "Australia/Lord_Howe", change), span(change, change + 1800));
}

TEST(Calendar, LeapDaysAndCenturies) {
  EXPECT_EQ(at(Window::month, "UTC", utc(2000, 2, 10)), span(utc(2000, 2, 1), utc(2000, 3, 1)));
  EXPECT_EQ(utc(2000, 3, 1) - utc(2000, 2, 1), 29 * 86400);
  EXPECT_EQ(at(Window::month, "UTC", utc(2100, 2, 10)),
            span(utc(2100, 2, 1), utc(2100, 2, 1) + 28 * 86400));
}

TEST(Calendar, DaysWeeksAndMonthsTile1970To2100) {
  for (const std::string& zone : kNastyZones) {
    for (const Window unit : {Window::day, Window::week, Window::month}) {
      const Calendar windows = calendar(unit, zone);
      const Nanos last_ns = utc(2100, 1, 1) * kSecond;
      WindowSpan now = windows.containing(0);
      while (now.end_ns < last_ns) {
        const WindowSpan next = windows.containing(now.end_ns);
        ASSERT_EQ(next.start_ns, now.end_ns) << zone << ' ' << to_string(unit);
        ASSERT_GT(next.end_ns, next.start_ns) << zone << ' ' << to_string(unit);
        ASSERT_EQ(windows.containing(next.end_ns - 1), next) << zone << ' ' << to_string(unit);
        now = next;
      }
    }
  }
}

TEST(Calendar, EveryInstantIsInItsWindow) {
  Random random(7);
  for (const std::string& zone : kNastyZones) {
    for (const Window unit :
         {Window::minute, Window::hour, Window::day, Window::week, Window::month}) {
      const Calendar windows = calendar(unit, zone);
      for (int i = 0; i < 300; ++i) {
        const Nanos wall_ns = static_cast<Nanos>(random.next() % (utc(2100, 1, 1) * kSecond));
        const WindowSpan found = windows.containing(wall_ns);
        ASSERT_TRUE(found.contains(wall_ns)) << zone << ' ' << to_string(unit) << ' ' << wall_ns;
        ASSERT_EQ(windows.containing(found.start_ns), found) << zone << ' ' << to_string(unit);
        ASSERT_EQ(windows.containing(found.end_ns - 1), found) << zone << ' ' << to_string(unit);
        ASSERT_EQ(windows.containing(found.end_ns).start_ns, found.end_ns) << zone;
      }
    }
  }
}

TEST(Calendar, HoursTileAcrossEveryChangeOf30Years) {
  for (const std::string& zone : kNastyZones) {
    const Calendar hours = calendar(Window::hour, zone);
    WindowSpan now = hours.containing(utc(1995, 1, 1) * kSecond);
    while (now.end_ns < utc(2025, 1, 1) * kSecond) {
      const WindowSpan next = hours.containing(now.end_ns);
      ASSERT_EQ(next.start_ns, now.end_ns) << zone;
      ASSERT_LE(next.end_ns - next.start_ns, kHour) << zone;
      now = next;
    }
  }
}

TEST(Calendar, StaysTotalAtTheEndsOfTime) {
  const Calendar month = calendar(Window::month, "Europe/Berlin");
  EXPECT_LT(month.containing(INT64_MIN).start_ns, kDay);
  EXPECT_GT(month.containing(INT64_MAX).end_ns, utc(2200, 1, 1) * kSecond - kDay);
}

TEST(Calendar, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Calendar::make(Window::none, "UTC").error().field, "window");
  EXPECT_EQ(Calendar::make(Window::day, "Mars/Olympus").error().field, "timezone");
  EXPECT_EQ(Calendar::make(Window::day, "").error().field, "timezone");
}

}  // namespace
}  // namespace weir::limit
