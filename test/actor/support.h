// What the actor tests share: a book of one limit, a network that loses frames on command, nodes
// with real limiters, and waiting for a condition instead of sleeping.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/node.h"
#include "actors/transport.h"
#include "src/base/assert.h"
#include "src/base/random.h"
#include "src/base/system_clock.h"
#include "src/edge/limiter.h"
#include "src/policy/policy.h"
#include "src/store/memory_store.h"
#include "src/telemetry/log.h"
#include "src/telemetry/metrics.h"

namespace weir::actors::test {

/// Long enough for a loaded machine under a sanitizer; only a failing test waits so long.
inline constexpr std::chrono::seconds kPatience{60};

/// True as soon as `holds` does; false when it does not for all of kPatience.
inline bool eventually(const std::function<bool()>& holds) {
  std::mutex mutex;
  std::condition_variable never;
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  std::unique_lock lock(mutex);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    never.wait_for(lock, std::chrono::milliseconds(1));
  }
  return true;
}

class ManualClock final : public Clock {
 public:
  Nanos boot_ns() const override { return now_ns_; }
  Nanos wall_ns() const override { return now_ns_; }
  void advance(Nanos by_ns) { now_ns_ += by_ns; }

 private:
  std::atomic<Nanos> now_ns_{1000 * kSecond};
};

/// This machine's clocks, with a wall clock that can be set.
class SetClock final : public Clock {
 public:
  Nanos boot_ns() const override { return real_.boot_ns(); }
  Nanos wall_ns() const override { return real_.wall_ns() + ahead_ns_; }
  void set_wall_ahead(Nanos ahead_ns) { ahead_ns_ = ahead_ns; }

 private:
  SystemClock real_;
  std::atomic<Nanos> ahead_ns_{0};
};

class CountingSeeds final : public SeedSource {
 public:
  explicit CountingSeeds(std::uint64_t first) : random_(first) {}
  std::uint64_t next_seed() override {
    const std::lock_guard lock(mutex_);
    return random_.next();
  }

 private:
  std::mutex mutex_;
  Random random_;
};

/// The grantor's view of a policy, as the server makes it.
class PolicyBook final : public ownership::LimitBook {
 public:
  explicit PolicyBook(std::shared_ptr<const policy::Policy> policy) : policy_(std::move(policy)) {}
  std::optional<LimitNumbers> numbers(const BucketKey& bucket) const override {
    const auto found = policy_->find(bucket.limit, bucket.customer);
    if (!found || found->kind != policy::MatchedLimit::Kind::numbers) return std::nullopt;
    return found->numbers;
  }
  /// Days of UTC, whatever window the limit has.
  std::optional<limit::WindowSpan> window(const BucketKey&, Nanos wall_ns) const override {
    const Nanos start_ns = wall_ns - wall_ns % kDay;
    return limit::WindowSpan{start_ns, start_ns + kDay};
  }
  std::uint64_t version() const override { return policy_->version(); }

 private:
  std::shared_ptr<const policy::Policy> policy_;
};

/// One global limit `api`: `capacity` at once and `rate_count` per `rate_period_ns`.
inline std::shared_ptr<const policy::Policy> one_limit(std::int64_t capacity,
                                                       std::int64_t rate_count = 1,
                                                       Nanos rate_period_ns = kYear) {
  PolicyDefinition definition;
  definition.version = 1;
  LimitDefinition limit;
  limit.name = "api";
  limit.numbers = {capacity, rate_count, rate_period_ns};
  definition.limits.push_back(limit);
  return std::make_shared<const policy::Policy>(std::move(definition));
}

/// One global limit `api` of `quota` per day of UTC.
inline std::shared_ptr<const policy::Policy> one_quota(std::int64_t quota) {
  PolicyDefinition definition;
  definition.version = 1;
  LimitDefinition limit;
  limit.name = "api";
  limit.algorithm = Algorithm::fixed_window;
  limit.window = Window::day;
  limit.numbers.capacity = quota;
  definition.limits.push_back(limit);
  return std::make_shared<const policy::Policy>(std::move(definition));
}

inline std::string bucket_of(const std::string& customer) {
  return encode(BucketKey{customer, Scope::global, {}, "api", {}});
}

