// Text of Weir's three kinds of files -> checked values, or every mistake with its place. Pure (but
// for the look at the tz database); reads no file. `file_name` is for messages.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/config/diagnostic.h"
#include "src/config/node_config.h"
#include "src/model/limit.h"
#include "src/model/topology.h"

namespace weir::config {

/// Largest file and largest text. Larger is an error.
inline constexpr std::size_t kMaxFileBytes = 64 * 1024 * 1024;
/// Most plans of one policy, most regions and nodes of one topology. More is an error.
inline constexpr std::size_t kMaxPlans = 1024;
inline constexpr std::size_t kMaxRegions = 64;
inline constexpr std::size_t kMaxTopologyNodes = 1024;
inline constexpr std::uint32_t kMaxRegionWeight = 1'000'000;
inline constexpr std::uint32_t kMaxReplicas = 15;

/// Asked about each limit that is right in itself; an error stands at its algorithm. Programs pass
/// policy::check_supported; nothing is asked when it is empty.
using LimitCheck = std::function<Status(const LimitDefinition&)>;

/// Overrides come out complete: an absent `burst` is the count in `rate`; an absent `rate` is that
/// of the customer's plan, else of the limit.
Parsed<PolicyDefinition> parse_policy(std::string_view text, std::string file_name,
                                      const LimitCheck& check_limit = {});

Parsed<Topology> parse_topology(std::string_view text, std::string file_name);

enum class NodeCheck {
  whole,   ///< also node_config_errors: for a file that is used as it is
  fields,  ///< each field alone: the caller applies flags, then check_node_config
};
/// Relative paths in the file are made relative to the directory in `file_name`.
Parsed<NodeConfig> parse_node(std::string_view text, const std::string& file_name,
                              NodeCheck check = NodeCheck::whole);

}  // namespace weir::config
