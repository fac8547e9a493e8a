// Text for people: tables, durations, counts. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

/// Rows of cells as left-aligned columns with two spaces between them; the first row is the head.
/// Control characters in a cell are shown as `?`: what a server sends cannot drive a terminal.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// `text` with every control character replaced by `?`.
std::string printable(std::string_view text);

/// `0 ms`, `72 ms`, `5.9 s`, `12 min`, `3.5 h`, `2 d`; `never` below 0. Rounded up: a caller who
/// waits that long does not come too early.
std::string format_milliseconds(std::int64_t milliseconds);

/// 1234567 -> `1,234,567`.
std::string format_count(std::int64_t count);

}  // namespace weir::cli
