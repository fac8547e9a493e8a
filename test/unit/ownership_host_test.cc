// Goal: a node serves all 4,096 slots at next to no cost while nothing happens, takes over quickly,
// and loses no request that comes while a register has no owner.
// Method: hosts on a virtual clock and a bus that delivers at once; stores that never fail; what is
// sent and how often a host wants to be woken is counted.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "src/ownership/host.h"
#include "src/store/memory_store.h"

namespace weir::ownership {
namespace {

class ManualClock final : public Clock {
 public:
  Nanos boot_ns() const override { return now_ns; }
  Nanos wall_ns() const override { return now_ns; }
  Nanos now_ns = 1000 * kSecond;
};

struct Machine final : RecordReader {
  explicit Machine(const Clock& clock) : store(clock, "boot", kSecond, 1) {}
  Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                const std::string& bucket) const override {
    return store.read_record(reg, bucket);
  }
  Result<std::vector<AgedRecord>> read_register(const RegisterId& reg, const std::string& after,
                                                std::size_t most) const override {
    return store.read_register(reg, after, most);
  }

  store::MemoryStore store;
  std::unique_ptr<Host> host;
  bool up = true;
};

/// A customer for each register.
std::string customer_in(const RegisterId& reg) {
  return std::to_string(static_cast<int>(reg.kind)) + " " + std::to_string(reg.slot) + " " +
         reg.region;
}

/// All nodes replicate every register; each slot ranks them in its own way.
class Rotated final : public TopologyView {
 public:
  Rotated(std::vector<std::string> names, std::vector<RegisterId> registers)
      : names_(std::move(names)), registers_(std::move(registers)) {}
  Layout layout(const RegisterId& reg, std::uint64_t) const override {
    std::vector<std::string> set = names_;
    std::rotate(set.begin(), set.begin() + reg.slot % set.size(), set.end());
    return {2, 2, {{std::move(set)}}, {}};
  }
  RegisterId register_for(const BucketKey& bucket) const override {
    std::istringstream text(bucket.customer);
    int kind = 0;
    RegisterId reg;
    text >> kind >> reg.slot >> reg.region;
    reg.kind = static_cast<RegisterId::Kind>(kind);
    return reg;
  }
  std::vector<RegisterId> registers(const std::string&) const override { return registers_; }
  std::vector<RegisterId> all() const override { return registers_; }
  std::vector<std::string> owner_nodes() const override { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<RegisterId> registers_;
};

class Hosts {
 public:
  Hosts(std::size_t count, std::vector<RegisterId> registers) : registers_(std::move(registers)) {
    for (std::size_t i = 0; i < count; ++i) names_.push_back("n" + std::to_string(i));
    for (const std::string& name : names_) {
      machines_[name] = std::make_unique<Machine>(clock_);
      make(name, names_.size());
    }
  }

  /// Lets `span_ns` pass.
  void run(Nanos span_ns) {
    const Nanos end_ns = clock_.now_ns + span_ns;
    while (clock_.now_ns < end_ns) {
      Nanos next_ns = end_ns;
      for (const auto& [name, machine] : machines_) {
        if (machine->up) next_ns = std::min(next_ns, machine->host->next_deadline());
      }
      clock_.now_ns = std::max(clock_.now_ns + kMillisecond, next_ns);
      for (const std::string& name : names_) {
        Machine& machine = *machines_.at(name);
        if (!machine.up || machine.host->next_deadline() > clock_.now_ns) continue;
        ++ticks;
        Host::Effects did;
        machine.host->tick(clock_.now_ns, did);
        carry(name, std::move(did));
      }
      deliver();
    }
  }

  void ask(const std::string& name, const LeaseRequest& request) {
    Host::Effects did;
    host(name).lease_request(request, clock_.now_ns, did);
    carry(name, std::move(did));
    deliver();
  }
  Status propose(const std::string& name, std::uint64_t version) {
    Host::Effects did;
    Status begun = host(name).propose(version, "all", clock_.now_ns, did);
    carry(name, std::move(did));
    deliver();
    return begun;
  }
  void link(const std::string& name, const std::string& to, bool up) {
    Host::Effects did;
    host(name).set_link(to, up, clock_.now_ns, did);
    carry(name, std::move(did));
    deliver();
  }
  void retire(const std::string& name) {
    Host::Effects did;
    host(name).retire(clock_.now_ns, did);
    carry(name, std::move(did));
    deliver();
  }
  void resign(const std::string& name) {
    Host::Effects did;
    host(name).resign(clock_.now_ns, did);
    carry(name, std::move(did));
    deliver();
  }
  void hear(const std::string& name, const std::string& from, const RegisterMessage& message) {
    bus_.push_back({from, name, message});
    deliver();
  }
  void restart(const std::string& name) {
    resume(name);
    make(name, ++restarts_ + names_.size());
  }
  void stop(const std::string& name) { machines_.at(name)->up = false; }
  void resume(const std::string& name) { machines_.at(name)->up = true; }

