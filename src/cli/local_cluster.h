// A cluster of real `weir serve` processes on loopback, for `weir cluster up`, for integration
// tests and for chaos: writes the files, spawns, waits until all is ready, kills and restarts on
// request, and stops what it started.
//
// Thread rule: one thread at a time. The children die with the *thread* that started them (that is
// how PR_SET_PDEATHSIG counts), so start them from one that lives as long as the cluster.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/cli/cluster_files.h"
#include "src/cli/ports.h"

namespace weir::cli {

/// How long all nodes may take until they are ready and see each other.
inline constexpr Nanos kClusterReadyNs = 30 * kSecond;
/// From SIGTERM to SIGKILL: longer than a node takes at most to drain.
inline constexpr Nanos kClusterStopNs = 12 * kSecond;

struct ClusterShape {
  int regions = 2;
  int nodes = 5;
  int relays = 0;          ///< see plan_nodes
  std::string policy;      ///< path; empty: a sample is written into the folder
  std::string data;        ///< folder, made when absent; empty: a temporary one
  std::string executable;  ///< the `weir` program; empty: the running one
  bool chaos = false;
  bool spread = false;                   ///< one replica in each of three regions
  std::vector<RegionLatency> latencies;  ///< need `chaos`
  /// Further lines of every node.yaml, for tests: `wait: 80ms`.
  std::vector<std::string> node_lines;
  /// Asked while `start` waits: true ends the start. May be empty.
  std::function<bool()> give_up;
};

/// A child that is gone.
struct NodeDeath {
  std::string node;
  std::string how;        ///< `killed by signal 9`, `exit status 1`
  bool expected = false;  ///< asked for by `kill` or `stop`
};

class LocalCluster {
 public:
  /// Starts every node and returns once all are ready and connected. On failure everything started
  /// is stopped again; the folder stays, and the error says which log to read.
  static Result<std::unique_ptr<LocalCluster>> start(ClusterShape shape);
  /// Kills what still runs, at once.
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  const std::vector<LocalNode>& nodes() const { return nodes_; }
  const LocalNode* find(std::string_view name) const;
  const std::string& folder() const { return folder_; }
  const std::string& policy() const { return policy_; }

  /// Sends a signal to a node. For SIGKILL, returns when the process is gone; for SIGSTOP, when all
  /// of its threads stand; for others see `wait_for_exit`.
  Status kill(std::string_view name, int signal);
  /// Waits until a node's process is gone; `unavailable` when it is still there after `timeout_ns`.
  Status wait_for_exit(std::string_view name, Nanos timeout_ns);
  /// Starts a node that is gone with the same files and addresses, and returns once it is ready.
  Status restart(std::string_view name);

  /// Children that are gone since the last call.
  std::vector<NodeDeath> take_deaths();

  /// SIGTERM to all, SIGKILL to what is left after kClusterStopNs. A temporary folder goes with the
  /// object.
  void stop();

 private:
  struct Child {
    pid_t pid = 0;
    int ready_fd = -1;  ///< open until its line has been read
    std::string line;   ///< what has been read of it
    bool kill_expected = false;
  };

  explicit LocalCluster(ClusterShape shape) : shape_(std::move(shape)) {}
  Status prepare();
  Status choose_ports();
  Status write_files();
  Status spawn(std::size_t index);
  Status wait_until_ready(std::vector<std::size_t> indices, Nanos deadline_ns);
  Status wait_until_connected(Nanos deadline_ns);
  Status wait_until_owned(Nanos deadline_ns);
  Status check_given_up() const;
  void reap();
  void forget(std::size_t index, int wait_status);
  std::optional<std::size_t> index_of(std::string_view name) const;

  ClusterShape shape_;
  std::string folder_;
  std::string policy_;
  bool temporary_ = false;
  bool keep_folder_ = false;
  std::vector<LocalNode> nodes_;
  std::vector<Child> children_;  ///< by the same index as nodes_
  std::vector<NodeDeath> deaths_;
  std::vector<PortReservation> ports_;  ///< three for each node, held as long as the cluster
};

}  // namespace weir::cli
