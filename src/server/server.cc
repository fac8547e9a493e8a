#include "src/server/server.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "actors/node.h"
#include "src/config/load.h"
#include "src/edge/limiter.h"
#include "src/net/http_server.h"
#include "src/server/admin_service.h"
#include "src/server/certificate_copy.h"
#include "src/server/check_service.h"
#include "src/server/collector.h"
#include "src/server/limit_book.h"
#include "src/server/policy_keeper.h"
#include "src/server/probe_service.h"
#include "src/server/security_keeper.h"
#include "src/telemetry/names.h"

namespace weir::server {
namespace {

namespace metric = telemetry::metric;

constexpr const char* kRegionAlone = "local";
/// So long a start waits until every customer has an owner. Then it goes on: an edge has its use.
constexpr Nanos kSettleNs = 3 * kSecond;
/// Of the time to drain, what requests that have begun may take, and what is kept for the end: once
/// for the disk, once for stopping everything. The rest is for leases.
constexpr Nanos kFinishRequestsNs = 4 * kSecond;
constexpr Nanos kKeptForTheEndNs = 1 * kSecond;
constexpr unsigned kMostHttpThreads = 16;
/// People and scrapers.
constexpr std::size_t kMostAdminConnections = 256;
/// Descriptors that checks leave to the admin ports, the store, the peers and the rest.
constexpr std::size_t kKeptDescriptors = 1024;

net::HeaderStyle header_style(config::HeaderStyle style) {
  switch (style) {
    case config::HeaderStyle::draft11:
      return net::HeaderStyle::draft11;
    case config::HeaderStyle::draft03:
      return net::HeaderStyle::draft03;
    case config::HeaderStyle::legacy:
      return net::HeaderStyle::legacy;
    case config::HeaderStyle::none:
      return net::HeaderStyle::none;
  }
  return net::HeaderStyle::none;
}

/// The topology of a node on its own.
Topology cluster_of_one(const config::NodeConfig& config) {
  TopologyRegion region;
  region.name = config.region;
  region.nodes.push_back({config.node, "", config.listen.cluster.value_or(Endpoint{})});
  Topology topology;
  topology.version = 1;
  topology.regions.push_back(std::move(region));
  return topology;
}

/// The topology that the file says, and the node's place in it.
Result<Topology> load_topology(config::NodeConfig& config) {
  if (!config.join.empty()) return Topology{};  // its peers tell it
  if (config.topology.empty()) {
    if (config.region.empty()) config.region = kRegionAlone;
    return cluster_of_one(config);
  }
  auto parsed = config::load_topology(config.topology);
  if (!parsed) {
    return failure(ErrorCode::invalid_argument, "",
                   "the topology cannot be used\n" + config::to_string(parsed.errors));
  }
  if (Status fits = config::check_node_in_topology(config, *parsed.value); !fits) {
    return tl::unexpected(std::move(fits).error());
  }
  if (config.region.empty()) {
    const TopologyRegion* region = parsed.value->region_of(config.node);
    if (region == nullptr) {
      return failure(ErrorCode::invalid_argument, "region",
                     "the topology does not know " + config.node + ": say its region");
    }
    config.region = region->name;
  }
  return *std::move(parsed.value);
}

edge::LimiterConfig limiter_config(const config::NodeConfig& config) {
  edge::LimiterConfig limiter;
  limiter.node = config.node;
  limiter.region = config.region;
  limiter.terms.ttl_ns = config.lease_ttl_ns;
  limiter.terms.slew_permille = static_cast<std::uint32_t>(config.clock_slew_permille);
  limiter.wait_ns = config.wait_ns;
  limiter.expected_edges = config.expected_edges;
  return limiter;
}

actors::NodeConfig actor_config(const config::NodeConfig& config, const Topology& topology) {
  actors::NodeConfig node;
  node.name = config.node;
  node.region = config.region;
  node.edge = config.roles.edge;
  node.owner = config.roles.owner;
  if (!config.topology.empty()) node.listen = config.listen.cluster;
  if (config.tls.cluster) {
    const config::TlsFiles copy = certificate_copy(config.data);
    node.tls = actors::ClusterTls{copy.certificate, copy.key, copy.ca};
  }
  node.topology = topology;
  if (!config.topology.empty()) {
    node.topology_document = config::read_file(config.topology).value.value_or("");
  }
  node.join = config.join;
  node.parse_topology = [](const std::string& text) -> Result<Topology> {
    auto parsed = config::parse_topology(text, "topology");
    if (parsed) return *std::move(parsed.value);
    return failure(ErrorCode::invalid_argument, "topology", config::to_string(parsed.errors));
  };
  node.terms.ttl_ns = config.lease_ttl_ns;
  node.terms.slew_permille = static_cast<std::uint32_t>(config.clock_slew_permille);
  node.max_clock_error_ns = config.max_clock_error_ns;
  node.chaos = config.chaos;
  node.delay_ns = config.chaos_delay_ns;
  return node;
}

/// As many as the process may have descriptors for.
std::size_t most_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return net::kMaxConnections;
  const std::size_t all = limit.rlim_cur;
  const std::size_t left = all > 2 * kKeptDescriptors ? all - kKeptDescriptors : all / 2;
  return std::clamp<std::size_t>(left, 1, net::kMaxConnections);
}

unsigned http_threads() {
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMostHttpThreads);
}

}  // namespace

