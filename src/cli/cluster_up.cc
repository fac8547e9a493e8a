#include <boost/json.hpp>
#include <ostream>

#include "src/cli/commands.h"
#include "src/cli/local_cluster.h"
#include "src/cli/stop_signals.h"
#include "src/cli/table.h"

namespace weir::cli {
namespace {

namespace json = boost::json;

/// How often it looks whether a node has died.
constexpr Nanos kLookEveryNs = 200 * kMillisecond;

std::string to_json(const LocalCluster& cluster) {
  json::array nodes;
  for (const LocalNode& node : cluster.nodes()) {
    nodes.push_back(json::object{{"name", node.name},
                                 {"region", node.region},
                                 {"zone", node.zone},
                                 {"owner", node.owner},
                                 {"http", to_string(node.http)},
                                 {"admin", to_string(node.admin)},
                                 {"pid", node.pid},
                                 {"data", node.data},
                                 {"config", node.config},
                                 {"log", node.log}});
  }
  return json::serialize(json::object{
      {"nodes", std::move(nodes)}, {"folder", cluster.folder()}, {"policy", cluster.policy()}});
}

std::string to_text(const LocalCluster& cluster) {
  std::vector<std::vector<std::string>> rows{
      {"NODE", "REGION", "ZONE", "ROLE", "HTTP", "ADMIN", "PID"}};
  for (const LocalNode& node : cluster.nodes()) {
    rows.push_back({node.name, node.region, node.zone, node.owner ? "edge, owner" : "edge",
                    "http://" + to_string(node.http), "http://" + to_string(node.admin),
                    std::to_string(node.pid)});
  }
  const LocalNode& first = cluster.nodes().front();
  return format_table(rows) + "\nFiles and logs: " + cluster.folder() +
         "/NODE/{node.yaml,log,data}\nPolicy:         " + cluster.policy() +
         "\nTry:            curl -i 'http://" + to_string(first.http) +
         "/v1/check?customer=acme'\n                weir explain acme --admin http://" +
         to_string(first.admin) + "\nCtrl-C stops the cluster.\n";
}

}  // namespace

int run_cluster_up(const ClusterUpOptions& options, Console console) {
  const StopSignals signals;
  ClusterShape shape;
  shape.regions = options.regions;
  shape.nodes = options.nodes;
  shape.policy = options.policy;
  shape.data = options.data;
  shape.chaos = options.chaos || !options.latency.empty();
  shape.spread = options.spread;
  for (const std::string& text : options.latency) {
    auto latency = parse_latency(text);
    if (!latency) {
      console.err << "weir: " << latency.error().field << ": " << latency.error().message << "\n";
      return kWrongUsage;
    }
    shape.latencies.push_back(*std::move(latency));
  }
  shape.give_up = [&signals] { return signals.pending(); };
  auto started = LocalCluster::start(std::move(shape));
  if (!started) {
    const Error& error = started.error();
    console.err << "weir: " << (error.field.empty() ? "" : error.field + ": ") << error.message
                << "\n";
    return error.code == ErrorCode::invalid_argument ? kWrongUsage : kUnreachable;
  }
  LocalCluster& cluster = **started;
  console.out << (options.json ? to_json(cluster) + "\n" : to_text(cluster)) << std::flush;
  while (!signals.wait(kLookEveryNs)) {
    for (const NodeDeath& death : cluster.take_deaths()) {
      const LocalNode* node = cluster.find(death.node);
      console.err << "weir: " << death.node << " is gone: " << death.how << "; its log is "
                  << node->log << "; `weir serve --config " << node->config << "` brings it back\n"
                  << std::flush;
    }
  }
  if (!options.json) console.out << "\nStopping.\n" << std::flush;
  cluster.stop();
  return kFine;
}

}  // namespace weir::cli
