// Goal: a node's file means what API.md says, each mistake is one error at its place, and what
// flags may mend is left to check_node_config. Method: whole files, tables with one mistake each.
#include "src/config/node_config.h"
#include "src/config/parse.h"
#include "test/unit/config_test_support.h"

namespace weir::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeConfig good(const std::string& text, const std::string& file = "node.yaml") {
  auto parsed = parse_node(text, file);
  EXPECT_TRUE(parsed) << to_string(parsed.errors);
  return parsed ? *parsed.value : NodeConfig{};
}

TEST(ConfigNode, DefaultsAreRightAsTheyStand) {
  EXPECT_TRUE(check_node_config(NodeConfig{}));
  EXPECT_EQ(good("node: eu-1\n").listen, ListenConfig{});
}

TEST(ConfigNode, EveryField) {
  const std::string sum(64, '0');
  const NodeConfig read = good(
      "node: us-7\nregion: us\nrole: [edge]\njoin: [\"10.0.0.1:7070\", owner.example:1]\n"
      "listen: {http: 0.0.0.0:8081, admin: \"[::]:9091\", cluster: 10.0.0.7:0, probe: a:1}\n"
      "data: /var/lib/weir\npolicy: p.yaml\nauthority: redis\n"
      "redis: {url: rediss://cache/3, timeout: 20ms}\nlease: {ttl: 10s}\nwait: 80ms\n"
      "expected_edges: 12\nmax_clock_error: 1s\nclock_slew: 8.3%\nfsync: false\nheaders: legacy\n"
      "customer_header: X-Customer\n"
      "tls: {cluster: {certificate: c.pem, key: c.key, ca: ca.pem},\n"
      "      http: {certificate: h.pem, key: h.key}}\n"
      "tokens: {check: [\"sha256:" +
      sum +
      "\"], read: [\"file:r\"], admin: [\"file:/a\"]}\n"
      "insecure: true\nlog: {level: debug, format: json}\nchaos: true\n"
      "chaos_delay: {us: 40ms}\n");
  EXPECT_EQ(read.node, "us-7");
  EXPECT_EQ(read.region, "us");
  EXPECT_EQ(read.roles, (Roles{true, false}));
  EXPECT_THAT(read.join, ElementsAre(Endpoint{"10.0.0.1", 7070}, Endpoint{"owner.example", 1}));
  EXPECT_EQ(read.listen, (ListenConfig{Endpoint{"0.0.0.0", 8081}, Endpoint{"::", 9091},
                                       Endpoint{"10.0.0.7", 0}, Endpoint{"a", 1}}));
  EXPECT_EQ(read.data, "/var/lib/weir");
  EXPECT_EQ(read.topology, "");
  EXPECT_EQ(read.policy, "p.yaml");
  EXPECT_EQ(read.authority, Authority::redis);
  EXPECT_EQ(read.redis, (RedisConfig{"rediss://cache/3", 20 * kMillisecond}));
  EXPECT_EQ(read.lease_ttl_ns, 10 * kSecond);
  EXPECT_EQ(read.wait_ns, 80 * kMillisecond);
  EXPECT_EQ(read.expected_edges, 12U);
  EXPECT_EQ(read.max_clock_error_ns, kSecond);
  EXPECT_EQ(read.clock_slew_permille, 83);
  EXPECT_FALSE(read.fsync);
  EXPECT_EQ(read.headers, HeaderStyle::legacy);
  EXPECT_EQ(read.customer_header, "X-Customer");
  EXPECT_EQ(read.tls.cluster, (TlsFiles{"c.pem", "c.key", "ca.pem"}));
  EXPECT_EQ(read.tls.http, (TlsFiles{"h.pem", "h.key", ""}));
  EXPECT_THAT(read.tokens.check, ElementsAre("sha256:" + sum));
  EXPECT_THAT(read.tokens.read, ElementsAre("file:r"));
  EXPECT_THAT(read.tokens.admin, ElementsAre("file:/a"));
  EXPECT_TRUE(read.insecure);
  EXPECT_EQ(read.log, (LogConfig{LogLevel::debug, LogFormat::json}));
  EXPECT_TRUE(read.chaos);
  EXPECT_EQ(read.chaos_delay_ns, (std::map<std::string, Nanos>{{"us", 40 * kMillisecond}}));
}