/// Members are destroyed from the last to the first: listeners, then services, then the actors,
/// then the limiter that they use.
struct Server::Impl {
  Impl(config::NodeConfig node_config, Topology shape, World given)
      : config(std::move(node_config)),
        topology(std::move(shape)),
        world(given),
        policy(config.policy, *world.clock),
        security(config, *world.clock, *world.log) {}
  ~Impl() { stop(); }

  Status start();
  Status start_policy();
  Status start_actors();
  void apply_policy();
  Result<policy::PolicyStamp> take_policy(const std::string& text, const std::string& peer);
  Status start_listeners();
  Status listen(std::unique_ptr<net::HttpServer>& server, const char* field,
                std::optional<Endpoint>& bound);
  void stop();
  net::Readiness readiness() const;
  void count_reload(const char* result);
  void tell_activity();

  config::NodeConfig config;
  const Topology topology;
  const World world;
  PolicyKeeper policy;
  SecurityKeeper security;
  Addresses addresses;
  /// The limiter wakes the broker through this; null while there is none.
  std::atomic<actors::Node*> broker{nullptr};
  std::atomic<bool> draining{false};
  Nanos told_activity_ns = 0;
  // A file is read on main's thread, what peers have on an actor's; what was decided first must be
  // in force first.
  std::mutex policy_mutex;
  std::unique_ptr<edge::Limiter> limiter;  ///< null at a node that is no edge
  bool policy_stored = false;
  std::vector<std::uint64_t> collectors;
  std::unique_ptr<LimiterCheckService> checks;
  std::unique_ptr<NodeAdminService> admin;
  std::unique_ptr<ProbeService> probe;
  std::unique_ptr<actors::Node> node;
  std::unique_ptr<net::HttpServer> http_server;
  std::unique_ptr<net::HttpServer> admin_server;
  std::unique_ptr<net::HttpServer> probe_server;
};

net::Readiness Server::Impl::readiness() const {
  if (draining.load(std::memory_order_acquire)) return net::Readiness::draining;
  if (!policy.has_policy()) return net::Readiness::no_policy;
  const bool failed = node != nullptr && node->state().store_failed;
  return failed ? net::Readiness::store_failed : net::Readiness::serving;
}

/// What the store has beats an older file (J4); an edge that joins may have none.
Status Server::Impl::start_policy() {
  std::optional<std::string> stored;
  if (config.roles.owner && world.store != nullptr) {
    auto read = world.store->read_meta(store::kPolicyMeta);
    if (!read) return tl::unexpected(std::move(read).error());
    stored = *std::move(read);
  }
  const auto first = policy.start(stored, !config.join.empty());
  if (!first) {
    return failure(first.error().code, "", "the policy cannot be used\n" + first.error().message);
  }
  const PolicyKeeper::State state = policy.state();
  policy_stored = stored && state.text && state.text->text == *stored;
  if (state.last_error) {
    world.log->error("the policy's file is not used; the stored one is in force",
                     {{"policy", config.policy},
                      {"version_in_force", state.policy == nullptr ? 0 : state.policy->version()},
                      {"error", *state.last_error}});
  } else if (state.policy == nullptr) {
    world.log->warn("no policy yet: the peers tell it", {{"policy", config.policy}});
  }
  return {};
}

/// Grantors first: an edge that met the new version before its owner would have to wait (D8).
void Server::Impl::apply_policy() {
  const auto in_force = policy.policy();
  if (in_force == nullptr) return;
  actors::Node* started = broker.load();
  if (started != nullptr) started->set_book(std::make_shared<PolicyLimitBook>(in_force));
  if (limiter != nullptr) limiter->set_policy(in_force);
}

Result<policy::PolicyStamp> Server::Impl::take_policy(const std::string& text,
                                                      const std::string& peer) {
  const std::lock_guard lock(policy_mutex);
  const auto taken = policy.take(text, peer);
  if (!taken) {
    count_reload("failed");
    return tl::unexpected(taken.error());
  }
  if (taken->outcome == PolicyKeeper::Outcome::replaced) {
    apply_policy();
    count_reload("replaced");
    world.log->info("policy taken from a peer",
                    {{"peer", peer}, {"version", taken->stamp.version}});
  }
  return taken->stamp;
}

