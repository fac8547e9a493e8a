// What one node is told about itself: node.yaml, flags and environment, as one checked value.
// The defaults here are the defaults of API.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/topology.h"

namespace weir::config {

enum class Authority : std::uint8_t { owner, redis, memory };
enum class HeaderStyle : std::uint8_t { draft11, draft03, legacy, none };
enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { text, json };
const char* to_string(Authority authority);
const char* to_string(HeaderStyle style);
const char* to_string(LogLevel level);
const char* to_string(LogFormat format);

struct Roles {
  bool edge = true;   ///< answers checks
  bool owner = true;  ///< holds customers' buckets

  friend bool operator==(const Roles&, const Roles&) = default;
};

/// Where a node listens. Nothing: `none`. Port 0: chosen by the system.
struct ListenConfig {
  std::optional<Endpoint> http = Endpoint{"127.0.0.1", 8080};
  std::optional<Endpoint> admin = Endpoint{"127.0.0.1", 9090};
  std::optional<Endpoint> cluster = Endpoint{"127.0.0.1", 7070};
  std::optional<Endpoint> probe;

  friend bool operator==(const ListenConfig&, const ListenConfig&) = default;
};

struct RedisConfig {
  std::string url = "redis://127.0.0.1:6379";
  Nanos timeout_ns = 50 * kMillisecond;

  friend bool operator==(const RedisConfig&, const RedisConfig&) = default;
};

/// Paths of PEM files. `ca` has signed what peers and clients show; empty (HTTP only): clients show
/// none.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string ca;

  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

struct TlsConfig {
  std::optional<TlsFiles> cluster;
  std::optional<TlsFiles> http;

  friend bool operator==(const TlsConfig&, const TlsConfig&) = default;
};

/// Who may do what: each is `sha256:<64 hexadecimal digits>` of a token, or `file:<path>` of a file
/// that holds one.
struct TokenConfig {
  std::vector<std::string> check;
  std::vector<std::string> read;
  std::vector<std::string> admin;

  friend bool operator==(const TokenConfig&, const TokenConfig&) = default;
};

struct LogConfig {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;

  friend bool operator==(const LogConfig&, const LogConfig&) = default;
};

/// Relative paths from a file are relative to that file's directory (parse.h); those from flags and
/// the defaults are relative to the working directory.
struct NodeConfig {
  std::string node;    ///< empty: the host's name, which the program fills in
  std::string region;  ///< empty: from the topology, or `local` on its own
  Roles roles;
  std::vector<Endpoint> join;  ///< cluster addresses to begin with, for an edge without topology
  ListenConfig listen;
  std::string data = "./weir-data";
  std::string topology;  ///< path; empty: a cluster of one, or what `join` tells
  std::string policy;    ///< path; empty: none of its own
  Authority authority = Authority::owner;
  RedisConfig redis;
  Nanos lease_ttl_ns = 5 * kSecond;
  Nanos wait_ns = 50 * kMillisecond;  ///< PROTOCOL I1
  std::uint32_t expected_edges = 1;   ///< floor for static_share
  Nanos max_clock_error_ns = 5 * kSecond;
  int clock_slew_permille = 100;
  bool fsync = true;
  HeaderStyle headers = HeaderStyle::draft11;
  std::string customer_header = "X-API-Key";  ///< for /v1/authz
  TlsConfig tls;
  TokenConfig tokens;
  bool insecure = false;  ///< listen beyond loopback without TLS and tokens
  LogConfig log;
  bool chaos = false;
  /// With chaos only: how much longer what this node sends takes to nodes of these regions.
  std::map<std::string, Nanos> chaos_delay_ns;

  friend bool operator==(const NodeConfig&, const NodeConfig&) = default;
};

/// Every contradiction and value out of range in a whole configuration. Each error's field is the
/// path of the field in node.yaml, such as `listen.cluster`.
std::vector<Error> node_config_errors(const NodeConfig& config);

/// The first of node_config_errors. For configurations put together from file, environment and
/// flags.
Status check_node_config(const NodeConfig& config);

/// Every contradiction between a node and the topology of its cluster: an owner that is not in it,
/// another region than it says.
std::vector<Error> topology_errors(const NodeConfig& config, const Topology& topology);
Status check_node_in_topology(const NodeConfig& config, const Topology& topology);

}  // namespace weir::config
