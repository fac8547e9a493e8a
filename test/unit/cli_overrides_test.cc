// Goal: every flag of `serve` sets its own member and nothing else, in the file's notation, and
// says which flag is wrong.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "src/cli/overrides.h"

namespace weir::cli {
namespace {

using config::NodeConfig;

NodeConfig with(const std::string& flag, const std::string& value) {
  NodeConfig config;
  const Status applied = apply_override(config, flag, value);
  EXPECT_TRUE(applied) << flag << " " << value;
  return config;
}

TEST(Overrides, EachFlagSetsItsOwnMember) {
  const std::map<std::string, std::pair<std::string, std::function<void(NodeConfig&)>>> cases{
      {"--policy", {"p.yaml", [](NodeConfig& c) { c.policy = "p.yaml"; }}},
      {"--node", {"eu-9", [](NodeConfig& c) { c.node = "eu-9"; }}},
      {"--region", {"eu", [](NodeConfig& c) { c.region = "eu"; }}},
      {"--role",
       {"edge",
        [](NodeConfig& c) {
          c.roles = {true, false};
        }}},
      {"--http",
       {"127.0.0.1:0",
        [](NodeConfig& c) {
          c.listen.http = Endpoint{"127.0.0.1", 0};
        }}},
      {"--admin",
       {"[::1]:5",
        [](NodeConfig& c) {
          c.listen.admin = Endpoint{"::1", 5};
        }}},
      {"--cluster", {"none", [](NodeConfig& c) { c.listen.cluster.reset(); }}},
      {"--probe",
       {"0.0.0.0:8",
        [](NodeConfig& c) {
          c.listen.probe = Endpoint{"0.0.0.0", 8};
        }}},
      {"--data", {"/d", [](NodeConfig& c) { c.data = "/d"; }}},
      {"--topology", {"t", [](NodeConfig& c) { c.topology = "t"; }}},
      {"--authority", {"memory", [](NodeConfig& c) { c.authority = config::Authority::memory; }}},
      {"--lease-ttl", {"7s", [](NodeConfig& c) { c.lease_ttl_ns = 7 * kSecond; }}},
      {"--wait", {"80ms", [](NodeConfig& c) { c.wait_ns = 80 * kMillisecond; }}},
      {"--expected-edges", {"12", [](NodeConfig& c) { c.expected_edges = 12; }}},
      {"--max-clock-error", {"1m", [](NodeConfig& c) { c.max_clock_error_ns = kMinute; }}},
      {"--clock-slew", {"8.3%", [](NodeConfig& c) { c.clock_slew_permille = 83; }}},
      {"--fsync", {"false", [](NodeConfig& c) { c.fsync = false; }}},
      {"--headers", {"legacy", [](NodeConfig& c) { c.headers = config::HeaderStyle::legacy; }}},
      {"--log-level", {"debug", [](NodeConfig& c) { c.log.level = config::LogLevel::debug; }}},
      {"--log-format", {"json", [](NodeConfig& c) { c.log.format = config::LogFormat::json; }}},
      {"--chaos", {"true", [](NodeConfig& c) { c.chaos = true; }}},
      {"--insecure", {"true", [](NodeConfig& c) { c.insecure = true; }}},
  };
  for (const auto& [flag, expected] : cases) {
    NodeConfig wanted;
    expected.second(wanted);
    EXPECT_EQ(with(flag, expected.first), wanted) << flag;
    EXPECT_NE(wanted, NodeConfig{}) << flag;
  }
}

TEST(Overrides, RolesComeInAnyOrder) {
  EXPECT_EQ(with("--role", "owner,edge").roles, (config::Roles{true, true}));
  EXPECT_EQ(with("--role", "owner").roles, (config::Roles{false, true}));
}

TEST(Overrides, RefuseWithTheFlagAndLeaveTheMember) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"--role", ""},       {"--role", "edge,"},       {"--role", "edge,edge"},
      {"--role", "relay"},  {"--http", "127.0.0.1"},   {"--authority", "disk"},
      {"--lease-ttl", "5"}, {"--expected-edges", "0"}, {"--expected-edges", "010"},
      {"--fsync", "yes"},   {"--clock-slew", "10"},    {"--log-level", "INFO"},
      {"--policy", ""},     {"--node", "a b"},         {"--max-clock-error", "-1s"}};
  for (const auto& [flag, value] : wrong) {
    NodeConfig config;
    const Status applied = apply_override(config, flag, value);
    ASSERT_FALSE(applied) << flag << " `" << value << "`";
    EXPECT_EQ(applied.error().field, flag);
    EXPECT_FALSE(applied.error().message.empty());
    EXPECT_EQ(config, NodeConfig{}) << flag;
  }
}

TEST(Overrides, RefuseAnUnknownFlag) {
  NodeConfig config;
  EXPECT_FALSE(apply_override(config, "--polic", "x"));
}

}  // namespace
}  // namespace weir::cli
