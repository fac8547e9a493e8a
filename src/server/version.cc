#include "src/server/version.h"

namespace weir::server {

const char* version() { return WEIR_VERSION; }

}  // namespace weir::server
