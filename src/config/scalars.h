// Text -> value for every notation of Weir's files and flags. Errors say what would be right; they
// name no field and no place: the caller knows them. Pure, but for parse_timezone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/topology.h"

namespace weir::config {

/// Decimal digits alone, in [min, max]: no sign but `-`, no leading zero, no 0x, _, e or point.
Result<std::int64_t> parse_integer(std::string_view text, std::int64_t min, std::int64_t max);

/// `250ms 10s 5m 1h 7d`, in ns; `min` is the same as `m`. `0s` is fine. At most 100 years.
Result<Nanos> parse_duration(std::string_view text);

struct Rate {
  std::int64_t count = 0;  ///< >= 1
  Nanos period_ns = 0;     ///< 1 ms .. 1 year

  friend bool operator==(const Rate&, const Rate&) = default;
};
/// `100/s 600/min 5000/h 10/5m`.
Result<Rate> parse_rate(std::string_view text);

/// `10%` or `8.3%`, in thousandths, up to 1000.
Result<int> parse_percent(std::string_view text);

/// `host:port` or `[v6]:port`; the port is at least `min_port`.
Result<Endpoint> parse_endpoint(std::string_view text, int min_port = 1);

/// `redis://[user:password@]host[:port][/number]` or `rediss://`. Gives back the text.
Result<std::string> parse_redis_url(std::string_view text);

/// `[A-Za-z][A-Za-z0-9._-]{0,63}`: limits and plans.
Result<std::string> parse_name(std::string_view text);
/// The same, but may begin with a digit, as host names do: nodes, regions and zones.
Result<std::string> parse_place_name(std::string_view text);

/// A name of the tz database, as `Europe/Berlin`. Where the machine has the database
/// (/usr/share/zoneinfo) the zone must be in it.
Result<std::string> parse_timezone(std::string_view text);

/// `sha256:` and 64 hexadecimal digits, or `file:` and a path.
Result<std::string> parse_token(std::string_view text);

/// The name of an HTTP header (RFC 9110 token).
Result<std::string> parse_header_name(std::string_view text);

/// True for 127.0.0.0/8, ::1 and `localhost`.
bool is_loopback(const Endpoint& endpoint);

}  // namespace weir::config
