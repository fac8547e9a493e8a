// Goal: the writer gives every record a version that never repeats, stores in order, and says so
// only when it is true. Method: the real actors over the memory store and its faulty twin.
#include "actors/store_writer.h"

#include <gtest/gtest.h>

#include "src/store/faulty_store.h"
#include "src/telemetry/names.h"
#include "test/actor/support.h"

namespace weir::actors::test {
namespace {

class Writer : public ::testing::Test {
 protected:
  Writer() {
    config_.set("logger.verbosity", caf::atom("quiet"));
    system_ = std::make_unique<caf::actor_system>(config_);
    writer = spawn_store_writer(*system_, {&store, &clock, log_.get(), &metrics_, {3, "n", 4}});
    reader = spawn_store_reader(*system_, store);
    self = std::make_unique<caf::scoped_actor>(*system_);
  }
  ~Writer() override {
    (*self)->send_exit(writer, caf::exit_reason::kill);
    (*self)->send_exit(reader, caf::exit_reason::kill);
    self.reset();
    writer = WriterActor();
    reader = ReaderActor();
    system_.reset();
  }

  static CommitRecords commit_of(const std::string& customer, std::int64_t level) {
    LedgerRecord record;
    record.level = level;
    record.numbers = {100, 1, kSecond};
    return {register_of(Scope::global, "", customer), {{bucket_of(customer), record}}};
  }
  bool stored(const CommitRecords& commit) {
    bool good = false;
    (*self)
        ->request(writer, caf::infinite, commit)
        .receive([&](const Stored& stored) { good = stored.status.has_value(); },
                 [](const caf::error&) {});
    return good;
  }
  Result<std::optional<AgedRecord>> read(const std::string& customer) {
    Result<std::optional<AgedRecord>> record;
    (*self)
        ->request(reader, caf::infinite,
                  LoadRecord{register_of(Scope::global, "", customer), bucket_of(customer)})
        .receive([&](const Loaded& loaded) { record = loaded.record; }, [](const caf::error&) {});
    return record;
  }

  ManualClock clock;
  store::FaultyStore store{std::make_unique<store::MemoryStore>(clock, "boot", kSecond, 1)};
  std::unique_ptr<telemetry::Log> log_ = telemetry::make_null_log();
  telemetry::Metrics metrics_;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  WriterActor writer;
  ReaderActor reader;
  std::unique_ptr<caf::scoped_actor> self;
};

TEST_F(Writer, VersionsGrowWithinTheEpochAndRegister) {
  EXPECT_FALSE(read("acme")->has_value());
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(stored(commit_of("acme", static_cast<std::int64_t>(i))));
    const auto record = read("acme");
    ASSERT_TRUE(record && record->has_value());
    EXPECT_EQ((*record)->record.version, (Version{{3, "n", 4}, i}));
    EXPECT_EQ((*record)->record.ledger.level, static_cast<std::int64_t>(i));
  }
}

TEST_F(Writer, FailureIsSaidAndItsSequenceIsNotUsedAgain) {
  ASSERT_TRUE(stored(commit_of("acme", 1)));
  store.script_writes(store::WriteFault::io_error);
  EXPECT_FALSE(stored(commit_of("acme", 2)));
  EXPECT_EQ((*read("acme"))->record.ledger.level, 1);
  ASSERT_TRUE(stored(commit_of("acme", 3)));
  EXPECT_EQ((*read("acme"))->record.version.sequence, 3U);
}

TEST_F(Writer, SyncComesAfterEverythingSubmittedBefore) {
  for (int i = 0; i < 1000; ++i) (*self)->send(writer, commit_of("c" + std::to_string(i), i));
  (*self)
      ->request(writer, caf::infinite, SyncAtom::value)
      .receive([](const Stored&) {}, [](const caf::error&) {});
  for (int i = 0; i < 1000; ++i) {
    const auto record = store.read_record(register_of(Scope::global, "", "c" + std::to_string(i)),
                                          bucket_of("c" + std::to_string(i)));
    ASSERT_TRUE(record && record->has_value()) << i;
  }
}

TEST_F(Writer, UnreadableRecordIsAnError) {
  store.script_reads(store::ReadFault::io_error);
  EXPECT_FALSE(read("acme").has_value());
}

}  // namespace
}  // namespace weir::actors::test
