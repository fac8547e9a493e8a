// Goal: the twins fail as disks do, and only when told to: lost unsynced writes, scripted errors,
// torn writes, lost tails, wiped folders. And `age_of` and the key layout, case by case.
// Method: write, fail, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/store/faulty_store.h"
#include "src/store/memory_store.h"
#include "src/store/record_key.h"
#include "test/unit/store_support.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;

std::uint64_t sequence_of(const Store& store, const std::string& customer) {
  const RecordWrite any = record_of(customer, 0);
  const auto read = store.read_record(any.reg, any.record.bucket);
  EXPECT_TRUE(read) << read.error().message;
  return read && *read ? (*read)->record.version.sequence : 0;
}

Status put(Store& store, const std::string& customer, std::uint64_t sequence) {
  WriteBatch batch = batch_of({record_of(customer, sequence)});
  batch.meta = {{"last", customer}};
  return store.write(batch);
}

TEST(MemoryStore, ACrashOfTheMachineLosesWhatWasNotSynced) {
  const ManualClock clock;
  MemoryStore store(clock, "boot-1", kClockError, 42, MemoryStore::Sync::on_demand);
  ASSERT_TRUE(put(store, "old", 1));
  store.sync();
  ASSERT_TRUE(put(store, "old", 2));
  ASSERT_TRUE(put(store, "new", 3));
  ASSERT_TRUE(store.write(batch_of({record_of("new", 4), record_of("new", 5)})));
  EXPECT_EQ(sequence_of(store, "new"), 5U);
  EXPECT_EQ(store.crash(true), 3U);
  EXPECT_EQ(sequence_of(store, "old"), 1U);
  EXPECT_EQ(sequence_of(store, "new"), 0U);
  EXPECT_EQ(store.read_meta("last").value(), "old");
  EXPECT_EQ(store.approximate_records(), 1U);
  EXPECT_EQ(store.crash(true), 0U);
}

TEST(MemoryStore, ACrashOfTheProcessLosesNothing) {
  const ManualClock clock;
  MemoryStore store(clock, "boot-1", kClockError, 42, MemoryStore::Sync::on_demand);
  ASSERT_TRUE(put(store, "acme", 1));
  EXPECT_EQ(store.crash(false), 0U);
  EXPECT_EQ(sequence_of(store, "acme"), 1U);
  EXPECT_EQ(store.crash(true), 1U);  // still not synced
  EXPECT_EQ(sequence_of(store, "acme"), 0U);
}

TEST(MemoryStore, EachWriteIsSyncedByDefault) {
  const ManualClock clock;
  MemoryStore store(clock, "boot-1", kClockError, 42);
  ASSERT_TRUE(put(store, "acme", 1));
  EXPECT_EQ(store.crash(true), 0U);
  EXPECT_EQ(sequence_of(store, "acme"), 1U);
}

TEST(MemoryStore, OnlyTheLastBatchesCanBeLost) {
  const ManualClock clock;
  MemoryStore store(clock, "boot-1", kClockError, 42, MemoryStore::Sync::on_demand);
  for (std::size_t i = 0; i < MemoryStore::kMaxUndoBatches + 2; ++i) {
    ASSERT_TRUE(put(store, "acme", i + 1));
  }
  EXPECT_EQ(store.crash(true), MemoryStore::kMaxUndoBatches);
  EXPECT_EQ(sequence_of(store, "acme"), 2U);
}

TEST(MemoryStore, SyncedBatchesCanBeRewoundWhileRemembered) {
  const ManualClock clock;
  MemoryStore store(clock, "boot-1", kClockError, 42);
  ASSERT_TRUE(put(store, "acme", 1));
  store.remember_batches(2);
  for (std::uint64_t i = 2; i <= 4; ++i) ASSERT_TRUE(put(store, "acme", i));
  const Status too_many = store.rewind(3);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(sequence_of(store, "acme"), 4U);
  ASSERT_TRUE(store.rewind(2));
  EXPECT_EQ(sequence_of(store, "acme"), 2U);
  EXPECT_FALSE(store.rewind(1));
}

