#include "src/policy/reload.h"

#include <string>

namespace weir::policy {

Result<Reload> decide_reload(const PolicyStamp& current, const PolicyStamp& next) {
  if (next.version == 0) {
    return failure(ErrorCode::invalid_argument, "version", "0 is no version, write at least 1");
  }
  if (next.version > current.version) return Reload::replace;
  if (next == current) return Reload::unchanged;
  const std::string in_force = std::to_string(current.version);
  if (next.version == current.version) {
    return failure(ErrorCode::invalid_argument, "version",
                   "version " + in_force +
                       " is in force with other content; a changed policy needs a higher version, "
                       "write at least " +
                       std::to_string(current.version + 1));
  }
  return failure(ErrorCode::invalid_argument, "version",
                 "version " + std::to_string(next.version) + " is older than version " + in_force +
                     " in force; to go back to its content write at least version " +
                     std::to_string(current.version + 1));
}

}  // namespace weir::policy