TEST(ConfigNode, NoneTakesAListenerAway) {
  const NodeConfig read = good("role: [owner]\nlisten: {http: none, admin: none}\n");
  EXPECT_FALSE(read.listen.http);
  EXPECT_FALSE(read.listen.admin);
  EXPECT_TRUE(read.listen.cluster);
}

TEST(ConfigNode, RelativePathsAreRelativeToTheFile) {
  const std::string text =
      "data: ./data\ntopology: ../t.yaml\npolicy: /abs/p.yaml\n"
      "tls: {http: {certificate: c.pem, key: k.pem}}\ntokens: {admin: [\"file:token\"]}\n";
  const NodeConfig read = good(text, "/etc/weir/node.yaml");
  EXPECT_EQ(read.data, "/etc/weir/data");
  EXPECT_EQ(read.topology, "/etc/t.yaml");
  EXPECT_EQ(read.policy, "/abs/p.yaml");
  EXPECT_EQ(read.tls.http->certificate, "/etc/weir/c.pem");
  EXPECT_THAT(read.tokens.admin, ElementsAre("file:/etc/weir/token"));
  EXPECT_EQ(good("node: a\n", "/etc/weir/node.yaml").data, "./weir-data");
}

class NodeMistake : public testing::TestWithParam<Mistake> {};

TEST_P(NodeMistake, IsOneErrorAtItsPlace) {
  expect_one_error(GetParam(), parse_node(GetParam().text, "n.yaml"));
}

INSTANTIATE_TEST_SUITE_P(
    Field, NodeMistake,
    testing::Values(
        Mistake{"unknown", "nodes: a\n", 1, 1, "unknown key `nodes`", "`node`"},
        Mistake{"unknown_listener", "listen: {htttp: a:1}\n", 1, 10, "unknown key `htttp`",
                "`http`"},
        Mistake{"duplicate", "chaos: true\nchaos: false\n", 2, 1, "duplicate key `chaos`",
                "line 1"},
        Mistake{"name", "node: eu 1\n", 1, 7, "not a name", "letter or digit"},
        Mistake{"region", "region: \"\"\n", 1, 9, "not a name", "letter or digit"},
        Mistake{"role_word", "role: edge\n", 1, 7, "a plain value where a list", "[edge, owner]"},
        Mistake{"role_unknown", "role: [edge, ownr]\n", 1, 14, "unknown `ownr`", "`owner`"},
        Mistake{"role_twice", "role: [edge, edge, owner]\n", 1, 14, "named twice", "once"},
        Mistake{"role_none", "role: []\n", 1, 7, "no role is left", "[edge, owner]"},
        Mistake{"listen_word", "listen: 8080\n", 1, 9, "a plain value where a map", "{http:"},
        Mistake{"listen_port", "listen: {http: 8080}\n", 1, 16, "has no host", "host:port"},
        Mistake{"listen_list", "listen: {http: [a]}\n", 1, 16, "a list where a single",
                "127.0.0.1"},
        Mistake{"join_port", "role: [edge]\nregion: a\njoin: [\"a:1\", \"b:0\"]\n", 3, 15,
                "no valid port", "from 1"},
        Mistake{"data_empty", "data: \"\"\n", 1, 7, "an empty path", "./weir-data"},
        Mistake{"data_null", "data:\n", 1, 1, "nothing where a single value", "./weir-data"},
        Mistake{"authority", "authority: rediss\n", 1, 12, "unknown `rediss`", "`redis`"},
        Mistake{"redis_url", "redis: {url: http://a}\n", 1, 14, "not one of Redis", "redis://host"},
        Mistake{"redis_timeout", "redis: {timeout: 50}\n", 1, 18, "has no unit", "250ms"},
        Mistake{"ttl_number", "lease: {ttl: 5}\n", 1, 14, "has no unit", "10s"},
        Mistake{"wait_float", "wait: 0.5s\n", 1, 7, "not a duration", "whole number"},
        Mistake{"edges_float", "expected_edges: 1.0\n", 1, 17, "whole number", "plain digits"},
        Mistake{"edges_zero", "expected_edges: 0\n", 1, 17, "too small", "from 1"},
        Mistake{"slew", "clock_slew: 10\n", 1, 13, "not a percentage", "10%"},
        Mistake{"fsync", "fsync: on\n", 1, 8, "`on`", "`true` or `false`"},
        Mistake{"headers", "headers: draft12\n", 1, 10, "unknown `draft12`", "`draft11`"},
        Mistake{"header", "customer_header: \"X Key\"\n", 1, 18, "name of an HTTP header", "X-API"},
        Mistake{"level", "log: {level: trace}\n", 1, 14, "unknown `trace`", "`debug`"},
        Mistake{"format", "log: {format: jsn}\n", 1, 15, "unknown `jsn`", "`json`"},
        Mistake{"token", "tokens: {admin: [hunter2]}\n", 1, 18, "not a token", "sha256:"},
        Mistake{"token_word", "tokens: {admin: \"file:x\"}\n", 1, 17, "quoted text where a list",
                "["},
        Mistake{"tls_word", "tls: on\n", 1, 6, "a plain value where a map", "{cluster:"}),
    mistake_name);

