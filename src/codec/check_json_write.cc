// The writing half of check_json.h.
#include <charconv>

#include "src/codec/check_json.h"

namespace weir::codec {
namespace {

void append_integer(std::int64_t value, std::string& out) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

void append_boolean(bool value, std::string& out) { out += value ? "true" : "false"; }

/// The length of the character at the front of `text`, or 0 when it is not UTF-8 (or a NUL).
std::size_t character_length(std::string_view text) {
  for (std::size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    if (is_valid_utf8(text.substr(0, length))) return length;
  }
  return 0;
}

void append_escaped(std::string_view text, std::string& out) {
  static constexpr char kDigits[] = "0123456789abcdef";
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    std::size_t length = 1;
    if (byte == '"' || byte == '\\') {
      out.push_back('\\');
      out.push_back(text.front());
    } else if (byte < 0x20) {
      out += "\\u00";
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    } else if ((length = character_length(text)) == 0) {
      out += "\uFFFD";
      length = 1;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
}

void append_limit(const LimitDecision& limit, std::string& out) {
  out += "{\"name\":";
  append_json_string(limit.name, out);
  out += ",\"scope\":\"";
  out += to_string(limit.scope);
  out += "\",\"allowed\":";
  append_boolean(limit.allowed, out);
  out += ",\"limit\":";
  append_integer(limit.limit, out);
  out += ",\"remaining\":";
  append_integer(limit.remaining, out);
  out += ",\"retry_after_ms\":";
  append_integer(limit.retry_after_ms, out);
  out += ",\"reset_ms\":";
  append_integer(limit.reset_ms, out);
  out += ",\"shadow\":";
  append_boolean(limit.shadow, out);
  out.push_back('}');
}

}  // namespace

void append_json_string(std::string_view text, std::string& out) {
  out.push_back('"');
  bool plain = true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    plain = plain && byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
  }
  if (plain) {
    out += text;
  } else {
    append_escaped(text, out);
  }
  out.push_back('"');
}

void append_decision_json(const Decision& decision, std::string& out) {
  out += "{\"allowed\":";
  append_boolean(decision.allowed, out);
  out += ",\"name\":";
  append_json_string(decision.name, out);
  out += ",\"limit\":";
  append_integer(decision.limit, out);
  out += ",\"remaining\":";
  append_integer(decision.remaining, out);
  out += ",\"retry_after_ms\":";
  append_integer(decision.retry_after_ms, out);
  out += ",\"reset_ms\":";
  append_integer(decision.reset_ms, out);
  out += ",\"source\":\"";
  out += to_string(decision.source);
  out += "\",\"limits\":[";
  const char* separator = "";
  for (const LimitDecision& limit : decision.limits) {
    out += separator;
    append_limit(limit, out);
    separator = ",";
  }
  out += "]}";
}

void append_batch_json(const std::vector<Result<Decision>>& results, std::string& out) {
  out += "{\"results\":[";
  const char* separator = "";
  for (const Result<Decision>& result : results) {
    out += separator;
    if (result) {
      append_decision_json(*result, out);
    } else {
      append_error_json(result.error(), out);
    }
    separator = ",";
  }
  out += "]}";
}

void append_error_json(const Error& error, std::string& out) {
  out += "{\"error\":{\"code\":\"";
  out += to_string(error.code);
  if (!error.field.empty()) {
    out += "\",\"field\":";
    append_json_string(error.field, out);
  } else {
    out.push_back('"');
  }
  out += ",\"message\":";
  append_json_string(error.message, out);
  out += "}}";
}

void append_usage_json(std::string_view customer, const std::vector<BucketUsage>& buckets,
                       std::string& out) {
  out += "{\"customer\":";
  append_json_string(customer, out);
  out += ",\"buckets\":[";
  const char* separator = "";
  for (const BucketUsage& bucket : buckets) {
    out += separator;
    out += "{\"name\":";
    append_json_string(bucket.name, out);
    out += ",\"scope\":\"";
    out += to_string(bucket.scope);
    out += "\",\"attributes\":{";
    const char* comma = "";
    for (const auto& [name, value] : bucket.attributes) {
      out += comma;
      append_json_string(name, out);
      out.push_back(':');
      append_json_string(value, out);
      comma = ",";
    }
    out += "},\"limit\":";
    append_integer(bucket.limit, out);
    out += ",\"used\":";
    append_integer(bucket.used, out);
    out += ",\"remaining\":";
    append_integer(bucket.remaining, out);
    out += ",\"reset_ms\":";
    append_integer(bucket.reset_ms, out);
    out.push_back('}');
    separator = ",";
  }
  out += "]}";
}

void append_problem_json(const Decision& decision, int status, std::string& out) {
  out +=
      "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\","
      "\"title\":\"Request cannot be satisfied as assigned quota has been exceeded\","
      "\"status\":";
  append_integer(status, out);
  out += ",\"violated-policies\":[";
  const char* separator = "";
  for (const LimitDecision& limit : decision.limits) {
    if (limit.allowed || limit.shadow) continue;
    out += separator;
    append_json_string(limit.name, out);
    separator = ",";
  }
  out += "]}";
}

}  // namespace weir::codec
