#include "src/config/print_topology.h"

#include <yaml-cpp/yaml.h>

namespace weir::config {

std::string print_topology(const Topology& topology) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "version" << YAML::Value << topology.version;
  out << YAML::Key << "replicas" << YAML::Value << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "count" << YAML::Value << topology.replica_count;
  const bool spread = topology.place == ReplicaPlace::spread;
  out << YAML::Key << "place" << YAML::Value << (spread ? "spread" : "region") << YAML::EndMap;
  out << YAML::Key << "regions" << YAML::Value << YAML::BeginMap;
  for (const TopologyRegion& region : topology.regions) {
    out << YAML::Key << region.name << YAML::Value << YAML::BeginMap;
    out << YAML::Key << "weight" << YAML::Value << region.weight;
    out << YAML::Key << "nodes" << YAML::Value << YAML::BeginSeq;
    for (const TopologyNode& node : region.nodes) {
      out << YAML::Flow << YAML::BeginMap << YAML::Key << "name" << YAML::Value << node.name;
      if (!node.zone.empty()) {
        out << YAML::Key << "zone" << YAML::Value << YAML::DoubleQuoted << node.zone;
      }
      out << YAML::Key << "cluster" << YAML::Value << YAML::DoubleQuoted << to_string(node.cluster)
          << YAML::EndMap;
    }
    out << YAML::EndSeq << YAML::EndMap;
  }
  out << YAML::EndMap;
  if (!topology.pins.empty()) {
    out << YAML::Key << "pins" << YAML::Value << YAML::BeginMap;
    for (const auto& [customer, region] : topology.pins) {
      out << YAML::Key << YAML::DoubleQuoted << customer << YAML::Value << region;
    }
    out << YAML::EndMap;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace weir::config
