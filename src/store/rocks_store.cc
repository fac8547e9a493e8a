#include "src/store/rocks_store.h"

#include <fcntl.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/assert.h"
#include "src/codec/record.h"
#include "src/store/acknowledged.h"
#include "src/store/record_key.h"

namespace weir::store {
namespace {

// Memory: at most these caches and buffers, and a little for each open file.
constexpr std::size_t kBlockCacheBytes = 32 << 20;
constexpr int kBlockCacheShardBits = 2;
constexpr std::size_t kWriteBufferBytes = 16 << 20;
constexpr double kWriteBufferBloomShare = 0.05;
constexpr int kMaxWriteBuffers = 3;
constexpr int kMaxOpenFiles = 256;
constexpr double kBloomBitsPerKey = 10;  // for each bucket and each customer: 1 % false positives
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kTargetFileBytes = 16 << 20;
constexpr std::size_t kBaseLevelBytes = 64 << 20;
constexpr int kBackgroundJobs = 2;
constexpr std::size_t kMaxManifestBytes = 16 << 20;
// RocksDB's own log, beside the data: warnings and errors only.
constexpr std::size_t kInfoLogBytes = 1 << 20;
constexpr std::size_t kInfoLogFiles = 2;

/// Of the key layout and the record's encoding together.
constexpr std::string_view kFormat = "1";

std::string own_key(std::string_view name) {
  std::string key(1, kOwnPrefix);
  key += name;
  return key;
}

std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }
rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

/// Tells RocksDB which keys belong to one customer, so that its Bloom filters answer "no record of
/// this customer" without a disk access. The name is written into the files.
class CustomerPrefix final : public rocksdb::SliceTransform {
 public:
  const char* Name() const override { return "weir.customer.1"; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    const auto bytes = customer_prefix_bytes(view(key));
    return {key.data(), bytes ? *bytes : key.size()};
  }
  bool InDomain(const rocksdb::Slice& key) const override {
    return customer_prefix_bytes(view(key)).has_value();
  }
};

rocksdb::CompressionType compression() {
  const auto supported = rocksdb::GetSupportedCompressions();
  const bool has_lz4 =
      std::find(supported.begin(), supported.end(), rocksdb::kLZ4Compression) != supported.end();
  return has_lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;
}

rocksdb::Options rocks_options() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kBlockCacheBytes, kBlockCacheShardBits);
  // Indexes and filters live in the cache too, in pieces: whole ones grow with the number of
  // records and would not fit into a shard of it.
  table.cache_index_and_filter_blocks = true;
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.metadata_block_size = kBlockBytes;
  table.block_size = kBlockBytes;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));

  rocksdb::Options options;
  options.create_if_missing = true;
  // PROTOCOL C5.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  options.track_and_verify_wals_in_manifest = true;
  options.paranoid_checks = true;
  options.paranoid_file_checks = true;
  // What failed stays failed until the store is opened anew; nothing resumes behind our back.
  options.max_bgerror_resume_count = 0;

  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.prefix_extractor = std::make_shared<CustomerPrefix>();
  options.memtable_prefix_bloom_size_ratio = kWriteBufferBloomShare;
  options.memtable_whole_key_filtering = true;
  options.write_buffer_size = kWriteBufferBytes;
  options.max_write_buffer_number = kMaxWriteBuffers;
  options.max_open_files = kMaxOpenFiles;
  options.max_background_jobs = kBackgroundJobs;
  options.target_file_size_base = kTargetFileBytes;
  options.max_bytes_for_level_base = kBaseLevelBytes;
  options.level_compaction_dynamic_level_bytes = true;
  options.compression = compression();
  options.max_manifest_file_size = kMaxManifestBytes;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = kInfoLogBytes;
  options.keep_log_file_num = kInfoLogFiles;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

/// Corruption is for ever; everything else is the disk.
ErrorCode code_of(const rocksdb::Status& status) {
  const bool damaged = status.IsCorruption() || status.IsInvalidArgument();
  return damaged ? ErrorCode::corrupt : ErrorCode::io;
}

