// Goal: the stores are twins: what one promises, all of them do.
// Method: one suite, run over memory, RocksDB, and a faulty store without faults around either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "src/store/faulty_store.h"
#include "src/store/memory_store.h"
#include "src/store/rocks_store.h"
#include "test/unit/store_support.h"

namespace weir::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Makes a store, and the same store again after a restart of its process or machine.
class Memory {
 public:
  explicit Memory(const Clock& clock) : store_(clock, "boot-1", kClockError, 42) {}
  Store& store() { return store_; }
  void restart(const std::string& boot_id) {
    store_.crash(true);
    store_.set_boot_id(boot_id);
  }

 private:
  MemoryStore store_;
};

class Rocks {
 public:
  explicit Rocks(const Clock& clock) : clock_(clock) { restart("boot-1"); }
  Store& store() { return *store_; }
  void restart(const std::string& boot_id) {
    store_.reset();
    auto opened = open_rocks_store(rocks_options(folder_.path() / "data", clock_, seeds_, boot_id));
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
  }

 private:
  const Clock& clock_;
  FixedSeeds seeds_{42};
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

/// Lends a store to a FaultyStore, which wants to own one.
class Borrowed final : public Store {
 public:
  explicit Borrowed(Store& lender) : lender_(lender) {}
  Status write(const WriteBatch& batch) override { return lender_.write(batch); }
  Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                std::string_view bucket) const override {
    return lender_.read_record(reg, bucket);
  }
  Result<std::vector<AgedRecord>> read_customer(const RegisterId& reg,
                                                std::string_view customer) const override {
    return lender_.read_customer(reg, customer);
  }
  Result<std::vector<AgedRecord>> read_register(const RegisterId& reg, std::string_view after,
                                                std::size_t most) const override {
    return lender_.read_register(reg, after, most);
  }
  Result<std::optional<std::string>> read_meta(std::string_view key) const override {
    return lender_.read_meta(key);
  }
  Result<std::vector<std::pair<std::string, std::string>>> read_metas(
      std::string_view prefix) const override {
    return lender_.read_metas(prefix);
  }
  std::uint64_t incarnation() const override { return lender_.incarnation(); }
  std::uint64_t approximate_records() const override { return lender_.approximate_records(); }

 private:
  Store& lender_;
};

template <typename Inner>
class Faultless {
 public:
  explicit Faultless(const Clock& clock) : inner_(clock) { wrap(); }
  Store& store() { return *faulty_; }
  void restart(const std::string& boot_id) {
    inner_.restart(boot_id);
    wrap();
  }

 private:
  void wrap() {
    faulty_ = std::make_unique<FaultyStore>(std::make_unique<Borrowed>(inner_.store()));
  }

  Inner inner_;
  std::unique_ptr<FaultyStore> faulty_;
};

template <typename Backend>
class StoreSuite : public ::testing::Test {
 protected:
  Store& store() { return backend_.store(); }

  void write(std::vector<RecordWrite> records) {
    const Status written = store().write(batch_of(std::move(records)));
    ASSERT_TRUE(written) << written.error().message;
  }
  std::vector<AgedRecord> customer(const RegisterId& reg, std::string_view name) {
    auto read = store().read_customer(reg, name);
    EXPECT_TRUE(read) << read.error().message;
    return read.value_or(std::vector<AgedRecord>());
  }
  std::vector<AgedRecord> page(const RegisterId& reg, std::string_view after, std::size_t most) {
    auto read = store().read_register(reg, after, most);
    EXPECT_TRUE(read) << read.error().message;
    return read.value_or(std::vector<AgedRecord>());
  }
  std::vector<std::string> buckets(const std::vector<AgedRecord>& records) {
    std::vector<std::string> names;
    for (const AgedRecord& record : records) names.push_back(record.record.bucket);
    return names;
  }

  ManualClock clock_;
  Backend backend_{clock_};
};

#ifdef __SANITIZE_THREAD__
// Debian's RocksDB is not instrumented: ThreadSanitizer does not see how its threads order things.
using Backends = ::testing::Types<Memory, Faultless<Memory>>;
#else
using Backends = ::testing::Types<Memory, Rocks, Faultless<Memory>, Faultless<Rocks>>;
#endif
TYPED_TEST_SUITE(StoreSuite, Backends);

TYPED_TEST(StoreSuite, ARecordComesBackAsItWas) {
  const RecordWrite write = record_of("acme", 8);
  this->write({write});
  const auto one = this->store().read_record(write.reg, write.record.bucket);
  ASSERT_TRUE(one && *one);
  EXPECT_EQ((*one)->record, write.record);
  EXPECT_THAT(this->customer(write.reg, "acme"), ElementsAre(AgedRecord{write.record, 0}));
  EXPECT_THAT(this->page(write.reg, "", 10), ElementsAre(AgedRecord{write.record, 0}));
}

