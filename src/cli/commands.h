// The commands of the `weir` program, each as plain options and a function from them to an exit
// status. program.cc fills the options from flags and environment; nothing here knows the parser.
// One thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "src/cli/exit_status.h"

namespace weir::cli {

/// Where a command prints: results to `out`, complaints to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  ///< `out` is one that understands ECMA-48
};

struct ServeOptions {
  std::string config;  ///< path of node.yaml; empty: defaults
  /// Flag (with its dashes) and value, in the order of the command line: each beats the file.
  std::vector<std::pair<std::string, std::string>> overrides;
  int ready_fd = -1;  ///< one JSON line with the bound addresses is written here, then it is closed
};
/// Blocks until a signal ends it.
int run_serve(const ServeOptions& options, Console console);

struct ValidateOptions {
  std::vector<std::string> files;
  bool json = false;
};
int run_validate(const ValidateOptions& options, Console console);

/// What a command shows to a node.
struct Credentials {
  std::string token;
  std::string token_file;   ///< read when `token` is empty
  std::string ca;           ///< https: PEM of who must have signed the node's certificate
  std::string certificate;  ///< https: PEM to show, for nodes that ask for one
  std::string key;
};

struct CheckOptions {
  std::string customer;
  std::vector<std::string> attributes;  ///< `key=value`
  std::int64_t cost = 1;
  std::string target = "http://127.0.0.1:8080";
  Credentials credentials;
  bool json = false;
};
int run_check(const CheckOptions& options, Console console);

struct ExplainOptions {
  std::string customer;
  std::vector<std::string> attributes;  ///< `key=value`
  std::int64_t cost = 1;
  std::string admin = "http://127.0.0.1:9090";
  Credentials credentials;
  bool json = false;
};
int run_explain(const ExplainOptions& options, Console console);

struct StatusOptions {
  std::string admin = "http://127.0.0.1:9090";
  Credentials credentials;
  bool json = false;
};
int run_status(const StatusOptions& options, Console console);

struct TopOptions {
  std::string admin = "http://127.0.0.1:9090";
  std::string interval = "1s";
  std::int64_t count = 0;  ///< tables; 0: until a signal comes
  bool once = false;
  int rows = 10;  ///< of each table
  Credentials credentials;
  bool json = false;
};
int run_top(const TopOptions& options, Console console);

struct TopologyOptions {
  std::string file;               ///< plan, apply, recover: the new topology
  std::string node;               ///< drain
  std::vector<std::string> lost;  ///< recover: nodes that are destroyed for good
  std::string admin = "http://127.0.0.1:9090";
  std::int64_t timeout_s = 120;  ///< apply, drain: how long to wait for the end
  Credentials credentials;
  bool json = false;
};
int run_topology_show(const TopologyOptions& options, Console console);
int run_topology_plan(const TopologyOptions& options, Console console);
int run_topology_apply(const TopologyOptions& options, Console console);
int run_topology_drain(const TopologyOptions& options, Console console);
int run_topology_recover(const TopologyOptions& options, Console console);

struct ClusterUpOptions {
  int regions = 2;
  int nodes = 5;
  std::string policy;  ///< empty: a sample
  std::string data;    ///< empty: a folder in the temporary directory, removed at the end
  bool chaos = false;
  bool spread = false;               ///< ClusterShape::spread
  std::vector<std::string> latency;  ///< `eu:us=80ms` each
  bool json = false;
};
int run_cluster_up(const ClusterUpOptions& options, Console console);

}  // namespace weir::cli
