// Limits as values: what a policy file says, once it has been checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"

namespace weir {

/// Where a limit is counted. Values are in stored keys and are for ever.
enum class Scope : std::uint8_t { node = 1, region = 2, global = 3 };
const char* to_string(Scope scope);

enum class Algorithm : std::uint8_t { token_bucket = 1, fixed_window = 2, sliding_window = 3 };
const char* to_string(Algorithm algorithm);

/// Calendar windows of `fixed_window`.
enum class Window : std::uint8_t { none = 0, minute = 1, hour = 2, day = 3, week = 4, month = 5 };
const char* to_string(Window window);

/// What an edge does when no owner has spoken for the suspicion time (PROTOCOL I2).
enum class FailurePolicy : std::uint8_t { static_share = 1, allow = 2, deny = 3 };
const char* to_string(FailurePolicy policy);

/// The numbers of a limit for one customer. Token bucket: at most `capacity` at once and
/// `rate_count` tokens per `rate_period_ns`, added continuously. Windows: `capacity` per window.
struct LimitNumbers {
  std::int64_t capacity = 0;    ///< tokens, >= 1
  std::int64_t rate_count = 0;  ///< tokens per period, >= 1; 0 for calendar windows
  Nanos rate_period_ns = 0;     ///< 1 ms .. 1 year; 0 for calendar windows

  friend bool operator==(const LimitNumbers&, const LimitNumbers&) = default;
};

/// A condition on one attribute: equal to `value`, or starting with it when `prefix`.
struct AttributeMatch {
  std::string attribute;
  std::string value;
  bool prefix = false;

  friend bool operator==(const AttributeMatch&, const AttributeMatch&) = default;
};

/// A named rule of the policy.
struct LimitDefinition {
  std::string name;
  Scope scope = Scope::global;
  Algorithm algorithm = Algorithm::token_bucket;
  LimitNumbers numbers;
  Window window = Window::none;
  std::string timezone = "UTC";
  std::vector<AttributeMatch> match;           ///< all must hold; empty matches every check
  std::vector<std::string> by = {"customer"};  ///< unique names
  bool strict = false;
  bool shadow = false;
  FailurePolicy on_unreachable = FailurePolicy::static_share;

  friend bool operator==(const LimitDefinition&, const LimitDefinition&) = default;
};

/// What a plan or a customer changes about one limit.
struct LimitOverride {
  enum class Kind : std::uint8_t { numbers = 1, unlimited = 2, blocked = 3 };
  Kind kind = Kind::numbers;
  /// For kind numbers: complete; what the file leaves out has been filled in from the limit.
  LimitNumbers numbers;

  friend bool operator==(const LimitOverride&, const LimitOverride&) = default;
};

using LimitOverrides = std::map<std::string, LimitOverride, std::less<>>;  ///< by name of the limit

struct CustomerDefinition {
  std::string plan;  ///< empty: the default plan
  LimitOverrides limits;

  friend bool operator==(const CustomerDefinition&, const CustomerDefinition&) = default;
};

/// A whole policy file. Names and numbers have been checked against each other by src/config.
struct PolicyDefinition {
  std::uint64_t version = 0;
  std::uint64_t content_hash =
      0;  ///< of the file's bytes; the same version with another hash is refused
  std::vector<LimitDefinition> limits;
  std::map<std::string, LimitOverrides, std::less<>> plans;
  std::string default_plan;  ///< empty: the limits as written
  std::map<std::string, CustomerDefinition, std::less<>> customers;

  friend bool operator==(const PolicyDefinition&, const PolicyDefinition&) = default;
};

}  // namespace weir
