// Goal: owner and directory translate faithfully: nothing leaves before it is stored, a dead
// activation releases nothing, and no request is lost while an owner ends. Method: CAF's test
// coordinator runs one actor at a time on virtual time; the store's actors are played by the test.
#include "actors/directory.h"

#include <gtest/gtest.h>

#include <caf/scheduler/test_coordinator.hpp>
#include <deque>

#include "actors/owner.h"
#include "test/actor/support.h"

namespace weir::actors::test {
namespace {

class TestingConfig : public caf::actor_system_config {
 public:
  TestingConfig() {
    set("scheduler.policy", caf::atom("testing"));
    set("logger.verbosity", caf::atom("quiet"));
  }
};

/// The store as its two actors show it: commits wait until the test lets them through.
struct PlayedStore {
  struct Waiting {
    CommitRecords commit;
    caf::typed_response_promise<Stored> promise;
  };
  std::deque<Waiting> waiting;
  std::map<std::string, LedgerRecord> records;
  std::uint64_t loads = 0;
  bool reads_fail = false;

  bool writes_fail = false;

  /// In the writer's context only: CAF delivers a promise where its actor runs.
  void finish_one() {
    Waiting next = std::move(waiting.front());
    waiting.pop_front();
    if (writes_fail) {
      next.promise.deliver(Stored{failure(ErrorCode::io, "", "disk on fire")});
      return;
    }
    for (auto& [bucket, record] : next.commit.records) records[bucket] = record;
    next.promise.deliver(Stored{});
  }
};

WriterActor::behavior_type play_writer(WriterActor::pointer self, PlayedStore* store) {
  return {[=](CommitRecords& commit) -> caf::result<Stored> {
            auto promise = self->make_response_promise<Stored>();
            store->waiting.push_back({std::move(commit), promise});
            return promise;
          },
          [](SyncAtom) { return Stored{}; }, [=](FlushAtom) { store->finish_one(); }};
}

ReaderActor::behavior_type play_reader(ReaderActor::pointer, PlayedStore* store) {
  return {[=](const LoadRecord& load) -> Loaded {
            ++store->loads;
            if (store->reads_fail) return {failure(ErrorCode::io, "", "disk on fire")};
            const auto found = store->records.find(load.bucket);
            if (found == store->records.end()) return {std::optional<AgedRecord>()};
            return {std::optional<AgedRecord>({{load.bucket, {}, found->second}, 0})};
          },
          [](const LoadCustomer&) { return LoadedCustomer{std::vector<AgedRecord>()}; }};
}

BrokerActor::behavior_type play_broker(BrokerActor::pointer, std::vector<LeaseAnswer>* answers) {
  return {[](WakeAtom) {},
          [](TimerAtom, Nanos) {},
          [=](const LeaseAnswer& answer) { answers->push_back(answer); },
          [](const Answers&) {},
          [](EdgesAtom, std::uint32_t) {},
          [](const PeerNews&) {},
          [](const DrainOrder&) {}};
}

DeskActor::behavior_type play_desk(DeskActor::pointer, std::vector<codec::OwnerReply>* replies) {
  return {[](const Question&) {},
          [=](const Replied& replied) { replies->push_back(replied.reply); },
          [](TimerAtom, std::uint64_t) {}, [](StopAtom) {}};
}

class Stage {
 public:
  explicit Stage(std::size_t most_owners = kMaxActiveOwners, std::int64_t capacity = 100)
      : system_(config_),
        scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
        placement_(topology_of({{"here", "", {}}, {"there", "", {}}})),
        log_(telemetry::make_null_log()) {
    links_->node = "here";
    links_->writer = system_.spawn(play_writer, &store);
    links_->reader = system_.spawn(play_reader, &store);
    links_->broker = system_.spawn(play_broker, &answers);
    links_->desk = system_.spawn(play_desk, &replies);
    const OwnerContext owners{&clock, {{}, 2 * kSecond}, {7, "here", 9}, links_};
    links_->directory = spawn_directory(system_,
                                        {std::make_shared<const OwnerContext>(owners), &placement_,
                                         log_.get(), &active, most_owners, true},
                                        std::make_shared<const PolicyBook>(one_limit(capacity)));
    run();
  }
  ~Stage() {
    caf::anon_send(links_->directory, StopAtom::value);
    run();
    const auto end = [](const auto& actor) { caf::anon_send_exit(actor, caf::exit_reason::kill); };
    end(links_->writer);
    end(links_->reader);
    end(links_->broker);
    end(links_->desk);
    run();
    store.waiting.clear();
    *links_ = Links();
  }

