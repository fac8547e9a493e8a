// What this version refuses to start with, rather than ignore. Pure.
#pragma once

#include "src/base/result.h"
#include "src/config/node_config.h"

namespace weir::server {

/// Refuses members that are understood but not served by this version: `authority: redis`. The
/// error's field is the member. (Listeners beyond loopback that nothing protects are refused by
/// config::node_config_errors.)
Status check_served(const config::NodeConfig& config);

}  // namespace weir::server
