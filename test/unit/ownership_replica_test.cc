// Goal: a replica promises and stores what PROTOCOL B2, B3, B5, C2, C3 and C5 allow, and nothing
// leaves before it is durable.
// Method: one Replica over a memory store; each test decides when the disk has written, or failed.
#include <gtest/gtest.h>

#include <deque>

#include "src/ownership/replica.h"
#include "src/store/memory_store.h"

namespace weir::ownership {
namespace {

class ManualClock final : public Clock {
 public:
  Nanos boot_ns() const override { return now_ns; }
  Nanos wall_ns() const override { return now_ns; }
  Nanos now_ns = 1000 * kSecond;
};

const RegisterId kReg{RegisterId::Kind::global, "", 7};
const std::string kBucket = "a bucket";

Epoch epoch(std::uint64_t counter, const std::string& node = "x") { return {counter, node, 1}; }

StoredRecord record(const Version& version, std::int64_t level,
                    const std::string& bucket = kBucket) {
  StoredRecord stored{bucket, version, {}};
  stored.ledger.level = level;
  stored.ledger.numbers = {100, 1, kSecond};
  return stored;
}

/// A replica `a` whose store has the number 1, and its disk.
class Machine : public RecordReader {
 public:
  explicit Machine(RegisterState state = {}, std::uint32_t number = 1)
      : replica_({"a", number}, {{kReg, std::move(state)}}, *this) {}

  Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                const std::string& bucket) const override {
    if (unreadable) return failure(ErrorCode::unavailable, "disk", "unreadable");
    return store_.read_record(reg, bucket);
  }
  Result<std::vector<AgedRecord>> read_register(const RegisterId& reg, const std::string& after,
                                                std::size_t most) const override {
    return store_.read_register(reg, after, most);
  }

  template <typename Message>
  void hear(const Message& message) {
    Replica::Effects out;
    if constexpr (std::is_same_v<Message, Prepare>) replica_.prepare("x", message, out);
    if constexpr (std::is_same_v<Message, Read>) replica_.read("x", message, out);
    if constexpr (std::is_same_v<Message, Accept>) replica_.accept("x", message, out);
    if constexpr (std::is_same_v<Message, Scan>) replica_.scan("x", message, out);
    if constexpr (std::is_same_v<Message, Install>) replica_.install("x", message, out);
    take(std::move(out));
  }
  /// The disk has written what was handed over, or the first `most` of it.
  void written(std::size_t most = SIZE_MAX) {
    for (; most > 0 && !writes.empty(); --most) {
      const Replica::Write write = std::move(writes.front());
      writes.pop_front();
      store::WriteBatch batch;
      for (const StoredRecord& stored : write.records) batch.records.push_back({write.reg, stored});
      for (const AgedRecord& copy : write.copies) {
        batch.records.push_back({write.reg, copy.record, copy.age_ns});
      }
      if (write.state) batch.meta.emplace_back(meta_key(write.reg), encode(*write.state));
      ASSERT_TRUE(store_.write(batch));
      Replica::Effects out;
      replica_.stored(write.token, out);
      take(std::move(out));
    }
  }
  void write_failed() {
    ASSERT_FALSE(writes.empty());
    replica_.failed(writes.front().token);
    writes.pop_front();
  }
  /// The only answer that has left since the last call.
  template <typename Reply>
  Reply answer() {
    EXPECT_EQ(answers.size(), 1U);
    if (answers.empty() || !std::holds_alternative<Reply>(answers.front())) {
      ADD_FAILURE() << "another answer";
      return {};
    }
    Reply reply = std::get<Reply>(answers.front());
    answers.pop_front();
    return reply;
  }
  template <typename Reply, typename Message>
  Reply ask(const Message& message) {
    hear(message);
    written();
    return answer<Reply>();
  }
  /// What a process that starts now finds on the disk.
  RegisterState durable_state() const {
    const auto bytes = store_.read_meta(meta_key(kReg));
    if (!bytes || !bytes->has_value()) return {};
    return decode_register_state(**bytes).value();
  }
  std::optional<AgedRecord> stored(const std::string& bucket = kBucket) const {
    return *store_.read_record(kReg, bucket);
  }

  ManualClock clock;
  bool unreadable = false;
  std::deque<Replica::Write> writes;
  std::deque<RegisterMessage> answers;

