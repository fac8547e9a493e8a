// What replicas say to each other (src/model/register.h) as a Protobuf message. Included by .cc
// files of src/codec only.
#pragma once

#include "src/base/result.h"
#include "src/model/register.h"

namespace weir::v1 {
class RegisterMessage;
}

namespace weir::codec {

void fill(const RegisterMessage& from, v1::RegisterMessage& to);
/// Refuses (ErrorCode::corrupt) what no node could have said, in any field, used or not.
Status check(const v1::RegisterMessage& message);
/// The caller has checked it.
RegisterMessage take(v1::RegisterMessage& from);

}  // namespace weir::codec
