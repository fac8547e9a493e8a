// Whether a policy that was read or received replaces the one in force (PROTOCOL J4). Pure.
#pragma once

#include <cstdint>

#include "src/base/result.h"
#include "src/model/limit.h"

namespace weir::policy {

/// What tells two policies apart.
struct PolicyStamp {
  std::uint64_t version = 0;  ///< 0: no policy yet
  std::uint64_t content_hash = 0;

  friend bool operator==(const PolicyStamp&, const PolicyStamp&) = default;
};

inline PolicyStamp stamp_of(const PolicyDefinition& definition) {
  return {definition.version, definition.content_hash};
}

enum class Reload : std::uint8_t {
  replace,    ///< take the new one
  unchanged,  ///< it is the one in force; nothing to do
};

/// A higher version wins. The same version with the same content is unchanged; with other content,
/// or a lower version, it is refused: field `version`, and a message that says what to write.
Result<Reload> decide_reload(const PolicyStamp& current, const PolicyStamp& next);

}  // namespace weir::policy
