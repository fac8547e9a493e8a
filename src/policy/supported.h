// Which limits the running program can serve. The one place that knows; config asks through its
// LimitCheck. Pure.
#pragma once

#include "src/base/result.h"
#include "src/model/limit.h"

namespace weir::policy {

/// unsupported, with what would be served, when the limit's algorithm is not served. Field
/// `algorithm`.
Status check_limit_supported(const LimitDefinition& limit);

/// The first limit that is not served; its name is in the message.
Status check_supported(const PolicyDefinition& definition);

}  // namespace weir::policy
