#include "src/server/status.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <ctime>
#include <utility>

#include "src/server/version.h"

namespace weir::server {
namespace {

namespace json = boost::json;

json::array role_json(bool edge, bool owner) {
  json::array roles;
  if (edge) roles.emplace_back("edge");
  if (owner) roles.emplace_back("owner");
  return roles;
}

std::string hash_text(std::uint64_t hash) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

json::object policy_json(const StatusFacts& facts) {
  json::object object{{"path", facts.policy_path}};
  if (facts.policy.policy != nullptr) {
    const PolicyDefinition& definition = facts.policy.policy->definition();
    object["version"] = definition.version;
    object["hash"] = hash_text(definition.content_hash);
    object["limits"] = definition.limits.size();
    object["loaded_at"] = utc_text(facts.policy.loaded_wall_ns);
    object["origin"] = facts.policy.origin;
  }
  // A higher version that peers have and that is not here yet; 0: none.
  object["wanted"] = facts.node.policy_wanted;
  json::object& conflicts = object["conflicts"].emplace_object();
  for (const auto& [peer, stamp] : facts.node.policy_refused) {
    conflicts[peer] = hash_text(stamp.content_hash);
  }
  object["last_error"] = nullptr;
  if (facts.policy.last_error) {
    object["last_error"] = json::object{{"at", utc_text(facts.policy.last_error_wall_ns)},
                                        {"message", *facts.policy.last_error}};
  }
  return object;
}

/// `{"tls.http": {"loaded_at", "not_after", "last_error"}}`, one member for each that there is.
json::object security_json(const std::vector<SecurityKeeper::Part>& parts) {
  json::object object;
  for (const SecurityKeeper::Part& part : parts) {
    json::object one{{"loaded_at", utc_text(part.loaded_wall_ns)}};
    if (part.not_after_wall_ns != 0) one["not_after"] = utc_text(part.not_after_wall_ns);
    one["last_error"] = nullptr;
    if (part.last_error) one["last_error"] = *part.last_error;
    object[part.name] = std::move(one);
  }
  return object;
}

json::object member_json(const actors::PeerState& peer, Nanos now_ns) {
  json::object member{{"node", peer.node},
                      {"region", peer.region},
                      {"role", role_json(peer.edge, peer.owner)},
                      {"self", false},
                      {"alive", peer.connected},
                      {"heard_ms_ago", nullptr},
                      {"round_trip_us", peer.round_trip_ns / kMicrosecond}};
  if (peer.heard_ns != 0) {
    member["heard_ms_ago"] = std::max<Nanos>(0, now_ns - peer.heard_ns) / kMillisecond;
  }
  return member;
}

/// This node, everyone it has heard of, and the topology's nodes that it has not.
json::array members_json(const StatusFacts& facts) {
  json::array members;
  const config::NodeConfig& config = *facts.config;
  members.push_back(json::object{{"node", config.node},
                                 {"region", config.region},
                                 {"role", role_json(config.roles.edge, config.roles.owner)},
                                 {"self", true},
                                 {"alive", true},
                                 {"heard_ms_ago", 0},
                                 {"round_trip_us", 0}});
  for (const auto& peer : facts.node.peers) members.push_back(member_json(peer, facts.now_boot_ns));
  for (const TopologyRegion& region : facts.topology->regions) {
    for (const TopologyNode& node : region.nodes) {
      const bool known = node.name == config.node ||
                         std::any_of(facts.node.peers.begin(), facts.node.peers.end(),
                                     [&](const auto& peer) { return peer.node == node.name; });
      if (known) continue;
      actors::PeerState unheard;
      unheard.node = node.name;
      unheard.region = region.name;
      unheard.owner = true;
      members.push_back(member_json(unheard, facts.now_boot_ns));
    }
  }
  return members;
}

json::array degraded_json(const std::vector<edge::LimitGauges>& gauges) {
  json::array degraded;
  for (const edge::LimitGauges& gauge : gauges) {
    if (!gauge.degraded) continue;
    degraded.push_back(json::object{{"limit", gauge.limit},
                                    {"policy", to_string(gauge.policy)},
                                    {"overshoot_bound_tokens", gauge.overshoot_tokens}});
  }
  return degraded;
}

json::value endpoint_json(const std::optional<Endpoint>& endpoint) {
  return endpoint ? json::value(to_string(*endpoint)) : json::value(nullptr);
}

}  // namespace

const char* to_string(net::Readiness readiness) {
  switch (readiness) {
    case net::Readiness::serving:
      return "serving";
    case net::Readiness::draining:
      return "draining";
    case net::Readiness::no_policy:
      return "no_policy";
    case net::Readiness::store_failed:
      return "store_failed";
  }
  return "unknown";
}

std::string utc_text(Nanos wall_ns) {
  const std::time_t seconds = wall_ns / kSecond;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string status_json(const StatusFacts& facts) {
  const config::NodeConfig& config = *facts.config;
  json::object listen{{"http", endpoint_json(facts.http)},
                      {"cluster_port", facts.node.cluster_port}};
  json::object document{
      {"version", version()},
      {"node", config.node},
      {"region", config.region},
      {"role", role_json(config.roles.edge, config.roles.owner)},
      {"state", to_string(facts.readiness)},
      {"uptime_s", facts.uptime_ns / kSecond},
      {"incarnation", hash_text(facts.node.incarnation)},
      {"authority", config::to_string(config.authority)},
      {"listen", std::move(listen)},
      {"policy", policy_json(facts)},
      {"security", security_json(facts.security)},
      {"topology", json::object{{"version", facts.topology->version},
                                {"hash", hash_text(facts.topology->content_hash)}}},
      {"members", members_json(facts)},
      {"live_edges", facts.node.live_edges},
      {"slots_owned", facts.node.slots_owned},
      {"registers_incomplete", facts.node.registers_incomplete},
      {"relay_buckets", facts.node.relay_buckets},
      {"owners_active", facts.node.owners_active},
      {"owners_dormant", facts.owners_dormant},
      {"buckets", facts.buckets},
      {"waiting_checks", facts.waiting},
      {"degraded", degraded_json(facts.gauges)}};
  return json::serialize(document);
}

}  // namespace weir::server
