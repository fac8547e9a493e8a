// How bytes from outside (customer ids, error texts) are written into log lines and label values so
// that they cannot forge a line, a field, or the end of a string. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::telemetry {

/// Longest value of one log field, bytes. The rest is cut off and the number of bytes left out is
/// written in its place.
inline constexpr std::size_t kMaxLogValueBytes = 2048;

/// A value of a text line: as it is when it is plain (printable ASCII without space, quote, equals
/// sign, backslash), else in double quotes with `\"`, `\\`, `\n`, `\r`, `\t`, `\u{..}` for other
/// control and invisible code points and `\xNN` for bytes that are not UTF-8.
void append_text_value(std::string& out, std::string_view value);

/// The event of a text line: the same, but single spaces between words need no quotes.
void append_text_event(std::string& out, std::string_view event);

/// A JSON string with its quotes (RFC 8259). Bytes that are not UTF-8 become U+FFFD; control and
/// invisible code points are written as \uNNNN.
void append_json_string(std::string& out, std::string_view value);

/// A field's name: everything but letters, digits, `_`, `.` and `-` becomes `_`.
void append_field_name(std::string& out, std::string_view name);

/// The same text as valid UTF-8: bad bytes become U+FFFD.
std::string to_valid_utf8(std::string_view value);

}  // namespace weir::telemetry
