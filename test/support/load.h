// Load: keep-alive connections that ask several nodes about one customer at a steady pace and write
// down what they saw. A connection that breaks is made again.
//
// Thread rule: the methods are called from one thread; each connection has a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/time.h"
#include "src/model/topology.h"
#include "test/support/history.h"

namespace weir::test {

/// How long a client waits for one answer before it counts as none.
inline constexpr Nanos kAnswerPatienceNs = 10 * kSecond;

struct LoadShape {
  std::vector<Endpoint> nodes;  ///< HTTP addresses
  int connections_per_node = 2;
  std::string customer = "acme";
  int customers = 1;  ///< several: `acme-0`, `acme-1`, ... by turns
  /// Sent with each check.
  std::vector<std::pair<std::string, std::string>> attributes;
  /// All connections together. One that falls behind catches up: the demand is what counts.
  std::int64_t checks_per_s = 1000;
  std::int64_t checks = 10'000;  ///< all connections together, rounded up to the same for each
};

/// A shape whose demand is `times` the rate of a limit, for `duration_ns`.
LoadShape load_of(std::vector<Endpoint> nodes, std::int64_t rate_per_s, std::int64_t times,
                  Nanos duration_ns);

class Load {
 public:
  /// Starts at once.
  explicit Load(LoadShape shape);
  /// Stops early, if it still runs.
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Checks that have ended, however.
  std::int64_t ended() const { return ended_.load(); }
  std::int64_t planned() const { return planned_; }
  /// Waits until `permille` of the planned checks have ended; false when they have not in a time
  /// that is far more than they need.
  bool wait_for_permille(std::int64_t permille) const;
  /// Waits until the last connection is through and gives the whole history.
  History finish();
  /// What went wrong with failed checks, the first few, for messages. After `finish`.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  class Connection;
  void run(int node, int place, const std::stop_token& stop);
  void note(const CheckRecord& record, const std::string& complaint, History& history);

  const LoadShape shape_;
  const Nanos began_ns_;
  std::int64_t checks_each_ = 0;
  std::int64_t planned_ = 0;
  std::atomic<std::int64_t> ended_{0};
  mutable std::mutex mutex_;  ///< for history_ and complaints_: written once per thread, or rarely
  mutable std::condition_variable_any progress_;
  History history_;
  std::vector<std::string> complaints_;
  std::vector<std::jthread> threads_;  ///< last: they use all of the above
};

}  // namespace weir::test
