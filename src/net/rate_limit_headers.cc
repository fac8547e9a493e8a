#include "src/net/rate_limit_headers.h"

#include <algorithm>
#include <charconv>

namespace weir::net {
namespace {

/// The largest integer of RFC 9651 (section 3.3.1): 15 digits.
constexpr std::int64_t kMaxHeaderInteger = 999'999'999'999'999;

struct ThreeHeaders {
  std::string_view limit;
  std::string_view remaining;
  std::string_view reset;
};
constexpr ThreeHeaders kDraft03 = {
    "RateLimit-Limit: ", "RateLimit-Remaining: ", "RateLimit-Reset: "};
constexpr ThreeHeaders kLegacy = {
    "X-RateLimit-Limit: ", "X-RateLimit-Remaining: ", "X-RateLimit-Reset: "};

std::int64_t seconds_up(std::int64_t milliseconds) {
  return milliseconds / 1000 + (milliseconds % 1000 > 0 ? 1 : 0);
}

void append_integer(std::int64_t value, std::string& out) {
  char digits[20];
  value = std::clamp<std::int64_t>(value, 0, kMaxHeaderInteger);
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

/// Appends one list member per limit, `,` between them. Limit names need no escapes (API.md).
template <typename Parameters>
void append_list(std::string_view name, const Decision& decision, std::string& out,
                 Parameters parameters) {
  bool first = true;
  for (const LimitDecision& limit : decision.limits) {
    if (limit.shadow) continue;
    out += first ? name : ", ";
    first = false;
    out += '"';
    out += limit.name;
    out += '"';
    parameters(limit);
  }
  if (!first) out += "\r\n";
}

void append_draft11(const Decision& decision, std::string& out) {
  append_list("RateLimit-Policy: ", decision, out, [&](const LimitDecision& limit) {
    out += ";q=";
    append_integer(limit.limit, out);
    if (limit.window_s < 1) return;  // a limit without a rate (blocked) has no window
    out += ";w=";
    append_integer(limit.window_s, out);
  });
  append_list("RateLimit: ", decision, out, [&](const LimitDecision& limit) {
    out += ";r=";
    append_integer(limit.remaining, out);
    out += ";t=";
    append_integer(seconds_up(limit.next_token_ms), out);
  });
}

void append_three(const Decision& decision, const ThreeHeaders& names, std::string& out) {
  const bool shown = std::any_of(
      decision.limits.begin(), decision.limits.end(),
      [&](const LimitDecision& limit) { return !limit.shadow && limit.name == decision.name; });
  if (!shown) return;
  out += names.limit;
  append_integer(decision.limit, out);
  out += "\r\n";
  out += names.remaining;
  append_integer(decision.remaining, out);
  out += "\r\n";
  out += names.reset;
  append_integer(seconds_up(decision.reset_ms), out);
  out += "\r\n";
}

}  // namespace

void append_rate_limit_headers(const Decision& decision, HeaderStyle style, std::string& out) {
  switch (style) {
    case HeaderStyle::draft11:
      return append_draft11(decision, out);
    case HeaderStyle::draft03:
      return append_three(decision, kDraft03, out);
    case HeaderStyle::legacy:
      return append_three(decision, kLegacy, out);
    case HeaderStyle::none:
      return;
  }
}

std::optional<std::int64_t> retry_after_s(const Decision& decision, std::uint64_t random) {
  if (decision.allowed || decision.retry_after_ms < 0) return std::nullopt;
  std::int64_t wait = std::max<std::int64_t>(1, seconds_up(decision.retry_after_ms));
  for (const LimitDecision& limit : decision.limits) {
    if (limit.allowed || limit.shadow) continue;
    wait = std::max(wait, seconds_up(limit.next_token_ms));
  }
  wait = std::min(wait, kMaxHeaderInteger);
  const auto spread = static_cast<std::uint64_t>(wait / 10);
  wait += static_cast<std::int64_t>(random % (spread + 1));
  return std::min(wait, kMaxHeaderInteger);
}

}  // namespace weir::net
