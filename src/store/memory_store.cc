#include "src/store/memory_store.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "src/store/record_key.h"

namespace weir::store {
namespace {

template <typename Map>
auto value_in(const Map& map, std::string_view key) -> std::optional<typename Map::mapped_type> {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

template <typename Map, typename Undone>
void put_back(Map& map, Undone& undone) {
  // In reverse, so that the oldest value of a key written twice in one batch is the one that stays.
  for (auto entry = undone.rbegin(); entry != undone.rend(); ++entry) {
    if (entry->second) {
      map.insert_or_assign(std::move(entry->first), std::move(*entry->second));
    } else {
      map.erase(entry->first);
    }
  }
}

}  // namespace

MemoryStore::MemoryStore(const Clock& clock, std::string boot_id, Nanos max_clock_error_ns,
                         std::uint64_t incarnation, Sync sync)
    : clock_(clock),
      max_clock_error_ns_(max_clock_error_ns),
      sync_(sync),
      boot_id_(std::move(boot_id)),
      incarnation_(incarnation) {}

AcceptanceStamp MemoryStore::now() const { return {boot_id_, clock_.boot_ns(), clock_.wall_ns()}; }

Status MemoryStore::write(const WriteBatch& batch) {
  const std::unique_lock lock(mutex_);
  const bool undoable = sync_ == Sync::on_demand || remembered_ > 0;
  Undo undo;
  const AcceptanceStamp accepted = now();
  for (const RecordWrite& record : batch.records) put(record, accepted, undoable ? &undo : nullptr);
  for (const auto& [key, value] : batch.meta) put_meta(key, value, undoable ? &undo : nullptr);
  if (undoable) {
    undo_.push_back(std::move(undo));
    if (sync_ == Sync::on_demand) ++unsynced_;
    trim_undo();
  }
  return {};
}

void MemoryStore::put(const RecordWrite& write, const AcceptanceStamp& accepted, Undo* undo) {
  std::string key = record_key(write.reg, write.record.bucket);
  if (undo != nullptr) undo->records.emplace_back(key, value_in(records_, key));
  records_.insert_or_assign(std::move(key), Entry{write.record, before(accepted, write.age_ns)});
}

void MemoryStore::put_meta(const std::string& key, const std::string& value, Undo* undo) {
  if (undo != nullptr) undo->meta.emplace_back(key, value_in(meta_, key));
  meta_.insert_or_assign(key, value);
}

std::vector<AgedRecord> MemoryStore::read_range(const std::string& prefix, const std::string& from,
                                                bool from_included, std::size_t most) const {
  const std::shared_lock lock(mutex_);
  const AcceptanceStamp read = now();
  std::vector<AgedRecord> result;
  auto position = from_included ? records_.lower_bound(from) : records_.upper_bound(from);
  for (; position != records_.end() && result.size() < most; ++position) {
    if (!position->first.starts_with(prefix)) break;
    const Entry& entry = position->second;
    result.push_back({entry.record, age_of(entry.accepted, read, max_clock_error_ns_)});
  }
  return result;
}

Result<std::optional<AgedRecord>> MemoryStore::read_record(const RegisterId& reg,
                                                           std::string_view bucket) const {
  const std::shared_lock lock(mutex_);
  const auto found = records_.find(record_key(reg, bucket));
  if (found == records_.end()) return std::nullopt;
  const Entry& entry = found->second;
  return AgedRecord{entry.record, age_of(entry.accepted, now(), max_clock_error_ns_)};
}

Result<std::vector<AgedRecord>> MemoryStore::read_customer(const RegisterId& reg,
                                                           std::string_view customer) const {
  const std::string prefix = record_key(reg, customer_prefix(customer));
  return read_range(prefix, prefix, true, SIZE_MAX);
}

Result<std::vector<AgedRecord>> MemoryStore::read_register(const RegisterId& reg,
                                                           std::string_view after,
                                                           std::size_t most) const {
  return read_range(register_prefix(reg), record_key(reg, after), after.empty(), most);
}

Result<std::optional<std::string>> MemoryStore::read_meta(std::string_view key) const {
  const std::shared_lock lock(mutex_);
  return value_in(meta_, key);
}

Result<std::vector<std::pair<std::string, std::string>>> MemoryStore::read_metas(
    std::string_view prefix) const {
  const std::shared_lock lock(mutex_);
  std::vector<std::pair<std::string, std::string>> found;
  for (auto at = meta_.lower_bound(prefix); at != meta_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    found.push_back(*at);
  }
  return found;
}

std::uint64_t MemoryStore::incarnation() const {
  const std::shared_lock lock(mutex_);
  return incarnation_;
}

std::uint64_t MemoryStore::approximate_records() const {
  const std::shared_lock lock(mutex_);
  return records_.size();
}

void MemoryStore::sync() {
  const std::unique_lock lock(mutex_);
  unsynced_ = 0;
  trim_undo();
}

std::size_t MemoryStore::crash(bool lose_unsynced) {
  const std::unique_lock lock(mutex_);
  if (!lose_unsynced) return 0;
  const std::size_t lost = unsynced_;
  while (unsynced_ > 0) undo_last();
  return lost;
}

void MemoryStore::set_boot_id(std::string boot_id) {
  const std::unique_lock lock(mutex_);
  boot_id_ = std::move(boot_id);
}

Status MemoryStore::rewind(std::size_t batches) {
  const std::unique_lock lock(mutex_);
  if (batches > undo_.size()) {
    return failure(ErrorCode::invalid_argument, "batches",
                   "only the last " + std::to_string(undo_.size()) + " batches are remembered");
  }
  for (std::size_t i = 0; i < batches; ++i) undo_last();
  return {};
}

void MemoryStore::wipe(std::uint64_t new_incarnation) {
  const std::unique_lock lock(mutex_);
  incarnation_ = new_incarnation;
  records_.clear();
  meta_.clear();
  undo_.clear();
  unsynced_ = 0;
}

void MemoryStore::remember_batches(std::size_t most) {
  const std::unique_lock lock(mutex_);
  remembered_ = std::min(most, kMaxUndoBatches);
  trim_undo();
}

void MemoryStore::undo_last() {
  put_back(records_, undo_.back().records);
  put_back(meta_, undo_.back().meta);
  undo_.pop_back();
  if (unsynced_ > 0) --unsynced_;
}

void MemoryStore::trim_undo() {
  unsynced_ = std::min(unsynced_, kMaxUndoBatches);
  const std::size_t kept = std::max(unsynced_, remembered_);
  while (undo_.size() > kept) undo_.pop_front();
}

}  // namespace weir::store