INSTANTIATE_TEST_SUITE_P(
    Whole, NodeMistake,
    testing::Values(
        Mistake{"edge_alone", "region: us\nrole: [edge]\n", 2, 7, "needs owners", "`join`"},
        Mistake{"edge_without_region", "role: [edge]\njoin: [\"a:1\"]\n", 2, 7, "where it is",
                "region: us"},
        Mistake{"owner_joins", "join: [\"a:1\"]\n", 1, 7, "peers in `topology`", "`role: [edge]`"},
        Mistake{"edge_without_http", "listen: {http: none}\n", 1, 16, "over HTTP", "host:port"},
        Mistake{"owner_without_cluster", "topology: t.yaml\nlisten: {cluster: none}\n", 2, 19,
                "must be reachable", "host:port"},
        Mistake{"same_port", "listen: {http: a:1, probe: a:1}\n", 1, 28, "taken by another",
                "another port"},
        Mistake{"clash_with_default", "listen: {probe: 127.0.0.1:8080}\n", 1, 17,
                "taken by another", "another port"},
        Mistake{"open_cluster", "listen: {cluster: 0.0.0.0:7070}\n", 1, 19, "`tls.cluster`",
                "insecure: true"},
        Mistake{"open_admin", "listen: {admin: 0.0.0.0:9090}\n", 1, 17, "`tokens.admin`",
                "insecure: true"},
        Mistake{"ttl_zero", "lease: {ttl: 0s}\n", 1, 14, "out of range", "100ms to 1h"},
        Mistake{"wait_long", "wait: 2m\n", 1, 7, "out of range", "1ms to 1m"},
        Mistake{"slew_large", "clock_slew: 51%\n", 1, 13, "out of range", "0% to 50%"},
        Mistake{"clock_error", "max_clock_error: 2h\n", 1, 18, "out of range", "0s to 1h"},
        Mistake{"redis_slow", "redis: {timeout: 2m}\n", 1, 18, "out of range", "1ms to 1m"},
        Mistake{"tls_without_ca", "tls: {cluster: {certificate: c, key: k}}\n", 1, 16,
                "`ca` is missing", "PEM"},
        Mistake{"tls_without_key", "tls: {http: {certificate: c}}\n", 1, 13, "`key` is missing",
                "PEM"}),
    mistake_name);