Status Server::Impl::start() {
  if (Status known = start_policy(); !known) return known;
  if (Status read = security.start(); !read) return read;
  collectors.push_back(world.metrics->add_collector(
      [this](telemetry::MetricSink& sink) { security.collect(sink); }));
  // A counter that appears with its first event hides that event from every rate.
  for (const char* result : {"replaced", "unchanged", "failed"}) {
    world.metrics->counter(metric::kPolicyReload.name, metric::kPolicyReload.help,
                           {{"result", result}});
  }
  world.metrics->counter(metric::kDegradedTransitions.name, metric::kDegradedTransitions.help);
  if (Status started = start_actors(); !started) return started;
  return start_listeners();
}

Status Server::Impl::start_actors() {
  if (config.roles.edge) {
    limiter = std::make_unique<edge::Limiter>(limiter_config(config), *world.clock,
                                              world.seeds->next_seed(), [this] {
                                                actors::Node* woken = broker.load();
                                                if (woken != nullptr) woken->wake_broker();
                                              });
    apply_policy();
    collectors.push_back(world.metrics->add_collector(limiter_collector(*limiter)));
  }
  actors::Node::World parts;
  parts.clock = world.clock;
  parts.seeds = world.seeds;
  parts.store = config.roles.owner ? world.store : nullptr;
  parts.limiter = limiter.get();
  parts.log = world.log;
  parts.metrics = world.metrics;
  parts.policy.take = [this](const std::string& text, const std::string& peer) {
    return take_policy(text, peer);
  };
  actors::NodeConfig actors_with = actor_config(config, topology);
  const PolicyKeeper::State known = policy.state();
  if (known.text) actors_with.policy = *known.text;
  actors_with.policy_stored = policy_stored;
  const auto first =
      known.policy ? known.policy : std::make_shared<const policy::Policy>(PolicyDefinition{});
  auto started =
      actors::Node::start(std::move(actors_with), parts, std::make_shared<PolicyLimitBook>(first));
  if (!started) return tl::unexpected(std::move(started).error());
  node = *std::move(started);
  {
    // A peer's policy may have come in between.
    const std::lock_guard lock(policy_mutex);
    broker.store(node.get());
    apply_policy();
  }
  if (!node->wait_settled(kSettleNs)) {
    world.log->warn("not every customer has an owner yet: too few replicas are heard");
  }
  addresses.cluster_port = node->state().cluster_port;
  return {};
}

Status Server::Impl::listen(std::unique_ptr<net::HttpServer>& server, const char* field,
                            std::optional<Endpoint>& bound) {
  auto started = server->start();
  if (!started) {
    Error error = std::move(started).error();
    error.field = field;
    return tl::unexpected(std::move(error));
  }
  bound = *started;
  return {};
}

Status Server::Impl::start_listeners() {
  net::HttpServerOptions options;
  options.tls = security.http_tls();
  options.tokens = security.tokens();
  if (limiter != nullptr && config.listen.http) {
    checks = std::make_unique<LimiterCheckService>(
        LimiterCheckService::Parts{*limiter, *node, policy, config.region});
    net::CheckApiOptions api;
    api.headers = header_style(config.headers);
    api.jitter_seed = world.seeds->next_seed();
    api.check_duration =
        &world.metrics->histogram(metric::kCheckDuration.name, metric::kCheckDuration.help);
    options.listen = *config.listen.http;
    options.threads = http_threads();
    options.max_connections = most_connections();
    http_server =
        std::make_unique<net::HttpServer>(options, api, *checks, *world.clock, *world.log);
    if (Status up = listen(http_server, "listen.http", addresses.http); !up) return up;
  }
  NodeAdminService::Parts parts;
  parts.clock = world.clock;
  parts.config = &config;
  parts.policy = &policy;
  parts.security = &security;
  parts.metrics = world.metrics;
  parts.node = node.get();
  parts.limiter = limiter.get();
  parts.store = config.roles.owner ? world.store : nullptr;
  parts.readiness = [this] { return readiness(); };
  parts.http = addresses.http;
  admin = std::make_unique<NodeAdminService>(std::move(parts));
  options.threads = 1;
  options.max_connections = kMostAdminConnections;
  if (config.listen.admin) {
    options.listen = *config.listen.admin;
    admin_server = std::make_unique<net::HttpServer>(options, *admin, *world.clock, *world.log);
    if (Status up = listen(admin_server, "listen.admin", addresses.admin); !up) return up;
  }
  if (config.listen.probe) {
    probe = std::make_unique<ProbeService>(*admin);
    options.listen = *config.listen.probe;
    options.tls = nullptr;
    options.tokens = nullptr;
    probe_server = std::make_unique<net::HttpServer>(options, *probe, *world.clock, *world.log);
    if (Status up = listen(probe_server, "listen.probe", addresses.probe); !up) return up;
  }
  return {};
}

