// Goal: a node that is told to stop finishes what it has begun and gives back what it holds; the
// program tells scripts what they need to know.
// Method: real processes, SIGTERM, and exact counts before and after.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "src/cli/process.h"
#include "test/integration/fixture.h"

namespace weir::test {
namespace {

using Drain = ClusterTest;
using Program = ClusterTest;

constexpr Nanos kStopNs = 10 * kSecond;  // API.md: SIGTERM stops within 10 s

/// The quota that is used up in one go, so that what a restart finds missing would show.
constexpr const char* kThousand =
    "version: 1\nlimits:\n"
    "  - {name: api, scope: global, rate: 1/h, burst: 1000, on_unreachable: deny}\n";

std::int64_t spend_some(const std::vector<Endpoint>& nodes) {
  LoadShape shape;
  shape.nodes = nodes;
  shape.checks = 300;
  const Tally counts = tally(Load(shape).finish());
  EXPECT_EQ(counts.allowed, 300) << to_string(counts);
  return counts.allowed;
}

TEST_F(Drain, ReturnsLeasesToANodeThatStartsAgain) {
  ASSERT_NO_FATAL_FAILURE(start(1, 1, kThousand, patient_node()));
  const std::int64_t spent = spend_some(http());
  const std::string name = node(0).name;
  ASSERT_TRUE(cluster_->kill(name, SIGTERM));
  ASSERT_TRUE(cluster_->wait_for_exit(name, kStopNs));
  for (const auto& death : cluster_->take_deaths()) EXPECT_EQ(death.how, "exit status 0");
  ASSERT_TRUE(cluster_->restart(name));
  EXPECT_EQ(check(node(0).http, "acme", 1001 - spent).status, 429);
  EXPECT_EQ(check(node(0).http, "acme", 1000 - spent).status, 200);
}

TEST_F(Drain, ReturnsLeasesToAnOwnerElsewhere) {
  ASSERT_NO_FATAL_FAILURE(start(2, 2, kThousand, patient_node()));
  const std::int64_t spent = spend_some({node(1).http});
  ASSERT_TRUE(cluster_->kill(node(1).name, SIGTERM));
  ASSERT_TRUE(cluster_->wait_for_exit(node(1).name, kStopNs));
  for (const auto& death : cluster_->take_deaths()) EXPECT_EQ(death.how, "exit status 0");
  EXPECT_EQ(check(node(0).http, "acme", 1001 - spent).status, 429);
  EXPECT_EQ(check(node(0).http, "acme", 1000 - spent).status, 200);
}

TEST_F(Drain, AnswersWhatIsWaiting) {
  // The only owner is paused, so the check at the edge waits for it; then the edge is told to stop.
  ASSERT_NO_FATAL_FAILURE(start(2, 2, kThousand, patient_node()));
  const cli::LocalNode& edge = node(1);
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGSTOP));
  Answer answer;
  std::jthread client([&] { answer = check(edge.http, "acme"); });
  const bool waiting = eventually([&] {
    const auto now = status(edge);
    return now.contains("waiting_checks") && now.at("waiting_checks").to_number<int>() == 1;
  });
  EXPECT_TRUE(waiting);
  EXPECT_TRUE(cluster_->kill(edge.name, SIGTERM));
  client.join();
  EXPECT_EQ(answer.status, 429) << answer.text;
  EXPECT_TRUE(cluster_->wait_for_exit(edge.name, kStopNs));
  EXPECT_TRUE(cluster_->kill(node(0).name, SIGCONT));
}

struct Ran {
  std::string status;
  std::string output;
};

TEST_F(Program, ChecksSayYesNoAndNobodyThere) {
  ASSERT_NO_FATAL_FAILURE(
      start(1, 1, "version: 1\nlimits:\n  - {name: api, scope: global, rate: 1/h, burst: 1}\n",
            patient_node()));
  const auto run = [this](const std::string& log) {
    Ran ran;
    const auto child =
        cli::spawn_process({WEIR_PROGRAM,
                            {"check", "acme", "--target", "http://" + to_string(node(0).http)},
                            path(log)});
    if (!child) return ran;
    ::close(child->ready_fd);
    int wait_status = 0;
    ::waitpid(child->pid, &wait_status, 0);
    ran.status = cli::describe_wait_status(wait_status);
    std::ifstream text(path(log));
    ran.output = {std::istreambuf_iterator<char>(text), {}};
    return ran;
  };
  const Ran yes = run("yes");
  EXPECT_EQ(yes.status, "exit status 0") << yes.output;
  const Ran no = run("no");
  EXPECT_EQ(no.status, "exit status 1") << no.output;
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGKILL));
  const Ran nobody = run("nobody");
  EXPECT_EQ(nobody.status, "exit status 3") << nobody.output;
}

TEST_F(Program, ClusterUpPrintsOneLineThatScriptsCanUse) {
  const auto child = cli::spawn_process(
      {WEIR_PROGRAM, {"cluster", "up", "--regions", "2", "--nodes", "5", "--json"}, path("out")});
  ASSERT_TRUE(child) << child.error().message;
  ::close(child->ready_fd);
  std::string line;
  const bool printed = eventually([&] {
    std::ifstream out(path("out"));
    return static_cast<bool>(std::getline(out, line)) && !out.eof();
  });
  EXPECT_TRUE(printed) << line;
  boost::system::error_code error;
  const auto document = boost::json::parse(line, error);
  std::vector<pid_t> pids;
  std::set<std::string> regions;
  if (!error && document.is_object()) {
    for (const auto& each : document.at("nodes").as_array()) {
      EXPECT_FALSE(each.at("name").as_string().empty());
      EXPECT_FALSE(each.at("zone").as_string().empty());
      EXPECT_FALSE(each.at("data").as_string().empty());
      regions.emplace(each.at("region").as_string());
      pids.push_back(each.at("pid").to_number<pid_t>());
      for (const char* address : {"http", "admin"}) {
        const auto url =
            net::parse_url("http://" + std::string(each.at(address).as_string()) + "/");
        ASSERT_TRUE(url) << address;
        const bool admin = std::string_view(address) == "admin";
        // The first check asks the owner, which a busy machine may not let answer within `wait`.
        Answer answer;
        EXPECT_TRUE(eventually([&] {
          answer = ask(url->endpoint, "GET", admin ? "/readyz" : "/v1/check?customer=a");
          return answer.status == 200;
        })) << address
            << " " << answer.text;
      }
    }
  }
  EXPECT_EQ(pids.size(), 5U) << line;
  EXPECT_EQ(regions, (std::set<std::string>{"eu", "us"}));
  ::kill(child->pid, SIGTERM);
  int wait_status = 0;
  ASSERT_EQ(::waitpid(child->pid, &wait_status, 0), child->pid);
  EXPECT_EQ(cli::describe_wait_status(wait_status), "exit status 0");
  for (const pid_t pid : pids) EXPECT_NE(::kill(pid, 0), 0) << pid << " still runs";
}

}  // namespace
}  // namespace weir::test
