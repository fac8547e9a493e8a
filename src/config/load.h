// Files on disk -> checked values. Never throws; a missing, unreadable, empty or broken file is a
// diagnostic, never an empty value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/config/diagnostic.h"
#include "src/config/parse.h"

namespace weir::config {

/// The bytes of a regular file, or one diagnostic.
Parsed<std::string> read_file(const std::string& path);

Parsed<PolicyDefinition> load_policy(const std::string& path, const LimitCheck& check_limit = {});
Parsed<Topology> load_topology(const std::string& path);
Parsed<NodeConfig> load_node(const std::string& path, NodeCheck check = NodeCheck::whole);

/// What kind of file it is, by the keys at its top, misspelt ones too. `unknown`: no YAML map, or
/// no key that is near to any kind's.
enum class FileKind : std::uint8_t { unknown, node, topology, policy };
const char* to_string(FileKind kind);

struct FileReport {
  std::string file;
  FileKind kind = FileKind::unknown;
  std::size_t errors = 0;  ///< in this file
};

struct ValidationReport {
  std::vector<FileReport> files;     ///< in the order given
  std::vector<Diagnostic> errors;    ///< by file in the order given, then by place
  std::vector<Diagnostic> warnings;  ///< likewise

  bool valid() const { return errors.empty(); }
};

/// For `weir validate`: each file alone, then nodes against the topology among the files.
ValidationReport validate_files(const std::vector<std::string>& paths,
                                const LimitCheck& check_limit = {});

}  // namespace weir::config