void Server::Impl::stop() {
  for (auto* server : {&http_server, &admin_server, &probe_server}) {
    if (*server != nullptr) (*server)->stop();
  }
  broker.store(nullptr);
  node.reset();
  for (const std::uint64_t collector : collectors) world.metrics->remove_collector(collector);
  collectors.clear();
}

void Server::Impl::count_reload(const char* result) {
  world.metrics
      ->counter(metric::kPolicyReload.name, metric::kPolicyReload.help, {{"result", result}})
      .add();
}

Result<std::unique_ptr<Server>> Server::start(config::NodeConfig config, World world) {
  auto topology = load_topology(config);
  if (!topology) return tl::unexpected(std::move(topology).error());
  auto impl = std::make_unique<Impl>(std::move(config), *std::move(topology), world);
  if (Status started = impl->start(); !started) return tl::unexpected(std::move(started).error());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Server::Addresses Server::addresses() const { return impl_->addresses; }
const config::NodeConfig& Server::config() const { return impl_->config; }

Status Server::reload() {
  Impl& impl = *impl_;
  telemetry::Log& log = *impl.world.log;
  Status security = impl.security.reload();
  const std::lock_guard lock(impl.policy_mutex);
  const auto outcome = impl.policy.reload();
  if (!outcome) {
    impl.count_reload("failed");
    const auto last_good = impl.policy.policy();
    log.error("policy not reloaded; the last good one stays",
              {{"policy", impl.config.policy},
               {"version_in_force", last_good == nullptr ? 0 : last_good->version()},
               {"error", outcome.error().message}});
    return tl::unexpected(outcome.error());
  }
  const auto policy = impl.policy.policy();
  if (*outcome == PolicyKeeper::Outcome::unchanged) {
    impl.count_reload("unchanged");
    log.info("policy unchanged", {{"policy", impl.config.policy}, {"version", policy->version()}});
    return security;
  }
  impl.apply_policy();
  impl.node->spread_policy(*impl.policy.state().text);
  impl.count_reload("replaced");
  log.info("policy reloaded", {{"policy", impl.config.policy},
                               {"version", policy->version()},
                               {"limits", policy->definition().limits.size()}});
  return security;
}

void Server::Impl::tell_activity() {
  // A signal between two turns makes them follow at once: too little time for a rate.
  const Nanos now_ns = world.clock->boot_ns();
  if (now_ns - told_activity_ns < kHousekeepingNs / 2) return;
  told_activity_ns = now_ns;
  node->tell_activity({limiter->busiest(kMostListed)});
}

void Server::housekeep() {
  Impl& impl = *impl_;
  impl.security.housekeep();
  if (impl.limiter == nullptr) return;
  impl.tell_activity();
  for (const edge::Degradation& change : impl.limiter->take_degradations()) {
    impl.world.metrics
        ->counter(metric::kDegradedTransitions.name, metric::kDegradedTransitions.help)
        .add();
    if (change.degraded) {
      impl.world.log->warn("owner silent; failure policies decide",
                           {{"register", to_string(change.reg)}});
    } else {
      impl.world.log->info("owner speaks again", {{"register", to_string(change.reg)}});
    }
  }
}

void Server::drain() {
  Impl& impl = *impl_;
  const Clock& clock = *impl.world.clock;
  const Nanos deadline_ns = add_saturating(clock.boot_ns(), kDrainNs - 2 * kKeptForTheEndNs);
  impl.draining.store(true, std::memory_order_release);
  if (impl.checks != nullptr) impl.checks->begin_drain();
  if (impl.http_server != nullptr && !impl.http_server->drain(kFinishRequestsNs)) {
    impl.world.log->warn("connections cut off while draining",
                         {{"connections", impl.http_server->connections()}});
  }
  if (impl.http_server != nullptr) impl.http_server->stop();
  // Shared: a node that misses its deadline may call after this has returned.
  const auto done = std::make_shared<std::promise<void>>();
  auto drained = done->get_future();
  impl.node->drain(deadline_ns, [done] { done->set_value(); });
  const Nanos left_ns = std::max<Nanos>(0, deadline_ns - clock.boot_ns()) + kKeptForTheEndNs;
  drained.wait_for(std::chrono::nanoseconds(left_ns));
  if (impl.limiter != nullptr && !impl.limiter->all_returned()) {
    impl.world.log->warn("leases not returned in time; their owners count them as spent");
  }
}

}  // namespace weir::server
