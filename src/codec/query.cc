#include "src/codec/query.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace weir::codec {
namespace {

tl::unexpected<Error> invalid(std::string_view field, std::string message) {
  return failure(ErrorCode::invalid_argument, std::string(field), std::move(message));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Nothing when an escape is cut off or not hexadecimal.
std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      out.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
    }
  }
  return out;
}

/// The whole text as a decimal integer: no sign but `-`, no leading zeros, no blanks.
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes an answer option; false when `name` is none.
Result<bool> take_option(const std::string& name, const std::string& value,
                         AnswerOptions& options) {
  if (name == "status") {
    if (value != "always") return invalid(name, "must be always, or absent");
    options.status_always = true;
    return true;
  }
  if (name == "deny_status") {
    const auto status = parse_integer(value);
    if (!status || *status < 400 || *status > 599) {
      return invalid(name, "must be an HTTP status from 400 to 599");
    }
    options.deny_status = static_cast<int>(*status);
    return true;
  }
  return false;
}

}  // namespace

Result<QueryPairs> parse_query(std::string_view query) {
  QueryPairs pairs;
  while (!query.empty()) {
    const std::string_view piece = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), piece.size() + 1));
    if (piece.empty()) continue;
    const std::size_t equals = piece.find('=');
    auto name = decode(piece.substr(0, equals), true);
    if (!name) return invalid("query", "has a name with a broken %XX escape");
    if (name->empty()) return invalid("query", "has a value without a name");
    auto value = equals == std::string_view::npos ? std::optional<std::string>(std::string())
                                                  : decode(piece.substr(equals + 1), true);
    if (!value) return invalid(*name, "has a broken %XX escape");
    for (const auto& pair : pairs) {
      if (pair.first == *name) return invalid(*name, "is given twice");
    }
    if (pairs.size() == kMaxQueryNames) {
      return invalid("query", "has more than " + std::to_string(kMaxQueryNames) + " names");
    }
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

Result<AnswerOptions> parse_answer_options(std::string_view query) {
  AnswerOptions options;
  if (query.empty()) return options;
  const auto pairs = parse_query(query);
  if (!pairs) return tl::unexpected(pairs.error());
  for (const auto& [name, value] : *pairs) {
    const auto taken = take_option(name, value, options);
    if (!taken) return tl::unexpected(taken.error());
    if (!*taken) return invalid(name, "is unknown here; there are status and deny_status");
  }
  return options;
}

Result<AnswerOptions> parse_check_query(std::string_view query, Check& check) {
  auto pairs = parse_query(query);
  if (!pairs) return tl::unexpected(pairs.error());
  AnswerOptions options;
  bool has_customer = false;
  check.customer.clear();
  check.attributes.clear();
  check.cost = 1;
  for (auto& [name, value] : *pairs) {
    const auto taken = take_option(name, value, options);
    if (!taken) return tl::unexpected(taken.error());
    if (*taken) continue;
    if (name == "customer") {
      has_customer = true;
      check.customer = std::move(value);
    } else if (name == "cost") {
      const auto cost = parse_integer(value);
      if (!cost) return invalid("cost", "must be a 64-bit integer");
      check.cost = *cost;
    } else {
      check.attributes.emplace_back(std::move(name), std::move(value));
    }
  }
  if (!has_customer) return invalid("customer", "is missing");
  return options;
}

Result<std::string> decode_path_segment(std::string_view segment) {
  auto text = decode(segment, false);
  if (!text) return invalid("path", "has a broken %XX escape");
  return std::move(*text);
}

}  // namespace weir::codec
