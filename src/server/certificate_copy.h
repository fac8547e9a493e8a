// The private copy of the cluster's certificates. CAF reads files at every connection and ends the
// process over a bad one, so it is given a folder of the node's own, which holds nothing that has
// not been checked and changes as a whole.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/config/node_config.h"
#include "src/net/tls.h"

namespace weir::server {

/// Where the copy stands, in the folder `data`. The paths never change.
config::TlsFiles certificate_copy(const std::string& data);

/// Checks `files` (each, that they fit together, and that `ca` has signed the certificate), copies
/// them, readable by this user alone, and puts the copy in force in one step. On an error the old
/// copy stays. Gives the certificate's end in nanoseconds since 1970.
Result<Nanos> copy_certificates(const config::TlsFiles& files, const std::string& data);

}  // namespace weir::server
