// Stored ledger records: model values <-> bytes of weir.v1.LedgerRecord. The format is for ever
// (test/vectors/records.txt). Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/lease.h"

namespace weir::codec {

/// Longest boot id that is stored; Linux's are UUIDs of 36 bytes.
inline constexpr std::size_t kMaxBootIdBytes = 64;

/// When a replica accepted a record, by its own clocks (PROTOCOL B9).
struct RecordStamp {
  std::string boot_id;
  Nanos boot_ns = 0;  ///< boot clock under `boot_id`, not negative
  Nanos wall_ns = 0;  ///< UTC since 1970, not negative

  friend bool operator==(const RecordStamp&, const RecordStamp&) = default;
};

struct DecodedRecord {
  StoredRecord record;
  RecordStamp stamp;

  friend bool operator==(const DecodedRecord&, const DecodedRecord&) = default;
};

/// The bytes to store under the record's bucket, which itself is not part of them.
std::string encode_record(const StoredRecord& record, const RecordStamp& stamp);

/// Refuses (ErrorCode::corrupt) cut or altered bytes, an unknown format, and what no ledger could
/// have written: negative amounts, a fraction of a whole token, numbers outside of a policy's
/// range, repeated lessees, more free tokens than the clamp of PROTOCOL D5 leaves. `bucket` is
/// taken as it is.
Result<DecodedRecord> decode_record(std::string_view bucket, std::string_view bytes);

}  // namespace weir::codec
