// A fixture with a cluster of real processes and a policy file of its own, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/base/time.h"
#include "src/cli/local_cluster.h"
#include "src/cli/ports.h"
#include "test/support/bound.h"
#include "test/support/history.h"
#include "test/support/load.h"
#include "test/support/node_client.h"
#include "test/support/temporary_folder.h"

namespace weir::test {

/// What the tests under load use unless they say otherwise, and the policy that states it.
inline constexpr LimitNumbers kUsualLimit{100, 200, kSecond};
inline constexpr const char* kUsualPolicy =
    "version: 1\nlimits:\n  - {name: api, scope: global, rate: 200/s, burst: 100, "
    "on_unreachable: deny}\n";

/// True when WEIR_LONG is set: the lengths that the issue asks for instead of those of a quick run.
bool long_run();
/// True under AddressSanitizer, whose memory and pace say nothing about Weir's.
bool instrumented();

/// Lines of node.yaml for tests of how much of a quota is used: in a quick run, beside other tests
/// and compilers, a disk that takes half a second to sync says nothing about Weir. What a process
/// has written outlives its kill either way.
std::vector<std::string> quick_disk();
/// The same for tests of exact counts, where in addition an owner's answer that takes longer than
/// the usual 50 ms must not turn into a denial.
std::vector<std::string> patient_node();

/// A node beside the cluster that a test starts by itself.
class OneMore {
 public:
  OneMore(cli::LocalNode node, const std::string& yaml);
  ~OneMore();
  OneMore(const OneMore&) = delete;
  OneMore& operator=(const OneMore&) = delete;
  const cli::LocalNode& node() const { return node_; }
  /// SIGTERM, and waits for its end.
  void stop();

 private:
  cli::LocalNode node_;
};

class ClusterTest : public testing::Test {
 protected:
  void TearDown() override;

  /// Starts `nodes` nodes in `regions` regions under `policy`, with chaos allowed. `node_lines` as
  /// in ClusterShape. Use inside ASSERT_NO_FATAL_FAILURE.
  void start(int regions, int nodes, const std::string& policy,
             std::vector<std::string> node_lines = {});
  /// The same for any shape; its `policy` is a text.
  void start(cli::ClusterShape shape);
  void write_policy(const std::string& text) const;
  /// Rewrites the policy and has every node re-read it; returns once each shows `version` in its
  /// status, or, for version 0, a reload error.
  void reload(const std::string& text, std::int64_t version);

  /// Has `customer` admitted so often at a node, however busy the machine. Use inside
  /// ASSERT_NO_FATAL_FAILURE.
  void spend(const Endpoint& node, const std::string& customer, const Attributes& attributes,
             int times) const;

  const cli::LocalNode& node(std::size_t index) const { return cluster_->nodes().at(index); }
  std::vector<Endpoint> http() const;
  /// /v1/status of a node; empty when it does not answer.
  boost::json::object status(const cli::LocalNode& node) const;
  /// /v1/owners/CUSTOMER, as node 0 sees it.
  std::string owner_of(const std::string& customer) const;
  /// Sum over all nodes, see `metric`.
  double metric_of_all(std::string_view name, std::string_view label = "") const;
  /// Nothing that should live has died. Called by TearDown as well.
  void expect_no_deaths();
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// A node with free ports and files of its own, for OneMore.
  cli::LocalNode further(const std::string& name, const std::string& region, bool owner);

  /// Shows the tally and the use of quota, and expects that the bound held.
  static void expect_bound(const History& history, const LimitNumbers& limit,
                           const std::string& what);
  /// Expects that so much of the quota was used: the figure of the issue in a long run, which wants
  /// a machine for itself. A quick run wants less, and nothing of a machine so busy that an owner
  /// was silent for half a second, or that one check in fifty had no answer in time.
  static void expect_use(const History& history, const LimitNumbers& limit,
                         std::int64_t permille_in_a_long_run);

  int relays_ = 0;  ///< ClusterShape::relays, before `start`
  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.string();
  std::unique_ptr<cli::LocalCluster> cluster_;

 private:
  Random random_{static_cast<std::uint64_t>(getpid())};
  std::vector<cli::PortReservation> ports_;
};

}  // namespace weir::test