  Host& host(const std::string& name) { return *machines_.at(name)->host; }
  std::size_t owned() {
    std::size_t sum = 0;
    for (const auto& [name, machine] : machines_) {
      if (machine->up) sum += machine->host->registers_owned();
    }
    return sum;
  }

  Nanos now_ns() const { return clock_.now_ns; }

  std::size_t ticks = 0;
  std::map<std::size_t, std::size_t> sent;  ///< by kind
  std::vector<LeaseAnswer> answers;
  std::vector<std::string> started;  ///< nodes at which an owner was started

 private:
  /// A process; a later one of the same node keeps what its store has promised.
  void make(const std::string& name, std::uint64_t incarnation) {
    Machine& machine = *machines_.at(name);
    HostConfig config;
    config.self = name;
    config.incarnation = incarnation;
    const auto view = std::make_shared<const Rotated>(names_, registers_);
    StoreMark own{name, 0};
    std::map<RegisterId, RegisterState> states;
    if (machine.host) {
      own = machine.host->replica().own();
      states = machine.host->replica().states();
    }
    machine.host = std::make_unique<Host>(
        config, Replica(own, std::move(states), machine), TopologyState{{1, "all", {}}, {}}, true,
        [view](const TopologyState&) { return view; }, Random(config.incarnation), clock_.now_ns);
  }

  struct OnItsWay {
    std::string from;
    std::string to;
    RegisterMessage message;
  };

  void carry(const std::string& name, Host::Effects&& did) {
    Host& host = *machines_.at(name)->host;
    for (auto& [to, message] : did.send) {
      ++sent[message.index()];
      bus_.push_back({name, to, std::move(message)});
    }
    for (LeaseAnswer& answer : did.answers) answers.push_back(std::move(answer));
    for (const auto& what : did.owners) {
      if (std::holds_alternative<Host::OwnerStart>(what)) started.push_back(name);
    }
    if (did.number != 0) {
      Host::Effects more;
      host.numbered(clock_.now_ns, more);
      carry(name, std::move(more));
    }
    for (const Replica::Write& write : did.writes) {
      Host::Effects more;
      host.stored(write.token, true, clock_.now_ns, more);
      carry(name, std::move(more));
    }
  }

  void deliver() {
    while (!bus_.empty()) {
      OnItsWay next = std::move(bus_.front());
      bus_.pop_front();
      Machine& machine = *machines_.at(next.to);
      if (!machine.up) continue;
      Host::Effects did;
      machine.host->message(next.from, next.message, clock_.now_ns, did);
      carry(next.to, std::move(did));
    }
  }

