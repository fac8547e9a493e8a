#include "src/server/policy_keeper.h"

#include <utility>

#include "src/config/load.h"
#include "src/policy/reload.h"
#include "src/policy/supported.h"

namespace weir::server {

PolicyKeeper::PolicyKeeper(std::string path, const Clock& clock)
    : path_(std::move(path)), clock_(clock) {}

PolicyKeeper::State PolicyKeeper::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::shared_ptr<const policy::Policy> PolicyKeeper::policy() const {
  const std::lock_guard lock(mutex_);
  return state_.policy;
}

/// The file's policy, or the one in force when the file has not changed.
Result<std::shared_ptr<const policy::Policy>> PolicyKeeper::read() const {
  auto parsed = config::load_policy(path_, policy::check_limit_supported);
  if (!parsed) {
    std::string text = config::to_string(parsed.errors);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return failure(ErrorCode::invalid_argument, "", std::move(text));
  }
  auto current = policy();
  const auto stamp = current == nullptr ? weir::policy::PolicyStamp{}
                                        : weir::policy::stamp_of(current->definition());
  const auto decided = weir::policy::decide_reload(stamp, weir::policy::stamp_of(*parsed.value));
  if (!decided) {
    Error error = decided.error();
    error.field.clear();
    error.message = path_ + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  if (*decided == weir::policy::Reload::unchanged) return current;
  return std::make_shared<const weir::policy::Policy>(*std::move(parsed.value));
}

Result<PolicyKeeper::Outcome> PolicyKeeper::reload() {
  auto next = read();
  const Nanos now_ns = clock_.wall_ns();
  const std::lock_guard lock(mutex_);
  if (!next) {
    state_.last_error = next.error().message;
    state_.last_error_wall_ns = now_ns;
    return tl::unexpected(std::move(next).error());
  }
  state_.last_error.reset();
  if (*next == state_.policy) return Outcome::unchanged;
  state_.policy = *std::move(next);
  state_.loaded_wall_ns = now_ns;
  has_policy_.store(true, std::memory_order_release);
  return Outcome::replaced;
}

}  // namespace weir::server
