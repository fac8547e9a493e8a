// A topology as the text of its file.
#pragma once

#include <string>

#include "src/model/topology.h"

namespace weir::config {

/// Reads back as the same topology (but for its content hash).
std::string print_topology(const Topology& topology);

}  // namespace weir::config
