// A store that fails on command: wraps another one and plays a script of faults. For tests, for the
// simulator, and for nodes with `chaos: true`.
//
// Thread rule: any method from any thread; the wrapped store's own rule holds for writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/store/rewindable.h"
#include "src/store/store.h"

namespace weir::store {

enum class WriteFault : std::uint8_t {
  none,       ///< this write works
  io_error,   ///< nothing is written, and the answer says so
  disk_full,  ///< nothing is written, and the answer says so
  torn,       ///< everything is written, but the answer says that it was not
};

enum class ReadFault : std::uint8_t {
  none,      ///< this read works
  io_error,  ///< the disk does not answer
  corrupt,   ///< what is read makes no sense
};

class FaultyStore final : public Store {
 public:
  /// Until `clear_faults`, for the count of a fault.
  static constexpr std::size_t kUntilCleared = SIZE_MAX;

  /// `rewindable` is the same store seen as a Rewindable, or nullptr when it cannot rewind.
  explicit FaultyStore(std::unique_ptr<Store> inner, Rewindable* rewindable = nullptr);

  /// Appends to the script: the next `count` writes not yet spoken for.
  void script_writes(WriteFault fault, std::size_t count = 1);
  /// Appends to the script of reads (every kind of read count).
  void script_reads(ReadFault fault, std::size_t count = 1);
  void clear_faults();
  /// Faults played so far.
  std::uint64_t faults_played() const;

  /// Forgets the last `batches` acknowledged writes, as a cut WAL does. `unsupported` when the
  /// wrapped store cannot.
  Status lose_tail(std::size_t batches);
  /// An empty disk in the old one's place.
  Status wipe(std::uint64_t new_incarnation);

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
  std::uint64_t incarnation() const override { return inner_->incarnation(); }
  bool amnesic() const override { return inner_->amnesic(); }
  std::uint32_t previous_number() const override { return inner_->previous_number(); }
  std::uint64_t approximate_records() const override { return inner_->approximate_records(); }

 private:
  template <typename Fault>
  struct Scripted {
    Fault fault;
    std::size_t left;
  };
  template <typename Fault>
  using Script = std::deque<Scripted<Fault>>;

  template <typename Fault>
  Fault take(Script<Fault>& script) const;
  Status before_read(const std::string& what) const;

  const std::unique_ptr<Store> inner_;
  Rewindable* const rewindable_;

  // Faults are scripted by a test's or an admin's thread while the node runs.
  mutable std::mutex mutex_;
  mutable Script<WriteFault> writes_;
  mutable Script<ReadFault> reads_;
  mutable std::uint64_t faults_played_ = 0;
};

}  // namespace weir::store
