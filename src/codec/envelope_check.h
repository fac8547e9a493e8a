// What a cluster frame may say, checked before anything of it becomes a value.
#pragma once

#include "src/base/result.h"

namespace weir::v1 {
class Envelope;
}

namespace weir::codec {

/// ErrorCode::corrupt, with the item as the field, for what no node could have said.
Status check_envelope(const v1::Envelope& message);

}  // namespace weir::codec
