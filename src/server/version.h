// The version of the program, as `weir --version` and /v1/status say it.
#pragma once

namespace weir::server {

/// `0.1.0`; from CMakeLists.txt.
const char* version();

}  // namespace weir::server
