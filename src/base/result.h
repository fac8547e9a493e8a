// What the world can do wrong is a Result; it may not be ignored.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace weir {

enum class ErrorCode {
  invalid_argument,  ///< input that can never be right
  not_found,         ///< what was asked for does not exist
  too_large,         ///< above a named limit (src/base/limits.h)
  unavailable,       ///< cannot be done now; may be retried
  io,                ///< a disk, socket or system call failed
  corrupt,           ///< stored or received bytes do not make sense
  unsupported,       ///< understood, but not offered by this build or node
  unauthenticated,   ///< who asks has not shown who it is
  forbidden,         ///< who asks may not have this
};

/// The word for an error code on the wire (API.md) and in logs.
constexpr const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::too_large:
      return "too_large";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::io:
      return "io";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::unauthenticated:
      return "unauthenticated";
    case ErrorCode::forbidden:
      return "forbidden";
  }
  return "unknown";
}

struct Error {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string field;    ///< the member, flag or line that is wrong; empty when there is none
  std::string message;  ///< what is wrong and what would be right, for a person

  friend bool operator==(const Error&, const Error&) = default;
};

template <typename T>
using Result = tl::expected<T, Error>;

/// A step that gives nothing back but may fail.
using Status = Result<void>;

inline tl::unexpected<Error> failure(ErrorCode code, std::string field, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(field), std::move(message)});
}

}  // namespace weir
