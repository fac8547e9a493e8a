// A node as a process: the real clock, disk, log and signals around a Server.
#pragma once

#include "src/base/result.h"
#include "src/config/node_config.h"

namespace weir::server {

struct RunOptions {
  int ready_fd = -1;  ///< one JSON line with the bound addresses goes here when ready; then closed
};

/// Runs until SIGTERM or SIGINT has drained it; SIGHUP reloads. An error: it did not start.
/// Must be called before the process has other threads: signals are blocked for all of them.
Status run_node(config::NodeConfig config, const RunOptions& options);

}  // namespace weir::server