tl::unexpected<Error> cannot(const std::string& what, const rocksdb::Status& status) {
  return failure(code_of(status), "data", "cannot " + what + ": " + status.ToString());
}

class RocksStore final : public Store {
 public:
  RocksStore(RocksOptions options, std::unique_ptr<rocksdb::DB> db)
      : options_(std::move(options)), db_(std::move(db)) {}

  /// Reads who this store is, or makes a new one of an empty folder. Called once, before all else.
  Status identify();

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
  std::uint64_t incarnation() const override { return incarnation_; }
  bool amnesic() const override { return amnesic_; }
  std::uint32_t previous_number() const override { return previous_number_; }
  std::uint64_t approximate_records() const override;

 private:
  AcceptanceStamp now() const;
  Status make_new();
  Status remember();
  Status forget();
  Result<std::uint64_t> own_number(std::string_view name) const;
  Status put_own(rocksdb::WriteBatch& batch, std::uint64_t count);
  Result<std::optional<std::string>> get(const std::string& key) const;
  Result<AgedRecord> aged(std::string_view bucket, std::string_view value,
                          const AcceptanceStamp& read) const;

  const RocksOptions options_;
  const std::unique_ptr<rocksdb::DB> db_;
  std::uint64_t incarnation_ = 0;
  Acknowledged acknowledged_;
  std::uint64_t count_ = 0;  ///< of acknowledged writes
  std::uint32_t number_ = 0;
  std::uint32_t previous_number_ = 0;
  bool amnesic_ = false;
  std::optional<Error> write_failure_;  ///< the first one; used by the writing thread only
};

AcceptanceStamp RocksStore::now() const {
  // A clock before 1970 or before the boot is as good as none.
  return {options_.boot_id, std::max<Nanos>(0, options_.clock->boot_ns()),
          std::max<Nanos>(0, options_.clock->wall_ns())};
}

Result<std::optional<std::string>> RocksStore::get(const std::string& key) const {
  std::string value;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key, &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return cannot("read from " + options_.folder, status);
  return value;
}

Status RocksStore::identify() {
  if (Status opened = acknowledged_.open(options_.folder); !opened) return opened;
  const auto format = get(own_key("format"));
  if (!format) return tl::unexpected(format.error());
  const auto incarnation = get(own_key("incarnation"));
  if (!incarnation) return tl::unexpected(incarnation.error());
  if (!*format && !*incarnation) return make_new();
  if (!*format || !*incarnation) {
    return failure(ErrorCode::corrupt, "data",
                   options_.folder + " has lost its format or its incarnation");
  }
  if (**format != kFormat) {
    return failure(ErrorCode::unsupported, "data",
                   options_.folder + " has format " + **format + "; this build reads format " +
                       std::string(kFormat));
  }
  const auto number = own_number("incarnation");
  if (!number) return tl::unexpected(number.error());
  incarnation_ = *number;
  return remember();
}

Result<std::uint64_t> RocksStore::own_number(std::string_view name) const {
  const auto value = get(own_key(name));
  if (!value) return tl::unexpected(value.error());
  std::string_view bytes = *value ? std::string_view(**value) : std::string_view();
  const auto number = take_varint(bytes);
  if (!number || !bytes.empty()) {
    return failure(ErrorCode::corrupt, "data",
                   options_.folder + " has an unreadable " + std::string(name));
  }
  return *number;
}

/// Has this store all that it has acknowledged (C1), and was nothing left to the operating system
/// that a stop of the machine has taken away (C5)?
Status RocksStore::remember() {
  const auto count = own_number("count");
  const auto boot = get(own_key("unsynced"));
  if (!boot) return tl::unexpected(boot.error());
  count_ = count.value_or(0);
  const auto& file = acknowledged_.content();
  number_ = file.number;
  const bool whole = count.has_value() && acknowledged_.found() == Acknowledged::Found::content &&
                     count_ >= file.count;
  const bool lost_unsynced = *boot && **boot != options_.boot_id;
  if (!whole || lost_unsynced) return forget();
  if (options_.fsync != boot->has_value()) return {};
  // How writes are made durable has changed: from here on the mark says so.
  rocksdb::WriteBatch batch;
  return put_own(batch, count_ + 1);
}