  /// A customer whose register `node` owns.
  std::string customer_of(const std::string& node, int which = 0) {
    for (int i = 0;; ++i) {
      const std::string customer = "c" + std::to_string(i);
      const RegisterId reg = register_of(Scope::global, "eu", customer);
      if (placement_.replicas(reg).front() == node && which-- == 0) return customer;
    }
  }

  LeaseRequest request_of(const std::string& customer, std::uint64_t sequence = 1,
                          std::uint64_t incarnation = 5) {
    LeaseRequest request;
    request.reg = register_of(Scope::global, "eu", customer);
    request.bucket = bucket_of(customer);
    request.lessee = {"here", incarnation};
    request.sequence = sequence;
    request.want = request.need = 1;
    return request;
  }

  void send(LeaseRequest request) {
    std::vector<LeaseRequest> one;
    one.push_back(std::move(request));
    caf::anon_send(links_->directory, Requests{std::move(one)});
  }
  void kill(const std::string& customer) {
    caf::anon_send(links_->directory, Asked{"here",
                                            {1, register_of(Scope::global, "eu", customer),
                                             customer, codec::OwnerQuery::Kind::kill}});
  }

  void run() {
    while (scheduler_.try_run_once()) {
    }
  }
  /// Runs at most `most` messages; false when there were fewer.
  bool run_some(int most) {
    for (int i = 0; i < most; ++i) {
      if (!scheduler_.try_run_once()) return false;
    }
    return true;
  }
  /// One commit reaches the disk, and what follows from it happens.
  void finish_commit(bool good = true) {
    store.writes_fail = !good;
    caf::anon_send(links_->writer, FlushAtom::value);
    run();
  }
  /// Everything there is, commits included.
  void settle() {
    run();
    while (!store.waiting.empty()) finish_commit();
  }
  void pass(Nanos duration_ns) {
    clock.advance(duration_ns);
    scheduler_.advance_time(std::chrono::nanoseconds(duration_ns));
  }
  std::int64_t granted() const {
    std::int64_t sum = 0;
    for (const LeaseAnswer& answer : answers) sum += answer.granted;
    return sum;
  }

  ManualClock clock;
  PlayedStore store;
  std::vector<LeaseAnswer> answers;
  std::vector<codec::OwnerReply> replies;
  std::atomic<std::uint64_t> active{0};

