#include "src/model/limit.h"

#include "src/model/lease.h"

namespace weir {

const char* to_string(Scope scope) {
  switch (scope) {
    case Scope::node:
      return "node";
    case Scope::region:
      return "region";
    case Scope::global:
      return "global";
  }
  return "unknown";
}

const char* to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::token_bucket:
      return "token_bucket";
    case Algorithm::fixed_window:
      return "fixed_window";
    case Algorithm::sliding_window:
      return "sliding_window";
  }
  return "unknown";
}

const char* to_string(Window window) {
  switch (window) {
    case Window::none:
      return "none";
    case Window::minute:
      return "minute";
    case Window::hour:
      return "hour";
    case Window::day:
      return "day";
    case Window::week:
      return "week";
    case Window::month:
      return "month";
  }
  return "unknown";
}

const char* to_string(FailurePolicy policy) {
  switch (policy) {
    case FailurePolicy::static_share:
      return "static_share";
    case FailurePolicy::allow:
      return "allow";
    case FailurePolicy::deny:
      return "deny";
  }
  return "unknown";
}

const char* to_string(LeaseStatus status) {
  switch (status) {
    case LeaseStatus::granted:
      return "granted";
    case LeaseStatus::empty:
      return "empty";
    case LeaseStatus::unknown:
      return "unknown";
    case LeaseStatus::pending:
      return "pending";
    case LeaseStatus::not_owner:
      return "not_owner";
    case LeaseStatus::no_limit:
      return "no_limit";
    case LeaseStatus::crowded:
      return "crowded";
    case LeaseStatus::ask_again:
      return "ask_again";
    case LeaseStatus::recall:
      return "recall";
  }
  return "unknown";
}

}  // namespace weir