  ManualClock clock_;
  std::vector<RegisterId> registers_;
  std::vector<std::string> names_;
  std::map<std::string, std::unique_ptr<Machine>> machines_;
  std::deque<OnItsWay> bus_;
  std::uint64_t restarts_ = 0;
};

constexpr std::size_t kClaims = 14;  // places in RegisterMessage
constexpr std::size_t kBeat = 15;

std::vector<RegisterId> all_slots() {
  std::vector<RegisterId> registers;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    registers.push_back({RegisterId::Kind::global, {}, static_cast<Slot>(slot)});
  }
  return registers;
}

LeaseRequest request_for(const RegisterId& reg) {
  LeaseRequest request;
  request.reg = reg;
  request.bucket = encode(BucketKey{customer_in(reg), Scope::global, {}, "api", {}});
  request.lessee = {"edge", 7};
  request.sequence = 1;
  request.want = request.need = 1;
  return request;
}

TEST(Host, all_slots_start_soon_and_cost_nothing_at_rest) {
  Hosts hosts(3, all_slots());
  hosts.run(500 * kMillisecond);
  EXPECT_EQ(hosts.owned(), kSlotCount);
  for (const char* name : {"n0", "n1", "n2"}) {
    EXPECT_NEAR(static_cast<double>(hosts.host(name).registers_owned()), kSlotCount / 3, 1);
  }
  // A list of claims at most every 20 ms to each peer, however many registers start.
  EXPECT_LE(hosts.sent[kClaims], 3U * 2U * 25U);
  // Better ranks have nothing to ask for, so at rest there are beats and nothing else.
  hosts.run(3 * kSecond);
  hosts.sent.clear();
  hosts.ticks = 0;
  hosts.run(10 * kSecond);
  EXPECT_EQ(hosts.sent.size(), 1U);
  EXPECT_NEAR(static_cast<double>(hosts.sent[kBeat]), 3 * 2 * 100, 6);
  EXPECT_LE(hosts.ticks, 3U * 101U);
}

TEST(Host, a_dead_owners_registers_are_taken_within_the_suspicion_time_and_a_little) {
  Hosts hosts(3, all_slots());
  hosts.run(3 * kSecond);
  hosts.stop("n0");
  hosts.run(550 * kMillisecond);
  EXPECT_EQ(hosts.owned(), kSlotCount);
  EXPECT_EQ(hosts.host("n1").takeovers() + hosts.host("n2").takeovers(), 1366U);
}

TEST(Host, what_is_asked_for_while_there_is_no_owner_reaches_the_next_one) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  ASSERT_TRUE(hosts.host("n0").owns(reg));
  hosts.stop("n0");
  hosts.stop("n1");
  hosts.ask("n2", request_for(reg));
  ASSERT_EQ(hosts.answers.size(), 1U) << "the claim is fresh: a redirect to the dead node";
  EXPECT_EQ(hosts.answers[0].owner_hint, "n0");
  hosts.answers.clear();
  hosts.run(600 * kMillisecond);
  hosts.ask("n2", request_for(reg));
  EXPECT_TRUE(hosts.answers.empty()) << "nobody owns it, and n2 alone is no majority";
  hosts.resume("n1");
  hosts.ask("n1", request_for(reg));
  hosts.run(500 * kMillisecond);
  // The next owner gets its request, the other says who that is.
  ASSERT_EQ(hosts.started.size(), 1U);
  const std::string owner = hosts.started.front();
  ASSERT_EQ(hosts.answers.size(), 1U);
  EXPECT_EQ(hosts.answers[0].status, LeaseStatus::not_owner);
  EXPECT_EQ(hosts.answers[0].owner_hint, owner);
}

TEST(Host, one_that_stops_hands_over_what_is_in_use_first) {
  Hosts hosts(3, all_slots());
  hosts.run(3 * kSecond);
  const RegisterId used{RegisterId::Kind::global, {}, 4095};  // of n0, and the last in order
  ASSERT_TRUE(hosts.host("n0").owns(used));
  hosts.ask("n0", request_for(used));
  ASSERT_EQ(hosts.started, std::vector<std::string>{"n0"});
  hosts.retire("n0");
  EXPECT_FALSE(hosts.host("n0").owns(used));
  const std::size_t left = hosts.host("n0").registers_owned();
  EXPECT_GE(left, kSlotCount / 3 - kReleasesAtOnce) << "the others are served meanwhile";
  EXPECT_EQ(hosts.owned(), kSlotCount) << "what was released has an owner";
  hosts.run(kReleasesEveryNs * static_cast<Nanos>(left / kReleasesAtOnce + 2));
  EXPECT_EQ(hosts.host("n0").registers_owned(), 0U);
  EXPECT_EQ(hosts.owned(), kSlotCount);
}

TEST(Host, one_that_stops_says_who_comes_next) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  ASSERT_TRUE(hosts.host("n0").owns(reg));
  hosts.stop("n2");
  hosts.run(1200 * kMillisecond);
  hosts.stop("n1");  // for as long as its messages take
  hosts.retire("n0");
  hosts.ask("n0", request_for(reg));
  ASSERT_EQ(hosts.answers.size(), 1U);
  EXPECT_EQ(hosts.answers[0].status, LeaseStatus::not_owner);
  EXPECT_EQ(hosts.answers[0].owner_hint, "n1");
}

TEST(Host, one_that_stops_passes_over_who_does_not_speak) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  hosts.stop("n1");
  hosts.run(1200 * kMillisecond);
  hosts.retire("n0");
  EXPECT_TRUE(hosts.host("n2").owns(reg));
}