/// Holds a free port of the loopback. A listener with SO_REUSEADDR may still take it.
class ReservedPort {
 public:
  ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    WEIR_ASSERT(bind(socket_, generic, size) == 0);
    WEIR_ASSERT(getsockname(socket_, generic, &size) == 0);
    port_ = ntohs(address.sin_port);
  }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  ~ReservedPort() { close(socket_); }
  Endpoint endpoint() const { return {"127.0.0.1", port_}; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

/// Frames between nodes of one process, delivered at once on the sender's thread, lost with a
/// seeded chance, or held up by a frozen node.
class FakeNetwork {
 public:
  explicit FakeNetwork(std::uint64_t seed, unsigned loss_permille = 0)
      : random_(seed), loss_permille_(loss_permille) {}

  class Port final : public Transport {
   public:
    Port(FakeNetwork& network, std::string name) : network_(network), name_(std::move(name)) {}
    Status start(TransportEvents events) override {
      network_.join(name_, std::move(events));
      return {};
    }
    void stop() override { network_.leave(name_); }
    void send(const std::string& node, std::string frame) override {
      network_.carry(name_, node, std::move(frame));
    }
    void sever(const std::string&) override { ++severed; }
    std::uint16_t port() const override { return 0; }

    std::atomic<int> severed{0};

   private:
    FakeNetwork& network_;
    std::string name_;
  };

  /// Nothing goes in or out of a frozen node; its links stand.
  void freeze(const std::string& node, bool frozen) {
    const std::lock_guard lock(mutex_);
    frozen_[node] = frozen;
  }

 private:
  void join(const std::string& name, TransportEvents events) {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, there] : nodes_) {
      there.link(name, true);
      events.link(other, true);
    }
    nodes_[name] = std::move(events);
  }
  void leave(const std::string& name) {
    const std::lock_guard lock(mutex_);
    nodes_.erase(name);
    for (const auto& [other, there] : nodes_) there.link(name, false);
  }
  void carry(const std::string& from, const std::string& to, std::string frame) {
    const std::lock_guard lock(mutex_);
    const auto there = nodes_.find(to);
    if (there == nodes_.end() || !nodes_.contains(from)) return;
    if (frozen_[from] || frozen_[to] || random_.chance(loss_permille_)) return;
    there->second.frame(from, std::move(frame));
  }

  std::mutex mutex_;
  Random random_;
  unsigned loss_permille_;
  std::map<std::string, TransportEvents> nodes_;
  std::map<std::string, bool> frozen_;
};

/// A topology of one region `eu`.
inline Topology topology_of(const std::vector<TopologyNode>& nodes) {
  Topology topology;
  topology.version = 1;
  TopologyRegion region;
  region.name = "eu";
  region.nodes = nodes;
  topology.regions.push_back(region);
  return topology;
}

/// A node with its limiter, as the server wires it, in one process with others.
class TestNode {
 public:
  struct Options {
    std::string name;
    std::string region = "eu";
    bool edge = true;
    bool owner = true;
    Topology topology;
    std::optional<Endpoint> listen;
    Transport* transport = nullptr;
    std::shared_ptr<store::Store> store;  ///< none: a fresh one
    std::shared_ptr<const policy::Policy> policy = one_limit(100);
    std::uint64_t seed = 1;
    bool chaos = true;
    Nanos wait_ns = 20 * kSecond;
  };

  explicit TestNode(const Options& options)
      : seeds_(options.seed), log_(telemetry::make_null_log()) {
    store_ = options.store;
    if (!store_) store_ = std::make_shared<store::MemoryStore>(clock_, "boot", kSecond, 1);
    edge::LimiterConfig edge;
    edge.node = options.name;
    edge.region = options.region;
    edge.wait_ns = options.wait_ns;
    edge.suspicion_ns = kMinute;
    limiter_ = std::make_unique<edge::Limiter>(edge, clock_, options.seed, [this] {
      if (Node* node = started_) node->wake_broker();
    });
    limiter_->set_policy(options.policy);
    NodeConfig config;
    config.name = options.name;
    config.region = options.region;
    config.edge = options.edge;
    config.owner = options.owner;
    config.listen = options.listen;
    config.topology = options.topology;
    config.chaos = options.chaos;
    auto node = Node::start(
        std::move(config),
        {&clock_, &seeds_, store_.get(), limiter_.get(), log_.get(), &metrics_, options.transport},
        std::make_shared<const PolicyBook>(options.policy));
    WEIR_ASSERT(node.has_value());
    node_ = std::move(*node);
    started_ = node_.get();
    node_->wake_broker();
  }
  ~TestNode() { started_ = nullptr; }

  Node& node() { return *node_; }
  edge::Limiter& limiter() { return *limiter_; }
  telemetry::Metrics& metrics() { return metrics_; }
  const Clock& clock() const { return clock_; }
  void set_wall_ahead(Nanos ahead_ns) { clock_.set_wall_ahead(ahead_ns); }

  /// Decides `count` checks of `customer`; each counts itself in one of the two when it is done.
  void check(const std::string& customer, int count, std::atomic<int>& allowed,
             std::atomic<int>& denied) {
    for (int i = 0; i < count; ++i) {
      Check check;
      check.customer = customer;
      const auto done = [&](const Decision& decision) { ++(decision.allowed ? allowed : denied); };
      Decision decision;
      const auto decided = limiter_->decide(check, decision);
      WEIR_ASSERT(decided.has_value());
      if (*decided) {
        done(decision);
      } else {
        limiter_->decide_later(check, done);
      }
    }
  }

  /// Tokens that the limiter holds.
  std::int64_t held() const {
    std::int64_t sum = 0;
    for (const edge::LimitGauges& gauges : limiter_->gauges()) sum += gauges.lease_tokens;
    return sum;
  }

  bool hears(const std::string& peer) {
    for (const PeerState& state : node_->state().peers) {
      if (state.node == peer) return state.connected;
    }
    return false;
  }
  std::uint64_t incarnation_of(const std::string& peer) {
    for (const PeerState& state : node_->state().peers) {
      if (state.node == peer && state.connected) return state.incarnation;
    }
    return 0;
  }

 private:
  SetClock clock_;
  CountingSeeds seeds_;
  std::unique_ptr<telemetry::Log> log_;
  telemetry::Metrics metrics_;
  std::shared_ptr<store::Store> store_;
  std::unique_ptr<edge::Limiter> limiter_;
  std::atomic<Node*> started_{nullptr};
  std::unique_ptr<Node> node_;  ///< ends first: it uses all of the above
};

}  // namespace weir::actors::test
