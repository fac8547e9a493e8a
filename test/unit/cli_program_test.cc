// Goal: the program keeps its contract with scripts: exit statuses, what goes to stdout and stderr,
// and that a flag beats the environment, which beats the file.
// Method: run the real binary; a node that is needed runs on ports of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "src/cli/exit_status.h"
#include "test/support/certificates.h"
#include "test/support/temporary_folder.h"

namespace weir::cli {
namespace {

struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

constexpr const char* kPolicy =
    "version: 12\n"
    "limits:\n"
    "  - {name: api, scope: global, rate: 2/h, burst: 2}\n"
    "  - {name: login, match: {route: \"POST /login\"}, scope: node, rate: 5/min}\n";

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override { write("policy.yaml", kPolicy); }
  void TearDown() override {
    if (node_ > 0) {
      ::kill(node_, SIGKILL);
      ::waitpid(node_, nullptr, 0);
    }
    if (ready_fd_ >= 0) ::close(ready_fd_);
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Starts the program with stdout and stderr in files. `environment` are NAME=value.
  pid_t start(std::vector<std::string> arguments, std::vector<std::string> environment) const {
    arguments.insert(arguments.begin(), WEIR_PROGRAM);
    environment.push_back("PATH=/usr/bin:/bin");
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<char*> envp;
    for (auto& variable : environment) envp.push_back(variable.data());
    envp.push_back(nullptr);
    const std::string out = path("out");
    const std::string err = path("err");
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    ::dup2(::open(out.c_str(), flags, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), flags, 0600), STDERR_FILENO);
    ::execve(WEIR_PROGRAM, argv.data(), envp.data());
    ::_exit(127);
  }

  Outcome run(std::vector<std::string> arguments, std::vector<std::string> environment = {}) const {
    const pid_t pid = start(std::move(arguments), std::move(environment));
    int wait_status = 0;
    ::waitpid(pid, &wait_status, 0);
    return {WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1, read("out"), read("err")};
  }

  /// A node that serves; `http_` and `admin_` are its addresses.
  void serve(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    std::array<int, 2> fds{};
    ASSERT_EQ(::pipe(fds.data()), 0);
    ::fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    for (const char* argument : {"--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data"}) {
      arguments.emplace_back(argument);
    }
    arguments.push_back(path("data"));
    arguments.emplace_back("--ready-fd");
    arguments.push_back(std::to_string(fds[1]));
    arguments.insert(arguments.begin(), "serve");
    node_ = start(std::move(arguments), std::move(environment));
    ::close(fds[1]);
    ready_fd_ = fds[0];
    std::string line;
    std::array<char, 256> buffer{};
    for (ssize_t size = 0; (size = ::read(ready_fd_, buffer.data(), buffer.size())) > 0;) {
      line.append(buffer.data(), static_cast<std::size_t>(size));
    }
    ASSERT_FALSE(line.empty()) << read("err");
    ready_ = boost::json::parse(line).as_object();
    http_ = ready_["http"].as_string().c_str();
    admin_ = ready_["admin"].as_string().c_str();
  }

  int stop(int signal) {
    ::kill(node_, signal);
    int wait_status = 0;
    ::waitpid(node_, &wait_status, 0);
    node_ = 0;
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
  }

  const weir::test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.string();
  pid_t node_ = 0;
  int ready_fd_ = -1;
  boost::json::object ready_;
  std::string http_;
  std::string admin_;
};

TEST_F(ProgramTest, HelpAndVersionAreFine) {
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.status, kFine);
  EXPECT_TRUE(version.out.starts_with("weir ")) << version.out;
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{},
                                             {"serve"},
                                             {"validate"},
                                             {"check"},
                                             {"explain"},
                                             {"status"},
                                             {"top"},
                                             {"cluster", "up"}}) {
    auto arguments = command;
    arguments.emplace_back("--help");
    const Outcome help = run(arguments);
    EXPECT_EQ(help.status, kFine);
    EXPECT_NE(help.out.find("xample"), std::string::npos) << help.out;
    EXPECT_EQ(help.err, "");
  }
}