TYPED_TEST(StoreSuite, WhatWasNeverWrittenIsNotThere) {
  const RecordWrite write = record_of("acme", 1);
  const auto one = this->store().read_record(write.reg, write.record.bucket);
  ASSERT_TRUE(one);
  EXPECT_FALSE(*one);
  EXPECT_THAT(this->customer(write.reg, "acme"), IsEmpty());
  EXPECT_THAT(this->page(write.reg, "", 10), IsEmpty());
  const auto meta = this->store().read_meta("format");
  ASSERT_TRUE(meta);
  EXPECT_FALSE(*meta);
}

TYPED_TEST(StoreSuite, ALaterWriteReplacesAnEarlierOneAlsoWithinABatch) {
  this->write({record_of("acme", 1)});
  this->write({record_of("acme", 2), record_of("acme", 3)});
  const RecordWrite last = record_of("acme", 3);
  EXPECT_THAT(this->customer(last.reg, "acme"), ElementsAre(AgedRecord{last.record, 0}));
}

TYPED_TEST(StoreSuite, ARestartLosesNothingAndKeepsTheIncarnation) {
  const std::uint64_t incarnation = this->store().incarnation();
  const RecordWrite write = record_of("acme", 4);
  WriteBatch batch = batch_of({write});
  batch.meta = {{"epoch/global/7", "12"}};
  ASSERT_TRUE(this->store().write(batch));
  this->backend_.restart("boot-1");
  EXPECT_EQ(this->store().incarnation(), incarnation);
  EXPECT_THAT(this->customer(write.reg, "acme"), ElementsAre(AgedRecord{write.record, 0}));
  EXPECT_EQ(this->store().read_meta("epoch/global/7").value(), "12");
}

TYPED_TEST(StoreSuite, MetaKeysAreBytes) {
  const std::string key("\0r\xFF", 3);
  WriteBatch batch;
  batch.meta = {{key, std::string("\0\1", 2)}, {"", "empty"}, {"empty", ""}};
  ASSERT_TRUE(this->store().write(batch));
  EXPECT_EQ(this->store().read_meta(key).value(), std::string("\0\1", 2));
  EXPECT_EQ(this->store().read_meta("").value(), "empty");
  EXPECT_EQ(this->store().read_meta("empty").value(), "");
  EXPECT_EQ(this->store().read_meta("empt").value(), std::nullopt);
}

TYPED_TEST(StoreSuite, CustomersWhoseNamesBeginAlikeDoNotMix) {
  const RegisterId reg{RegisterId::Kind::global, "", 7};
  const std::vector<std::string> names = {"a",
                                          "ab",
                                          "abc",
                                          std::string("a\0", 2),
                                          "\x01"
                                          "a",
                                          "a\xFF",
                                          std::string(200, 'a')};
  for (const std::string& name : names) {
    this->write(
        {record_in(reg, bucket_of(name, "api"), 1), record_in(reg, bucket_of(name, "login"), 2)});
  }
  for (const std::string& name : names) {
    EXPECT_THAT(this->buckets(this->customer(reg, name)),
                ElementsAre(bucket_of(name, "api"), bucket_of(name, "login")))
        << name;
  }
  EXPECT_THAT(this->customer(reg, ""), IsEmpty());
  EXPECT_THAT(this->customer(reg, "a\xFF\xFF"), IsEmpty());
}

TYPED_TEST(StoreSuite, RegistersDoNotMix) {
  const std::vector<RegisterId> registers = {
      {RegisterId::Kind::global, "", 7},      {RegisterId::Kind::global, "", 8},
      {RegisterId::Kind::global, "", 0x107},  {RegisterId::Kind::region, "eu", 7},
      {RegisterId::Kind::region, "eu-1", 7},  {RegisterId::Kind::pin, "eu", 7},
      {RegisterId::Kind::region, "us", 0xFFF}};
  for (std::size_t i = 0; i < registers.size(); ++i) {
    this->write({record_in(registers[i], bucket_of("acme"), i + 1)});
  }
  for (std::size_t i = 0; i < registers.size(); ++i) {
    const auto records = this->page(registers[i], "", 10);
    ASSERT_EQ(records.size(), 1U) << to_string(registers[i]);
    EXPECT_EQ(records[0].record.version.sequence, i + 1);
    EXPECT_EQ(this->customer(registers[i], "acme"), records);
  }
}