/// Amnesia: another incarnation, without what the old one has promised.
Status RocksStore::forget() {
  amnesic_ = true;
  previous_number_ = number_;
  incarnation_ = options_.seeds->next_seed();
  rocksdb::WriteBatch batch;
  std::string bytes;
  append_varint(bytes, incarnation_);
  batch.Put(own_key("incarnation"), bytes);
  batch.DeleteRange(std::string(1, kMetaPrefix), std::string(1, kMetaPrefix + 1));
  count_ = std::max(count_, acknowledged_.content().count);
  return put_own(batch, count_ + 1);
}

/// Writes a batch with the count that it brings about, durably, and acknowledges it.
Status RocksStore::put_own(rocksdb::WriteBatch& batch, std::uint64_t count) {
  std::string bytes;
  append_varint(bytes, count);
  batch.Put(own_key("count"), bytes);
  if (options_.fsync) {
    batch.Delete(own_key("unsynced"));
  } else {
    batch.Put(own_key("unsynced"), options_.boot_id);
  }
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status status = db_->Write(synced, &batch);
  if (!status.ok()) return cannot("write to " + options_.folder, status);
  count_ = count;
  return acknowledged_.advance({count_, number_}, true);
}

Status RocksStore::make_new() {
  rocksdb::ReadOptions everything;
  everything.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> any(db_->NewIterator(everything));
  any->SeekToFirst();
  if (!any->status().ok()) return cannot("read from " + options_.folder, any->status());
  if (any->Valid()) {
    return failure(ErrorCode::corrupt, "data",
                   options_.folder + " holds data but no format: not a store of Weir, or damaged");
  }
  incarnation_ = options_.seeds->next_seed();
  std::string bytes;
  append_varint(bytes, incarnation_);
  rocksdb::WriteBatch batch;
  batch.Put(own_key("format"), slice(kFormat));
  batch.Put(own_key("incarnation"), bytes);
  // A second file without a store: whatever it counted is gone.
  amnesic_ = acknowledged_.found() != Acknowledged::Found::nothing;
  previous_number_ = number_ = acknowledged_.content().number;
  return put_own(batch, acknowledged_.content().count + 1);
}

Status RocksStore::write(const WriteBatch& batch) {
  if (write_failure_) {
    return failure(
        ErrorCode::io, "data",
        "an earlier write failed, so the store must be opened anew: " + write_failure_->message);
  }
  if (batch.empty()) return {};
  const AcceptanceStamp accepted = now();
  rocksdb::WriteBatch rocks_batch;
  for (const RecordWrite& write : batch.records) {
    const AcceptanceStamp stamped = before(accepted, write.age_ns);
    const codec::RecordStamp stamp{stamped.boot_id, stamped.boot_ns, stamped.wall_ns};
    rocks_batch.Put(record_key(write.reg, write.record.bucket),
                    codec::encode_record(write.record, stamp));
  }
  std::uint32_t number = number_;
  for (const auto& [key, value] : batch.meta) {
    rocks_batch.Put(meta_key(key), value);
    if (key == kNumberMeta) std::from_chars(value.data(), value.data() + value.size(), number);
  }
  std::string count;
  append_varint(count, count_ + 1);
  rocks_batch.Put(own_key("count"), count);
  rocksdb::WriteOptions write_options;
  write_options.sync = options_.fsync;
  const rocksdb::Status status = db_->Write(write_options, &rocks_batch);
  Status advanced;
  if (status.ok()) {
    number_ = number;
    advanced = acknowledged_.advance({++count_, number_}, options_.fsync);
    if (advanced) return {};
  }
  write_failure_ =
      Error{ErrorCode::io, "data",
            status.ok() ? advanced.error().message
                        : "cannot write to " + options_.folder + ": " + status.ToString()};
  return tl::unexpected(*write_failure_);
}

