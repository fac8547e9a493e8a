// The same as parse.h, for a document that has been parsed already: `weir validate` looks at a file
// before it knows what it is. Private to src/config.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "src/config/parse.h"
#include "src/config/problems.h"
#include "src/config/yaml.h"

namespace weir::config {

/// Where each field of a node file stands, by its path, such as `listen.cluster`.
using FieldPlaces = std::map<std::string, Place, std::less<>>;

/// Mistakes go to `problems`; the value is of use only when there are none. `root` is the
/// document's, `text` its bytes.
PolicyDefinition policy_from(const YamlDocument& document, const YamlNode& root,
                             std::string_view text, const LimitCheck& check_limit,
                             Problems& problems);
Topology topology_from(const YamlDocument& document, const YamlNode& root, std::string_view text,
                       Problems& problems);
NodeConfig node_from(const YamlDocument& document, const YamlNode& root,
                     const std::string& file_name, NodeCheck check, Problems& problems,
                     FieldPlaces& places);

}  // namespace weir::config
