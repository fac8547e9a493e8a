#include "src/cli/table.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace weir::cli {
namespace {

/// Columns that `text` takes on a terminal: code points, which is right for most names.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = '?';
  }
  return shown;
}

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += printable(row[i]);
      if (i + 1 < row.size()) text.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

std::string format_milliseconds(std::int64_t milliseconds) {
  if (milliseconds < 0) return "never";
  if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
  struct Unit {
    std::int64_t ms;
    const char* name;
  };
  constexpr std::array<Unit, 4> kUnits{
      {{86'400'000, " d"}, {3'600'000, " h"}, {60'000, " min"}, {1000, " s"}}};
  for (const Unit& unit : kUnits) {
    if (milliseconds < unit.ms) continue;
    const std::int64_t tenths =
        (milliseconds / unit.ms) * 10 + ((milliseconds % unit.ms) * 10 + unit.ms - 1) / unit.ms;
    std::string text = std::to_string(tenths / 10);
    if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
    return text + unit.name;
  }
  return {};
}

std::string format_count(std::int64_t count) {
  std::string digits = std::to_string(count);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace weir::cli