 private:
  void take(Replica::Effects&& out) {
    for (auto& write : out.writes) writes.push_back(std::move(write));
    for (auto& reply : out.answers) answers.push_back(std::move(reply.message));
  }

  store::MemoryStore store_{clock, "boot", kSecond, 1};
  Replica replica_;
};

RegisterState voting(const Epoch& promise = {}) {
  RegisterState state;
  state.promise = promise;
  state.votes = true;
  return state;
}

Prepare prepare(const Epoch& epoch) {
  Prepare message;
  message.reg = kReg;
  message.epoch = epoch;
  return message;
}
Prepare join(const Epoch& epoch, std::vector<StoreMark> list, bool begin = false) {
  Prepare message = prepare(epoch);
  message.first_start = std::move(list);
  message.begin = begin;
  return message;
}
Accept accept(const Epoch& epoch, std::vector<StoredRecord> records) {
  Accept message;
  message.reg = kReg;
  message.epoch = epoch;
  message.commit = 1;
  message.records = std::move(records);
  return message;
}
Read read(const Epoch& epoch) {
  Read message;
  message.reg = kReg;
  message.epoch = epoch;
  message.bucket = kBucket;
  return message;
}
Scan scan(const Epoch& epoch, const std::string& after) {
  Scan message;
  message.reg = kReg;
  message.epoch = epoch;
  message.after = after;
  return message;
}
Install install(const StoreMark& store, std::vector<AgedRecord> records, bool admit) {
  Install message;
  message.reg = kReg;
  message.epoch = epoch(3);
  message.store = store;
  message.records = std::move(records);
  message.admit = admit;
  return message;
}

TEST(B2, PromiseLeavesOnceItIsDurableAndHoldsAcrossRestarts) {
  Machine machine(voting());
  machine.hear(prepare(epoch(3)));
  EXPECT_TRUE(machine.answers.empty()) << "not stored yet";
  machine.written();
  EXPECT_TRUE(machine.answer<Promise>().promised);
  EXPECT_TRUE(machine.ask<Promise>(prepare(epoch(3))).promised) << "the same again";
  const auto lower = machine.ask<Promise>(prepare(epoch(2)));
  EXPECT_FALSE(lower.promised);
  EXPECT_EQ(lower.highest, epoch(3));

  Machine restarted(machine.durable_state());
  EXPECT_FALSE(restarted.ask<Promise>(prepare(epoch(2))).promised);
  EXPECT_FALSE(restarted.ask<Accepted>(accept(epoch(2), {record({epoch(2), 1}, 5)})).accepted);
  EXPECT_TRUE(restarted.ask<Promise>(prepare(epoch(4))).promised);
}

TEST(B2, PromiseThatIsOnItsWayToDiskBindsAlready) {
  Machine machine(voting());
  machine.hear(prepare(epoch(3)));
  machine.hear(prepare(epoch(2)));
  EXPECT_FALSE(machine.answer<Promise>().promised);
}

TEST(B3, ReadIsAPrepareForThisReplica) {
  Machine machine(voting(epoch(1)));
  machine.hear(read(epoch(2)));
  EXPECT_TRUE(machine.answers.empty()) << "promised before it is answered";
  machine.written();
  EXPECT_TRUE(machine.answer<ReadReply>().accepted);
  EXPECT_EQ(machine.durable_state().promise, epoch(2));
  const auto late = machine.ask<Accepted>(accept(epoch(1), {record({epoch(1), 8}, 5)}));
  EXPECT_FALSE(late.accepted);
  EXPECT_EQ(late.highest, epoch(2));
  EXPECT_FALSE(machine.ask<ReadReply>(read(epoch(1))).accepted);
}

TEST(B3, ReadSeesWhatWasHandedOverBefore) {
  Machine machine(voting(epoch(1)));
  machine.hear(accept(epoch(1), {record({epoch(1), 1}, 41)}));
  machine.hear(read(epoch(1)));
  machine.written();
  ASSERT_EQ(machine.answers.size(), 2U);
  const auto reply = std::get<ReadReply>(machine.answers.back());
  ASSERT_TRUE(reply.record.has_value());
  EXPECT_EQ(reply.record->record.ledger.level, 41);
}

TEST(B3, ScanIsAPrepareAndPagesEndWithTheLast) {
  Machine machine(voting(epoch(1)));
  std::vector<StoredRecord> records;
  for (std::size_t i = 0; i < kScanPage + 3; ++i) {
    records.push_back(record({epoch(1), i + 1}, 1, "bucket " + std::to_string(1000 + i)));
  }
  EXPECT_TRUE(machine.ask<Accepted>(accept(epoch(1), records)).accepted);
  const auto first = machine.ask<ScanReply>(scan(epoch(2), ""));
  EXPECT_TRUE(first.accepted);
  EXPECT_FALSE(first.last);
  EXPECT_EQ(first.records.size(), kScanPage);
  EXPECT_EQ(machine.durable_state().promise, epoch(2));
  const auto second = machine.ask<ScanReply>(scan(epoch(2), first.records.back().record.bucket));
  EXPECT_TRUE(second.last);
  EXPECT_EQ(second.records.size(), 3U);
  EXPECT_FALSE(machine.ask<ScanReply>(scan(epoch(1), "")).accepted);
}

TEST(B5, OnlyAStoreThatVotesAccepts) {
  Machine machine;
  EXPECT_TRUE(machine.ask<Promise>(prepare(epoch(2))).promised);
  EXPECT_FALSE(machine.ask<Accepted>(accept(epoch(2), {record({epoch(2), 1}, 5)})).accepted);
  EXPECT_FALSE(machine.stored().has_value());
}

TEST(B5, OlderVersionNeverReplacesANewerNotEvenOneOnItsWayToDisk) {
  Machine machine(voting(epoch(2)));
  machine.hear(accept(epoch(2), {record({epoch(2), 8}, 8)}));
  machine.hear(accept(epoch(2), {record({epoch(2), 7}, 7), record({epoch(2), 7}, 70, "other")}));
  machine.written();
  ASSERT_EQ(machine.answers.size(), 2U);
  const auto second = std::get<Accepted>(machine.answers.back());
  EXPECT_TRUE(second.accepted) << "one stale record does not depose the slot";
  EXPECT_EQ(second.stale, std::vector<std::string>{kBucket});
  EXPECT_EQ(machine.stored()->record.ledger.level, 8);
  EXPECT_EQ(machine.stored("other")->record.ledger.level, 70);
}

TEST(B5, AcceptedAgainWritesNothingAndIsAcknowledgedBehindTheFirst) {
  Machine machine(voting(epoch(2)));
  const Accept same = accept(epoch(2), {record({epoch(2), 1}, 5)});
  machine.hear(same);
  machine.hear(same);
  ASSERT_EQ(machine.writes.size(), 2U);
  EXPECT_TRUE(machine.writes.back().records.empty());
  EXPECT_TRUE(machine.answers.empty());
  machine.written();
  EXPECT_EQ(machine.answers.size(), 2U);
}

TEST(B5, RecordThatCannotBeReadIsRefused) {
  Machine machine(voting(epoch(2)));
  machine.unreadable = true;
  EXPECT_FALSE(machine.ask<Accepted>(accept(epoch(2), {record({epoch(2), 1}, 5)})).accepted);
}

TEST(C5, FailedWriteDropsWhatStoodBehindIt) {
  Machine machine(voting(epoch(2)));
  const Accept same = accept(epoch(2), {record({epoch(2), 1}, 5)});
  machine.hear(same);
  machine.hear(same);
  machine.write_failed();
  machine.written();
  EXPECT_TRUE(machine.answers.empty()) << "the repetition relied on a write that failed";
  EXPECT_TRUE(machine.ask<Accepted>(same).accepted);
  EXPECT_EQ(machine.stored()->record.ledger.level, 5) << "written after all";
}

TEST(C5, PromiseOfAFailedWriteIsWrittenAgainBeforeItIsGiven) {
  Machine machine(voting());
  machine.hear(prepare(epoch(3)));
  machine.write_failed();
  EXPECT_TRUE(machine.answers.empty());
  machine.hear(prepare(epoch(3)));
  machine.written();
  EXPECT_TRUE(machine.answer<Promise>().promised);
  EXPECT_EQ(machine.durable_state().promise, epoch(3));
}

const std::vector<StoreMark> kList = {{"a", 1}, {"b", 1}, {"c", 1}};

TEST(C3, JoiningIsNotVoting) {
  Machine machine;
  const auto joined = machine.ask<Promise>(join(epoch(1), kList));
  EXPECT_TRUE(joined.promised);
  EXPECT_FALSE(joined.votes);
  EXPECT_EQ(joined.first_start, kList);
  EXPECT_FALSE(machine.ask<Accepted>(accept(epoch(1), {record({epoch(1), 1}, 5)})).accepted);
  const auto begun = machine.ask<Promise>(join(epoch(1), kList, true));
  EXPECT_TRUE(begun.promised);
  EXPECT_TRUE(begun.votes);
  EXPECT_TRUE(machine.durable_state().votes);
  EXPECT_TRUE(machine.ask<Accepted>(accept(epoch(1), {record({epoch(1), 1}, 5)})).accepted);
}

TEST(C3, LaterListReplacesOneThatHasNotBegun) {
  Machine machine;
  machine.ask<Promise>(join(epoch(1), kList));
  const std::vector<StoreMark> later = {{"a", 1}, {"b", 2}, {"c", 1}};
  EXPECT_EQ(machine.ask<Promise>(join(epoch(2), later)).first_start, later);
  const auto stale = machine.ask<Promise>(join(epoch(2), kList, true));
  EXPECT_FALSE(stale.promised) << "it votes by the list that it has joined, by no other";
  EXPECT_FALSE(machine.durable_state().votes);
  EXPECT_TRUE(machine.ask<Promise>(join(epoch(2), later, true)).votes);
  EXPECT_FALSE(machine.ask<Promise>(join(epoch(3), kList)).promised) << "whoever votes joins none";
}

TEST(C3, ListWithoutThisVeryStoreIsNotJoined) {
  Machine machine({}, 2);
  EXPECT_FALSE(machine.ask<Promise>(join(epoch(1), kList)).promised) << "lists number 1";
  EXPECT_FALSE(machine.ask<Promise>(join(epoch(1), {{"b", 1}, {"c", 1}})).promised);
  Machine unnumbered({}, 0);
  EXPECT_FALSE(unnumbered.ask<Promise>(join(epoch(1), {{"a", 0}, {"b", 1}})).promised);
}

TEST(C2, InstallsOnlyForItsIncarnationAndVotesWithTheLastPage) {
  Machine machine({}, 2);
  const AgedRecord copy{record({epoch(1), 4}, 17), 3 * kSecond};
  EXPECT_FALSE(machine.ask<Installed>(install({"a", 1}, {copy}, true)).accepted);
  EXPECT_FALSE(machine.stored().has_value());
  EXPECT_TRUE(machine.ask<Installed>(install({"a", 2}, {copy}, false)).accepted);
  EXPECT_FALSE(machine.durable_state().votes);
  ASSERT_TRUE(machine.stored().has_value());
  EXPECT_EQ(machine.stored()->record, copy.record) << "version unchanged";
  EXPECT_EQ(machine.stored()->age_ns, 3 * kSecond) << "age unchanged";
  EXPECT_TRUE(machine.ask<Installed>(install({"a", 2}, {}, true)).accepted);
  EXPECT_TRUE(machine.durable_state().votes);
  EXPECT_EQ(machine.durable_state().promise, epoch(3));
}

TEST(C2, CopyNeverReplacesANewerRecord) {
  Machine machine(voting(epoch(2)));
  machine.ask<Accepted>(accept(epoch(2), {record({epoch(2), 5}, 50)}));
  machine.ask<Installed>(install({"a", 1}, {{record({epoch(1), 9}, 9), kSecond}}, false));
  EXPECT_EQ(machine.stored()->record.ledger.level, 50);
  EXPECT_FALSE(machine.ask<Accepted>(accept(epoch(2), {record({epoch(2), 6}, 60)})).accepted)
      << "the install was of epoch 3";
}

TEST(C2, NumbersOfStoresAreNotedWithPromisesAndNeverLowered) {
  Machine machine(voting());
  Prepare message = prepare(epoch(2));
  message.known = {{"b", 3}};
  machine.ask<Promise>(message);
  message.epoch = epoch(3);
  message.known = {{"b", 2}, {"c", 1}};
  const auto reply = machine.ask<Promise>(message);
  EXPECT_EQ(number_of(reply.known, "b"), 3U);
  EXPECT_EQ(number_of(reply.known, "c"), 1U);
  EXPECT_EQ(number_of(machine.durable_state().known, "b"), 3U);
  EXPECT_EQ(number_of(reply.known, "d"), 0U) << "nobody has spoken of it";
}

}  // namespace
}  // namespace weir::ownership
