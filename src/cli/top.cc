// `top`: who asks most and who is denied most, again and again.
#include <boost/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "src/cli/answer.h"
#include "src/cli/commands.h"
#include "src/cli/stop_signals.h"
#include "src/cli/table.h"
#include "src/config/scalars.h"

namespace weir::cli {
namespace {

namespace json = boost::json;

constexpr Nanos kShortestIntervalNs = 100 * kMillisecond;
constexpr Nanos kLongestIntervalNs = 1 * kHour;

// ECMA-48, for a terminal: the cursor home, the rest of the line or of the screen empty.
constexpr const char* kHome = "\x1b[H";
constexpr const char* kEraseLine = "\x1b[K";
constexpr const char* kEraseBelow = "\x1b[J";

void add_table(const json::object& answer, const char* member, const char* head, int most,
               std::string& out) {
  std::vector<std::vector<std::string>> rows{{head, "CHECKS/S", "DENIED/S"}};
  for (const json::value& item : array_of(answer, member)) {
    if (!item.is_object() || rows.size() > static_cast<std::size_t>(most)) continue;
    const json::object& customer = item.get_object();
    rows.push_back({text_of(customer, "customer"),
                    format_count(number_of(customer, "checks_per_s")),
                    format_count(number_of(customer, "denied_per_s"))});
  }
  if (rows.size() > 1) out += "\n" + format_table(rows);
}

std::string text_of_top(const json::object& answer, int most) {
  const std::int64_t edges = number_of(answer, "edges");
  std::string out = "asked at " + printable(text_of(answer, "node")) + ", which hears " +
                    format_count(edges) + (edges == 1 ? " edge\n" : " edges\n");
  add_table(answer, "customers", "BUSIEST", most, out);
  add_table(answer, "denied", "MOST DENIED", most, out);
  if (array_of(answer, "customers").empty()) out += "\nNobody asks.\n";
  return out;
}

/// Over what is there: emptied only where the new text is shorter, so that nothing flickers.
std::string redrawn(const std::string& text) {
  std::string out = kHome;
  for (const char c : text) {
    if (c == '\n') out += kEraseLine;
    out += c;
  }
  return out + kEraseBelow;
}

Result<Nanos> parse_interval(const std::string& text) {
  const auto interval = config::parse_duration(text);
  if (!interval) {
    return failure(interval.error().code, "--interval", interval.error().message);
  }
  if (*interval < kShortestIntervalNs || *interval > kLongestIntervalNs) {
    return failure(ErrorCode::invalid_argument, "--interval", "must be 100ms to 1h");
  }
  return *interval;
}

}  // namespace

int run_top(const TopOptions& options, Console console) {
  const auto node = parse_target("--admin", options.admin, options.credentials);
  if (!node) return wrong_usage(console, node.error());
  const auto interval = parse_interval(options.interval);
  if (!interval) return wrong_usage(console, interval.error());
  // A signal during a request waits for its end.
  const StopSignals signals;
  const std::int64_t last = options.once ? 1 : options.count;
  for (std::int64_t shown = 1;; ++shown) {
    int status = kFine;
    const auto answer = expect_object(http_get(*node, "/v1/top"), node->endpoint, console, status);
    if (!answer) return signals.pending() ? kFine : status;
    if (options.json) {
      console.out << answer->body << "\n";
    } else {
      const std::string text = text_of_top(answer->object, options.rows);
      const bool redraws = console.terminal && last != 1;
      if (!redraws && shown > 1) console.out << "\n";
      console.out << (redraws ? redrawn(text) : text);
    }
    console.out << std::flush;
    if (!console.out || shown == last || signals.wait(*interval)) return kFine;
  }
}

}  // namespace weir::cli
