#include "src/model/check.h"

#include <algorithm>

#include "src/base/limits.h"

namespace weir {
namespace {

/// The length of the well-formed UTF-8 sequence at `text[0]`, or 0 (RFC 3629, table of section 4).
std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto in = [](unsigned value, unsigned low, unsigned high) {
    return value >= low && value <= high;
  };
  const auto tail = [&](std::size_t i) { return in(byte(i), 0x80, 0xBF); };
  const unsigned first = byte(0);
  if (in(first, 0x01, 0x7F)) return 1;
  if (in(first, 0xC2, 0xDF)) return tail(1) ? 2 : 0;
  if (in(first, 0xE0, 0xEF)) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return in(byte(1), low, high) && tail(2) ? 3 : 0;
  }
  if (in(first, 0xF0, 0xF4)) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return in(byte(1), low, high) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

Status check_text(std::string_view field, std::string_view text, std::size_t most,
                  bool may_be_empty) {
  if (text.empty() && !may_be_empty) {
    return failure(ErrorCode::invalid_argument, std::string(field), "must not be empty");
  }
  if (text.size() > most) {
    return failure(ErrorCode::invalid_argument, std::string(field),
                   "is " + std::to_string(text.size()) + " bytes long; at most " +
                       std::to_string(most) + " are allowed");
  }
  if (!is_valid_utf8(text)) {
    return failure(ErrorCode::invalid_argument, std::string(field),
                   "must be valid UTF-8 without NUL bytes");
  }
  return {};
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

const std::string* Check::attribute(std::string_view name) const {
  if (name == "customer") return &customer;
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

Status validate(const Check& check) {
  if (auto status = check_text("customer", check.customer, kMaxKeyBytes, false); !status)
    return status;
  if (check.attributes.size() > kMaxAttributes) {
    return failure(ErrorCode::invalid_argument, "attributes",
                   "has " + std::to_string(check.attributes.size()) + " members; at most " +
                       std::to_string(kMaxAttributes) + " are allowed");
  }
  for (std::size_t i = 0; i < check.attributes.size(); ++i) {
    const auto& [name, value] = check.attributes[i];
    if (auto status = check_text("attributes", name, kMaxAttributeNameBytes, false); !status) {
      status.error().message = "the name of an attribute " + status.error().message;
      return status;
    }
    if (name == "customer" || name == "cost") {
      return failure(ErrorCode::invalid_argument, "attributes." + name,
                     "is a member of the check itself and cannot be an attribute");
    }
    if (auto status = check_text("attributes." + name, value, kMaxKeyBytes, true); !status)
      return status;
    for (std::size_t j = 0; j < i; ++j) {
      if (check.attributes[j].first == name) {
        return failure(ErrorCode::invalid_argument, "attributes." + name, "is given twice");
      }
    }
  }
  return {};
}

const char* to_string(Source source) {
  switch (source) {
    case Source::lease:
      return "lease";
    case Source::owner:
      return "owner";
    case Source::node:
      return "node";
    case Source::policy:
      return "policy";
    case Source::timeout:
      return "timeout";
    case Source::static_share:
      return "static_share";
    case Source::allow:
      return "allow";
    case Source::deny:
      return "deny";
  }
  return "unknown";
}

}  // namespace weir
