// The policy in force and where it came from: reads the file at start and again at each reload,
// takes what peers have, and keeps the last good one when what comes is bad (FIELD 6). The highest
// version wins, whatever it came from (PROTOCOL J4). Thread-safe; of `start`, `reload` and `take`
// one at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/policy/policy.h"
#include "src/policy/spread.h"

namespace weir::server {

class PolicyKeeper {
 public:
  /// `clock` outlives the keeper.
  PolicyKeeper(std::string path, const Clock& clock);

  enum class Outcome { replaced, unchanged };
  /// The first one: what the store has, unless the file's is higher. Fails as `reload` when the
  /// file is bad and nothing is stored, but not for a file that is missing when `waits`: then the
  /// peers tell it.
  Result<Outcome> start(const std::optional<std::string>& stored, bool waits);
  /// Reads the file. On failure the policy in force stays, and the error (every mistake, one a
  /// line) is kept for `state` until a reload succeeds.
  Result<Outcome> reload();
  struct Taken {
    policy::PolicyStamp stamp;
    Outcome outcome = Outcome::unchanged;
  };
  /// What a peer has: in force if its version is higher. Fails when it cannot be read.
  Result<Taken> take(const std::string& text, const std::string& peer);

  struct State {
    std::shared_ptr<const policy::Policy> policy;  ///< null before the first good one
    std::shared_ptr<const policy::PolicyText> text;
    std::string origin;  ///< `file`, `store`, or the name of a peer
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
  struct Read {
    std::shared_ptr<const policy::Policy> policy;
    std::string text;
  };
  static Result<Read> parse(std::string text, const std::string& name);
  Result<Read> read_file() const;
  Outcome put_in_force(Read read, std::string origin);
  void note_error(const Error& error);

  const std::string path_;
  const Clock& clock_;
  // Admin threads look while the main thread reloads.
  mutable std::mutex mutex_;
  State state_;
  std::atomic<bool> has_policy_{false};
};

}  // namespace weir::server
