#include "src/telemetry/escape.h"

#include <cstdint>

namespace weir::telemetry {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct CodePoint {
  std::uint32_t value = 0;
  std::size_t bytes = 1;
  bool valid = false;  ///< false: one byte that is not UTF-8
};

/// The first code point of a non-empty text (RFC 3629: no overlong forms, no surrogates).
CodePoint first_code_point(std::string_view text) {
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte_at(0);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t bytes = 0;
  std::uint32_t lowest = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    bytes = 2;
    lowest = 0x80;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    bytes = 3;
    lowest = 0x800;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    bytes = 4;
    lowest = 0x10000;
  }
  if (bytes == 0 || bytes > text.size()) return {lead, 1, false};
  std::uint32_t value = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(i) & 0xC0) != 0x80) return {lead, 1, false};
    value = (value << 6) | (byte_at(i) & 0x3FU);
  }
  if (value < lowest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    return {lead, 1, false};
  }
  return {value, bytes, true};
}

/// Code points that a terminal or a viewer does not show as one visible mark, and which could
/// therefore make a line look like another: controls, line separators, direction overrides, zero
/// width.
bool is_deceptive(std::uint32_t value) {
  return value < 0x20 || (value >= 0x7F && value <= 0x9F) || value == 0xAD || value == 0x61C ||
         (value >= 0x200B && value <= 0x200F) || (value >= 0x2028 && value <= 0x202E) ||
         (value >= 0x2060 && value <= 0x206F) || value == 0xFEFF;
}

void append_hex(std::string& out, std::uint32_t value, int digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out.push_back(kDigits[(value >> shift) & 0xF]);
  }
}

/// The part of a value that is written: at most kMaxLogValueBytes, not ending inside a code point.
std::string_view cut(std::string_view value) {
  if (value.size() <= kMaxLogValueBytes) return value;
  std::size_t end = kMaxLogValueBytes;
  for (int back = 0; back < 3 && (static_cast<unsigned char>(value[end]) & 0xC0) == 0x80; ++back) {
    --end;
  }
  return value.substr(0, end);
}

void append_cut_mark(std::string& out, std::size_t bytes_left_out) {
  if (bytes_left_out == 0) return;
  out += "...[" + std::to_string(bytes_left_out) + " more bytes]";
}

void append_text_code_point(std::string& out, std::string_view bytes, const CodePoint& point) {
  if (!point.valid) {
    out += "\\x";
    append_hex(out, point.value, 2);
  } else if (point.value == '"' || point.value == '\\') {
    out.push_back('\\');
    out += bytes;
  } else if (point.value == '\n') {
    out += "\\n";
  } else if (point.value == '\r') {
    out += "\\r";
  } else if (point.value == '\t') {
    out += "\\t";
  } else if (is_deceptive(point.value)) {
    out += "\\u{";
    append_hex(out, point.value, 4);
    out.push_back('}');
  } else {
    out += bytes;
  }
}

void append_quoted(std::string& out, std::string_view value) {
  const std::string_view shown = cut(value);
  out.push_back('"');
  for (std::string_view rest = shown; !rest.empty();) {
    const CodePoint point = first_code_point(rest);
    append_text_code_point(out, rest.substr(0, point.bytes), point);
    rest.remove_prefix(point.bytes);
  }
  append_cut_mark(out, value.size() - shown.size());
  out.push_back('"');
}

bool is_plain(char c) { return c > ' ' && c < 0x7F && c != '"' && c != '=' && c != '\\'; }

}  // namespace

void append_text_value(std::string& out, std::string_view value) {
  bool plain = !value.empty() && value.size() <= kMaxLogValueBytes;
  for (const char c : value) plain = plain && is_plain(c);
  if (plain) {
    out += value;
  } else {
    append_quoted(out, value);
  }
}

void append_text_event(std::string& out, std::string_view event) {
  bool plain = !event.empty() && event.size() <= kMaxLogValueBytes;
  char previous = ' ';
  for (const char c : event) {
    plain = plain && (is_plain(c) || (c == ' ' && previous != ' '));
    previous = c;
  }
  if (plain && previous != ' ') {
    out += event;
  } else {
    append_quoted(out, event);
  }
}

void append_json_string(std::string& out, std::string_view value) {
  const std::string_view shown = cut(value);
  out.push_back('"');
  for (std::string_view rest = shown; !rest.empty();) {
    const CodePoint point = first_code_point(rest);
    const std::string_view bytes = rest.substr(0, point.bytes);
    rest.remove_prefix(point.bytes);
    if (!point.valid) {
      out += kReplacement;
    } else if (point.value == '"' || point.value == '\\') {
      out.push_back('\\');
      out += bytes;
    } else if (point.value == '\n') {
      out += "\\n";
    } else if (is_deceptive(point.value)) {  // all of them are below U+10000
      out += "\\u";
      append_hex(out, point.value, 4);
    } else {
      out += bytes;
    }
  }
  append_cut_mark(out, value.size() - shown.size());
  out.push_back('"');
}

void append_field_name(std::string& out, std::string_view name) {
  if (name.empty()) out.push_back('_');
  for (const char c : name) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    out.push_back(allowed ? c : '_');
  }
}

std::string to_valid_utf8(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  while (!value.empty()) {
    const CodePoint point = first_code_point(value);
    out += point.valid ? value.substr(0, point.bytes) : kReplacement;
    value.remove_prefix(point.bytes);
  }
  return out;
}

}  // namespace weir::telemetry