 private:
  TestingConfig config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  regions::Placement placement_;
  std::unique_ptr<telemetry::Log> log_;
  std::shared_ptr<Links> links_ = std::make_shared<Links>();
};

TEST(Directory, GrantLeavesOnlyAfterItsCommit) {
  Stage stage;
  stage.send(stage.request_of(stage.customer_of("here")));
  stage.run();
  EXPECT_TRUE(stage.answers.empty());
  ASSERT_EQ(stage.store.waiting.size(), 1U);
  stage.finish_commit();
  ASSERT_EQ(stage.answers.size(), 1U);
  EXPECT_EQ(stage.answers[0].status, LeaseStatus::granted);
  EXPECT_EQ(stage.answers[0].granted, 1);
  EXPECT_EQ(stage.answers[0].epoch, (Epoch{7, "here", 9}));
}

TEST(Directory, KilledOwnersCommitReleasesNothingAndItsSuccessorStartsFromTheStore) {
  Stage stage(kMaxActiveOwners, 1);
  const std::string customer = stage.customer_of("here");
  stage.send(stage.request_of(customer));
  stage.run();
  ASSERT_EQ(stage.store.waiting.size(), 1U);
  stage.kill(customer);
  stage.run();
  ASSERT_EQ(stage.replies.size(), 1U);
  EXPECT_TRUE(stage.replies[0].found);
  EXPECT_EQ(stage.active, 0U);
  stage.finish_commit();
  EXPECT_TRUE(stage.answers.empty());
  // The token is booked as out to a lessee that never heard of it; another one cannot have it.
  stage.send(stage.request_of(customer, 1, 6));
  stage.settle();
  EXPECT_EQ(stage.store.loads, 2U);
  EXPECT_EQ(stage.granted(), 0);
  ASSERT_FALSE(stage.answers.empty());
  EXPECT_EQ(stage.answers[0].status, LeaseStatus::empty);
}

TEST(Directory, FailedCommitEndsTheOwnerAndReleasesNothing) {
  Stage stage;
  const std::string customer = stage.customer_of("here");
  stage.send(stage.request_of(customer));
  stage.run();
  stage.finish_commit(false);
  EXPECT_TRUE(stage.answers.empty());
  EXPECT_EQ(stage.active, 0U);
  stage.send(stage.request_of(customer, 2));
  stage.settle();
  EXPECT_EQ(stage.granted(), 1);
}

TEST(Directory, UnreadableRecordIsNoNewBucket) {
  Stage stage;
  stage.store.reads_fail = true;
  stage.send(stage.request_of(stage.customer_of("here")));
  stage.settle();
  ASSERT_EQ(stage.answers.size(), 1U);
  EXPECT_EQ(stage.answers[0].status, LeaseStatus::pending);
}

TEST(Directory, RequestOfAnotherNodesRegisterIsRefusedWithAHint) {
  Stage stage;
  stage.send(stage.request_of(stage.customer_of("there")));
  LeaseRequest twisted = stage.request_of(stage.customer_of("here"));
  twisted.reg.slot = static_cast<Slot>((twisted.reg.slot + 1) % kSlotCount);
  stage.send(twisted);
  LeaseRequest nonsense = stage.request_of(stage.customer_of("here"));
  nonsense.bucket = "\xff";
  stage.send(nonsense);
  stage.settle();
  ASSERT_EQ(stage.answers.size(), 2U);
  EXPECT_EQ(stage.answers[0].status, LeaseStatus::not_owner);
  EXPECT_EQ(stage.answers[0].owner_hint, "there");
  EXPECT_EQ(stage.answers[1].status, LeaseStatus::not_owner);
  EXPECT_EQ(stage.active, 0U);
}

TEST(Directory, CustomersBeyondTheMostOwnersWait) {
  Stage stage(2);
  for (int i = 0; i < 3; ++i) stage.send(stage.request_of(stage.customer_of("here", i)));
  stage.settle();
  EXPECT_EQ(stage.active, 2U);
  EXPECT_EQ(stage.granted(), 2);
  ASSERT_EQ(stage.answers.size(), 3U);
  EXPECT_EQ(stage.answers[0].status, LeaseStatus::pending);
}

/// Spends and returns what a customer got, so that its owner goes quiet.
LeaseRequest returned(Stage& stage, const std::string& customer) {
  LeaseRequest request = stage.request_of(customer, 2);
  request.want = request.need = 0;
  request.spent_total = 1;
  return request;
}

TEST(Directory, QuietOwnerEnds) {
  Stage stage;
  const std::string customer = stage.customer_of("here");
  stage.send(stage.request_of(customer));
  stage.settle();
  stage.send(returned(stage, customer));
  stage.settle();
  EXPECT_EQ(stage.active, 1U);
  for (int i = 0; i < 10 && stage.active > 0; ++i) {
    stage.pass(kSecond);
    stage.settle();
  }
  EXPECT_EQ(stage.active, 0U);
}

// A request may come at any point of the hand-shake by which an owner ends. Each point is tried.
TEST(Directory, RequestsAtEveryMomentOfTheLastTickAreAnswered) {
  std::map<std::uint64_t, int> owners_then;
  for (int moment = 0; moment < 12; ++moment) {
    Stage stage;
    const std::string customer = stage.customer_of("here");
    stage.send(stage.request_of(customer));
    stage.settle();
    stage.send(returned(stage, customer));
    stage.settle();
    // The tick that finds the owner quiet; then each message by itself.
    stage.pass(2 * kSecond);
    stage.run_some(moment);
    ++owners_then[stage.active];
    for (std::uint64_t i = 0; i < 3; ++i) stage.send(stage.request_of(customer, 1, 100 + i));
    stage.settle();
    EXPECT_EQ(stage.granted(), 4) << "moment " << moment;
    EXPECT_EQ(stage.active, 1U);
  }
  // The moments reach from before the offer to after the end.
  EXPECT_GE(owners_then[1], 3);
  EXPECT_GE(owners_then[0], 1);
}

}  // namespace
}  // namespace weir::actors::test
