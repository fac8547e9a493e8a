// Parts that several messages between nodes have, and the checks of names that all need. Included
// by .cc files of src/codec only.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/model/ids.h"

namespace weir::v1 {
class RegisterId;
class Epoch;
}  // namespace weir::v1

namespace weir::codec {

void fill(const RegisterId& from, v1::RegisterId& to);
void fill(const Epoch& from, v1::Epoch& to);

/// The caller has checked it.
RegisterId take(v1::RegisterId& from);
Epoch take(v1::Epoch& from);

/// The error of a frame that holds what no node could have said.
tl::unexpected<Error> corrupt(const char* field, const char* what);
Status check_name(const char* field, const std::string& name, bool may_be_empty = false);
/// An encoded BucketKey.
Status check_bucket(const std::string& bucket);
Status check(const v1::RegisterId& reg);

}  // namespace weir::codec
