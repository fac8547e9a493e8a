#include <algorithm>
#include <map>
#include <utility>

#include "src/base/hash.h"
#include "src/base/limits.h"
#include "src/config/from_document.h"
#include "src/config/reader.h"
#include "src/config/scalars.h"

namespace weir::config {
namespace {

constexpr const char* kNodeExample = "{name: eu-1, zone: a, cluster: \"10.0.0.1:7070\"}";
constexpr const char* kRegionExample = "eu: {nodes: [{name: eu-1, cluster: \"10.0.0.1:7070\"}]}";

class TopologyParser {
 public:
  TopologyParser(const YamlDocument& document, Problems& problems)
      : reader_(document, problems), problems_(problems) {}

  Topology parse(const YamlNode& root) {
    MapReader map(reader_, root, "topology", "version: 1");
    if (!map.is_map()) return {};
    if (const auto* node = map.require("version", "version: 1")) {
      if (const auto version = reader_.integer(*node, "version", 1, INT64_MAX)) {
        topology_.version = static_cast<std::uint64_t>(*version);
      }
    }
    if (const auto* node = map.take("replicas")) read_replicas(*node);
    const YamlNode* regions = map.require("regions", kRegionExample);
    const std::size_t errors_before = problems_.count();
    if (regions != nullptr) read_regions(*regions);
    const bool regions_are_sound = regions != nullptr && problems_.count() == errors_before;
    if (regions_are_sound) check_replicas(*regions);
    if (const auto* node = map.take("pins")) read_pins(*node, regions_are_sound);
    map.finish();
    return std::move(topology_);
  }

 private:
  void read_replicas(const YamlNode& node) {
    MapReader map(reader_, node, "replicas", "{count: 3, place: region}");
    if (const auto* count = map.require("count", "count: 3")) {
      count_ = count;
      const auto value = reader_.integer(*count, "replicas.count", 1, kMaxReplicas);
      if (value && *value % 2 == 0) {
        reader_.error(*count, "replicas.count: " + std::to_string(*value) +
                                  " is even and survives no more than one less, write an odd "
                                  "number such as " +
                                  std::to_string(*value - 1) + " or " + std::to_string(*value + 1));
      } else if (value) {
        topology_.replica_count = static_cast<std::uint32_t>(*value);
      }
    }
    if (const auto* place = map.take("place")) {
      const auto value = reader_.word<ReplicaPlace>(
          *place, "replicas.place",
          {{"region", ReplicaPlace::region}, {"spread", ReplicaPlace::spread}});
      if (value) topology_.place = *value;
    }
    map.finish();
  }