TEST(Host, one_that_stops_passes_over_a_node_without_a_connection) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  hosts.stop("n1");
  hosts.link("n0", "n1", false);
  hosts.retire("n0");
  EXPECT_TRUE(hosts.host("n2").owns(reg));
}

TEST(Host, a_late_release_deposes_nobody) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  const Epoch epoch = hosts.host("n0").seat(reg)->epoch();
  ASSERT_GT(epoch.counter, 0U);
  hosts.hear("n1", "n2", Release{reg, {epoch.counter - 1, "n2", 1}});
  EXPECT_FALSE(hosts.host("n1").seat(reg)->trying());
  EXPECT_TRUE(hosts.host("n0").owns(reg));
}

TEST(Host, what_waits_is_answered_when_a_silent_owner_speaks_again) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  ASSERT_TRUE(hosts.host("n0").owns(reg));
  hosts.stop("n0");
  hosts.stop("n1");
  hosts.run(700 * kMillisecond);
  hosts.ask("n2", request_for(reg));
  EXPECT_TRUE(hosts.answers.empty());
  hosts.resume("n0");
  hosts.run(150 * kMillisecond);
  ASSERT_EQ(hosts.answers.size(), 1U);
  EXPECT_EQ(hosts.answers[0].owner_hint, "n0");
}

TEST(Host, a_topology_version_wants_all_its_nodes_heard) {
  Hosts hosts(3, {kTopologyRegister});
  hosts.run(3 * kSecond);
  ASSERT_TRUE(hosts.host("n0").owns(kTopologyRegister));
  hosts.stop("n2");
  hosts.run(1500 * kMillisecond);
  const Status refused = hosts.propose("n0", 2);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().message, "node n2 is not heard: start it, or leave it out");
  EXPECT_FALSE(hosts.host("n0").topology().next);
  hosts.resume("n2");
  hosts.run(300 * kMillisecond);
  EXPECT_TRUE(hosts.propose("n0", 2).has_value());
}

TEST(Host, whoever_was_bidden_to_own_keeps_requests_though_the_old_claim_is_fresh) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  const std::uint64_t counter = hosts.host("n0").seat(reg)->epoch().counter;
  hosts.stop("n0");
  hosts.stop("n2");
  hosts.hear("n1", "n0",
             Release{reg, {counter, "n0", hosts.host("n0").seat(reg)->epoch().incarnation}});
  ASSERT_EQ(hosts.host("n1").owner_of(reg, hosts.now_ns()), "n0");
  hosts.ask("n1", request_for(reg));
  EXPECT_TRUE(hosts.answers.empty()) << "a redirect would come back";
  hosts.resume("n2");
  hosts.run(600 * kMillisecond);
  EXPECT_EQ(hosts.started, std::vector<std::string>{"n1"});
}

TEST(Host, those_that_come_back_take_their_registers_back_one_after_the_other) {
  Hosts hosts(3, all_slots());
  hosts.run(3 * kSecond);
  hosts.stop("n0");
  hosts.run(3 * kSecond);
  ASSERT_EQ(hosts.host("n1").registers_owned() + hosts.host("n2").registers_owned(), kSlotCount);
  hosts.restart("n0");
  hosts.run(2 * kSecond + kSlotCount / 2 * kHandOverSpacingNs);
  const std::size_t back = hosts.host("n0").registers_owned();
  EXPECT_GT(back, kSlotCount / 3 * 2 / 5);
  EXPECT_LT(back, kSlotCount / 3 * 3 / 5);
  hosts.run(kSlotCount * kHandOverSpacingNs);
  EXPECT_NEAR(static_cast<double>(hosts.host("n0").registers_owned()), kSlotCount / 3, 1);
}

TEST(Host, nobody_is_sent_to_a_node_whose_connection_has_ended) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  ASSERT_TRUE(hosts.host("n0").owns(reg));
  hosts.link("n2", "n0", false);
  hosts.ask("n2", request_for(reg));
  EXPECT_TRUE(hosts.answers.empty()) << "it waits for whoever comes next";
  hosts.link("n2", "n0", true);
  ASSERT_EQ(hosts.answers.size(), 1U);
  EXPECT_EQ(hosts.answers[0].owner_hint, "n0");
}

