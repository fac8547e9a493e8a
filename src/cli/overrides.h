// Flags of `weir serve` that beat members of node.yaml. Pure.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/config/node_config.h"

namespace weir::cli {

/// Sets what `flag` (as `--lease-ttl`) names to `value`, written as in node.yaml. The error's field
/// is the flag. Contradictions between members are config::check_node_config's.
Status apply_override(config::NodeConfig& config, const std::string& flag,
                      const std::string& value);

}  // namespace weir::cli
