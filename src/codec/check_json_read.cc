// The reading half of check_json.h: Boost.JSON's event parser, because its trees keep the last of
// two members of the same name without a word.
#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <optional>

#include "src/base/limits.h"
#include "src/codec/check_json.h"

namespace weir::codec {
namespace {

namespace json = boost::json;

enum class Kind { string, integer, number, boolean, null, object, array };

/// Longest piece of a body that an error repeats, bytes.
constexpr std::size_t kMaxEchoBytes = 64;

std::string shortened(std::string_view text) {
  if (text.size() <= kMaxEchoBytes) return std::string(text);
  text = text.substr(0, kMaxEchoBytes);
  // The text is UTF-8: drop the character that the cut went through.
  while (!text.empty() && !is_valid_utf8(text)) text.remove_suffix(1);
  return std::string(text) + "...";
}

Error invalid(std::string field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(field), std::move(message)};
}

/// Takes the events of one value that should be a check. Keeps its first error and from then on
/// only counts brackets, so that a batch can go on behind it.
class CheckReader {
 public:
  void begin(Check& check) {
    check_ = &check;
    check.customer.clear();
    check.attributes.clear();
    check.cost = 1;
    error_.reset();
    depth_ = 0;
    seen_customer_ = seen_attributes_ = seen_cost_ = false;
  }

  /// True when the value has ended.
  bool done() const { return depth_ == 0; }
  const std::optional<Error>& error() const { return error_; }

  void open(Kind kind) {
    ++depth_;
    if (error_) return;
    const bool wanted = depth_ == 1 || (depth_ == 2 && member_ == Member::attributes);
    if (!wanted || kind != Kind::object) wrong_type();
  }

  void close() {
    --depth_;
    if (depth_ == 0 && !error_ && !seen_customer_) error_ = invalid("customer", "is missing");
  }

  void key(std::string_view name) {
    if (error_) return;
    if (depth_ == 2) return attribute_name(name);
    bool* seen = nullptr;
    if (name == "customer") {
      member_ = Member::customer;
      seen = &seen_customer_;
    } else if (name == "attributes") {
      member_ = Member::attributes;
      seen = &seen_attributes_;
    } else if (name == "cost") {
      member_ = Member::cost;
      seen = &seen_cost_;
    } else {
      error_ = invalid(shortened(name),
                       "is not a member of a check; there are customer, attributes and cost");
      return;
    }
    if (*seen) error_ = invalid(std::string(name), "is given twice");
    *seen = true;
  }

  void scalar(Kind kind, std::string_view text, std::int64_t integer) {
    if (error_) return;
    if (depth_ == 2 && kind == Kind::string) {
      check_->attributes.back().second = text;
    } else if (depth_ == 1 && member_ == Member::customer && kind == Kind::string) {
      check_->customer = text;
    } else if (depth_ == 1 && member_ == Member::cost && kind == Kind::integer) {
      check_->cost = integer;
    } else {
      wrong_type();
    }
  }

 private:
  enum class Member { customer, attributes, cost };

  void attribute_name(std::string_view name) {
    for (const auto& attribute : check_->attributes) {
      if (attribute.first == name) {
        error_ = invalid("attributes." + shortened(name), "is given twice");
        return;
      }
    }
    if (check_->attributes.size() == kMaxAttributes) {
      error_ = invalid("attributes", "has more than " + std::to_string(kMaxAttributes) +
                                         " members, which is the most that is allowed");
      return;
    }
    check_->attributes.emplace_back(name, std::string());
  }

  void wrong_type() {
    if (depth_ == 0 || (depth_ == 1 && !seen_customer_ && !seen_attributes_ && !seen_cost_)) {
      error_ = invalid("", "a check must be an object: {\"customer\":\"...\"}");
    } else if (member_ == Member::customer) {
      error_ = invalid("customer", "must be a string");
    } else if (member_ == Member::cost) {
      error_ = invalid("cost",
                       "must be an integer from -9223372036854775808 to 9223372036854775807, "
                       "written without quotes, fraction or exponent");
    } else if (check_->attributes.empty()) {
      error_ = invalid("attributes", "must be an object of strings");
    } else {
      error_ =
          invalid("attributes." + shortened(check_->attributes.back().first), "must be a string");
    }
  }

  Check* check_ = nullptr;
  std::optional<Error> error_;
  int depth_ = 0;
  Member member_ = Member::customer;
  bool seen_customer_ = false;
  bool seen_attributes_ = false;
  bool seen_cost_ = false;
};

/// A body that is one check. Stops at the first error.
class SingleTarget {
 public:
  explicit SingleTarget(Check& check) { reader_.begin(check); }

  bool open(Kind kind) { return reader_.open(kind), !reader_.error(); }
  bool close() { return reader_.close(), !reader_.error(); }
  bool key(std::string_view name) { return reader_.key(name), !reader_.error(); }
  bool scalar(Kind kind, std::string_view text, std::int64_t integer) {
    return reader_.scalar(kind, text, integer), !reader_.error();
  }
  const std::optional<Error>& error() const { return reader_.error(); }

 private:
  CheckReader reader_;
};

/// A body that is a batch. Stops at an error of the batch itself, not at one of a check.
class BatchTarget {
 public:
  bool open(Kind kind) {
    if (place_ == Place::items) return open_item(kind);
    if (place_ == Place::start && kind == Kind::object) {
      place_ = Place::members;
      return true;
    }
    if (place_ == Place::members && kind == Kind::array) {
      place_ = Place::items;
      return true;
    }
    return wrong_type();
  }

