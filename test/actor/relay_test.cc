// Goal: a relay's actor translates, an edge finds it abroad and in a crowd, and it goes without a
// loss. Method: the real actors; the courier and the owners are played by the test, or are those of
// real nodes on a network that freezes on command. Conditions are awaited, never slept for.
#include "actors/relay.h"

#include <gtest/gtest.h>

#include "actors/broker.h"
#include "test/actor/support.h"

namespace weir::actors::test {
namespace {

/// What this node's actors send to others.
class Heard {
 public:
  void add(const RequestsFor& requests) {
    const std::lock_guard lock(mutex_);
    for (const LeaseRequest& request : requests.all) requests_.emplace_back(requests.node, request);
  }
  void add(const LeaseAnswer& answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(answer);
  }

  using Sent = std::pair<std::string, LeaseRequest>;
  /// The request after the first `after`; waits for it.
  Sent request(std::size_t after) {
    Sent sent;
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      if (requests_.size() <= after) return false;
      sent = requests_[after];
      return true;
    }));
    return sent;
  }
  LeaseAnswer answer(std::size_t after) {
    LeaseAnswer answer;
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      if (answers_.size() <= after) return false;
      answer = answers_[after];
      return true;
    }));
    return answer;
  }

 private:
  std::mutex mutex_;
  std::vector<Sent> requests_;
  std::vector<LeaseAnswer> answers_;
};

CourierActor::behavior_type play_courier(CourierActor::pointer, Heard* heard) {
  return {[=](const RequestsFor& requests) { heard->add(requests); },
          [](const RegistersFor&) {},
          [=](const LeaseAnswer& answer) { heard->add(answer); },
          [](const Asked&) {},
          [](const Replied&) {},
          [](const PolicyFor&) {},
          [](const ActivityReport&) {},
          [](const policy::PolicyStamp&) {},
          [](const NetworkFaults&) {},
          [](const Late&) {},
          [](const Frame&) {},
          [](const Link&) {},
          [](const ShapeNews&) {},
          [](FlushAtom) {},
          [](TimerAtom) {}};
}

/// One that has nothing to hand over.
ReplicationActor::behavior_type play_replication(ReplicationActor::pointer, Heard*) {
  return {[](const Requests&) {},
          [](const RegistersFrom&) {},
          [](const OwnerDid&) {},
          [](const Written&) {},
          [](const StoreMeta&) {},
          [](const Asked&) {},
          [](const Book&) {},
          [](TimerAtom, Nanos) {},
          [](const DrainOrder& order) { order.done(); },
          [](const RecoverOrder&) {},
          [](const PeerLink&) {},
          [](StopAtom) {}};
}

/// `eu` with `eu-1` and so on, each customer at one of them, and `us` with `us-1`, which is no
/// home.
Topology two_regions(int owners) {
  Topology topology = topology_of({});
  for (int i = 1; i <= owners; ++i) {
    topology.regions[0].nodes.push_back({"eu-" + std::to_string(i), "", {}});
  }
  TopologyRegion far;
  far.name = "us";
  far.weight = 0;
  far.nodes = {{"us-1", "", {}}};
  topology.regions.push_back(far);
  return topology;
}

/// The relay or the broker of a node among played ones.
class Shells : public ::testing::Test {
 protected:
  Shells() {
    config_.set("logger.verbosity", caf::atom("quiet"));
    system_ = std::make_unique<caf::actor_system>(config_);
    links_->courier = system_->spawn(play_courier, &heard);
    links_->replication = system_->spawn(play_replication, &heard);
  }
  ~Shells() override {
    const auto end = [](auto& actor) {
      if (actor) caf::anon_send_exit(actor, caf::exit_reason::kill);
      actor = std::decay_t<decltype(actor)>();
    };
    end(links_->relay);
    end(links_->broker);
    end(links_->courier);
    end(links_->replication);
    system_.reset();
  }

  static std::shared_ptr<const ShapeBoard> board_of(const Topology& topology) {
    TopologyState state;
    state.finished.version = 1;
    auto view = std::make_shared<const regions::View>(state, topology, std::nullopt);
    return std::make_shared<const ShapeBoard>(
        std::make_shared<const Shape>(Shape{state, true, std::move(view)}));
  }

  void start_relay(const Topology& topology) {
    links_->node = "us-1";
    RelayContext context;
    context.config.node = "us-1";
    context.config.terms = {};
    context.seed = 1;
    context.clock = &clock;
    context.metrics = &metrics;
    context.shape = board_of(topology);
    context.board = std::make_shared<RelayBoard>();
    context.links = links_;
    links_->relay = spawn_relay(*system_, context);
  }

