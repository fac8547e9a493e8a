#include "src/config/scalars.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "src/base/limits.h"

namespace weir::config {
namespace {

constexpr Nanos kMaxDuration = 100 * kYear;
constexpr const char* kZoneDirectory = "/usr/share/zoneinfo";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
template <typename Predicate>
bool all(std::string_view text, Predicate predicate) {
  return std::all_of(text.begin(), text.end(), predicate);
}

/// The text for a message: cut, so that a mistake cannot print megabytes.
std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  if (text.size() <= kShown) return "`" + std::string(text) + "`";
  std::size_t cut = kShown;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return "`" + std::string(text.substr(0, cut)) + "...`";
}

tl::unexpected<Error> wrong(std::string message) {
  return failure(ErrorCode::invalid_argument, "", std::move(message));
}

/// Non-empty digits as a number; nothing when it does not fit or has a leading zero.
std::optional<std::int64_t> digits(std::string_view text) {
  if (text.empty() || !all(text, is_digit) || (text.size() > 1 && text[0] == '0')) {
    return std::nullopt;
  }
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What is wrong with a text that should have been digits.
std::string not_digits(std::string_view text) {
  const std::string what = shown(text);
  if (text.empty()) return "a number is missing, write digits such as 10";
  if (all(text, is_digit)) {
    const auto nonzero = text.find_first_not_of('0');
    if (text[0] != '0') return what + " is too large, at most " + std::to_string(INT64_MAX);
    const std::string plain(nonzero == std::string_view::npos ? "0" : text.substr(nonzero));
    return what + " has a leading zero (octal to some readers), write " + plain;
  }
  if (text.starts_with("0x") || text.starts_with("0X") || text.starts_with("0o")) {
    return what + " is not decimal, write the number in plain digits";
  }
  if (text.find('_') != std::string_view::npos || text.find(',') != std::string_view::npos) {
    return what + " has separators, write the digits alone";
  }
  if (text.find_first_of(".eE") != std::string_view::npos &&
      text.find_first_of("0123456789") == 0) {
    return what + " is not a whole number, write plain digits without point or exponent";
  }
  if (text[0] == '+') return what + " has a sign, write the digits alone";
  return what + " is not a number, write plain digits such as 10";
}

struct Unit {
  std::string_view name;
  Nanos ns;
};
constexpr std::array<Unit, 6> kUnits{{{"ms", kMillisecond},
                                      {"s", kSecond},
                                      {"m", kMinute},
                                      {"min", kMinute},
                                      {"h", kHour},
                                      {"d", kDay}}};
constexpr const char* kUnitNames = "ms, s, m (or min), h or d";

std::optional<Nanos> unit_ns(std::string_view name) {
  for (const auto& unit : kUnits) {
    if (unit.name == name) return unit.ns;
  }
  return std::nullopt;
}

bool is_ipv4(std::string_view host) {
  int parts = 0;
  while (true) {
    const auto dot = host.find('.');
    const auto part = digits(host.substr(0, dot));
    if (!part || *part > 255) return false;
    ++parts;
    if (dot == std::string_view::npos) return parts == 4;
    host.remove_prefix(dot + 1);
  }
}

/// Groups of hexadecimal digits between colons, at most one `::`; no zone id, no embedded IPv4.
bool is_ipv6(std::string_view host) {
  if (host.size() < 2 || host.find(":::") != std::string_view::npos) return false;
  const auto gap = host.find("::");
  const bool has_gap = gap != std::string_view::npos;
  if (has_gap && host.find("::", gap + 1) != std::string_view::npos) return false;
  int groups = 0;
  std::size_t at = 0;
  while (at <= host.size()) {
    const auto end = std::min(host.find(':', at), host.size());
    const auto group = host.substr(at, end - at);
    if (group.size() > 4 || !all(group, is_hex)) return false;
    if (!group.empty()) {
      ++groups;
    } else if (!has_gap || (at != gap && at != gap + 1 && at != gap + 2)) {
      return false;
    }
    at = end + 1;
  }
  return has_gap ? groups <= 7 : groups == 8;
}

bool is_host_name(std::string_view host) {
  if (host.empty() || host.size() > 253 || host.front() == '.' || host.front() == '-') return false;
  return all(
      host, [](char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '-' || c == '_'; });
}

Result<std::string> check_name(std::string_view text, bool may_start_with_digit) {
  const bool first_fits =
      !text.empty() && (is_letter(text[0]) || (may_start_with_digit && is_digit(text[0])));
  const bool rest_fits = all(
      text, [](char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '_' || c == '-'; });
  if (first_fits && rest_fits && text.size() <= kMaxNameBytes) return std::string(text);
  return wrong(shown(text) + " is not a name, write a letter" +
               (may_start_with_digit ? " or digit" : "") +
               " and then letters, digits, `.`, `_` or `-`, at most " +
               std::to_string(kMaxNameBytes) + " in all");
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view text, std::int64_t min, std::int64_t max) {
  const bool negative = text.size() > 1 && text[0] == '-';
  const std::string_view rest = negative ? text.substr(1) : text;
  const auto value = digits(rest);
  const std::string range =
      "write a number from " + std::to_string(min) + " to " + std::to_string(max);
  if (!value) {
    if (negative && min >= 0) return wrong(shown(text) + " is negative, " + range);
    return wrong(not_digits(rest));
  }
  const std::int64_t number = negative ? -*value : *value;
  if (number >= min && number <= max) return number;
  const char* what = number > max             ? " is too large, "
                     : number < 0 && min >= 0 ? " is negative, "
                                              : " is too small, ";
  return wrong(shown(text) + what + range);
}

Result<Nanos> parse_duration(std::string_view text) {
  const auto split = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = unit_ns(text.substr(split));
  if (split == 0 || !unit) {
    const bool bare = split == text.size() && split > 0;
    return wrong(shown(text) + (bare ? " has no unit" : " is not a duration") +
                 ", write a whole number and " + kUnitNames + ", such as 250ms or 10s");
  }
  const auto count = digits(text.substr(0, split));
  if (!count) return wrong(not_digits(text.substr(0, split)));
  const Nanos duration = multiply_saturating(*count, *unit);
  if (duration > kMaxDuration) return wrong(shown(text) + " is too long, at most 36500d");
  return duration;
}

Result<Rate> parse_rate(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    return wrong(shown(text) + " is not a rate, write a count per time such as 600/min or 10/5m");
  }
  const auto count_text = text.substr(0, slash);
  const auto period_text = text.substr(slash + 1);
  const auto count = digits(count_text);
  if (!count) return wrong(not_digits(count_text));
  if (*count == 0) {
    return wrong(shown(text) +
                 " lets nothing through, write at least 1; to refuse a customer, "
                 "override its limit with `blocked`");
  }
  Nanos period = 0;
  if (const auto unit = unit_ns(period_text)) {
    period = *unit;
  } else {
    const auto duration = parse_duration(period_text);
    if (!duration) {
      return wrong(shown(text) + " is not a rate: its time must be " + kUnitNames +
                   ", or a number and one of them, such as 600/min or 10/5m");
    }
    period = *duration;
  }
  if (period < kMillisecond || period > kYear) {
    return wrong(shown(text) + " has a time out of range, write one from 1ms to 365d");
  }
  return Rate{*count, period};
}

Result<int> parse_percent(std::string_view text) {
  const std::string message =
      shown(text) +
      " is not a percentage, write one from 0% to 100% with at most one decimal, "
      "such as 10% or 8.3%";
  if (!text.ends_with('%')) return wrong(message);
  text.remove_suffix(1);
  const auto point = text.find('.');
  const auto whole = digits(text.substr(0, point));
  if (!whole || *whole > 100) return wrong(message);
  std::int64_t permille = *whole * 10;
  if (point != std::string_view::npos) {
    const auto tenth = text.substr(point + 1);
    if (tenth.size() != 1 || !is_digit(tenth[0])) return wrong(message);
    permille += tenth[0] - '0';
  }
  if (permille > 1000) return wrong(message);
  return static_cast<int>(permille);
}

Result<Endpoint> parse_endpoint(std::string_view text, int min_port) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    const bool port_alone = !text.empty() && all(text, is_digit);
    return wrong(shown(text) + (port_alone ? " has no host" : " has no port") +
                 ", write host:port such as 127.0.0.1:8080");
  }
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (!bracketed && host.find(':') != std::string_view::npos) {
    return wrong(shown(text) + " is an IPv6 address without brackets, write \"[::1]:8080\"");
  }
  const bool numeric = !host.empty() && all(host, [](char c) { return is_digit(c) || c == '.'; });
  const bool host_fits = bracketed ? is_ipv6(host) : numeric ? is_ipv4(host) : is_host_name(host);
  if (!host_fits) {
    return wrong(shown(text) + " has no valid host, write host:port such as 127.0.0.1:8080");
  }
  const auto port = digits(text.substr(colon + 1));
  if (!port || *port < min_port || *port > UINT16_MAX) {
    return wrong(shown(text) + " has no valid port, write one from " + std::to_string(min_port) +
                 " to 65535");
  }
  return Endpoint{std::string(host), static_cast<std::uint16_t>(*port)};
}

