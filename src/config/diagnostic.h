// What is wrong with a file, where, and what would be right. Values.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weir::config {

/// One mistake in one file. Lines and columns count from 1, columns in bytes; 0 when the file as a
/// whole is meant (it cannot be read).
struct Diagnostic {
  std::string file;
  int line = 0;
  int column = 0;
  std::string message;  ///< what is wrong, what would be right

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// `file:line:column: message`; without the numbers that are 0.
std::string to_string(const Diagnostic& diagnostic);

/// One diagnostic per line, each line ended.
std::string to_string(const std::vector<Diagnostic>& diagnostics);

/// What was read from a file: the value, or every mistake found (sorted by place), never both.
/// Warnings do not stand in the way of the value.
template <typename T>
struct Parsed {
  std::optional<T> value;
  std::vector<Diagnostic> errors;
  std::vector<Diagnostic> warnings;

  explicit operator bool() const { return value.has_value(); }
};

/// Most diagnostics of one file that are kept. The rest is counted in one closing line.
inline constexpr std::size_t kMaxDiagnosticsPerFile = 100;

}  // namespace weir::config
