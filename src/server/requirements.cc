#include "src/server/requirements.h"

#include <string>

namespace weir::server {
namespace {

Status not_served(const char* field, const char* instead) {
  return failure(ErrorCode::unsupported, field,
                 std::string("not served by this version; ") + instead);
}

}  // namespace

Status check_served(const config::NodeConfig& config) {
  if (config.authority == config::Authority::redis) {
    return not_served("authority", "use `owner` (on disk) or `memory`, not `redis`");
  }
  return {};
}

}  // namespace weir::server
