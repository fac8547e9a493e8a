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
  if (config.tls.cluster) return not_served("tls.cluster", "remove it and listen on loopback");
  if (config.tls.http) return not_served("tls.http", "remove it and let a proxy end TLS");
  if (!config.tokens.check.empty()) return not_served("tokens.check", "remove it");
  if (!config.tokens.read.empty()) return not_served("tokens.read", "remove it");
  if (!config.tokens.admin.empty()) return not_served("tokens.admin", "remove it");
  return {};
}

}  // namespace weir::server