  /// An edge of `us` asks the relay for `tokens`.
  void ask(const std::string& edge, std::int64_t tokens) {
    LeaseRequest request;
    request.reg = register_of(Scope::global, "us", "acme");
    request.bucket = bucket_of("acme");
    request.lessee = {edge, 5};
    request.sequence = 1;
    request.want = request.need = tokens;
    request.hop = LeaseHop::to_relay;
    caf::anon_send(links_->relay, Requests{{request}});
  }

  static LeaseAnswer grant(const LeaseRequest& request, std::int64_t tokens) {
    LeaseAnswer answer = answer_to(request, LeaseStatus::granted);
    answer.granted = tokens;
    answer.ttl_ns = 5 * kSecond;
    answer.capacity = 100;
    return answer;
  }

  void tell_relay(const std::string& from, const LeaseAnswer& answer) {
    caf::anon_send(links_->relay, Answers{from, {answer}});
  }

  ManualClock clock;
  Heard heard;
  telemetry::Metrics metrics;
  caf::actor_system_config config_;
  std::unique_ptr<caf::actor_system> system_;
  std::shared_ptr<Links> links_ = std::make_shared<Links>();
};

TEST_F(Shells, a_relay_asks_the_owner_and_passes_the_grant_on) {
  start_relay(two_regions(1));
  PeerState owner;
  owner.node = "eu-1";
  owner.round_trip_ns = 80 * kMillisecond;
  caf::anon_send(links_->relay, PeerNews{owner});
  ask("us-7", 3);
  const LeaseAnswer pending = heard.answer(0);
  EXPECT_EQ(pending.status, LeaseStatus::pending);
  EXPECT_EQ(pending.hop, LeaseHop::to_relay);
  EXPECT_EQ(pending.upstream_round_trip_ns, 80 * kMillisecond) << "what the edge adds to its wait";
  const auto [node, request] = heard.request(0);
  EXPECT_EQ(node, "eu-1");
  EXPECT_EQ(request.hop, LeaseHop::from_relay);
  EXPECT_EQ(request.lessee.node, "us-1");
  EXPECT_EQ(request.need, 3);
  tell_relay("eu-1", grant(request, 10));
  const LeaseAnswer granted = heard.answer(1);
  EXPECT_EQ(granted.status, LeaseStatus::granted);
  EXPECT_EQ(granted.granted, 3);
  EXPECT_EQ(granted.lessee.node, "us-7");
  EXPECT_EQ(granted.grantor, request.lessee.incarnation);
}

TEST_F(Shells, a_relay_follows_redirects) {
  start_relay(two_regions(2));
  ask("us-7", 3);
  const auto [first, request] = heard.request(0);
  const std::string other = first == "eu-1" ? "eu-2" : "eu-1";
  LeaseAnswer elsewhere = answer_to(request, LeaseStatus::not_owner);
  elsewhere.owner_hint = other;
  tell_relay(first, elsewhere);
  const auto [second, again] = heard.request(1);
  EXPECT_EQ(second, other);
  tell_relay(second, grant(again, 3));
  EXPECT_EQ(heard.answer(1).granted, 3);
}

TEST_F(Shells, a_relay_that_drains_returns_its_level_before_the_registers_go) {
  start_relay(two_regions(1));
  ask("us-7", 3);
  const LeaseRequest request = heard.request(0).second;
  tell_relay("eu-1", grant(request, 10));
  ASSERT_EQ(heard.answer(1).granted, 3);
  std::atomic<bool> drained{false};
  caf::anon_send(links_->relay, DrainOrder{clock.boot_ns() + kMinute, [&] { drained = true; }});
  LeaseRequest back = heard.request(1).second;
  EXPECT_EQ(back.held, 3) << "what is lent on stays out";
  EXPECT_EQ(back.want, 0);
  EXPECT_FALSE(drained);
  tell_relay("eu-1", grant(back, 0));
  EXPECT_TRUE(eventually([&] { return drained.load(); }));
  ask("us-8", 3);
  EXPECT_EQ(heard.answer(2).status, LeaseStatus::not_owner) << "edges are sent on";
}

