// Goal: the writer stores in order, and says so only when it is true. Method: the real actor over
// the memory store and its faulty twin; the replication actor that hears it is played by the test.
#include "actors/store_writer.h"

#include <gtest/gtest.h>

#include "src/store/faulty_store.h"
#include "test/actor/support.h"

namespace weir::actors::test {
namespace {

struct Heard {
  std::mutex mutex;
  std::vector<std::uint64_t> stored;
  std::vector<std::uint64_t> failed;
  std::vector<std::string> metas;

  std::size_t count() {
    const std::lock_guard lock(mutex);
    return stored.size() + failed.size() + metas.size();
  }
};

ReplicationActor::behavior_type play_replication(ReplicationActor::pointer, Heard* heard) {
  return {[](const Requests&) {},
          [](const RegistersFrom&) {},
          [](const OwnerDid&) {},
          [=](const Written& done) {
            const std::lock_guard lock(heard->mutex);
            auto& into = done.status ? heard->stored : heard->failed;
            into.insert(into.end(), done.tokens.begin(), done.tokens.end());
          },
          [=](const StoreMeta& meta) {
            const std::lock_guard lock(heard->mutex);
            heard->metas.push_back(meta.name);
          },
          [](const Asked&) {},
          [](const Book&) {},
          [](TimerAtom, Nanos) {},
          [](const DrainOrder&) {},
          [](const RecoverOrder&) {},
          [](const PeerLink&) {},
          [](StopAtom) {}};
}

class Writer : public ::testing::Test {
 protected:
  Writer() {
    config_.set("logger.verbosity", caf::atom("quiet"));
    system_ = std::make_unique<caf::actor_system>(config_);
    links_->replication = system_->spawn(play_replication, &heard);
    writer = spawn_store_writer(*system_, {&store, log_.get(), links_});
  }
  ~Writer() override {
    caf::anon_send_exit(writer, caf::exit_reason::kill);
    caf::anon_send_exit(links_->replication, caf::exit_reason::kill);
    writer = WriterActor();
    links_->replication = ReplicationActor();
    system_.reset();
  }

  static ownership::Replica::Write write_of(std::uint64_t token, std::int64_t level) {
    ownership::Replica::Write write;
    write.token = token;
    write.reg = register_of(Scope::global, "", "acme");
    write.state = RegisterState{};
    write.state->promise = {token, "n", 1};
    StoredRecord record;
    record.bucket = bucket_of("acme");
    record.version = {{token, "n", 1}, 1};
    record.ledger.numbers = {100, 1, kSecond};
    record.ledger.level = level;
    write.records.push_back(record);
    return write;
  }

  ManualClock clock;
  store::FaultyStore store{std::make_unique<store::MemoryStore>(clock, "boot", kSecond, 1)};
  std::unique_ptr<telemetry::Log> log_ = telemetry::make_null_log();
  Heard heard;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<Links> links_ = std::make_shared<Links>();
  WriterActor writer;
};

TEST_F(Writer, StoresInOrderAndSaysSo) {
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    caf::anon_send(writer, Writes{{write_of(i, static_cast<std::int64_t>(i % 100))}});
  }
  ASSERT_TRUE(eventually([&] { return heard.count() == 1000; }));
  EXPECT_TRUE(std::is_sorted(heard.stored.begin(), heard.stored.end()));
  const auto reg = register_of(Scope::global, "", "acme");
  const auto record = store.read_record(reg, bucket_of("acme"));
  ASSERT_TRUE(record && record->has_value());
  EXPECT_EQ((*record)->record.version.epoch.counter, 1000U);
  const auto state = store.read_meta(meta_key(reg));
  ASSERT_TRUE(state && state->has_value());
  EXPECT_EQ(decode_register_state(**state)->promise.counter, 1000U);
}

TEST_F(Writer, FailureIsSaidOfAllThatWasInIt) {
  store.script_writes(store::WriteFault::io_error);
  Writes both;
  both.all = {write_of(1, 1), write_of(2, 2)};
  caf::anon_send(writer, std::move(both));
  ASSERT_TRUE(eventually([&] { return heard.count() == 2; }));
  EXPECT_EQ(heard.failed, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_FALSE(
      store.read_record(register_of(Scope::global, "", "acme"), bucket_of("acme"))->has_value());
}

TEST_F(Writer, ValuesAreStoredBeforeTheyAreSentBack) {
  caf::anon_send(writer, StoreMeta{kTopologyKey, "7"});
  ASSERT_TRUE(eventually([&] { return heard.count() == 1; }));
  EXPECT_EQ(store.read_meta(kTopologyKey)->value_or(""), "7");
}

}  // namespace
}  // namespace weir::actors::test
