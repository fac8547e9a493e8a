#include <unistd.h>

#include <array>
#include <ostream>
#include <utility>

#include "src/cli/commands.h"
#include "src/cli/overrides.h"
#include "src/config/load.h"
#include "src/server/requirements.h"
#include "src/server/run_node.h"

namespace weir::cli {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "node";
  return name.data();
}

void complain(Console console, const Error& error) {
  console.err << "weir: " << (error.field.empty() ? "" : error.field + ": ") << error.message
              << "\n";
}

/// File, then environment and flags on top, then the checks on the whole. Nothing: it has been said
/// what is wrong.
std::optional<config::NodeConfig> make_config(const ServeOptions& options, Console console) {
  config::NodeConfig config;
  if (!options.config.empty()) {
    auto parsed = config::load_node(options.config, config::NodeCheck::fields);
    for (const auto& error : parsed.errors) console.err << to_string(error) << "\n";
    if (!parsed) return std::nullopt;
    config = *std::move(parsed.value);
  }
  for (const auto& [flag, value] : options.overrides) {
    if (Status applied = apply_override(config, flag, value); !applied) {
      complain(console, applied.error());
      return std::nullopt;
    }
  }
  if (config.policy.empty()) {
    console.err << "weir: no policy: give --policy FILE, or `policy:` in node.yaml\n";
    return std::nullopt;
  }
  if (config.node.empty()) config.node = host_name();
  std::vector<Error> errors = config::node_config_errors(config);
  if (Status served = server::check_served(config); !served && errors.empty()) {
    errors.push_back(served.error());
  }
  for (const Error& error : errors) complain(console, error);
  if (!errors.empty()) return std::nullopt;
  return config;
}

}  // namespace

int run_serve(const ServeOptions& options, Console console) {
  auto config = make_config(options, console);
  if (!config) return kWrongUsage;
  const Status ran = server::run_node(*std::move(config), {options.ready_fd});
  if (ran) return kFine;
  complain(console, ran.error());
  const bool usage =
      ran.error().code == ErrorCode::invalid_argument || ran.error().code == ErrorCode::unsupported;
  return usage ? kWrongUsage : kUnreachable;
}

}  // namespace weir::cli
