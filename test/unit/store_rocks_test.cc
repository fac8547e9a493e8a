// Goal: what RocksDB must add to the twins: durability against kill -9, one owner for a folder, and
// damage that is reported, never taken for "new".
// Method: real folders; a second process (store_crash_writer) that is killed while it writes; bytes
// put or altered behind the store's back.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "src/store/acknowledged.h"
#include "src/store/record_key.h"
#include "src/store/rocks_store.h"
#include "test/unit/store_support.h"

namespace weir::store {
namespace {

using ::testing::HasSubstr;

class RocksStoreTest : public ::testing::Test {
 protected:
  std::filesystem::path folder() const { return temporary_.path() / "deep" / "data"; }

  Result<std::unique_ptr<Store>> try_open() {
    return open_rocks_store(rocks_options(folder(), clock_, seeds_));
  }
  std::unique_ptr<Store> open() {
    auto opened = try_open();
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : nullptr;
  }
  void expect_refused(ErrorCode code, const std::string& words) {
    const auto opened = try_open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_THAT(opened.error().message, HasSubstr(words));
    EXPECT_THAT(opened.error().message, HasSubstr(folder().string()));
  }
  /// Works on the closed store's keys with RocksDB itself.
  template <typename Action>
  void behind_its_back(Action action) {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* raw = nullptr;
    std::filesystem::create_directories(folder());
    ASSERT_TRUE(rocksdb::DB::Open(options, folder().string(), &raw).ok());
    const std::unique_ptr<rocksdb::DB> database(raw);
    action(*database);
  }