  bool close() {
    if (in_item_) {
      reader_.close();
      end_item();
    } else if (place_ == Place::items) {
      place_ = Place::members;
    } else if (!seen_checks_) {
      error_ = invalid("checks", "is missing");
    }
    return !error_;
  }

  bool key(std::string_view name) {
    if (in_item_) {
      reader_.key(name);
      return true;
    }
    if (name != "checks") {
      error_ = invalid(shortened(name), "is not a member of a batch; there is only checks");
    } else if (seen_checks_) {
      error_ = invalid("checks", "is given twice");
    }
    seen_checks_ = true;
    return !error_;
  }

  bool scalar(Kind kind, std::string_view text, std::int64_t integer) {
    if (place_ != Place::items) return wrong_type();
    if (!in_item_ && !begin_item()) return false;
    reader_.scalar(kind, text, integer);
    end_item();
    return true;
  }

  const std::optional<Error>& error() const { return error_; }
  std::vector<Result<Check>> take() { return std::move(items_); }

 private:
  enum class Place { start, members, items };

  bool open_item(Kind kind) {
    if (!in_item_ && !begin_item()) return false;
    reader_.open(kind);
    return true;
  }

  bool begin_item() {
    if (items_.size() == kMaxChecksPerBatch) {
      error_ = Error{ErrorCode::too_large, "checks",
                     "has more than " + std::to_string(kMaxChecksPerBatch) +
                         " members, which is the most that is allowed"};
      return false;
    }
    items_.emplace_back();
    reader_.begin(*items_.back());
    in_item_ = true;
    return true;
  }

  void end_item() {
    if (!reader_.done()) return;
    if (reader_.error()) items_.back() = tl::unexpected(*reader_.error());
    in_item_ = false;
  }

  bool wrong_type() {
    error_ = place_ == Place::start ? invalid("", "a batch must be an object: {\"checks\":[...]}")
                                    : invalid("checks", "must be an array of checks");
    return false;
  }

  Place place_ = Place::start;
  bool seen_checks_ = false;
  bool in_item_ = false;
  CheckReader reader_;
  std::vector<Result<Check>> items_;
  std::optional<Error> error_;
};

/// Boost.JSON's handler: joins the parts of strings and hands events on.
template <typename Target>
class Handler {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  template <typename... Arguments>
  explicit Handler(Arguments&&... arguments) : target(std::forward<Arguments>(arguments)...) {}

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code& ec) { return go(target.open(Kind::object), ec); }
  bool on_object_end(std::size_t, json::error_code& ec) { return go(target.close(), ec); }
  bool on_array_begin(json::error_code& ec) { return go(target.open(Kind::array), ec); }
  bool on_array_end(std::size_t, json::error_code& ec) { return go(target.close(), ec); }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) { return keep(part); }
  bool on_key(json::string_view last, std::size_t, json::error_code& ec) {
    const bool on = target.key(joined(last));
    parts_.clear();
    return go(on, ec);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) { return keep(part); }
  bool on_string(json::string_view last, std::size_t, json::error_code& ec) {
    const bool on = target.scalar(Kind::string, joined(last), 0);
    parts_.clear();
    return go(on, ec);
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code& ec) {
    return go(target.scalar(Kind::integer, {}, value), ec);
  }
  bool on_uint64(std::uint64_t, json::string_view, json::error_code& ec) {
    return go(target.scalar(Kind::number, {}, 0), ec);
  }
  bool on_double(double, json::string_view, json::error_code& ec) {
    return go(target.scalar(Kind::number, {}, 0), ec);
  }
  bool on_bool(bool, json::error_code& ec) { return go(target.scalar(Kind::boolean, {}, 0), ec); }
  bool on_null(json::error_code& ec) { return go(target.scalar(Kind::null, {}, 0), ec); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

  Target target;

 private:
  static bool go(bool on, json::error_code& ec) {
    if (!on) ec = json::make_error_code(json::error::exception);
    return on;
  }
  bool keep(json::string_view part) {
    parts_.append(part.data(), part.size());
    return true;
  }
  std::string_view joined(json::string_view last) {
    if (parts_.empty()) return {last.data(), last.size()};
    keep(last);
    return parts_;
  }

  std::string parts_;
};

template <typename Target>
Status parse(json::basic_parser<Handler<Target>>& parser, std::string_view body) {
  json::error_code ec;
  const std::size_t parsed = parser.write_some(false, body.data(), body.size(), ec);
  if (const auto& error = parser.handler().target.error()) return tl::unexpected(*error);
  if (!ec && parsed < body.size()) ec = json::make_error_code(json::error::extra_data);
  if (!ec) return {};
  return failure(
      ErrorCode::invalid_argument, "",
      "the body is not valid JSON: " + ec.message() + " at byte " + std::to_string(parsed));
}

json::parse_options options() {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  return options;
}

}  // namespace

Status parse_check_json(std::string_view body, Check& check) {
  json::basic_parser<Handler<SingleTarget>> parser(options(), check);
  return parse(parser, body);
}

Result<std::vector<Result<Check>>> parse_batch_json(std::string_view body) {
  json::basic_parser<Handler<BatchTarget>> parser(options());
  if (auto status = parse(parser, body); !status) return tl::unexpected(status.error());
  return parser.handler().target.take();
}

}  // namespace weir::codec
