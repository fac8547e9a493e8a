// One line per event that is worth a person's time, with named fields; never one per request.
// Text:  2026-11-29T19:40:00.123Z info  owner activated customer=acme epoch=3.eu-1.77
// JSON:  {"ts":"...","level":"info","event":"owner activated","customer":"acme"}
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir::telemetry {

enum class Level : std::uint8_t { debug, info, warn, error };
enum class Format : std::uint8_t { text, json };

/// The level's word in the configuration and in log lines.
const char* to_string(Level level);
std::optional<Level> level_from(std::string_view word);

/// A named value of a log line.
class Field {
 public:
  Field(std::string_view name, std::string_view value) : name_(name), text_(value), quoted_(true) {}
  Field(std::string_view name, const char* value) : Field(name, std::string_view(value)) {}
  Field(std::string_view name, const std::string& value) : Field(name, std::string_view(value)) {}
  template <typename T>
  requires std::is_integral_v<T> Field(std::string_view name, T value)
      : name_(name),
        text_(std::is_same_v<T, bool> ? (value ? "true" : "false") : std::to_string(value)) {}

  std::string_view name() const { return name_; }
  const std::string& text() const { return text_; }
  bool quoted() const { return quoted_; }

 private:
  std::string_view name_;
  std::string text_;
  bool quoted_ = false;
};

/// Where log lines go. Thread-safe. Values are escaped: a customer's id cannot forge a line.
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(Level level, std::string_view event, std::initializer_list<Field> fields) = 0;

  void debug(std::string_view event, std::initializer_list<Field> f = {}) {
    write(Level::debug, event, f);
  }
  void info(std::string_view event, std::initializer_list<Field> f = {}) {
    write(Level::info, event, f);
  }
  void warn(std::string_view event, std::initializer_list<Field> f = {}) {
    write(Level::warn, event, f);
  }
  void error(std::string_view event, std::initializer_list<Field> f = {}) {
    write(Level::error, event, f);
  }
};

/// Writes to stderr with spdlog. Lines below `level` are dropped.
std::unique_ptr<Log> make_log(Level level, Format format);
/// The same, but each line (without its end) goes to `write_line`, one call at a time.
std::unique_ptr<Log> make_log(Level level, Format format,
                              std::function<void(std::string_view)> write_line);
/// Swallows everything; for tests and tools.
std::unique_ptr<Log> make_null_log();

}  // namespace weir::telemetry