struct Faulty {
  Faulty() {
    auto inner = std::make_unique<MemoryStore>(clock, "boot-1", kClockError, 42);
    inner->remember_batches(100);
    Rewindable* rewindable = inner.get();
    store = std::make_unique<FaultyStore>(std::move(inner), rewindable);
  }
  ManualClock clock;
  std::unique_ptr<FaultyStore> store;
};

TEST(FaultyStore, PlaysItsScriptInOrder) {
  Faulty faulty;
  faulty.store->script_writes(WriteFault::none, 1);
  faulty.store->script_writes(WriteFault::io_error, 2);
  faulty.store->script_writes(WriteFault::disk_full);
  EXPECT_TRUE(put(*faulty.store, "acme", 1));
  for (int i = 0; i < 2; ++i) {
    const Status failed = put(*faulty.store, "acme", 2);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::io);
  }
  EXPECT_THAT(put(*faulty.store, "acme", 3).error().message, HasSubstr("no space left"));
  EXPECT_EQ(sequence_of(*faulty.store, "acme"), 1U);
  EXPECT_TRUE(put(*faulty.store, "acme", 4));
  EXPECT_EQ(sequence_of(*faulty.store, "acme"), 4U);
  EXPECT_EQ(faulty.store->faults_played(), 3U);
}

TEST(FaultyStore, ATornWriteIsThereThoughReportedFailed) {
  Faulty faulty;
  faulty.store->script_writes(WriteFault::torn);
  EXPECT_FALSE(put(*faulty.store, "acme", 7));
  EXPECT_EQ(sequence_of(*faulty.store, "acme"), 7U);
}

TEST(FaultyStore, AFullDiskStaysFullUntilCleared) {
  Faulty faulty;
  faulty.store->script_writes(WriteFault::disk_full, FaultyStore::kUntilCleared);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(put(*faulty.store, "acme", 1));
  EXPECT_EQ(sequence_of(*faulty.store, "acme"), 0U);
  faulty.store->clear_faults();
  EXPECT_TRUE(put(*faulty.store, "acme", 1));
}

TEST(FaultyStore, ReadsFailWithoutSayingThatNothingIsThere) {
  Faulty faulty;
  ASSERT_TRUE(put(*faulty.store, "acme", 1));
  const RecordWrite any = record_of("acme", 0);
  faulty.store->script_reads(ReadFault::io_error, 2);
  faulty.store->script_reads(ReadFault::corrupt, 2);
  EXPECT_EQ(faulty.store->read_customer(any.reg, "acme").error().code, ErrorCode::io);
  EXPECT_EQ(faulty.store->read_register(any.reg, "", 1).error().code, ErrorCode::io);
  const auto corrupt = faulty.store->read_record(any.reg, any.record.bucket);
  EXPECT_EQ(corrupt.error().code, ErrorCode::corrupt);
  EXPECT_THAT(corrupt.error().message, HasSubstr("limit api of customer acme"));
  EXPECT_EQ(faulty.store->read_meta("x").error().code, ErrorCode::corrupt);
  EXPECT_EQ(faulty.store->read_customer(any.reg, "acme").value().size(), 1U);
}

