// Where records live. `Store` is the one door to a disk (or to its twins: memory_store.h for tests
// and laptops, faulty_store.h for faults); its formats are for ever (src/codec/record.h,
// test/vectors).
//
// Thread rule: `write` is called by one thread at a time (the store writer's); reads may come from
// any thread, at any time, and see every write that has returned.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/ids.h"
#include "src/model/lease.h"

namespace weir::store {

struct RecordWrite {
  RegisterId reg;
  StoredRecord record;
  Nanos age_ns = 0;  ///< of a copy (PROTOCOL C2): it was accepted that long ago; 0: now

  friend bool operator==(const RecordWrite&, const RecordWrite&) = default;
};

/// Written all or nothing. Each record is stamped with the store's boot clock, boot id and wall
/// clock at the write (PROTOCOL B9). `meta` are small named values (epoch counters, promises).
struct WriteBatch {
  std::vector<RecordWrite> records;
  std::vector<std::pair<std::string, std::string>> meta;

  bool empty() const { return records.empty() && meta.empty(); }
};

/// The meta value that holds the number of the store incarnation (PROTOCOL C2), in decimal digits.
inline constexpr std::string_view kNumberMeta = "store/number";
/// The text of the highest policy version that the node has seen (PROTOCOL J4).
inline constexpr std::string_view kPolicyMeta = "policy";

class Store {
 public:
  virtual ~Store() = default;

  /// Durable when it returns (with `fsync: false`: handed to the operating system). A failure means
  /// that nothing may be assumed about the batch: it may or may not be there after a restart.
  virtual Status write(const WriteBatch& batch) = 0;

  /// One bucket's record with its age at the call, or nothing: there never was one.
  virtual Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                        std::string_view bucket) const = 0;

  /// Every record of one customer under one register, with its age at the call.
  virtual Result<std::vector<AgedRecord>> read_customer(const RegisterId& reg,
                                                        std::string_view customer) const = 0;

  /// Every record of one register, in key order, in pages: at most `most` records with keys after
  /// `after` (a `bucket`; empty: from the start).
  virtual Result<std::vector<AgedRecord>> read_register(const RegisterId& reg,
                                                        std::string_view after,
                                                        std::size_t most) const = 0;

  virtual Result<std::optional<std::string>> read_meta(std::string_view key) const = 0;
  /// All whose names start so, in the order of the names.
  virtual Result<std::vector<std::pair<std::string, std::string>>> read_metas(
      std::string_view prefix) const = 0;

  /// Random, made when the store's folder was created, and anew after amnesia (PROTOCOL C1).
  virtual std::uint64_t incarnation() const = 0;
  /// It has lost something that it had acknowledged, or cannot rule that out. Its records are what
  /// is left; its meta values, promises among them, are gone.
  virtual bool amnesic() const { return false; }
  /// The number of the store incarnation before (C2): kNumberMeta as last written; 0: none.
  virtual std::uint32_t previous_number() const { return 0; }

  /// An estimate of the number of records, for `owners_dormant`.
  virtual std::uint64_t approximate_records() const = 0;
};

/// The age of something accepted at (boot_ns, wall_ns) under `boot_id`, seen now: the boot-clock
/// difference within one boot, else the wall-clock difference less twice `max_clock_error_ns`;
/// never negative (PROTOCOL B9).
struct AcceptanceStamp {
  std::string boot_id;
  Nanos boot_ns = 0;
  Nanos wall_ns = 0;

  friend bool operator==(const AcceptanceStamp&, const AcceptanceStamp&) = default;
};
/// The stamp of something accepted `age_ns` before `stamp`: copies keep their age (PROTOCOL C2).
AcceptanceStamp before(AcceptanceStamp stamp, Nanos age_ns);
Nanos age_of(const AcceptanceStamp& accepted, const AcceptanceStamp& now, Nanos max_clock_error_ns);

}  // namespace weir::store
