#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "src/config/from_document.h"
#include "src/config/load.h"
#include "src/config/reader.h"

namespace weir::config {
namespace {

/// The keys that tell the kinds apart. `version` is left out: two kinds have it.
const std::vector<std::string_view> kPolicyKeys = {"limits", "plans", "default_plan", "customers"};
const std::vector<std::string_view> kTopologyKeys = {"regions", "replicas", "pins"};
const std::vector<std::string_view> kNodeKeys = {"node",
                                                 "region",
                                                 "role",
                                                 "join",
                                                 "listen",
                                                 "data",
                                                 "topology",
                                                 "policy",
                                                 "authority",
                                                 "redis",
                                                 "lease",
                                                 "wait",
                                                 "expected_edges",
                                                 "max_clock_error",
                                                 "clock_slew",
                                                 "fsync",
                                                 "headers",
                                                 "customer_header",
                                                 "tls",
                                                 "tokens",
                                                 "insecure",
                                                 "log",
                                                 "chaos",
                                                 "chaos_delay"};

/// How much one key speaks for a kind: its own key 4, a misspelt one 1.
int weight_of(std::string_view key, const std::vector<std::string_view>& keys) {
  const auto near = nearest(key, keys);
  if (near.empty()) return 0;
  return near == key ? 4 : 1;
}

FileKind recognise(const YamlDocument& document, const YamlNode& root) {
  if (root.kind != YamlNode::Kind::map) return FileKind::unknown;
  int policy = 0;
  int topology = 0;
  int node = 0;
  for (const auto* key = document.first_child(root); key != nullptr;
       key = document.next(*document.next(*key))) {
    if (!key->is_scalar()) continue;
    policy += weight_of(document.text(*key), kPolicyKeys);
    topology += weight_of(document.text(*key), kTopologyKeys);
    node += weight_of(document.text(*key), kNodeKeys);
  }
  if (policy == 0 && topology == 0 && node == 0) return FileKind::unknown;
  if (policy >= topology && policy >= node) return FileKind::policy;
  return topology >= node ? FileKind::topology : FileKind::node;
}

struct ReadNode {
  std::size_t file = 0;  ///< index into the report's files
  NodeConfig config;
  FieldPlaces places;
  Place root;
};

struct ReadTopology {
  std::string path;
  Topology topology;
};

class Validator {
 public:
  explicit Validator(const LimitCheck& check_limit) : check_limit_(check_limit) {}

  ValidationReport run(const std::vector<std::string>& paths) {
    for (const auto& path : paths) read(path);
    check_nodes();
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      auto errors = problems_[i].take_errors();
      report_.files[i].errors += errors.size();
      std::move(errors.begin(), errors.end(), std::back_inserter(report_.errors));
      auto warnings = problems_[i].take_warnings();
      std::move(warnings.begin(), warnings.end(), std::back_inserter(report_.warnings));
    }
    return std::move(report_);
  }

 private:
  void read(const std::string& path) {
    const std::size_t file = report_.files.size();
    report_.files.push_back({path, FileKind::unknown, 0});
    Problems& problems = problems_.emplace_back(path);
    Parsed<std::string> text = read_file(path);
    if (!text) {
      for (auto& error : text.errors) problems.error({}, std::move(error.message));
      return;
    }
    const YamlDocument document(*text.value, problems);
    const YamlNode* root = document.root();
    if (root == nullptr) return;
    const FileKind kind = recognise(document, *root);
    report_.files[file].kind = kind;
    switch (kind) {
      case FileKind::policy:
        policy_from(document, *root, *text.value, check_limit_, problems);
        break;
      case FileKind::topology: {
        Topology topology = topology_from(document, *root, *text.value, problems);
        if (problems.none()) topologies_.push_back({path, std::move(topology)});
        break;
      }
      case FileKind::node: {
        ReadNode node;
        node.file = file;
        node.root = root->place();
        node.config = node_from(document, *root, path, NodeCheck::whole, problems, node.places);
        if (problems.none()) nodes_.push_back(std::move(node));
        break;
      }
      case FileKind::unknown:
        problems.error(root->place(),
                       "not a file of Weir: a policy has `limits`, a topology has `regions`, a "
                       "node's file has keys such as `node` and `listen`");
        break;
    }
  }

  static bool same_file(const std::string& a, const std::string& b) {
    std::error_code code;
    return !a.empty() && std::filesystem::equivalent(a, b, code) && !code;
  }

  /// The topology among the files that a node means: the file it names, else the only one.
  const Topology* topology_of(const NodeConfig& config) const {
    if (config.topology.empty()) return nullptr;
    for (const auto& candidate : topologies_) {
      if (same_file(config.topology, candidate.path)) return &candidate.topology;
    }
    return topologies_.size() == 1 ? &topologies_.front().topology : nullptr;
  }

  void check_nodes() {
    std::map<std::string, std::size_t> names;
    for (const auto& node : nodes_) {
      const auto report = [&](const std::string& field, const std::string& message) {
        const auto place = node.places.find(field);
        std::string text = field;
        text.append(": ").append(message);
        problems_[node.file].error(place == node.places.end() ? node.root : place->second,
                                   std::move(text));
      };
      // Without a name a node takes its host's, which only that host knows.
      if (node.config.node.empty()) continue;
      const auto [first, inserted] = names.emplace(node.config.node, node.file);
      if (!inserted) {
        report("node", in_quotes(node.config.node) + " is also the node of " +
                           report_.files[first->second].file + ", each node has its own name");
      }
      const Topology* topology = topology_of(node.config);
      if (topology == nullptr) continue;
      for (const auto& error : topology_errors(node.config, *topology)) {
        report(error.field, error.message);
      }
    }
  }

  const LimitCheck& check_limit_;
  ValidationReport report_;
  std::vector<Problems> problems_;  ///< one per file
  std::vector<ReadNode> nodes_;
  std::vector<ReadTopology> topologies_;
};

}  // namespace

const char* to_string(FileKind kind) {
  switch (kind) {
    case FileKind::unknown:
      return "unknown";
    case FileKind::node:
      return "node";
    case FileKind::topology:
      return "topology";
    case FileKind::policy:
      return "policy";
  }
  return "unknown";
}

ValidationReport validate_files(const std::vector<std::string>& paths,
                                const LimitCheck& check_limit) {
  return Validator(check_limit).run(paths);
}

}  // namespace weir::config