TEST(ConfigNode, OpenListenersAreFineWhenGuarded) {
  good("listen: {cluster: 0.0.0.0:7070}\ntls: {cluster: {certificate: c, key: k, ca: a}}\n");
  good("listen: {admin: 0.0.0.0:9090}\ntls: {http: {certificate: c, key: k}}\n");
  good("listen: {admin: 0.0.0.0:9090}\ntokens: {admin: [\"file:t\"]}\n");
  good("listen: {admin: 0.0.0.0:9090}\ntokens: {read: [\"file:t\"]}\n");
  good("listen: {admin: 0.0.0.0:9090, cluster: 0.0.0.0:7070}\ninsecure: true\n");
  good("listen: {http: 0.0.0.0:8080}\n");
}

TEST(ConfigNode, FlagsMayMendWhatTheFileLeavesOpen) {
  const std::string text = "listen: {cluster: 0.0.0.0:7070}\n";
  auto parsed = parse_node(text, "n.yaml", NodeCheck::fields);
  ASSERT_TRUE(parsed) << to_string(parsed.errors);
  NodeConfig config = *parsed.value;
  const Status status = check_node_config(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().field, "listen.cluster");
  config.insecure = true;
  EXPECT_TRUE(check_node_config(config));
}

TEST(ConfigNode, FlagsAreCheckedLikeTheFile) {
  const auto field_of = [](auto change) {
    NodeConfig config;
    change(config);
    const Status status = check_node_config(config);
    return status ? std::string() : status.error().field;
  };
  EXPECT_EQ(field_of([](NodeConfig& c) { c.node = "a b"; }), "node");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.region = "/"; }), "region");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.expected_edges = 0; }), "expected_edges");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.clock_slew_permille = -1; }), "clock_slew");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.lease_ttl_ns = INT64_MAX; }), "lease.ttl");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.wait_ns = 0; }), "wait");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.customer_header = ""; }), "customer_header");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.redis.url = "x"; }), "redis.url");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.data = ""; }), "data");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.tokens.read = {"x"}; }), "tokens.read");
  EXPECT_EQ(field_of([](NodeConfig& c) { c.join.assign(65, {"a", 1}); }), "join");
}

TEST(ConfigNode, ANodeMustFitItsTopology) {
  Topology topology;
  topology.regions = {{"eu", 1, {{"eu-1", "a", {"h", 1}}}}};
  NodeConfig config;
  config.node = "eu-1";
  EXPECT_TRUE(check_node_in_topology(config, topology));
  config.region = "us";
  EXPECT_EQ(check_node_in_topology(config, topology).error().field, "region");
  config.node = "us-1";
  EXPECT_EQ(check_node_in_topology(config, topology).error().field, "node");
  config.roles.owner = false;
  EXPECT_TRUE(check_node_in_topology(config, topology));
  config.region = "";
  EXPECT_EQ(check_node_in_topology(config, topology).error().field, "region");
}

TEST(ConfigNode, ElevenDifferentMistakesAreElevenErrors) {
  const auto parsed = parse_node(
      "node: a/b\nregion: eu\nregion: us\nrole: [edge, oner]\nlisten: {http: 80, admin: a:99999}\n"
      "lease: {ttl: 5}\nwait: 010ms\nexpected_edges: 1e3\nclock_slew: ten\nfsync: yes\nfoo: 1\n",
      "n.yaml");
  EXPECT_EQ(parsed.errors.size(), 11U) << to_string(parsed.errors);
}

TEST(ConfigNode, WordsOfEnumsAreTheFilesWords) {
  EXPECT_STREQ(to_string(Authority::memory), "memory");
  EXPECT_STREQ(to_string(HeaderStyle::draft03), "draft03");
  EXPECT_STREQ(to_string(LogLevel::warn), "warn");
  EXPECT_STREQ(to_string(LogFormat::json), "json");
}

}  // namespace
}  // namespace weir::config
