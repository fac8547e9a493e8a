// A ledger record as a Protobuf message, for the two places where it lies: stored (record.h) and
// between replicas (register_message.h). Included by .cc files of src/codec only.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/model/lease.h"

namespace weir::v1 {
class LedgerRecord;
}

namespace weir::codec {

/// Everything but the stamp of the acceptance and the seal.
void fill(const StoredRecord& record, v1::LedgerRecord& to);
/// Refuses (ErrorCode::corrupt) what no ledger could have written.
Status check_ledger(const v1::LedgerRecord& stored);
/// The caller has checked it.
StoredRecord take_record(std::string bucket, const v1::LedgerRecord& stored);

}  // namespace weir::codec
