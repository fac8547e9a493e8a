#include <boost/json.hpp>
#include <ostream>

#include "src/cli/commands.h"
#include "src/cli/table.h"
#include "src/config/load.h"
#include "src/policy/supported.h"

namespace weir::cli {
namespace {

namespace json = boost::json;

std::string counted(std::size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

/// `policy, version 12, 4 limits`.
std::string describe(const config::FileReport& file) {
  std::string text = config::to_string(file.kind);
  if (file.kind == config::FileKind::policy) {
    if (const auto policy = config::load_policy(file.file, policy::check_limit_supported)) {
      text += ", version " + std::to_string(policy.value->version) + ", " +
              counted(policy.value->limits.size(), "limit");
    }
  } else if (file.kind == config::FileKind::topology) {
    if (const auto topology = config::load_topology(file.file)) {
      std::size_t nodes = 0;
      for (const auto& region : topology.value->regions) nodes += region.nodes.size();
      text += ", version " + std::to_string(topology.value->version) + ", " +
              counted(topology.value->regions.size(), "region") + ", " + counted(nodes, "node");
    }
  } else if (file.kind == config::FileKind::node) {
    if (const auto node = config::load_node(file.file)) {
      if (!node.value->node.empty()) text += ", " + node.value->node;
    }
  }
  return text;
}

json::array to_json(const std::vector<config::Diagnostic>& diagnostics) {
  json::array all;
  for (const auto& d : diagnostics) {
    all.push_back(json::object{
        {"file", d.file}, {"line", d.line}, {"column", d.column}, {"message", d.message}});
  }
  return all;
}

std::string to_json(const config::ValidationReport& report) {
  json::array files;
  for (const auto& file : report.files) {
    files.push_back(json::object{
        {"file", file.file}, {"kind", config::to_string(file.kind)}, {"errors", file.errors}});
  }
  return json::serialize(json::object{{"valid", report.valid()},
                                      {"files", std::move(files)},
                                      {"errors", to_json(report.errors)},
                                      {"warnings", to_json(report.warnings)}});
}

}  // namespace

int run_validate(const ValidateOptions& options, Console console) {
  const auto report = config::validate_files(options.files, policy::check_limit_supported);
  const int status = report.valid() ? kFine : kNo;
  if (options.json) {
    console.out << to_json(report) << "\n" << std::flush;
    return status;
  }
  for (const auto& error : report.errors) console.out << printable(to_string(error)) << "\n";
  for (const auto& warning : report.warnings) {
    console.out << printable(to_string(warning)) << " (warning)\n";
  }
  for (const auto& file : report.files) {
    if (file.errors == 0) console.out << file.file << ": fine (" << describe(file) << ")\n";
  }
  console.out << std::flush;
  return status;
}

}  // namespace weir::cli
