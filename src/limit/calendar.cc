#include "src/limit/calendar.h"

#include <date/tz.h>

#include <algorithm>
#include <exception>

namespace weir::limit {
namespace {

using date::days;
using date::local_days;
using date::sys_seconds;
using date::time_zone;
using std::chrono::seconds;

/// 2200-01-01: well within an int64 of nanoseconds.
constexpr Nanos kLastWallNs = 7'258'118'400 * kSecond;

sys_seconds to_seconds(Nanos wall_ns) {
  return sys_seconds(seconds(std::clamp<Nanos>(wall_ns, 0, kLastWallNs) / kSecond));
}

Nanos to_nanos(sys_seconds instant) {
  return multiply_saturating(instant.time_since_epoch().count(), kSecond);
}

/// The instant at which a local day begins.
sys_seconds begin_of(const time_zone& zone, local_days day) {
  return zone.to_sys(date::local_seconds(day), date::choose::earliest);
}

local_days first_day(Window unit, local_days day) {
  if (unit == Window::week) return day - (date::weekday(day) - date::Monday);
  if (unit == Window::month) {
    const date::year_month_day date(day);
    return local_days(date.year() / date.month() / 1);
  }
  return day;
}

/// The first day of the next (or the previous) window; `first` is a first day.
local_days step(Window unit, local_days first, int by) {
  if (unit == Window::week) return first + days(7 * by);
  if (unit == Window::month) {
    const date::year_month_day date(first);
    return local_days(date.year() / date.month() / 1 + date::months(by));
  }
  return first + days(by);
}

/// Days, weeks and months. The local date finds the window but where the clocks were set back over
/// midnight: there its neighbour is meant.
WindowSpan by_days(const time_zone& zone, Window unit, sys_seconds instant) {
  local_days first = first_day(unit, date::floor<days>(zone.to_local(instant)));
  while (begin_of(zone, first) > instant) first = step(unit, first, -1);
  local_days next = step(unit, first, 1);
  while (begin_of(zone, next) <= instant) {
    first = next;
    next = step(unit, first, 1);
  }
  return {to_nanos(begin_of(zone, first)), to_nanos(begin_of(zone, next))};
}

/// Minutes and hours of the zone's offset, cut where the offset changes.
WindowSpan by_seconds(const time_zone& zone, seconds length, sys_seconds instant) {
  date::sys_info info = zone.get_info(instant);
  const seconds offset = info.offset;
  const seconds local = instant.time_since_epoch() + offset;
  const seconds into = local - date::floor<days>(local);
  sys_seconds start = instant - into % length;
  sys_seconds end = start + length;
  for (date::sys_info before = info; before.begin > start;) {
    const sys_seconds change = before.begin;
    before = zone.get_info(change - seconds(1));
    if (before.offset != offset) start = change;
  }
  for (date::sys_info after = info; after.end < end;) {
    const sys_seconds change = after.end;
    after = zone.get_info(change);
    if (after.offset != offset) end = change;
  }
  return {to_nanos(start), to_nanos(end)};
}

}  // namespace

Result<Calendar> Calendar::make(Window unit, const std::string& timezone) {
  if (unit == Window::none) {
    return failure(ErrorCode::invalid_argument, "window", "a calendar needs a window");
  }
  try {
    const time_zone* zone = date::locate_zone(timezone);
    // The library reads a zone's file at its first use, and throws when it cannot.
    zone->get_info(sys_seconds());
    return Calendar(unit, zone);
  } catch (const std::exception& error) {
    return failure(ErrorCode::invalid_argument, "timezone",
                   "this machine does not know the time zone `" + timezone + "`: " + error.what());
  }
}

WindowSpan Calendar::containing(Nanos wall_ns) const {
  const sys_seconds instant = to_seconds(wall_ns);
  if (unit_ == Window::minute) return by_seconds(*zone_, std::chrono::minutes(1), instant);
  if (unit_ == Window::hour) return by_seconds(*zone_, std::chrono::hours(1), instant);
  return by_days(*zone_, unit_, instant);
}

std::int64_t nominal_window_s(Window unit) {
  switch (unit) {
    case Window::none:
      return 0;
    case Window::minute:
      return kMinute / kSecond;
    case Window::hour:
      return kHour / kSecond;
    case Window::day:
      return kDay / kSecond;
    case Window::week:
      return 7 * kDay / kSecond;
    case Window::month:
      return 31 * kDay / kSecond;
  }
  return 0;
}

}  // namespace weir::limit
