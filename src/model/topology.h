// The configured shape of a cluster, as values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};
/// `host:port`, with brackets around an IPv6 host.
std::string to_string(const Endpoint& endpoint);

struct TopologyNode {
  std::string name;
  std::string zone;
  Endpoint cluster;

  friend bool operator==(const TopologyNode&, const TopologyNode&) = default;
};

struct TopologyRegion {
  std::string name;
  std::uint32_t weight = 1;         ///< 0: never a home
  std::vector<TopologyNode> nodes;  ///< owner nodes

  friend bool operator==(const TopologyRegion&, const TopologyRegion&) = default;
};

enum class ReplicaPlace : std::uint8_t { region = 1, spread = 2 };

/// A whole topology file. Checked by src/config: names are unique, counts fit.
struct Topology {
  std::uint64_t version = 0;
  std::uint64_t content_hash = 0;
  std::uint32_t replica_count = 1;  ///< odd
  ReplicaPlace place = ReplicaPlace::region;
  std::vector<TopologyRegion> regions;                   ///< in byte order of their names
  std::map<std::string, std::string, std::less<>> pins;  ///< customer -> home region

  const TopologyNode* find_node(std::string_view name) const;
  /// The region of a node, or nullptr.
  const TopologyRegion* region_of(std::string_view node) const;

  friend bool operator==(const Topology&, const Topology&) = default;
};

}  // namespace weir
