#include "src/cli/answer.h"

#include <ostream>
#include <utility>

#include "src/cli/table.h"

namespace weir::cli {
namespace {

namespace json = boost::json;

constexpr int kOk = 200;
constexpr int kTooManyRequests = 429;
constexpr int kServiceUnavailable = 503;

}  // namespace

int wrong_usage(Console console, const Error& error) {
  console.err << "weir: " << (error.field.empty() ? "" : error.field + ": ") << error.message
              << "\n";
  return kWrongUsage;
}

std::string text_of(const json::object& object, const char* name, std::string absent) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return absent;
  if (value->is_string()) return std::string(value->get_string());
  return json::serialize(*value);
}
std::int64_t number_of(const json::object& object, const char* name, std::int64_t absent) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return absent;
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  return error ? absent : number;
}
bool flag_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}
const json::array& array_of(const json::object& object, const char* name) {
  static const json::array kNone;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_array() ? value->get_array() : kNone;
}
const json::object& object_of(const json::object& object, const char* name) {
  static const json::object kNone;
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_object() ? value->get_object() : kNone;
}

std::optional<Answer> expect_object(Result<Reply> reply, const Endpoint& endpoint, Console console,
                                    int& exit_status) {
  exit_status = kUnreachable;
  if (!reply && reply.error().code == ErrorCode::invalid_argument) {
    exit_status = wrong_usage(console, reply.error());
    return std::nullopt;
  }
  if (!reply) {
    console.err << "weir: cannot reach " << to_string(endpoint) << ": " << reply.error().message
                << "\n";
    return std::nullopt;
  }
  if (reply->status == kServiceUnavailable) {
    console.err << "weir: " << to_string(endpoint)
                << " does not serve now: " << printable(describe_error(*reply)) << "\n";
    return std::nullopt;
  }
  if (reply->status != kOk && reply->status != kTooManyRequests) {
    exit_status = reply->status >= 400 && reply->status < 500 ? kWrongUsage : kUnreachable;
    console.err << "weir: " << to_string(endpoint) << " answered " << reply->status << ": "
                << printable(describe_error(*reply)) << "\n";
    return std::nullopt;
  }
  boost::system::error_code error;
  json::value value = json::parse(reply->body, error);
  if (error || !value.is_object()) {
    console.err << "weir: " << to_string(endpoint) << " did not answer with JSON; is it a node?\n";
    return std::nullopt;
  }
  return Answer{reply->status, std::move(reply->body), std::move(value.get_object())};
}

}  // namespace weir::cli