TYPED_TEST(StoreSuite, PagesGoThroughARegisterOnceInOrder) {
  constexpr std::size_t kRecords = 100'000;
  constexpr std::size_t kPage = 999;
  const RegisterId reg{RegisterId::Kind::region, "eu", 7};
  WriteBatch batch;
  for (std::size_t i = 0; i < kRecords; ++i) {
    batch.records.push_back(record_in(reg, bucket_of("c" + std::to_string(i)), i));
    if (batch.records.size() == 1'000) {
      ASSERT_TRUE(this->store().write(batch));
      batch.records.clear();
    }
  }
  // Neighbours on both sides, which are not to be seen.
  this->write({record_in({RegisterId::Kind::region, "eu", 6}, bucket_of("c1"), 1),
               record_in({RegisterId::Kind::region, "eu", 8}, bucket_of("c1"), 1)});
  std::size_t seen = 0;
  std::string after;
  for (;;) {
    const auto records = this->page(reg, after, kPage);
    if (records.empty()) break;
    ASSERT_LE(records.size(), kPage);
    for (const AgedRecord& record : records) {
      ASSERT_LT(after, record.record.bucket);
      after = record.record.bucket;
    }
    seen += records.size();
  }
  EXPECT_EQ(seen, kRecords);
  EXPECT_NEAR(static_cast<double>(this->store().approximate_records()), kRecords, kRecords * 0.1);
}

TYPED_TEST(StoreSuite, APageMayStartAtAKeyThatIsNotThere) {
  const RegisterId reg{RegisterId::Kind::global, "", 7};
  this->write({record_in(reg, bucket_of("a"), 1), record_in(reg, bucket_of("c"), 2)});
  EXPECT_THAT(this->buckets(this->page(reg, bucket_of("b"), 5)), ElementsAre(bucket_of("c")));
  EXPECT_THAT(this->page(reg, bucket_of("c"), 5), IsEmpty());
  EXPECT_THAT(this->page(reg, "", 0), IsEmpty());
}

TYPED_TEST(StoreSuite, AgeIsTheBootClocksWithinABoot) {
  const RecordWrite write = record_of("acme", 1);
  this->write({write});
  this->clock_.advance(3 * kSecond);
  this->clock_.wall -= kHour;  // stepped back: does not matter
  EXPECT_EQ(this->customer(write.reg, "acme").at(0).age_ns, 3 * kSecond);
  this->backend_.restart("boot-1");
  EXPECT_EQ(this->page(write.reg, "", 1).at(0).age_ns, 3 * kSecond);
  this->write({write});
  EXPECT_EQ(this->store().read_record(write.reg, write.record.bucket).value()->age_ns, 0);
}

TYPED_TEST(StoreSuite, AgeAcrossARebootIsTheWallClocksLessTwiceItsError) {
  const RecordWrite write = record_of("acme", 1);
  this->write({write});
  this->backend_.restart("boot-2");
  this->clock_.boot = 5 * kSecond;
  this->clock_.wall += 60 * kSecond;
  EXPECT_EQ(this->customer(write.reg, "acme").at(0).age_ns, 60 * kSecond - 2 * kClockError);
  this->clock_.wall -= 3 * kHour;  // the wall clock went back: no age, never a negative one
  EXPECT_EQ(this->customer(write.reg, "acme").at(0).age_ns, 0);
}

TYPED_TEST(StoreSuite, ACopyKeepsItsAge) {
  RecordWrite copy = record_of("acme", 1);
  copy.age_ns = 30 * kDay;  // older than this boot
  this->write({copy});
  this->clock_.advance(kSecond);
  EXPECT_EQ(this->customer(copy.reg, "acme").at(0).age_ns, 30 * kDay + kSecond);
  this->backend_.restart("boot-2");
  EXPECT_EQ(this->customer(copy.reg, "acme").at(0).age_ns, 30 * kDay + kSecond - 2 * kClockError);
}

TYPED_TEST(StoreSuite, ACopyOlderThanTheClockIsReadable) {
  RecordWrite copy = record_of("acme", 1);
  this->clock_.wall = kSecond;  // a machine without a battery
  copy.age_ns = kDay;
  this->write({copy});
  EXPECT_EQ(this->customer(copy.reg, "acme").at(0).age_ns, kDay);
}

TYPED_TEST(StoreSuite, AnEmptyBatchIsFine) { EXPECT_TRUE(this->store().write(WriteBatch())); }

TYPED_TEST(StoreSuite, ReadersSeeWholeBatchesWhileAWriterWrites) {
  const RegisterId reg{RegisterId::Kind::global, "", 7};
  std::atomic<bool> done = false;
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!done) {
      const auto records = this->store().read_customer(reg, "acme");
      ASSERT_TRUE(records);
      if (records->empty()) continue;
      ASSERT_EQ(records->size(), 2U);
      const std::uint64_t sequence = records->at(0).record.version.sequence;
      ASSERT_EQ(records->at(1).record.version.sequence, sequence);
      ASSERT_GE(sequence, last);
      last = sequence;
    }
  });
  for (std::uint64_t i = 1; i <= 200; ++i) {
    this->write({record_in(reg, bucket_of("acme", "api"), i),
                 record_in(reg, bucket_of("acme", "login"), i)});
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace weir::store
