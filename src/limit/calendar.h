// Calendar windows: which minute, hour, day, week or month of a time zone an instant lies in.
//
// The windows of one calendar tile the time from 1970 to 2200 without gap or overlap, whatever the
// zone does: a day that daylight saving makes shorter or longer has 23 or 25 hours, a day that a
// zone skips has no window, a midnight that does not exist is the instant at which the clocks jump
// over it, and of a midnight that comes twice the first counts. Minutes and hours follow the zone's
// offset and are cut where it changes.
//
// Values; any thread. The time zone data (/usr/share/zoneinfo) is read once per zone and process
// and never changes then. It knows daylight saving up to 2037; later years keep standard time.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/limit.h"

namespace date {
class time_zone;
}  // namespace date

namespace weir::limit {

/// UTC, [start, end).
struct WindowSpan {
  Nanos start_ns = 0;
  Nanos end_ns = 0;

  bool contains(Nanos wall_ns) const { return start_ns <= wall_ns && wall_ns < end_ns; }
  friend bool operator==(const WindowSpan&, const WindowSpan&) = default;
};

class Calendar {
 public:
  /// Fails when `unit` is none or this machine does not know the zone (fields `window`,
  /// `timezone`).
  static Result<Calendar> make(Window unit, const std::string& timezone);

  /// The window that contains `wall_ns` (UTC since 1970; held to 1970-2200). Weeks start on Monday
  /// (ISO 8601).
  WindowSpan containing(Nanos wall_ns) const;

 private:
  Calendar(Window unit, const date::time_zone* zone) : unit_(unit), zone_(zone) {}

  Window unit_;
  const date::time_zone* zone_;  ///< of the library's table, which lives as long as the process
};

/// The longest that a window of this unit lasts without daylight saving, in seconds: 31 days for a
/// month. 0 for none.
std::int64_t nominal_window_s(Window unit);

}  // namespace weir::limit