TEST(Host, registers_in_use_get_their_next_owner_first) {
  Hosts hosts(3, all_slots());
  hosts.run(3 * kSecond);
  const RegisterId used{RegisterId::Kind::global, {}, 4095};  // of n0, and the last in order
  hosts.stop("n0");
  hosts.link("n1", "n0", false);
  hosts.ask("n1", request_for(used));
  hosts.run(SeatConfig{}.suspicion_ns + 20 * kMillisecond);
  EXPECT_TRUE(hosts.host("n1").owns(used));
  EXPECT_EQ(hosts.started, std::vector<std::string>{"n1"});
  EXPECT_LT(hosts.owned(), kSlotCount * 3 / 4) << "those that nobody uses come later";
}

TEST(Host, a_relay_is_told_that_it_is_the_relay_who_asked_in_vain) {
  const RegisterId reg{RegisterId::Kind::global, {}, 0};
  Hosts hosts(3, {reg});
  hosts.run(3 * kSecond);
  LeaseRequest request = request_for(reg);
  request.hop = LeaseHop::from_relay;
  hosts.ask("n2", request);
  ASSERT_EQ(hosts.answers.size(), 1U);
  EXPECT_EQ(hosts.answers[0].status, LeaseStatus::not_owner);
  EXPECT_EQ(hosts.answers[0].owner_hint, "n0");
  EXPECT_EQ(hosts.answers[0].hop, LeaseHop::from_relay);
}

TEST(Host, a_register_that_is_not_the_customers_is_not_asked) {
  Hosts hosts(1, all_slots());
  hosts.run(kSecond);
  LeaseRequest request = request_for({RegisterId::Kind::global, "", 7});
  request.reg.slot = 8;
  hosts.ask("n0", request);
  ASSERT_EQ(hosts.answers.size(), 1U);
  EXPECT_EQ(hosts.answers[0].status, LeaseStatus::not_owner);
  EXPECT_TRUE(hosts.started.empty()) << "it would find a bucket that is new, and full";
}

TEST(Host, registers_that_are_in_no_list_start_when_they_are_asked_for) {
  Hosts hosts(3, {});
  const RegisterId reg{RegisterId::Kind::region, "us", 7};
  hosts.run(kSecond);
  EXPECT_EQ(hosts.owned(), 0U);
  hosts.ask("n1", request_for(reg));  // first in rank of slot 7
  hosts.run(300 * kMillisecond);
  EXPECT_TRUE(hosts.host("n1").owns(reg));
  EXPECT_EQ(hosts.started, std::vector<std::string>{"n1"});
  // The others know of it: they take over.
  hosts.stop("n1");
  hosts.run(kSecond);
  EXPECT_EQ(hosts.owned(), 1U);
}

TEST(Host, a_majority_of_wall_clocks_is_trusted_once_it_has_told) {
  const RegisterId reg{RegisterId::Kind::global, "", 0};
  Hosts hosts(3, {reg});
  EXPECT_EQ(hosts.host("n0").instant(reg, hosts.now_ns()).wall_ns, 0);
  constexpr Nanos kWallNs = 1'774'656'000 * kSecond;
  const std::map<std::string, Nanos> offsets{{"n0", kHour}, {"n1", -2 * kSecond}, {"n2", 0}};
  for (const auto& [name, offset_ns] : offsets) {
    hosts.host(name).set_wall(kWallNs + offset_ns, hosts.now_ns());
  }
  EXPECT_EQ(hosts.host("n0").instant(reg, hosts.now_ns()).wall_ns, 0) << "its own is no majority";
  const Nanos before_ns = hosts.now_ns();
  hosts.run(kSecond);
  const Instant now = hosts.host("n0").instant(reg, hosts.now_ns());
  const Nanos passed_ns = hosts.now_ns() - before_ns;
  EXPECT_EQ(now.wall_ns, kWallNs + kHour + passed_ns);
  EXPECT_EQ(now.trusted_wall_ns, kWallNs + passed_ns);
}

TEST(Host, one_that_resigns_is_succeeded_and_does_not_come_back) {
  Hosts hosts(3, all_slots());
  hosts.run(3 * kSecond);
  hosts.resign("n0");
  EXPECT_EQ(hosts.host("n0").registers_owned(), 0U);
  hosts.run(200 * kMillisecond);
  EXPECT_EQ(hosts.owned(), kSlotCount);
  hosts.run(5 * kSecond);
  EXPECT_EQ(hosts.host("n0").registers_owned(), 0U);
  EXPECT_EQ(hosts.owned(), kSlotCount);
}

}  // namespace
}  // namespace weir::ownership