Result<AgedRecord> RocksStore::aged(std::string_view bucket, std::string_view value,
                                    const AcceptanceStamp& read) const {
  auto decoded = codec::decode_record(bucket, value);
  if (!decoded) {
    return failure(ErrorCode::corrupt, "bucket",
                   "the record of " + describe_bucket(bucket) + " in " + options_.folder +
                       " cannot be read: " + decoded.error().message);
  }
  const AcceptanceStamp accepted{std::move(decoded->stamp.boot_id), decoded->stamp.boot_ns,
                                 decoded->stamp.wall_ns};
  return AgedRecord{std::move(decoded->record),
                    age_of(accepted, read, options_.max_clock_error_ns)};
}

Result<std::optional<AgedRecord>> RocksStore::read_record(const RegisterId& reg,
                                                          std::string_view bucket) const {
  const AcceptanceStamp read = now();
  const auto value = get(record_key(reg, bucket));
  if (!value) return tl::unexpected(value.error());
  if (!*value) return std::nullopt;
  auto record = aged(bucket, **value, read);
  if (!record) return tl::unexpected(std::move(record.error()));
  return std::move(*record);
}

Result<std::vector<AgedRecord>> RocksStore::read_customer(const RegisterId& reg,
                                                          std::string_view customer) const {
  const std::size_t bucket_at = register_prefix(reg).size();
  const std::string prefix = record_key(reg, customer_prefix(customer));
  rocksdb::ReadOptions one_customer;
  one_customer.prefix_same_as_start = true;
  const AcceptanceStamp read = now();
  const std::unique_ptr<rocksdb::Iterator> position(db_->NewIterator(one_customer));
  std::vector<AgedRecord> records;
  for (position->Seek(prefix); position->Valid(); position->Next()) {
    const std::string_view key = view(position->key());
    if (!key.starts_with(prefix)) break;
    auto record = aged(key.substr(bucket_at), view(position->value()), read);
    if (!record) return tl::unexpected(std::move(record.error()));
    records.push_back(std::move(*record));
  }
  if (!position->status().ok()) {
    return cannot("read customer " + std::string(customer) + " from " + options_.folder,
                  position->status());
  }
  return records;
}

Result<std::vector<AgedRecord>> RocksStore::read_register(const RegisterId& reg,
                                                          std::string_view after,
                                                          std::size_t most) const {
  const std::string prefix = register_prefix(reg);
  const std::string start = record_key(reg, after);
  rocksdb::ReadOptions in_order;
  in_order.total_order_seek = true;
  in_order.fill_cache = false;  // a scan must not push out what customers use
  const AcceptanceStamp read = now();
  const std::unique_ptr<rocksdb::Iterator> position(db_->NewIterator(in_order));
  position->Seek(start);
  if (!after.empty() && position->Valid() && view(position->key()) == start) position->Next();
  std::vector<AgedRecord> records;
  for (; position->Valid() && records.size() < most; position->Next()) {
    const std::string_view key = view(position->key());
    if (!key.starts_with(prefix)) break;
    auto record = aged(key.substr(prefix.size()), view(position->value()), read);
    if (!record) return tl::unexpected(std::move(record.error()));
    records.push_back(std::move(*record));
  }
  if (!position->status().ok()) {
    return cannot("read register " + to_string(reg) + " from " + options_.folder,
                  position->status());
  }
  return records;
}

Result<std::optional<std::string>> RocksStore::read_meta(std::string_view key) const {
  return get(meta_key(key));
}

Result<std::vector<std::pair<std::string, std::string>>> RocksStore::read_metas(
    std::string_view prefix) const {
  const std::string start = meta_key(prefix);
  rocksdb::ReadOptions in_order;
  in_order.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> position(db_->NewIterator(in_order));
  std::vector<std::pair<std::string, std::string>> found;
  for (position->Seek(start); position->Valid(); position->Next()) {
    const std::string_view key = view(position->key());
    if (!key.starts_with(start)) break;
    found.emplace_back(key.substr(start.size() - prefix.size()), view(position->value()));
  }
  if (!position->status().ok()) {
    return cannot("read from " + options_.folder, position->status());
  }
  return found;
}

