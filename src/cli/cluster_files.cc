#include "src/cli/cluster_files.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "src/config/scalars.h"

namespace weir::cli {
namespace {

constexpr std::array<const char*, kMaxLocalRegions> kRegions{"eu", "us", "ap", "sa",
                                                             "af", "me", "in", "au"};
constexpr std::array<const char*, 3> kZones{"a", "b", "c"};
/// Owner nodes that a region wants, so that records can be kept on a majority of them.
constexpr int kOwnersWanted = 3;

}  // namespace

Result<std::vector<LocalNode>> plan_nodes(int regions, int nodes, bool spread, int relays) {
  if (regions < 1 || regions > kMaxLocalRegions) {
    return failure(ErrorCode::invalid_argument, "--regions",
                   "must be 1 to " + std::to_string(kMaxLocalRegions));
  }
  if (nodes < regions || nodes > kMaxLocalNodes) {
    return failure(ErrorCode::invalid_argument, "--nodes",
                   "must be " + std::to_string(regions) + " (one for each region) to " +
                       std::to_string(kMaxLocalNodes));
  }
  if (spread && regions < kOwnersWanted) {
    return failure(ErrorCode::invalid_argument, "--spread",
                   "needs at least " + std::to_string(kOwnersWanted) + " --regions");
  }
  const int even_share = (nodes + regions - 1) / regions;
  const int wanted = spread ? even_share : std::max(kOwnersWanted, even_share);
  const int first = std::min(nodes - (regions - 1), wanted);
  std::vector<LocalNode> planned;
  int left = nodes;
  for (int r = 0; r < regions; ++r) {
    const int here = r == 0 ? first : (left + regions - r - 1) / (regions - r);
    for (int i = 0; i < here; ++i) {
      LocalNode node;
      node.region = kRegions[static_cast<std::size_t>(r)];
      node.name = node.region + "-" + std::to_string(i + 1);
      node.zone = kZones[static_cast<std::size_t>(i) % kZones.size()];
      node.owner = spread || r == 0 || (relays > 0 ? i < relays : here >= kOwnersWanted);
      planned.push_back(std::move(node));
    }
    left -= here;
  }
  return planned;
}

std::string yaml_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

Result<RegionLatency> parse_latency(const std::string& text) {
  const auto colon = text.find(':');
  const auto equals = text.find('=');
  RegionLatency latency;
  if (colon == std::string::npos || equals == std::string::npos || equals < colon) {
    return failure(ErrorCode::invalid_argument, "--latency",
                   "`" + text + "` is none, write eu:us=80ms");
  }
  latency.from = text.substr(0, colon);
  latency.to = text.substr(colon + 1, equals - colon - 1);
  const auto round_trip = config::parse_duration(text.substr(equals + 1));
  if (!round_trip) {
    return failure(ErrorCode::invalid_argument, "--latency", round_trip.error().message);
  }
  if (*round_trip < 2 * kMillisecond || *round_trip % (2 * kMillisecond) != 0) {
    return failure(
        ErrorCode::invalid_argument, "--latency",
        "`" + text + "`: half of it each way in whole milliseconds, write 80ms or alike");
  }
  latency.round_trip_ns = *round_trip;
  return latency;
}

std::string delay_line(const std::string& region, const std::vector<RegionLatency>& latencies) {
  std::string line;
  for (const RegionLatency& latency : latencies) {
    if (latency.from != region && latency.to != region) continue;
    line += (line.empty() ? "" : ", ") + (latency.from == region ? latency.to : latency.from) +
            ": " + std::to_string(latency.round_trip_ns / 2 / kMillisecond) + "ms";
  }
  return line.empty() ? line : "chaos_delay: {" + line + "}";
}

std::string topology_yaml(const std::vector<LocalNode>& nodes, bool spread) {
  const auto owners_of = [&](const std::string& region) {
    return std::count_if(nodes.begin(), nodes.end(), [&](const LocalNode& node) {
      return node.owner && node.region == region;
    });
  };
  const bool replicated = spread || owners_of(nodes.front().region) >= kOwnersWanted;
  const int replicas = replicated ? kOwnersWanted : 1;
  std::string text = "version: 1\nreplicas: {count: " + std::to_string(replicas) +
                     ", place: " + (spread ? "spread" : "region") + "}\nregions:\n";
  std::string region;
  for (const LocalNode& node : nodes) {
    if (!node.owner) continue;
    if (node.region != region) {
      region = node.region;
      const char* weight = !spread && owners_of(region) < replicas ? "0" : "1";
      text += "  " + region + ":\n    weight: " + weight + "\n    nodes:\n";
    }
    text += "      - {name: " + node.name + ", zone: " + node.zone +
            ", cluster: " + yaml_quoted(to_string(node.cluster)) + "}\n";
  }
  return text;
}

std::string node_yaml(const LocalNode& node, const std::string& topology, const std::string& policy,
                      bool chaos, const std::vector<std::string>& further_lines) {
  std::string text;
  text += "node: " + node.name + "\n";
  text += "region: " + node.region + "\n";
  text += std::string("role: ") + (node.owner ? "[edge, owner]" : "[edge]") + "\n";
  text += "listen:\n";
  text += "  http: " + yaml_quoted(to_string(node.http)) + "\n";
  text += "  admin: " + yaml_quoted(to_string(node.admin)) + "\n";
  text += "  cluster: " + yaml_quoted(to_string(node.cluster)) + "\n";
  text += "data: " + yaml_quoted(node.data) + "\n";
  text += "topology: " + yaml_quoted(topology) + "\n";
  text += "policy: " + yaml_quoted(policy) + "\n";
  text += std::string("chaos: ") + (chaos ? "true" : "false") + "\n";
  for (const std::string& line : further_lines) text += line + "\n";
  return text;
}

const char* sample_policy_yaml() {
  return R"(# The sample policy of `weir cluster up`. Change it, then send the nodes SIGHUP.
version: 1
limits:
  - name: api                  # every customer: 600 a minute, at most 100 at once
    scope: global
    rate: 600/min
    burst: 100
  - name: login                # each address of a customer: 5 attempts a minute
    match: {route: "POST /login"}
    by: [customer, ip]
    scope: global
    rate: 5/min
    strict: true
    on_unreachable: deny
plans:
  free: {}
  pro: {api: {rate: 6000/min, burst: 1000}}
default_plan: free
customers:
  acme: {plan: pro}
)";
}

}  // namespace weir::cli