TEST_F(ProgramTest, WrongUsageIsTwoAndSaysWhatIsWrong) {
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"sreve"},
      {"serve"},
      {"serve", "--policy"},
      {"serve", "--policy", path("policy.yaml"), "--lease-ttl", "5"},
      {"serve", "--policy", path("policy.yaml"), "--authority", "redis"},
      {"serve", "--policy", path("policy.yaml"), "--admin", "0.0.0.0:0"},
      {"serve", "--policy", path("absent.yaml"), "--http", "127.0.0.1:0"},
      {"validate"},
      {"check"},
      {"check", "acme", "--cost", "x"},
      {"check", "acme", "-a", "route"},
      {"check", "acme", "--target", "ftp://127.0.0.1:1"},
      {"explain", "acme", "--cost", "-1"},
      {"top", "--interval", "5"},
      {"top", "--interval", "0s"},
      {"top", "--count", "0"},
      {"top", "--rows", "21"},
      {"cluster"},
      {"cluster", "up", "--regions", "9"},
      {"cluster", "up", "--regions", "4", "--nodes", "3"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, kWrongUsage) << testing::PrintToString(arguments) << outcome.err;
    EXPECT_NE(outcome.err, "") << testing::PrintToString(arguments);
  }
}

TEST_F(ProgramTest, NobodyThereIsThree) {
  // Port 1 is nobody's: root alone could listen there.
  EXPECT_EQ(run({"check", "acme", "--target", "http://127.0.0.1:1"}).status, kUnreachable);
  EXPECT_EQ(run({"explain", "acme", "--admin", "127.0.0.1:1"}).status, kUnreachable);
  EXPECT_EQ(run({"top"}, {"WEIR_ADMIN=127.0.0.1:1"}).status, kUnreachable);
  const Outcome status = run({"status"}, {"WEIR_ADMIN=http://127.0.0.1:1"});
  EXPECT_EQ(status.status, kUnreachable);
  EXPECT_NE(status.err.find("127.0.0.1:1"), std::string::npos) << status.err;
}

TEST_F(ProgramTest, ValidateSaysFineOrWhere) {
  const Outcome fine = run({"validate", path("policy.yaml")});
  EXPECT_EQ(fine.status, kFine);
  EXPECT_EQ(fine.out, path("policy.yaml") + ": fine (policy, version 12, 2 limits)\n");

  write("bad.yaml", "version: 1\nlimits:\n  - {name: api, scope: globl, rate: 2/h}\n");
  const Outcome bad = run({"validate", path("policy.yaml"), path("bad.yaml")});
  EXPECT_EQ(bad.status, kNo);
  EXPECT_NE(bad.out.find(path("bad.yaml") + ":3:"), std::string::npos) << bad.out;
  EXPECT_NE(bad.out.find("policy.yaml: fine"), std::string::npos);

  const Outcome json = run({"validate", path("bad.yaml")}, {"WEIR_JSON=1"});
  EXPECT_EQ(json.status, kNo);
  const auto report = boost::json::parse(json.out).as_object();
  EXPECT_FALSE(report.at("valid").as_bool());
  EXPECT_EQ(report.at("errors").as_array().at(0).at("line").as_int64(), 3);
}

TEST_F(ProgramTest, AWrongVariableOfAnotherCommandIsNoMatter) {
  EXPECT_EQ(run({"validate", path("policy.yaml")}, {"WEIR_NODES=many", "WEIR_COST=x"}).status,
            kFine);
  EXPECT_EQ(run({"check", "acme", "--target", "127.0.0.1:1"}, {"WEIR_COST=x"}).status, kWrongUsage);
}