  void read_regions(const YamlNode& node) {
    const auto entries = reader_.entries(node, "regions", kRegionExample);
    if (!entries) return;
    if (entries->empty()) {
      reader_.error(
          node, std::string("regions: none, write at least one such as `") + kRegionExample + "`");
    }
    for (const auto& entry : *entries) {
      if (topology_.regions.size() >= kMaxRegions) {
        reader_.error(*entry.key_node,
                      "regions: more than " + std::to_string(kMaxRegions) + ", merge some");
        break;
      }
      read_region(entry);
    }
    std::sort(topology_.regions.begin(), topology_.regions.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
  }

  void read_region(const MapEntry& entry) {
    TopologyRegion region;
    const auto name =
        reader_.scalar<std::string>(*entry.key_node, "region", "eu", parse_place_name);
    region.name = name ? *name : std::string(entry.key);
    const std::string what = "region " + in_quotes(entry.key);
    MapReader map(reader_, *entry.value, what, "{weight: 1, nodes: [...]}");
    if (const auto* weight = map.take("weight")) {
      const auto value = reader_.integer(*weight, "weight", 0, kMaxRegionWeight);
      if (value) region.weight = static_cast<std::uint32_t>(*value);
    }
    const YamlNode* nodes = map.require("nodes", std::string("nodes: [") + kNodeExample + "]");
    if (nodes != nullptr) {
      if (const auto items = reader_.items(*nodes, "nodes", kNodeExample)) {
        for (const auto* item : *items) read_node(*item, region);
      }
    }
    map.finish();
    if (map.is_map()) region_places_[region.name] = entry.key_node->place();
    topology_.regions.push_back(std::move(region));
  }

  void read_node(const YamlNode& item, TopologyRegion& region) {
    if (++node_count_ > kMaxTopologyNodes) {
      if (node_count_ == kMaxTopologyNodes + 1) {
        reader_.error(item, "nodes: more than " + std::to_string(kMaxTopologyNodes) +
                                " owner nodes in all; edges need not stand here");
      }
      return;
    }
    MapReader map(reader_, item, "node", kNodeExample);
    TopologyNode node;
    if (const auto* name = map.require("name", "name: eu-1")) {
      const auto value = reader_.scalar<std::string>(*name, "name", "eu-1", parse_place_name);
      if (value) node.name = *value;
      if (value) refuse_second(names_, *value, *name, "node name");
    }
    if (const auto* zone = map.take("zone")) {
      const auto value = reader_.scalar<std::string>(*zone, "zone", "a", parse_place_name);
      if (value) node.zone = *value;
    }
    if (const auto* cluster = map.require("cluster", "cluster: \"10.0.0.1:7070\"")) {
      const auto value =
          reader_.scalar<Endpoint>(*cluster, "cluster", "\"10.0.0.1:7070\"",
                                   [](std::string_view text) { return parse_endpoint(text); });
      if (value) node.cluster = *value;
      if (value) refuse_second(addresses_, to_string(*value), *cluster, "cluster address");
    }
    map.finish();
    region.nodes.push_back(std::move(node));
  }

  void refuse_second(std::map<std::string, Place>& seen, const std::string& value,
                     const YamlNode& node, const char* what) {
    const auto [first, inserted] = seen.emplace(value, node.place());
    if (inserted) return;
    reader_.error(node, std::string(what) + " " + in_quotes(value) + " is taken, first on line " +
                            std::to_string(first->second.line) + ": each node has its own");
  }

  bool can_be_home(const TopologyRegion& region) const {
    if (region.weight == 0 || region.nodes.empty()) return false;
    return topology_.place == ReplicaPlace::spread ||
           region.nodes.size() >= topology_.replica_count;
  }

  /// PROTOCOL A3: a region with fewer owner nodes than replicas is no home; with `spread`, regions
  /// are counted instead.
  void check_replicas(const YamlNode& regions) {
    const YamlNode& at = count_ != nullptr ? *count_ : regions;
    const std::string count = std::to_string(topology_.replica_count);
    if (topology_.place == ReplicaPlace::spread) {
      const auto with_nodes = std::count_if(topology_.regions.begin(), topology_.regions.end(),
                                            [](const auto& r) { return !r.nodes.empty(); });
      if (static_cast<std::size_t>(with_nodes) < topology_.replica_count) {
        reader_.error(at, "replicas.count: " + count + " with `place: spread` needs as many " +
                              "regions with owner nodes, there are " + std::to_string(with_nodes));
        return;
      }
    }
    if (std::none_of(topology_.regions.begin(), topology_.regions.end(),
                     [&](const auto& region) { return can_be_home(region); })) {
      reader_.error(at, "replicas.count: no region with a weight has " + count +
                            " owner nodes, so none can be a home; add nodes, write a smaller odd "
                            "count, or `place: spread`");
      return;
    }
    warn_of_small_regions(regions);
  }

  void warn_of_small_regions(const YamlNode& regions) {
    for (const auto& region : topology_.regions) {
      if (region.weight == 0 || region.nodes.empty() || can_be_home(region)) continue;
      problems_.warn(region_places_[region.name],
                     "region " + in_quotes(region.name) + " has " +
                         std::to_string(region.nodes.size()) + " owner nodes, fewer than " +
                         std::to_string(topology_.replica_count) +
                         " replicas: it is no home; add nodes or write `weight: 0`");
    }
    if (count_ == nullptr && node_count_ > 1) {
      problems_.warn(regions.place(),
                     "no `replicas`: each record is kept once, and a lost node stops its "
                     "customers' grants; write `replicas: {count: 3}`");
    }
  }

  void read_pins(const YamlNode& node, bool regions_are_sound) {
    const auto entries = reader_.entries(node, "pins", "{acme: eu}");
    if (!entries) return;
    std::vector<std::string_view> names;
    for (const auto& region : topology_.regions) names.push_back(region.name);
    for (const auto& entry : *entries) {
      if (entry.key.size() > kMaxKeyBytes) {
        reader_.error(*entry.key_node, "pins: a customer longer than " +
                                           std::to_string(kMaxKeyBytes) + " bytes, shorten it");
      }
      const auto region = reader_.text_value(*entry.value, "pins", "acme: eu");
      if (!region || !regions_are_sound) continue;
      const auto found = std::find_if(topology_.regions.begin(), topology_.regions.end(),
                                      [&](const auto& known) { return known.name == *region; });
      if (found == topology_.regions.end()) {
        reader_.error(*entry.value, "pins: unknown region " + in_quotes(*region) +
                                        reader_.suggestion(*region, names));
      } else if (!can_be_home(*found)) {
        reader_.error(*entry.value, "pins: region " + in_quotes(*region) +
                                        " can be no home (weight 0, or fewer owner nodes than "
                                        "replicas), name another");
      } else {
        topology_.pins.emplace(entry.key, *region);
      }
    }
  }

  Reader reader_;
  Problems& problems_;
  Topology topology_;
  const YamlNode* count_ = nullptr;
  std::size_t node_count_ = 0;
  std::map<std::string, Place> names_;
  std::map<std::string, Place> addresses_;
  std::map<std::string, Place> region_places_;
};

}  // namespace

Topology topology_from(const YamlDocument& document, const YamlNode& root, std::string_view text,
                       Problems& problems) {
  Topology topology = TopologyParser(document, problems).parse(root);
  topology.content_hash = hash_bytes(text);
  return topology;
}

Parsed<Topology> parse_topology(std::string_view text, std::string file_name) {
  Problems problems(std::move(file_name));
  const YamlDocument document(text, problems);
  const YamlNode* root = document.root();
  if (root == nullptr) return problems.finish(Topology());
  return problems.finish(topology_from(document, *root, text, problems));
}

}  // namespace weir::config
