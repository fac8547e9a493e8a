#include "test/integration/fixture.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include "src/cli/process.h"

namespace weir::test {
namespace json = boost::json;

bool long_run() { return std::getenv("WEIR_LONG") != nullptr; }

bool instrumented() {
#ifdef __SANITIZE_ADDRESS__
  return true;
#else
  return false;
#endif
}

std::vector<std::string> quick_disk() {
  return long_run() ? std::vector<std::string>{} : std::vector<std::string>{"fsync: false"};
}

std::vector<std::string> patient_node() {
  std::vector<std::string> lines = quick_disk();
  lines.emplace_back("wait: 2s");
  return lines;
}

void ClusterTest::TearDown() {
  if (cluster_ != nullptr) expect_no_deaths();
  if (HasFailure() && cluster_ != nullptr) {
    for (const cli::LocalNode& each : cluster_->nodes()) {
      std::ifstream log(each.log);
      std::cout << "--- log of " << each.name << "\n" << log.rdbuf() << "\n";
    }
  }
  cluster_.reset();
}

OneMore::OneMore(cli::LocalNode node, const std::string& yaml) : node_(std::move(node)) {
  std::ofstream(node_.config) << yaml;
  const auto started =
      cli::spawn_process({WEIR_PROGRAM, {"serve", "--config", node_.config}, node_.log});
  EXPECT_TRUE(started.has_value());
  if (!started) return;
  node_.pid = started->pid;
  close(started->ready_fd);
}

OneMore::~OneMore() {
  if (node_.pid == 0) return;
  kill(node_.pid, SIGKILL);
  waitpid(node_.pid, nullptr, 0);
}

void OneMore::stop() {
  ASSERT_EQ(kill(node_.pid, SIGTERM), 0);
  waitpid(node_.pid, nullptr, 0);
  node_.pid = 0;
}

cli::LocalNode ClusterTest::further(const std::string& name, const std::string& region,
                                    bool owner) {
  for (int i = 0; i < 3; ++i) {
    auto port = cli::PortReservation::any(random_);
    EXPECT_TRUE(port.has_value());
    ports_.push_back(*std::move(port));
  }
  const auto endpoint = [this](std::size_t from_end) {
    return Endpoint{"127.0.0.1", ports_[ports_.size() - from_end].port()};
  };
  return {name,
          region,
          "z",
          owner,
          endpoint(3),
          endpoint(2),
          endpoint(1),
          path(name + ".yaml"),
          path(name),
          path(name + ".log"),
          0};
}

void ClusterTest::start(int regions, int nodes, const std::string& policy,
                        std::vector<std::string> node_lines) {
  cli::ClusterShape shape;
  shape.regions = regions;
  shape.nodes = nodes;
  shape.relays = relays_;
  shape.policy = policy;
  shape.node_lines = std::move(node_lines);
  start(std::move(shape));
}

void ClusterTest::start(cli::ClusterShape shape) {
  write_policy(shape.policy);
  shape.policy = path("policy.yaml");
  shape.data = path("cluster");
  shape.executable = WEIR_PROGRAM;
  shape.chaos = true;
  auto started = cli::LocalCluster::start(std::move(shape));
  ASSERT_TRUE(started) << started.error().message;
  cluster_ = *std::move(started);
}

void ClusterTest::write_policy(const std::string& text) const {
  // Replaced as a whole: a node must not read half a file.
  std::ofstream(path("policy.new")) << text;
  std::filesystem::rename(path("policy.new"), path("policy.yaml"));
}

void ClusterTest::reload(const std::string& text, std::int64_t version) {
  write_policy(text);
  for (const cli::LocalNode& each : cluster_->nodes()) {
    ASSERT_TRUE(cluster_->kill(each.name, SIGHUP));
  }
  for (const cli::LocalNode& each : cluster_->nodes()) {
    const bool shown = eventually([&] {
      const json::object now = status(each);
      const json::value* policy = now.if_contains("policy");
      if (policy == nullptr) return false;
      const bool refused = !policy->at("last_error").is_null();
      return version == 0 ? refused
                          : !refused && policy->at("version").to_number<std::int64_t>() == version;
    });
    ASSERT_TRUE(shown) << each.name << " does not show version " << version << ": "
                       << json::serialize(status(each));
  }
}

void ClusterTest::spend(const Endpoint& node, const std::string& customer,
                        const Attributes& attributes, int times) const {
  for (int i = 0; i < times; ++i) {
    Answer answer;
    ASSERT_TRUE(eventually([&] {
      answer = check(node, customer, 1, attributes);
      return answer.allowed();
    })) << answer.text;
  }
}

std::vector<Endpoint> ClusterTest::http() const {
  std::vector<Endpoint> endpoints;
  for (const cli::LocalNode& each : cluster_->nodes()) endpoints.push_back(each.http);
  return endpoints;
}

json::object ClusterTest::status(const cli::LocalNode& node) const {
  return ask(node.admin, "GET", "/v1/status").json;
}

std::string ClusterTest::owner_of(const std::string& customer) const {
  return ask(node(0).admin, "GET", "/v1/owners/" + customer).word("node");
}

double ClusterTest::metric_of_all(std::string_view name, std::string_view label) const {
  double sum = 0;
  for (const cli::LocalNode& each : cluster_->nodes()) sum += metric(each.admin, name, label);
  return sum;
}

void ClusterTest::expect_no_deaths() {
  for (const cli::NodeDeath& death : cluster_->take_deaths()) {
    EXPECT_TRUE(death.expected) << death.node << ": " << death.how;
  }
}

void ClusterTest::expect_bound(const History& history, const LimitNumbers& limit,
                               const std::string& what) {
  const auto breach = find_breach(history, limit);
  EXPECT_FALSE(breach) << what << ": " << to_string(*breach);
  std::cout << what << ": " << to_string(tally(history)) << " in "
            << span_ns(history) / kMillisecond << " ms; use of the quota "
            << use_of_quota_permille(history, limit) << " permille\n";
}

void ClusterTest::expect_use(const History& history, const LimitNumbers& limit,
                             std::int64_t permille_in_a_long_run) {
  constexpr std::int64_t kQuickPermille = 850;
  constexpr std::int64_t kBusyPermille = 20;  ///< checks that found no answer in time
  const Tally sum = tally(history);
  const bool busy =
      sum.timed_out * 1000 > kBusyPermille * static_cast<std::int64_t>(history.size());
  if (!long_run() && (instrumented() || busy || sum.degraded > 0)) return;
  EXPECT_EQ(tally(history).degraded, 0);
  EXPECT_GE(use_of_quota_permille(history, limit),
            long_run() ? permille_in_a_long_run : kQuickPermille);
}

}  // namespace weir::test
