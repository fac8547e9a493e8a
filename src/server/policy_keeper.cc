#include "src/server/policy_keeper.h"

#include <filesystem>
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

Result<PolicyKeeper::Read> PolicyKeeper::parse(std::string text, const std::string& name) {
  auto parsed = config::parse_policy(text, name, policy::check_limit_supported);
  if (parsed) {
    return Read{std::make_shared<const policy::Policy>(*std::move(parsed.value)), std::move(text)};
  }
  std::string mistakes = config::to_string(parsed.errors);
  while (!mistakes.empty() && mistakes.back() == '\n') mistakes.pop_back();
  return failure(ErrorCode::invalid_argument, "", std::move(mistakes));
}

/// The file's policy, or the one in force when the file has not changed.
Result<PolicyKeeper::Read> PolicyKeeper::read_file() const {
  auto bytes = config::read_file(path_);
  if (!bytes) return failure(ErrorCode::invalid_argument, "", config::to_string(bytes.errors));
  auto read = parse(*std::move(bytes.value), path_);
  if (!read) return read;
  const auto current = policy();
  const auto stamp =
      current == nullptr ? policy::PolicyStamp{} : policy::stamp_of(current->definition());
  const auto decided = policy::decide_reload(stamp, policy::stamp_of(read->policy->definition()));
  if (!decided) {
    Error error = decided.error();
    error.field.clear();
    error.message = path_ + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  if (*decided == policy::Reload::unchanged) read->policy = current;
  return read;
}

PolicyKeeper::Outcome PolicyKeeper::put_in_force(Read read, std::string origin) {
  const Nanos now_ns = clock_.wall_ns();
  const std::lock_guard lock(mutex_);
  if (read.policy == state_.policy) return Outcome::unchanged;
  const auto stamp = policy::stamp_of(read.policy->definition());
  state_.policy = std::move(read.policy);
  state_.text =
      std::make_shared<const policy::PolicyText>(policy::PolicyText{stamp, std::move(read.text)});
  state_.origin = std::move(origin);
  state_.loaded_wall_ns = now_ns;
  has_policy_.store(true, std::memory_order_release);
  return Outcome::replaced;
}

void PolicyKeeper::note_error(const Error& error) {
  const Nanos now_ns = clock_.wall_ns();
  const std::lock_guard lock(mutex_);
  state_.last_error = error.message;
  state_.last_error_wall_ns = now_ns;
}

Result<PolicyKeeper::Outcome> PolicyKeeper::start(const std::optional<std::string>& stored,
                                                  bool waits) {
  if (stored) {
    auto read = parse(*stored, "the stored policy");
    if (read) put_in_force(*std::move(read), "store");
    // Of a later build, perhaps: the file counts.
    if (!read) note_error(read.error());
  }
  std::error_code ignored;
  if ((waits || has_policy()) && !std::filesystem::exists(path_, ignored)) {
    return Outcome::unchanged;
  }
  auto outcome = reload();
  if (!outcome && has_policy()) return Outcome::unchanged;
  return outcome;
}

Result<PolicyKeeper::Outcome> PolicyKeeper::reload() {
  auto read = read_file();
  if (!read) {
    note_error(read.error());
    return tl::unexpected(std::move(read).error());
  }
  {
    const std::lock_guard lock(mutex_);
    state_.last_error.reset();
  }
  return put_in_force(*std::move(read), "file");
}

Result<PolicyKeeper::Taken> PolicyKeeper::take(const std::string& text, const std::string& peer) {
  auto read = parse(text, "the policy of " + peer);
  if (!read) return tl::unexpected(std::move(read).error());
  const policy::PolicyStamp stamp = policy::stamp_of(read->policy->definition());
  const auto current = policy();
  if (current != nullptr && stamp.version <= current->version()) {
    return Taken{stamp, Outcome::unchanged};
  }
  return Taken{stamp, put_in_force(*std::move(read), peer)};
}

}  // namespace weir::server