TEST(FaultyStore, LosesItsTailAndIsWiped) {
  Faulty faulty;
  for (std::uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(put(*faulty.store, "acme", i));
  ASSERT_TRUE(faulty.store->lose_tail(2));
  EXPECT_EQ(sequence_of(*faulty.store, "acme"), 3U);
  EXPECT_FALSE(faulty.store->lose_tail(4));
  ASSERT_TRUE(faulty.store->wipe(43));
  EXPECT_EQ(faulty.store->incarnation(), 43U);
  EXPECT_EQ(sequence_of(*faulty.store, "acme"), 0U);
  EXPECT_EQ(faulty.store->read_meta("last").value(), std::nullopt);
}

TEST(FaultyStore, SaysWhenTheWrappedStoreCannotLose) {
  const ManualClock clock;
  FaultyStore store(std::make_unique<MemoryStore>(clock, "boot-1", kClockError, 42));
  EXPECT_EQ(store.lose_tail(1).error().code, ErrorCode::unsupported);
  EXPECT_EQ(store.wipe(1).error().code, ErrorCode::unsupported);
}

TEST(AgeOf, UsesTheBootClockWithinABoot) {
  EXPECT_EQ(age_of({"b", 100, 5'000}, {"b", 130, 10}, 7), 30);
  EXPECT_EQ(age_of({"b", 130, 0}, {"b", 100, kHour}, 7), 0);
  EXPECT_EQ(age_of({"b", INT64_MIN, 0}, {"b", INT64_MAX, 0}, 7), INT64_MAX);
}

TEST(AgeOf, UsesTheWallClockLessTwiceItsErrorAcrossBoots) {
  EXPECT_EQ(age_of({"b", 900, 1'000}, {"c", 5, 1'100}, 7), 86);
  EXPECT_EQ(age_of({"b", 0, 1'000}, {"c", kHour, 1'014}, 7), 0);
  EXPECT_EQ(age_of({"b", 0, 1'000}, {"c", kHour, 1'015}, 7), 1);
  EXPECT_EQ(age_of({"b", 0, 1'000}, {"c", kHour, 10}, 7), 0);
  EXPECT_EQ(age_of({"b", 0, INT64_MIN}, {"c", 0, INT64_MAX}, INT64_MAX), 0);
  EXPECT_EQ(age_of({"b", 0, 100}, {"c", 0, 200}, -50), 100);
}

TEST(AgeOf, AnUnknownBootIsNoBoot) { EXPECT_EQ(age_of({"", 100, 50}, {"", 900, 60}, 2), 6); }

// Golden: these bytes are on disks.
TEST(RecordKey, IsForEver) {
  const std::string bucket = bucket_of("acme");
  EXPECT_EQ(record_key({RegisterId::Kind::global, "", 0x0ABC}, bucket),
            std::string("r\x01\x00\x0A\xBC", 5) +
                "\x04"
                "acme\x03\x03"
                "api");
  EXPECT_EQ(record_key({RegisterId::Kind::region, "eu", 7}, bucket), std::string("r\x02\x02"
                                                                                 "eu\x00\x07",
                                                                                 7) +
                                                                         bucket);
  EXPECT_EQ(register_prefix({RegisterId::Kind::pin, "eu", 7}), std::string("r\x03\x02"
                                                                           "eu\x00\x07",
                                                                           7));
  EXPECT_EQ(meta_key("format"), "mformat");
}

TEST(RecordKey, TheCustomersPartEndsWithTheCustomer) {
  const std::string key = record_key({RegisterId::Kind::region, "eu", 7}, bucket_of("acme"));
  const std::size_t bytes = 7 + 1 + 4;
  EXPECT_EQ(customer_prefix_bytes(key), bytes);
  EXPECT_EQ(customer_prefix_bytes(key.substr(0, bytes)), bytes);
  for (std::size_t cut = 0; cut < bytes; ++cut) {
    EXPECT_EQ(customer_prefix_bytes(key.substr(0, cut)), std::nullopt) << cut;
  }
  EXPECT_EQ(customer_prefix_bytes("mformat"), std::nullopt);
  EXPECT_EQ(customer_prefix_bytes("r\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"), std::nullopt);
}

TEST(RecordKey, ABucketIsDescribedForPeople) {
  EXPECT_EQ(describe_bucket(bucket_of("acme")), "limit api of customer acme");
  EXPECT_EQ(describe_bucket("\x05x"), "bucket 0x0578");
  EXPECT_EQ(describe_bucket(std::string(100, '\xFF')).size(),
            std::string("bucket 0x...").size() + 128);
}

}  // namespace
}  // namespace weir::store