  ManualClock clock_;
  FixedSeeds seeds_{1};
  TemporaryFolder temporary_;
};

/// A process that writes records until it is killed (store_crash_writer.cc).
class Writer {
 public:
  Writer(const std::filesystem::path& folder, const std::string& first) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = WEIR_STORE_CRASH_WRITER;
    std::string path = folder.string();
    std::string from = first;
    char* arguments[] = {program.data(), path.data(), from.data(), nullptr};
    EXPECT_EQ(posix_spawn(&process_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    acknowledged_ = fdopen(ends[0], "r");
  }
  ~Writer() {
    kill_now();
    std::fclose(acknowledged_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// The next number whose write has been acknowledged; 0 at the end.
  std::uint64_t next() {
    unsigned long number = 0;
    return std::fscanf(acknowledged_, "%lu", &number) == 1 ? number : 0;
  }
  void kill_now() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  std::FILE* acknowledged_ = nullptr;
};

TEST_F(RocksStoreTest, WhatWasAcknowledgedSurvivesKillMinusNine) {
  std::uint64_t last = 0;
  for (const std::uint64_t wanted : {1, 50, 400}) {
    Writer writer(folder(), std::to_string(last + 1));
    const std::uint64_t before = last;
    while (last < before + wanted) {
      const std::uint64_t number = writer.next();
      ASSERT_NE(number, 0U) << "the writer ended by itself";
      last = number;
    }
    writer.kill_now();
    while (const std::uint64_t number = writer.next()) last = number;
    const auto store = open();
    for (std::uint64_t i = 1; i <= last; ++i) {
      const RecordWrite written = record_of("c" + std::to_string(i), i);
      const auto read = store->read_record(written.reg, written.record.bucket);
      ASSERT_TRUE(read && *read) << i << " of " << last << " is lost";
      ASSERT_EQ((*read)->record, written.record);
    }
  }
}

TEST_F(RocksStoreTest, ASecondProcessIsToldThatTheFolderIsInUse) {
  Writer writer(folder(), "1");
  ASSERT_NE(writer.next(), 0U);
  expect_refused(ErrorCode::unavailable, "in use by another process");
  writer.kill_now();
  EXPECT_NE(open(), nullptr);
}

TEST_F(RocksStoreTest, ASecondOpenerInTheSameProcessIsRefusedToo) {
  const auto store = open();
  expect_refused(ErrorCode::unavailable, "in use");
}

TEST_F(RocksStoreTest, ANewFolderGetsAnIncarnationOfItsOwn) {
  const std::uint64_t first = open()->incarnation();
  EXPECT_EQ(open()->incarnation(), first);
  std::filesystem::remove_all(folder());
  EXPECT_NE(open()->incarnation(), first);
}

TEST_F(RocksStoreTest, ARecordThatCannotBeReadIsAnErrorThatNamesItsBucket) {
  const RecordWrite good = record_of("acme", 1, "login");
  const RecordWrite bad = record_of("acme", 1, "api");
  ASSERT_TRUE(open()->write(batch_of({good, bad})));
  const std::string key = record_key(bad.reg, bad.record.bucket);
  std::string value;
  behind_its_back([&](rocksdb::DB& database) {
    ASSERT_TRUE(database.Get(rocksdb::ReadOptions(), key, &value).ok());
  });
  std::string flipped = value;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 1);
  for (const std::string& damaged :
       {std::string(), std::string("x"), flipped, value.substr(0, value.size() - 1), value + "x"}) {
    behind_its_back([&](rocksdb::DB& database) {
      ASSERT_TRUE(database.Put(rocksdb::WriteOptions(), key, damaged).ok());
    });
    const auto store = open();
    const auto record = store->read_record(bad.reg, bad.record.bucket);
    const auto customer = store->read_customer(bad.reg, "acme");
    const auto page = store->read_register(bad.reg, "", 10);
    ASSERT_FALSE(record);
    ASSERT_FALSE(customer);
    ASSERT_FALSE(page);
    for (const Error& error : {record.error(), customer.error(), page.error()}) {
      EXPECT_EQ(error.code, ErrorCode::corrupt);
      EXPECT_THAT(error.message, HasSubstr("limit api of customer acme"));
    }
    EXPECT_TRUE(store->read_record(good.reg, good.record.bucket).value());
  }
}

TEST_F(RocksStoreTest, AlteredBytesOnDiskAreAnErrorNotAnAbsence) {
  const RecordWrite write = record_of("acme", 1);
  ASSERT_TRUE(open()->write(batch_of({write})));
  open();  // moves the log's content into a table
  std::size_t tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() != ".sst") continue;
    ++tables;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(10);
    file.write("\xFF\xFF\xFF\xFF", 4);
  }
  ASSERT_GT(tables, 0U);
  const auto opened = try_open();
  if (!opened) {
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << opened.error().message;
    return;
  }
  const auto read = (*opened)->read_customer(write.reg, "acme");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::corrupt) << read.error().message;
}

TEST_F(RocksStoreTest, AMissingCurrentFileIsDamageNotANewStore) {
  ASSERT_TRUE(open()->write(batch_of({record_of("acme", 1)})));
  std::filesystem::remove(folder() / "CURRENT");
  expect_refused(ErrorCode::corrupt, "CURRENT");
}

TEST_F(RocksStoreTest, AMissingTableIsDamage) {
  ASSERT_TRUE(open()->write(batch_of({record_of("acme", 1)})));
  open();
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".sst") std::filesystem::remove(entry.path());
  }
  expect_refused(ErrorCode::corrupt, "");
}

/// The write-ahead log that was written last.
std::filesystem::path newest_log(const std::filesystem::path& folder) {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".log" || entry.file_size() == 0) continue;
    if (newest.empty() || newest.filename() < entry.path().filename()) newest = entry.path();
  }
  return newest;
}

TEST_F(RocksStoreTest, AStoreThatIsAllThereRemembersItsPromises) {
  std::uint64_t incarnation = 0;
  {
    const auto store = open();
    EXPECT_FALSE(store->amnesic());
    incarnation = store->incarnation();
    ASSERT_TRUE(store->write({{}, {{std::string(kNumberMeta), "3"}, {"promise", "5"}}}));
  }
  const auto store = open();
  EXPECT_FALSE(store->amnesic());
  EXPECT_EQ(store->incarnation(), incarnation);
  EXPECT_EQ(*store->read_meta("promise"), std::optional<std::string>("5"));
}

