#include "src/telemetry/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>
#include <utility>

#include "src/telemetry/escape.h"

namespace weir::telemetry {
namespace {

// spdlog writes the time and hands the rest to the sink; everything after the time is ours, so that
// nothing reaches a line unescaped.
constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %v";
constexpr const char* kJsonPattern = R"({"ts":"%Y-%m-%dT%H:%M:%S.%eZ",%v)";

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warn:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

/// As wide as the widest, so that events stand in one column.
std::string_view padded_name(Level level) {
  switch (level) {
    case Level::debug:
      return "debug ";
    case Level::info:
      return "info  ";
    case Level::warn:
      return "warn  ";
    case Level::error:
      return "error ";
  }
  return "error ";
}

std::string text_line(Level level, std::string_view event, std::initializer_list<Field> fields) {
  std::string line(padded_name(level));
  append_text_event(line, event);
  for (const Field& field : fields) {
    line.push_back(' ');
    append_field_name(line, field.name());
    line.push_back('=');
    append_text_value(line, field.text());
  }
  return line;
}

bool is_reserved(std::string_view name) {
  return name == "ts" || name == "level" || name == "event";
}

/// Without the opening brace and the time, which kJsonPattern writes.
std::string json_line(Level level, std::string_view event, std::initializer_list<Field> fields) {
  std::string line = R"("level":")";
  line += to_string(level);
  line += R"(","event":)";
  append_json_string(line, event);
  for (const Field& field : fields) {
    line += ",\"";
    append_field_name(line, field.name());
    if (is_reserved(field.name())) line.push_back('_');
    line += "\":";
    if (field.quoted()) {
      append_json_string(line, field.text());
    } else {
      line += field.text();
    }
  }
  line.push_back('}');
  return line;
}

/// Hands each line, without its end, to a function.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(std::string_view)> write_line)
      : write_line_(std::move(write_line)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
    write_line_(text);
  }
  void flush_() override {}

 private:
  std::function<void(std::string_view)> write_line_;
};

class SpdlogLog final : public Log {
 public:
  SpdlogLog(Level level, Format format, spdlog::sink_ptr sink)
      : level_(level), format_(format), logger_("weir", std::move(sink)) {
    logger_.set_pattern(format == Format::text ? kTextPattern : kJsonPattern,
                        spdlog::pattern_time_type::utc);
    logger_.set_level(to_spdlog(level));
  }

  void write(Level level, std::string_view event, std::initializer_list<Field> fields) override {
    if (level < level_) return;
    const std::string line =
        format_ == Format::text ? text_line(level, event, fields) : json_line(level, event, fields);
    logger_.log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
  }

 private:
  const Level level_;
  const Format format_;
  spdlog::logger logger_;
};

class NullLog final : public Log {
 public:
  void write(Level, std::string_view, std::initializer_list<Field>) override {}
};

}  // namespace

const char* to_string(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
  }
  return "error";
}

std::optional<Level> level_from(std::string_view word) {
  for (const Level level : {Level::debug, Level::info, Level::warn, Level::error}) {
    if (word == to_string(level)) return level;
  }
  return std::nullopt;
}

std::unique_ptr<Log> make_log(Level level, Format format) {
  return std::make_unique<SpdlogLog>(level, format,
                                     std::make_shared<spdlog::sinks::stderr_sink_mt>());
}

std::unique_ptr<Log> make_log(Level level, Format format,
                              std::function<void(std::string_view)> write_line) {
  return std::make_unique<SpdlogLog>(level, format,
                                     std::make_shared<FunctionSink>(std::move(write_line)));
}

std::unique_ptr<Log> make_null_log() { return std::make_unique<NullLog>(); }

}  // namespace weir::telemetry
