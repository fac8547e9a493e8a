// The policy in force and where it came from: reads the file at start and again at each reload, and
// keeps the last good one when the file is bad (FIELD 6). Thread-safe; `reload` by one thread at a
// time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/policy/policy.h"

namespace weir::server {

class PolicyKeeper {
 public:
  /// `clock` outlives the keeper.
  PolicyKeeper(std::string path, const Clock& clock);

  enum class Outcome { replaced, unchanged };
  /// Reads the file. On failure the policy in force stays, and the error (every mistake, one a
  /// line) is kept for `state` until a reload succeeds.
  Result<Outcome> reload();

  struct State {
    std::shared_ptr<const policy::Policy> policy;  ///< null before the first good file
    Nanos loaded_wall_ns = 0;
    std::optional<std::string> last_error;  ///< of the last reload, when it failed
    Nanos last_error_wall_ns = 0;
  };
  State state() const;
  std::shared_ptr<const policy::Policy> policy() const;
  /// Whether there is a policy; takes no lock: every check asks.
  bool has_policy() const { return has_policy_.load(std::memory_order_acquire); }
  const std::string& path() const { return path_; }

 private:
  Result<std::shared_ptr<const policy::Policy>> read() const;

  const std::string path_;
  const Clock& clock_;
  // Admin threads look while the main thread reloads.
  mutable std::mutex mutex_;
  State state_;
  std::atomic<bool> has_policy_{false};
};

}  // namespace weir::server
