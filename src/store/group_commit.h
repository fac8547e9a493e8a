// Group commit: what arrives while a write is on its way to the disk goes into the next one,
// together. The store-writer actor owns one, writes the batches it gives out, and answers the
// completions it gives back. Pure: no clock, no disk. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "src/store/store.h"

namespace weir::store {

/// What one caller wants on disk, all or nothing, and the number by which it is told the outcome.
struct CommitItem {
  std::vector<RecordWrite> records;
  std::vector<std::pair<std::string, std::string>> meta;
  std::uint64_t completion = 0;  ///< the caller's own; need not be unique
};

/// One item's outcome.
struct CommitDone {
  std::uint64_t completion = 0;
  Status status;

  friend bool operator==(const CommitDone& a, const CommitDone& b) {
    return a.completion == b.completion && a.status.has_value() == b.status.has_value() &&
           (a.status.has_value() || a.status.error() == b.status.error());
  }
};

class GroupCommit {
 public:
  struct Limits {
    /// Most records and meta values of one batch. What is left waits for the next batch.
    std::size_t most_records = 1024;
    /// Most estimated bytes of one batch. What is left waits for the next batch.
    std::size_t most_bytes = 1024 * 1024;
    /// Most items waiting. A further one is refused: its owner answers nothing and asks again.
    std::size_t most_waiting = 65'536;
  };

  GroupCommit() = default;
  explicit GroupCommit(const Limits& limits) : limits_(limits) {}

  /// Puts an item at the end of the line; false, and nothing kept, when the line is full. An item
  /// above a batch's limits makes a batch of its own.
  [[nodiscard]] bool submit(CommitItem item);

  /// The next batch to write: items in the order of their arrival, an item never in two batches. Of
  /// records with the same register and bucket, and of meta values with the same key, the last
  /// submitted is written. Nothing while a batch is under way or no item waits.
  std::optional<WriteBatch> begin();

  /// Ends the batch under way: the outcome of its items, in the order of their arrival.
  std::vector<CommitDone> finish(const Status& status);

  bool batch_under_way() const { return under_way_; }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  Limits limits_;
  std::deque<CommitItem> waiting_;
  std::vector<std::uint64_t> completions_;  ///< of the batch under way
  bool under_way_ = false;
};

}  // namespace weir::store