TEST_F(RocksStoreTest, ALogWhoseEndWasCutIsAmnesia) {
  std::uint64_t incarnation = 0;
  {
    const auto store = open();
    incarnation = store->incarnation();
    ASSERT_TRUE(store->write({{}, {{std::string(kNumberMeta), "3"}, {"promise", "5"}}}));
    ASSERT_TRUE(store->write(batch_of({record_of("acme", 1)})));
    ASSERT_TRUE(store->write(batch_of({record_of("acme", 2)})));
  }
  const auto log = newest_log(folder());
  ASSERT_FALSE(log.empty());
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 5);
  {
    const auto store = open();
    EXPECT_TRUE(store->amnesic());
    EXPECT_NE(store->incarnation(), incarnation);
    EXPECT_EQ(store->previous_number(), 3U);
    EXPECT_EQ(*store->read_meta("promise"), std::optional<std::string>());
    const RecordWrite written = record_of("acme", 1);
    const auto read = store->read_record(written.reg, written.record.bucket);
    ASSERT_TRUE(read && *read);
    EXPECT_EQ((*read)->record.version, written.record.version);
  }
  EXPECT_FALSE(open()->amnesic()) << "what the new incarnation has acknowledged is there";
}

TEST_F(RocksStoreTest, ALogThatIsGoneOrASecondFileThatIsGoneIsAmnesia) {
  ASSERT_TRUE(open()->write(batch_of({record_of("acme", 1)})));
  std::filesystem::remove(newest_log(folder()));
  EXPECT_TRUE(open()->amnesic());
  EXPECT_FALSE(open()->amnesic());
  std::filesystem::remove(folder() / kAcknowledgedFile);
  EXPECT_TRUE(open()->amnesic());
  std::ofstream(folder() / kAcknowledgedFile) << "not a count";
  EXPECT_TRUE(open()->amnesic());
}

TEST_F(RocksStoreTest, WithoutFsyncAnotherBootIsAmnesia) {
  RocksOptions options = rocks_options(folder(), clock_, seeds_, "boot-1");
  options.fsync = false;
  ASSERT_TRUE((*open_rocks_store(options))->write(batch_of({record_of("acme", 1)})));
  EXPECT_FALSE((*open_rocks_store(options))->amnesic());
  options.boot_id = "boot-2";
  EXPECT_TRUE((*open_rocks_store(options))->amnesic());
  EXPECT_FALSE((*open_rocks_store(options))->amnesic());
}

TEST_F(RocksStoreTest, FsyncSwitchedOffLaterIsNotedToo) {
  RocksOptions options = rocks_options(folder(), clock_, seeds_, "boot-1");
  ASSERT_TRUE((*open_rocks_store(options))->write(batch_of({record_of("acme", 1)})));
  options.fsync = false;
  ASSERT_TRUE((*open_rocks_store(options))->write(batch_of({record_of("acme", 2)})));
  options.boot_id = "boot-2";
  EXPECT_TRUE((*open_rocks_store(options))->amnesic());
}

TEST_F(RocksStoreTest, FsyncSwitchedOnLaterSyncsWhatWasLeft) {
  RocksOptions options = rocks_options(folder(), clock_, seeds_, "boot-1");
  options.fsync = false;
  ASSERT_TRUE((*open_rocks_store(options))->write(batch_of({record_of("acme", 1)})));
  options.fsync = true;
  EXPECT_FALSE((*open_rocks_store(options))->amnesic());
  options.boot_id = "boot-2";
  EXPECT_FALSE((*open_rocks_store(options))->amnesic());
}

TEST_F(RocksStoreTest, DamageIsMovedAsideAndTheNumberKept) {
  ASSERT_TRUE(open()->write({{}, {{std::string(kNumberMeta), "7"}}}));
  std::filesystem::remove(folder() / "CURRENT");
  expect_refused(ErrorCode::corrupt, "CURRENT");
  const auto replaced = replace_rocks_store(rocks_options(folder(), clock_, seeds_));
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_TRUE((*replaced)->amnesic());
  EXPECT_EQ((*replaced)->previous_number(), 7U);
  EXPECT_TRUE(std::filesystem::exists(folder().string() + ".damaged"));
}

