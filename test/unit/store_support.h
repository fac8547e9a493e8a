// What the tests of src/store share: a clock set by hand, fixed seeds, a folder that goes away, and
// short ways to make records.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/random.h"
#include "src/base/time.h"
#include "src/model/ids.h"
#include "src/store/rocks_store.h"
#include "src/store/store.h"
#include "test/support/temporary_folder.h"

namespace weir::store {

class ManualClock final : public Clock {
 public:
  Nanos boot_ns() const override { return boot; }
  Nanos wall_ns() const override { return wall; }
  void advance(Nanos by) {
    boot += by;
    wall += by;
  }

  Nanos boot = 1'000 * kSecond;
  Nanos wall = 1'700'000'000 * kSecond;
};

class FixedSeeds final : public SeedSource {
 public:
  explicit FixedSeeds(std::uint64_t seed) : random_(seed) {}
  std::uint64_t next_seed() override { return random_.next(); }

 private:
  Random random_;
};

using test::TemporaryFolder;

inline constexpr Nanos kClockError = 5 * kSecond;

inline RocksOptions rocks_options(const std::filesystem::path& folder, const Clock& clock,
                                  SeedSource& seeds, std::string boot_id = "boot-1") {
  RocksOptions options;
  options.folder = folder.string();
  options.clock = &clock;
  options.seeds = &seeds;
  options.boot_id = std::move(boot_id);
  options.max_clock_error_ns = kClockError;
  return options;
}

inline std::string bucket_of(std::string customer, std::string limit = "api") {
  BucketKey key;
  key.customer = std::move(customer);
  key.limit = std::move(limit);
  return encode(key);
}

inline RecordWrite record_in(RegisterId reg, std::string bucket, std::uint64_t sequence) {
  RecordWrite write;
  write.reg = std::move(reg);
  write.record.bucket = std::move(bucket);
  write.record.version = {{3, "eu-1", 77}, sequence};
  write.record.ledger.level = static_cast<std::int64_t>(sequence % 100);
  write.record.ledger.fraction = 12'345;
  write.record.ledger.numbers = {1'000, 600, kMinute};
  write.record.ledger.policy_version = 12;
  write.record.ledger.lessees = {{{"us-1", 5}, 9, 7, 100, 1, 4 * kSecond}};
  return write;
}

/// A record in the register that its customer hashes to.
inline RecordWrite record_of(const std::string& customer, std::uint64_t sequence,
                             const std::string& limit = "api") {
  return record_in(register_of(Scope::global, "", customer), bucket_of(customer, limit), sequence);
}

inline WriteBatch batch_of(std::vector<RecordWrite> records) {
  WriteBatch batch;
  batch.records = std::move(records);
  return batch;
}

}  // namespace weir::store