TEST_F(Shells, an_edge_for_which_the_owner_has_no_place_asks_a_relay) {
  links_->node = "edge-65";
  edge::LimiterConfig config;
  config.node = "edge-65";
  config.region = "eu";
  config.wait_ns = kMinute;
  config.suspicion_ns = kMinute;
  const auto flag = std::make_shared<WakeFlag>(false);
  std::atomic<bool> broker_runs{false};
  edge::Limiter limiter(config, clock, 1, [&] {
    if (broker_runs && !flag->exchange(true)) caf::anon_send(links_->broker, WakeAtom::value);
  });
  limiter.set_policy(one_limit(100));
  links_->broker = spawn_broker(
      *system_, {&limiter, &clock, &metrics, board_of(two_regions(1)), "eu", flag, links_});
  broker_runs = true;
  std::atomic<bool> allowed{false};
  Check check;
  check.customer = "acme";
  limiter.decide_later(check, [&](const Decision& decision) { allowed = decision.allowed; });
  const auto [owner, direct] = heard.request(0);
  EXPECT_EQ(owner, "eu-1");
  EXPECT_EQ(direct.hop, LeaseHop::direct);
  caf::anon_send(links_->broker, Answers{owner, {answer_to(direct, LeaseStatus::crowded)}});
  const auto [relay, relayed] = heard.request(1);
  EXPECT_EQ(relay, "eu-1") << "the only node of its region";
  EXPECT_EQ(relayed.hop, LeaseHop::to_relay);
  LeaseAnswer granted = grant(relayed, 1);
  granted.grantor = 77;
  caf::anon_send(links_->broker, Answers{relay, {granted}});
  EXPECT_TRUE(eventually([&] { return allowed.load(); }));
  broker_runs = false;
  caf::scoped_actor waiter{*system_};
  waiter->send_exit(links_->broker, caf::exit_reason::kill);
  waiter->wait_for(links_->broker);
}

/// An owner in `eu`, a relay in `us`, and an edge near it.
class Region : public ::testing::Test {
 protected:
  Region() {
    std::uint64_t seed = 0;
    for (const char* name : {"eu-1", "us-1", "us-2"}) {
      ports_.push_back(std::make_unique<FakeNetwork::Port>(network_, name));
      TestNode::Options options;
      options.name = name;
      options.region = std::string(name).substr(0, 2);
      options.owner = options.name != "us-2";
      options.topology = two_regions(1);
      options.policy = one_limit(100);
      options.transport = ports_.back().get();
      options.seed = ++seed;
      nodes_.push_back(std::make_unique<TestNode>(options));
    }
  }
  TestNode& owner() { return *nodes_[0]; }
  TestNode& relay() { return *nodes_[1]; }
  TestNode& edge() { return *nodes_[2]; }

  /// Tokens out on lease at the owner; -1: unknown.
  std::int64_t outstanding() {
    std::promise<Result<OwnerDescription>> promise;
    owner().node().describe(register_of(Scope::global, "eu", "acme"), "acme",
                            [&](auto said) { promise.set_value(std::move(said)); });
    const auto said = promise.get_future().get();
    if (!said || said->buckets.size() != 1) return -1;
    return said->buckets[0].outstanding;
  }

  FakeNetwork network_{1};
  std::vector<std::unique_ptr<FakeNetwork::Port>> ports_;
  std::vector<std::unique_ptr<TestNode>> nodes_;
};

TEST_F(Region, a_burst_behind_a_relay_keeps_the_limit) {
  ASSERT_TRUE(eventually([&] { return edge().hears("us-1") && relay().hears("eu-1"); }));
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  for (int i = 0; i < 50; ++i) {
    for (auto& node : nodes_) node->check("acme", 1, allowed, denied);
  }
  ASSERT_TRUE(eventually([&] { return allowed + denied == 150; }));
  EXPECT_LE(allowed, 100);
  EXPECT_GE(allowed, 50) << "some may lie at an edge that was asked no more";
  EXPECT_EQ(relay().node().state().relay_buckets, 1U);
}

TEST_F(Region, edges_go_round_a_relay_that_is_silent) {
  ASSERT_TRUE(eventually([&] { return edge().hears("us-1") && relay().hears("eu-1"); }));
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  edge().check("acme", 10, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed == 10; }));
  network_.freeze("us-1", true);
  edge().check("acme", 40, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed + denied == 50; }));
  EXPECT_EQ(allowed, 50) << "the owner has the rest";
}

TEST_F(Region, a_relay_drains_while_its_edge_goes_on) {
  ASSERT_TRUE(eventually([&] { return edge().hears("us-1") && relay().hears("eu-1"); }));
  std::atomic<int> allowed{0};
  std::atomic<int> denied{0};
  edge().check("acme", 10, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed == 10; }));
  std::atomic<bool> drained{false};
  relay().node().drain(relay().clock().boot_ns() + 30 * kSecond, [&] { drained = true; });
  ASSERT_TRUE(eventually([&] { return drained.load(); }));
  EXPECT_LE(outstanding(), edge().held() + 10) << "what is lent on or not reported yet";
  edge().check("acme", 30, allowed, denied);
  ASSERT_TRUE(eventually([&] { return allowed + denied == 40; }));
  EXPECT_EQ(allowed, 40);
}

}  // namespace
}  // namespace weir::actors::test