TEST_F(RocksStoreTest, AnothersDatabaseIsNotTakenForAStore) {
  behind_its_back([](rocksdb::DB& database) {
    ASSERT_TRUE(database.Put(rocksdb::WriteOptions(), "key", "value").ok());
  });
  expect_refused(ErrorCode::corrupt, "not a store of Weir");
}

TEST_F(RocksStoreTest, ALostIncarnationIsDamage) {
  open();
  behind_its_back([](rocksdb::DB& database) {
    ASSERT_TRUE(database.Delete(rocksdb::WriteOptions(), "sincarnation").ok());
  });
  expect_refused(ErrorCode::corrupt, "incarnation");
}

TEST_F(RocksStoreTest, ALaterFormatIsRefused) {
  open();
  behind_its_back([](rocksdb::DB& database) {
    ASSERT_TRUE(database.Put(rocksdb::WriteOptions(), "sformat", "2").ok());
  });
  expect_refused(ErrorCode::unsupported, "format 2");
}

TEST_F(RocksStoreTest, AFolderThatCannotBeMadeIsAnIoError) {
  std::ofstream(temporary_.path() / "deep") << "a file";
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::io);
  EXPECT_THAT(opened.error().message, HasSubstr("deep"));
}

TEST_F(RocksStoreTest, AnEmptyFolderNameIsRefused) {
  const auto opened = open_rocks_store(rocks_options("", clock_, seeds_));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
}

/// Makes every file of this process end at a size, as a full disk does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limited{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() { lift(); }
  void lift() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(RocksStoreTest, AfterAFailedWriteNothingIsAcknowledgedUntilReopened) {
  std::unique_ptr<Store> store = open();
  std::uint64_t acknowledged = 0;
  {
    FileSizeLimit limit(64 * 1024);
    Status status;
    for (std::uint64_t i = 1; i <= 2'000 && status; ++i) {
      status = store->write(batch_of({record_of("c" + std::to_string(i), i)}));
      if (status) acknowledged = i;
    }
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::io);
    EXPECT_THAT(status.error().message, HasSubstr(folder().string()));
  }
  const Status later = store->write(batch_of({record_of("later", 1)}));
  ASSERT_FALSE(later) << "there is room again, but what the disk holds is not known";
  EXPECT_EQ(later.error().code, ErrorCode::io);
  EXPECT_THAT(later.error().message, HasSubstr("opened anew"));
  store.reset();
  store = open();
  ASSERT_GT(acknowledged, 0U);
  for (std::uint64_t i = 1; i <= acknowledged; ++i) {
    const RecordWrite written = record_of("c" + std::to_string(i), i);
    ASSERT_TRUE(store->read_record(written.reg, written.record.bucket).value()) << i;
  }
  EXPECT_TRUE(store->write(batch_of({record_of("later", 1)})));
}

TEST_F(RocksStoreTest, WithoutFsyncAKillOfTheProcessStillLosesNothing) {
  RocksOptions options = rocks_options(folder(), clock_, seeds_);
  options.fsync = false;
  auto store = open_rocks_store(options);
  ASSERT_TRUE(store);
  const RecordWrite write = record_of("acme", 1);
  ASSERT_TRUE((*store)->write(batch_of({write})));
  // What a killed process leaves behind is what its files hold now.
  std::filesystem::copy(folder(), temporary_.path() / "copy");
  RocksOptions of_copy = options;
  of_copy.folder = (temporary_.path() / "copy").string();
  const auto copy = open_rocks_store(of_copy);
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_TRUE((*copy)->read_record(write.reg, write.record.bucket).value());
}

TEST_F(RocksStoreTest, AClockBeforeItsEpochDoesNotSpoilRecords) {
  const auto store = open();
  clock_.wall = -5 * kSecond;
  const RecordWrite write = record_of("acme", 1);
  ASSERT_TRUE(store->write(batch_of({write})));
  EXPECT_TRUE(store->read_record(write.reg, write.record.bucket).value());
}

}  // namespace
}  // namespace weir::store
