// Collects the mistakes of one file while it is read. One thread. Private to src/config.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/config/diagnostic.h"

namespace weir::config {

/// Line and column from 1; 0: the file as a whole.
struct Place {
  int line = 0;
  int column = 0;
};

class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void error(Place place, std::string message) { add(errors_, place, std::move(message)); }
  void warn(Place place, std::string message) { add(warnings_, place, std::move(message)); }
  /// True when further errors are only counted: then their messages need no care.
  bool is_full() const { return errors_.kept.size() >= kMaxDiagnosticsPerFile; }
  bool none() const { return errors_.kept.empty(); }
  std::size_t count() const { return errors_.kept.size() + errors_.dropped; }

  /// Sorted by place; ends with a line that counts what was not kept.
  std::vector<Diagnostic> take_errors() { return take(errors_); }
  std::vector<Diagnostic> take_warnings() { return take(warnings_); }

  /// The value, or the errors; with the warnings either way.
  template <typename T>
  Parsed<T> finish(T value) {
    Parsed<T> parsed;
    if (none()) parsed.value = std::move(value);
    parsed.errors = take_errors();
    parsed.warnings = take_warnings();
    return parsed;
  }

 private:
  struct Kept {
    std::vector<Diagnostic> kept;
    std::size_t dropped = 0;
  };
  void add(Kept& to, Place place, std::string message);
  std::vector<Diagnostic> take(Kept& from);

  std::string file_;
  Kept errors_;
  Kept warnings_;
};

}  // namespace weir::config