TEST_F(ProgramTest, FlagBeatsEnvironmentBeatsFile) {
  write("node.yaml", "node: from-file\nregion: file-region\npolicy: policy.yaml\nwait: 70ms\n");
  serve({"--config", path("node.yaml"), "--node", "from-flag"},
        {"WEIR_NODE=from-environment", "WEIR_REGION=environment-region"});
  const Outcome status = run({"status", "--json"}, {"WEIR_ADMIN=" + admin_});
  ASSERT_EQ(status.status, kFine) << status.err;
  const auto document = boost::json::parse(status.out).as_object();
  EXPECT_EQ(document.at("node").as_string(), "from-flag");
  EXPECT_EQ(document.at("region").as_string(), "environment-region");
  EXPECT_EQ(document.at("policy").at("path").as_string(), path("policy.yaml").c_str());
}

TEST_F(ProgramTest, CheckExplainAndStatusAgree) {
  // A busy machine's disk must not turn an answer into a denial.
  serve({"--policy", path("policy.yaml"), "--wait", "5s", "--fsync", "false"});
  const std::string target = "--target=http://" + http_;
  const std::string admin = "--admin=http://" + admin_;
  EXPECT_EQ(run({"check", "acme", target}).status, kFine);
  const Outcome second = run({"check", "acme", target, "--json"});
  EXPECT_EQ(second.status, kFine);
  EXPECT_EQ(boost::json::parse(second.out).at("remaining").as_int64(), 0);
  const Outcome third = run({"check", "acme", target});
  EXPECT_EQ(third.status, kNo);
  EXPECT_TRUE(third.out.starts_with("denied  acme")) << third.out;

  const Outcome denied = run({"explain", "acme", admin});
  EXPECT_EQ(denied.status, kNo) << denied.out << denied.err;
  EXPECT_NE(denied.out.find("would be denied"), std::string::npos) << denied.out;
  EXPECT_NE(denied.out.find("login"), std::string::npos) << "names what does not match";
  EXPECT_EQ(run({"explain", "other", admin}).status, kFine);
  EXPECT_EQ(run({"explain", "other", "--cost", "3", admin}).status, kNo) << "it never fits";
  EXPECT_EQ(run({"check", "other", target, "--cost", "2"}).status, kFine) << "explain took nothing";
  EXPECT_EQ(run({"check", "other", target, "--cost=-1"}).status, kFine);

  const Outcome status = run({"status", admin});
  EXPECT_EQ(status.status, kFine) << status.err;
  EXPECT_NE(status.out.find("version 12, 2 limits"), std::string::npos) << status.out;
  EXPECT_EQ(run({"check", std::string(2000, 'x'), target}).status, kWrongUsage);
  EXPECT_EQ(run({"check", "acme", "--target=http://" + admin_}).status, kWrongUsage)
      << "wrong port";
}

TEST_F(ProgramTest, TopShowsWhoAsksAndWhoIsDenied) {
  serve({"--policy", path("policy.yaml"), "--wait", "5s", "--fsync", "false"});
  const std::string target = "--target=http://" + http_;
  const std::string admin = "--admin=http://" + admin_;
  const Outcome idle = run({"top", "--count", "2", "--interval", "100ms", admin});
  EXPECT_EQ(idle.status, kFine) << idle.err;
  EXPECT_NE(idle.out.find("Nobody asks."), idle.out.rfind("Nobody asks.")) << "two tables";
  EXPECT_EQ(idle.out.find('\x1b'), std::string::npos) << "a file is no terminal";

  // Asked until the node has told it, which it does once a second.
  boost::json::object top;
  const auto listed = [&top](const char* list) {
    return top.contains(list) ? top.at(list).as_array() : boost::json::array();
  };
  for (int i = 0; i < 1000 && listed("denied").empty(); ++i) {
    run({"check", "acme", target});
    const Outcome once = run({"top", admin}, {"WEIR_ONCE=1", "WEIR_JSON=1"});
    ASSERT_EQ(once.status, kFine) << once.err;
    top = boost::json::parse(once.out).as_object();
  }
  ASSERT_FALSE(listed("denied").empty());
  EXPECT_EQ(listed("denied").at(0).at("customer").as_string(), "acme");
  EXPECT_GE(listed("denied").at(0).at("denied_per_s").to_number<int>(), 1);
  EXPECT_GE(listed("customers").at(0).at("checks_per_s").to_number<int>(), 1);
  EXPECT_EQ(top.at("edges").to_number<int>(), 1);
  EXPECT_EQ(top.at("node"), ready_["node"]);

  const Outcome twice = run({"top", "--count", "2", "--json", admin}, {"WEIR_INTERVAL=100ms"});
  EXPECT_EQ(twice.status, kFine);
  EXPECT_EQ(std::count(twice.out.begin(), twice.out.end(), '\n'), 2) << "a document in each line";
}

