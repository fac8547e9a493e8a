#include "src/store/group_commit.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "src/base/assert.h"
#include "src/base/hash.h"
#include "src/model/register.h"
#include "src/store/record_key.h"

namespace weir::store {
namespace {

std::size_t estimated_bytes(const CommitItem& item) {
  std::size_t bytes = 0;
  for (const RecordWrite& write : item.records) {
    bytes += write.reg.region.size() + record_bytes(write.record.bucket, write.record.ledger);
  }
  for (const auto& [key, value] : item.meta) bytes += key.size() + value.size();
  return bytes;
}

/// Builds a batch in which each key stands once.
class Gatherer {
 public:
  void add(CommitItem item) {
    for (RecordWrite& write : item.records) {
      const auto [position, fresh] =
          records_.try_emplace(record_key(write.reg, write.record.bucket), batch_.records.size());
      if (fresh) {
        batch_.records.push_back(std::move(write));
      } else {
        batch_.records[position->second] = std::move(write);
      }
    }
    for (auto& [key, value] : item.meta) {
      const auto [position, fresh] = meta_.try_emplace(key, batch_.meta.size());
      if (fresh) {
        batch_.meta.emplace_back(std::move(key), std::move(value));
      } else {
        batch_.meta[position->second].second = std::move(value);
      }
    }
  }

  WriteBatch take() { return std::move(batch_); }

 private:
  WriteBatch batch_;
  std::unordered_map<std::string, std::size_t, StringHash> records_;
  std::unordered_map<std::string, std::size_t, StringHash> meta_;
};

}  // namespace

bool GroupCommit::submit(CommitItem item) {
  if (waiting_.size() >= limits_.most_waiting) return false;
  waiting_.push_back(std::move(item));
  return true;
}

std::optional<WriteBatch> GroupCommit::begin() {
  if (under_way_ || waiting_.empty()) return std::nullopt;
  Gatherer gatherer;
  std::size_t records = 0;
  std::size_t bytes = 0;
  while (!waiting_.empty()) {
    CommitItem& item = waiting_.front();
    records += item.records.size() + item.meta.size();
    bytes += estimated_bytes(item);
    const bool fits = records <= limits_.most_records && bytes <= limits_.most_bytes;
    if (!fits && !completions_.empty()) break;
    completions_.push_back(item.completion);
    gatherer.add(std::move(item));
    waiting_.pop_front();
  }
  under_way_ = true;
  return gatherer.take();
}

std::vector<CommitDone> GroupCommit::finish(const Status& status) {
  WEIR_ASSERT(under_way_);
  std::vector<CommitDone> done;
  done.reserve(completions_.size());
  for (const std::uint64_t completion : completions_) done.push_back({completion, status});
  completions_.clear();
  under_way_ = false;
  return done;
}

}  // namespace weir::store
