// A store that keeps everything in memory: `authority: memory`, tests and the simulator. It can
// crash like a disk: what has not been synced may be lost. Values only go in and out by copy.
//
// Thread rule: any method from any thread.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/store/rewindable.h"
#include "src/store/store.h"

namespace weir::store {

class MemoryStore final : public Store, public Rewindable {
 public:
  /// Whether a write is synced when it returns (`fsync: true`) or stays unsynced until `sync`.
  enum class Sync { each_write, on_demand };

  /// Most batches that are remembered for `crash` and `rewind`; with Sync::on_demand an older one
  /// counts as synced, as an operating system would have written it out by then.
  static constexpr std::size_t kMaxUndoBatches = 4096;

  /// `clock` must outlive the store.
  MemoryStore(const Clock& clock, std::string boot_id, Nanos max_clock_error_ns,
              std::uint64_t incarnation, Sync sync = Sync::each_write);

  Status write(const WriteBatch& batch) override;
  Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                std::string_view bucket) const override;
  Result<std::vector<AgedRecord>> read_customer(const RegisterId& reg,
                                                std::string_view customer) const override;
  Result<std::vector<AgedRecord>> read_register(const RegisterId& reg, std::string_view after,
                                                std::size_t most) const override;
  Result<std::optional<std::string>> read_meta(std::string_view key) const override;
  Result<std::vector<std::pair<std::string, std::string>>> read_metas(
      std::string_view prefix) const override;
  std::uint64_t incarnation() const override;
  std::uint64_t approximate_records() const override;

  /// Makes everything written so far survive a crash.
  void sync();
  /// The process dies; with `lose_unsynced` the machine does. Returns how many batches were lost.
  std::size_t crash(bool lose_unsynced);
  /// The machine has booted anew: later stamps and ages are of this boot.
  void set_boot_id(std::string boot_id);

  /// Only the batches since the start of undo history (`remember_batches`) or since the last sync.
  Status rewind(std::size_t batches) override;
  void wipe(std::uint64_t new_incarnation) override;
  /// From now on remembers up to this many batches for `rewind`, synced ones too (at most
  /// kMaxUndoBatches).
  void remember_batches(std::size_t most);

 private:
  struct Entry {
    StoredRecord record;
    AcceptanceStamp accepted;
  };
  /// What a key held before a batch.
  struct Undo {
    std::vector<std::pair<std::string, std::optional<Entry>>> records;
    std::vector<std::pair<std::string, std::optional<std::string>>> meta;
  };

  AcceptanceStamp now() const;
  std::vector<AgedRecord> read_range(const std::string& prefix, const std::string& from,
                                     bool from_included, std::size_t most) const;
  void put(const RecordWrite& write, const AcceptanceStamp& accepted, Undo* undo);
  void put_meta(const std::string& key, const std::string& value, Undo* undo);
  void undo_last();
  void trim_undo();

  const Clock& clock_;
  const Nanos max_clock_error_ns_;
  const Sync sync_;

  // Reads come from any thread while the store writer writes; they do not exclude each other.
  mutable std::shared_mutex mutex_;
  std::string boot_id_;
  std::uint64_t incarnation_;
  std::map<std::string, Entry, std::less<>> records_;  ///< by record_key
  std::map<std::string, std::string, std::less<>> meta_;
  std::deque<Undo> undo_;  ///< oldest first; the last `unsynced_` of them are not synced
  std::size_t unsynced_ = 0;
  std::size_t remembered_ = 0;  ///< most undo entries kept although synced
};

}  // namespace weir::store