TEST_F(ProgramTest, CommandsShowATokenOverTls) {
  const test::TestCa ca(folder_, "own");
  const auto files = ca.issue("server");
  write("check.token", "let-me-check\n");
  write("read.token", "let-me-read\n");
  write("node.yaml",
        "policy: policy.yaml\nwait: 5s\nfsync: false\n"
        "tls: {http: {certificate: server.pem, key: server.key}}\n"
        "tokens: {check: [\"file:check.token\"], read: [\"file:read.token\"]}\n");
  serve({"--config", path("node.yaml")});
  const std::string target = "--target=https://" + http_;
  const std::string admin = "--admin=https://" + admin_;
  const std::string trust = "--ca=" + files.ca;
  EXPECT_EQ(run({"check", "acme", target, trust, "--token-file", path("check.token")},
                {"WEIR_TOKEN=let-me-read"})
                .status,
            kFine)
      << "a flag beats the environment";
  EXPECT_EQ(run({"check", "acme", target, trust}, {"WEIR_TOKEN=let-me-check"}).status, kFine);
  const Outcome missing = run({"check", "acme", target, trust});
  EXPECT_EQ(missing.status, kWrongUsage);
  EXPECT_NE(missing.err.find("answered 401: unauthenticated"), std::string::npos) << missing.err;
  const Outcome wrong = run({"check", "acme", target, trust, "--token=let-me-read"});
  EXPECT_NE(wrong.err.find("answered 403: forbidden"), std::string::npos) << wrong.err;
  const Outcome untrusted = run({"check", "acme", target, "--token=let-me-check"});
  EXPECT_EQ(untrusted.status, kUnreachable);
  EXPECT_NE(untrusted.err.find("certificate verify failed"), std::string::npos) << untrusted.err;
  EXPECT_EQ(run({"status", admin, trust, "--token=let-me-read"}).status, kFine);
  EXPECT_EQ(run({"top", "--once", admin, trust, "--token=let-me-read"}).status, kFine);
  EXPECT_EQ(run({"top", "--once", admin, trust, "--token=let-me-check"}).status, kWrongUsage);
  EXPECT_EQ(run({"explain", "acme", admin, trust, "--token=let-me-read"}).status, kNo)
      << "the two that were let in have taken the quota, and nobody else";
}

TEST_F(ProgramTest, SigtermDrainsAndEndsWell) {
  serve({"--policy", path("policy.yaml"), "--log-format", "json"});
  EXPECT_EQ(stop(SIGTERM), kFine);
}

TEST_F(ProgramTest, ATakenPortIsThree) {
  serve({"--policy", path("policy.yaml")});
  const Outcome second = run({"serve", "--policy", path("policy.yaml"), "--http", http_, "--admin",
                              "127.0.0.1:0", "--authority", "memory"});
  EXPECT_EQ(second.status, kUnreachable) << second.err;
  EXPECT_NE(second.err.find("listen.http"), std::string::npos) << second.err;
}

TEST_F(ProgramTest, TheDataFolderHasOneOwner) {
  serve({"--policy", path("policy.yaml")});
  const Outcome second = run({"serve", "--policy", path("policy.yaml"), "--http", "127.0.0.1:0",
                              "--admin", "127.0.0.1:0", "--data", path("data")});
  EXPECT_EQ(second.status, kUnreachable) << second.err;
  EXPECT_NE(second.err.find(path("data")), std::string::npos) << second.err;
}

}  // namespace
}  // namespace weir::cli