Result<std::string> parse_redis_url(std::string_view text) {
  const std::string message =
      "the URL is not one of Redis, write redis://host:6379 (or rediss:// for TLS)";
  std::string_view rest = text;
  if (rest.starts_with("redis://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("rediss://")) {
    rest.remove_prefix(9);
  } else {
    return wrong(message);
  }
  if (const auto slash = rest.rfind('/'); slash != std::string_view::npos) {
    const auto database = digits(rest.substr(slash + 1));
    if (slash + 1 != rest.size() && !database) return wrong(message);
    rest = rest.substr(0, slash);
  }
  if (const auto at = rest.rfind('@'); at != std::string_view::npos) rest.remove_prefix(at + 1);
  const bool has_port = rest.find(':', rest.starts_with('[') ? std::min(rest.find(']'), rest.size())
                                                             : 0) != std::string_view::npos;
  if (!parse_endpoint(has_port ? std::string(rest) : std::string(rest) + ":6379")) {
    return wrong(message);
  }
  return std::string(text);
}

Result<std::string> parse_name(std::string_view text) { return check_name(text, false); }

Result<std::string> parse_place_name(std::string_view text) { return check_name(text, true); }

Result<std::string> parse_timezone(std::string_view text) {
  const bool fits =
      !text.empty() && text.size() <= 255 && is_letter(text[0]) &&
      text.find("..") == std::string_view::npos && text.find("//") == std::string_view::npos &&
      all(text, [](char c) {
        return is_letter(c) || is_digit(c) || c == '/' || c == '_' || c == '-' || c == '+';
      });
  const auto unknown = [&] {
    return wrong(shown(text) + " is not a time zone, write a name such as UTC or Europe/Berlin");
  };
  if (!fits) return unknown();
  std::error_code code;
  if (!std::filesystem::is_directory(kZoneDirectory, code)) return std::string(text);
  const auto path = std::filesystem::path(kZoneDirectory) / std::string(text);
  // The directory also holds tables and indexes that are no zones.
  if (!std::filesystem::is_regular_file(path, code)) return unknown();
  std::array<char, 4> magic{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(magic.data(), magic.size()) ||
      std::string_view(magic.data(), magic.size()) != "TZif") {
    return unknown();
  }
  return std::string(text);
}

Result<std::string> parse_token(std::string_view text) {
  // The text is not shown: somebody may have written the secret itself.
  if (text.starts_with("sha256:")) {
    const auto sum = text.substr(7);
    if (sum.size() == 64 && all(sum, is_hex)) return std::string(text);
    return wrong(
        "a sha256 token has 64 hexadecimal digits, this one has not; make one with "
        "`printf %s TOKEN | sha256sum`");
  }
  if (text.starts_with("file:") && text.size() > 5) return std::string(text);
  return wrong(
      "not a token, write sha256:<64 hexadecimal digits> or file:<path>; the token itself "
      "stands in no file of Weir");
}

Result<std::string> parse_header_name(std::string_view text) {
  const bool fits = !text.empty() && text.size() <= 128 && all(text, [](char c) {
    return is_letter(c) || is_digit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
  if (fits) return std::string(text);
  return wrong(shown(text) + " is not the name of an HTTP header, write one such as X-API-Key");
}

bool is_loopback(const Endpoint& endpoint) {
  return endpoint.host == "localhost" || endpoint.host == "::1" ||
         (endpoint.host.starts_with("127.") && is_ipv4(endpoint.host));
}

}  // namespace weir::config