std::uint64_t RocksStore::approximate_records() const {
  constexpr std::uint64_t kOwnKeys = 3;
  std::uint64_t keys = 0;
  if (!db_->GetIntProperty(rocksdb::DB::Properties::kEstimateNumKeys, &keys)) return 0;
  return keys - std::min(keys, kOwnKeys);
}

Status sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  if (descriptor >= 0) ::close(descriptor);
  if (synced) return {};
  return failure(ErrorCode::io, "data", "cannot sync the folder " + folder.string());
}

/// Makes the folder and its parents, so that they are there after a power cut as well.
Status make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return {};
  const std::filesystem::path parent = folder.parent_path();
  if (!parent.empty() && parent != folder) {
    if (Status made = make_folder(parent); !made) return made;
  }
  if (!std::filesystem::create_directory(folder, error) && error) {
    return failure(ErrorCode::io, "data",
                   "cannot make the folder " + folder.string() + ": " + error.message());
  }
  return sync_folder(parent.empty() ? std::filesystem::path(".") : parent);
}

/// RocksDB starts an empty store where its CURRENT file is missing, whatever else is there.
Status refuse_remains(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::exists(folder / "CURRENT", error)) return {};
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::filesystem::path extension = entry->path().extension();
    if (extension == ".sst" || extension == ".log") {
      return failure(ErrorCode::corrupt, "data",
                     folder.string() + " holds parts of a store but no CURRENT file: damaged");
    }
  }
  if (error) {
    return failure(ErrorCode::io, "data",
                   "cannot list the folder " + folder.string() + ": " + error.message());
  }
  return {};
}

bool is_held_by_another(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return status.IsIOError() && (text.find("While lock file") != std::string::npos ||
                                text.find("lock hold by current process") != std::string::npos);
}

Result<std::unique_ptr<Store>> open(const RocksOptions& options) {
  const std::filesystem::path folder = std::filesystem::path(options.folder).lexically_normal();
  if (Status made = make_folder(folder); !made) return tl::unexpected(made.error());
  if (Status whole = refuse_remains(folder); !whole) return tl::unexpected(whole.error());
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(rocks_options(), folder.string(), &opened);
  if (is_held_by_another(status)) {
    return failure(ErrorCode::unavailable, "data",
                   "the folder " + options.folder +
                       " is in use by another process; every node needs a data folder of its own");
  }
  if (!status.ok()) return cannot("open the store in " + options.folder, status);
  auto store = std::make_unique<RocksStore>(options, std::unique_ptr<rocksdb::DB>(opened));
  if (Status known = store->identify(); !known) return tl::unexpected(known.error());
  return store;
}

}  // namespace

Result<std::unique_ptr<Store>> replace_rocks_store(const RocksOptions& options) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(options.folder).lexically_normal();
  const std::filesystem::path aside = folder.string() + ".damaged";
  std::filesystem::remove_all(aside, error);
  std::filesystem::rename(folder, aside, error);
  if (!error) std::filesystem::create_directory(folder, error);
  if (!error && std::filesystem::exists(aside / kAcknowledgedFile)) {
    std::filesystem::copy_file(aside / kAcknowledgedFile, folder / kAcknowledgedFile, error);
  }
  if (error) {
    return failure(ErrorCode::io, "data",
                   "cannot move the folder " + folder.string() + " aside: " + error.message());
  }
  return open_rocks_store(options);
}

Result<std::unique_ptr<Store>> open_rocks_store(const RocksOptions& options) {
  WEIR_ASSERT(options.clock != nullptr && options.seeds != nullptr);
  if (options.folder.empty()) {
    return failure(ErrorCode::invalid_argument, "data", "the store's folder is empty");
  }
  if (options.boot_id.size() > codec::kMaxBootIdBytes) {
    return failure(ErrorCode::invalid_argument, "boot_id", "longer than a record may keep");
  }
  try {
    return open(options);
  } catch (const std::exception& error) {
    return failure(ErrorCode::io, "data",
                   "cannot open the store in " + options.folder + ": " + error.what());
  }
}

}  // namespace weir::store
