#include "src/store/faulty_store.h"

#include <utility>

#include "src/store/record_key.h"

namespace weir::store {
namespace {

tl::unexpected<Error> cannot_rewind() {
  return failure(ErrorCode::unsupported, "store", "only the memory store can lose what it has");
}

}  // namespace

FaultyStore::FaultyStore(std::unique_ptr<Store> inner, Rewindable* rewindable)
    : inner_(std::move(inner)), rewindable_(rewindable) {}

void FaultyStore::script_writes(WriteFault fault, std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (count > 0) writes_.push_back({fault, count});
}

void FaultyStore::script_reads(ReadFault fault, std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (count > 0) reads_.push_back({fault, count});
}

void FaultyStore::clear_faults() {
  const std::lock_guard lock(mutex_);
  writes_.clear();
  reads_.clear();
}

std::uint64_t FaultyStore::faults_played() const {
  const std::lock_guard lock(mutex_);
  return faults_played_;
}

template <typename Fault>
Fault FaultyStore::take(Script<Fault>& script) const {
  const std::lock_guard lock(mutex_);
  if (script.empty()) return Fault::none;
  const Fault fault = script.front().fault;
  if (script.front().left != kUntilCleared && --script.front().left == 0) script.pop_front();
  if (fault != Fault::none) ++faults_played_;
  return fault;
}

Status FaultyStore::lose_tail(std::size_t batches) {
  if (rewindable_ == nullptr) return cannot_rewind();
  return rewindable_->rewind(batches);
}

Status FaultyStore::wipe(std::uint64_t new_incarnation) {
  if (rewindable_ == nullptr) return cannot_rewind();
  rewindable_->wipe(new_incarnation);
  return {};
}

Status FaultyStore::write(const WriteBatch& batch) {
  switch (take(writes_)) {
    case WriteFault::none:
      return inner_->write(batch);
    case WriteFault::io_error:
      return failure(ErrorCode::io, "data", "scripted fault: the write failed");
    case WriteFault::disk_full:
      return failure(ErrorCode::io, "data", "scripted fault: no space left on device");
    case WriteFault::torn:
      if (Status written = inner_->write(batch); !written) return written;
      return failure(ErrorCode::io, "data", "scripted fault: the sync after the write failed");
  }
  return {};
}

Status FaultyStore::before_read(const std::string& what) const {
  switch (take(reads_)) {
    case ReadFault::none:
      return {};
    case ReadFault::io_error:
      return failure(ErrorCode::io, "data", "scripted fault: cannot read " + what);
    case ReadFault::corrupt:
      return failure(ErrorCode::corrupt, "data", "scripted fault: corrupt bytes in " + what);
  }
  return {};
}

Result<std::optional<AgedRecord>> FaultyStore::read_record(const RegisterId& reg,
                                                           std::string_view bucket) const {
  const Status ready = before_read(describe_bucket(bucket));
  if (!ready) return tl::unexpected(ready.error());
  return inner_->read_record(reg, bucket);
}

Result<std::vector<AgedRecord>> FaultyStore::read_customer(const RegisterId& reg,
                                                           std::string_view customer) const {
  const Status ready = before_read("customer " + std::string(customer));
  if (!ready) return tl::unexpected(ready.error());
  return inner_->read_customer(reg, customer);
}

Result<std::vector<AgedRecord>> FaultyStore::read_register(const RegisterId& reg,
                                                           std::string_view after,
                                                           std::size_t most) const {
  const Status ready = before_read("register " + to_string(reg));
  if (!ready) return tl::unexpected(ready.error());
  return inner_->read_register(reg, after, most);
}

Result<std::optional<std::string>> FaultyStore::read_meta(std::string_view key) const {
  const Status ready = before_read("meta " + std::string(key));
  if (!ready) return tl::unexpected(ready.error());
  return inner_->read_meta(key);
}

Result<std::vector<std::pair<std::string, std::string>>> FaultyStore::read_metas(
    std::string_view prefix) const {
  const Status ready = before_read("metas " + std::string(prefix));
  if (!ready) return tl::unexpected(ready.error());
  return inner_->read_metas(prefix);
}

}  // namespace weir::store
