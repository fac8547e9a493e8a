#include "actors/node.h"

#include <algorithm>
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/openssl/manager.hpp>
#include <set>
#include <utility>

#include "actors/broker.h"
#include "actors/caf_transport.h"
#include "actors/clerk.h"
#include "actors/courier.h"
#include "actors/desk.h"
#include "actors/herald.h"
#include "actors/messages.h"
#include "actors/relay.h"
#include "actors/replication.h"
#include "actors/store_writer.h"
#include "regions/placement.h"
#include "regions/topology_view.h"
#include "src/telemetry/names.h"

namespace weir::actors {
namespace {

/// Threads that run actors; the writer, the reader and the middleman have their own.
constexpr std::size_t kSchedulerThreads = 2;

class SystemConfig : public caf::actor_system_config {
 public:
  SystemConfig(bool networked, const std::optional<ClusterTls>& tls) {
    set("scheduler.max-threads", kSchedulerThreads);
    // CAF 0.17 steals from the tail of a singly linked list, which it walks with the queue locked:
    // among ten thousand owners that are ready, threads would do little else.
    set("scheduler.policy", caf::atom("sharing"));
    set("logger.verbosity", caf::atom("quiet"));
    if (!networked) return;
    load<caf::io::middleman>();
    // Frames are small and few: the middleman's own thread reads them in order.
    set("middleman.workers", std::size_t{0});
    if (!tls) return;
    openssl_certificate = tls->certificate;
    openssl_key = tls->key;
    openssl_cafile = tls->ca;
    load<caf::openssl::manager>();
  }
};

std::uint64_t draw_incarnation(SeedSource& seeds) {
  std::uint64_t incarnation = 0;
  while (incarnation == 0) incarnation = seeds.next_seed();
  return incarnation;
}

}  // namespace

struct Node::Impl {
  Impl(NodeConfig with, World in)
      : config(std::move(with)),
        world(in),
        incarnation(draw_incarnation(*in.seeds)),
        shape(std::make_shared<ShapeBoard>(shape_of_file())),
        networked(in.transport == nullptr && (config.listen || !dials().empty())),
        system_config(networked, config.tls),
        system(system_config) {}

  ~Impl() { stop(); }

  Status start(Book book);
  void stop();
  Status start_owning(const Book& book);
  void start_relay();
  Status open_transport();
  void start_herald();
  std::vector<TopologyNode> dials() const;
  std::shared_ptr<const Shape> shape_of_file() const;
  Status take_stored_shape(const StoredRegisters& stored);
  Result<Topology> parse(const std::string& document) const;
  codec::Hello hello() const;
  void collect_metrics(telemetry::MetricSink& sink) const;

  const NodeConfig config;
  const World world;
  const std::uint64_t incarnation;
  const std::shared_ptr<ShapeBoard> shape;
  const bool networked;
  SystemConfig system_config;
  const std::shared_ptr<OwnershipBoard> ownership = std::make_shared<OwnershipBoard>();
  const std::shared_ptr<RelayBoard> relay = std::make_shared<RelayBoard>();
  const std::shared_ptr<WakeFlag> wake = std::make_shared<WakeFlag>(false);
  const std::shared_ptr<PeerBoard> board = std::make_shared<PeerBoard>();
  const std::shared_ptr<edge::ActivityTable> activity = std::make_shared<edge::ActivityTable>();
  const std::shared_ptr<PolicyBoard> policies = std::make_shared<PolicyBoard>();
  std::uint64_t collector = 0;
  caf::actor_system system;
  std::unique_ptr<CafTransport> own_transport;
  Transport* transport = nullptr;
  std::shared_ptr<Links> links = std::make_shared<Links>();
};

/// Whom to keep links to: the owner nodes, or, as long as they are not known, whoever is at the
/// addresses to begin with.
std::vector<TopologyNode> Node::Impl::dials() const {
  const auto now = shape->read();
  std::vector<TopologyNode> others;
  for (const TopologyRegion& region : now->view->topology().regions) {
    for (const TopologyNode& node : region.nodes) {
      if (node.name != config.name) others.push_back(node);
    }
  }
  if (!now->view->owner_nodes().empty()) return others;
  for (const Endpoint& endpoint : config.join) {
    others.push_back({kJoinPrefix + to_string(endpoint), "", endpoint});
  }
  return others;
}

Result<Topology> Node::Impl::parse(const std::string& document) const {
  if (document == config.topology_document) return config.topology;
  if (config.parse_topology) return config.parse_topology(document);
  return failure(ErrorCode::unsupported, "topology", "this node reads no other one");
}

std::shared_ptr<const Shape> Node::Impl::shape_of_file() const {
  TopologyState state;
  state.finished.version = config.topology.version;
  state.finished.document = config.topology_document;
  auto view = std::make_shared<const regions::View>(state, config.topology, std::nullopt);
  return std::make_shared<const Shape>(Shape{std::move(state), false, std::move(view)});
}

/// What the store has of it is what was committed: it counts, whatever the node's file says.
Status Node::Impl::take_stored_shape(const StoredRegisters& stored) {
  if (!stored.topology) return {};
  const bool was_alone = stored.topology->finished.document.empty();
  if (was_alone != config.topology_document.empty()) {
    return failure(ErrorCode::invalid_argument, "topology",
                   was_alone ? "the data folder is of a node on its own: start this one with an "
                               "empty folder"
                             : "the data folder is of a node in a cluster: name its topology file");
  }
  auto view =
      regions::make_view(*stored.topology, [this](const std::string& text) { return parse(text); });
  if (!view) return tl::unexpected<Error>(view.error());
  if (stored.topology->finished.document != config.topology_document) {
    world.log->info(
        "the cluster's topology differs from the node's file, and counts",
        {{"version", stored.topology->finished.version}, {"file", config.topology.version}});
  }
  shape->post(std::make_shared<const Shape>(Shape{*stored.topology, true, *view}));
  return {};
}

codec::Hello Node::Impl::hello() const {
  return {config.name,
          incarnation,
          config.region,
          config.edge,
          config.owner,
          config.topology.version,
          config.topology.content_hash};
}

Status Node::Impl::start(Book book) {
  links->node = config.name;
  links->desk = spawn_desk(system, links, shape);
  if (config.owner) {
    if (const Status owning = start_owning(book); !owning) return owning;
    start_relay();
  }
  if (config.edge) {
    links->broker = spawn_broker(
        system, {world.limiter, world.clock, world.metrics, shape, config.region, wake, links});
  }
  if (const Status opened = open_transport(); !opened) return opened;
  collector =
      world.metrics->add_collector([this](telemetry::MetricSink& sink) { collect_metrics(sink); });
  if (links->broker) caf::anon_send(links->broker, WakeAtom::value);
  world.log->info("node started", {{"node", config.name},
                                   {"region", config.region},
                                   {"incarnation", incarnation},
                                   {"cluster_port", transport == nullptr ? 0 : transport->port()}});
  return {};
}

Status Node::Impl::start_owning(const Book& book) {
  auto stored = read_stored_registers(*world.store);
  if (!stored) return tl::unexpected<Error>(stored.error());
  if (const Status taken = take_stored_shape(*stored); !taken) return taken;
  links->writer = spawn_store_writer(system, {world.store, world.log, links});
  ownership::OwnerConfig owners;
  owners.terms = config.terms;
  owners.max_clock_error_ns = config.max_clock_error_ns;
  owners.quiet_ns = config.quiet_ns;
  const auto shared =
      std::make_shared<const OwnerContext>(OwnerContext{world.clock, owners, links});
  links->clerk = spawn_clerk(system, *world.store, shared, book);
  ReplicationContext context;
  context.owners = shared;
  context.shape = shape;
  context.store = world.store;
  context.host.self = config.name;
  context.host.incarnation = incarnation;
  context.host.max_owners = config.most_owners != 0 ? config.most_owners : kMaxActiveOwners;
  context.host.previous_number = world.store->previous_number();
  context.store_number = stored->store_number;
  context.states = std::move(stored->states);
  context.topology = shape->read()->state;
  context.topology_assumed = !shape->read()->committed;
  context.parse_topology = [this](const std::string& text) { return parse(text); };
  context.seed = world.seeds->next_seed();
  context.log = world.log;
  context.metrics = world.metrics;
  context.board = ownership;
  context.chaos = config.chaos;
  links->replication = spawn_replication(system, std::move(context), book);
  return {};
}

void Node::Impl::start_relay() {
  RelayContext context;
  context.config.node = config.name;
  context.config.terms = config.terms;
  context.seed = world.seeds->next_seed();
  context.clock = world.clock;
  context.metrics = world.metrics;
  context.shape = shape;
  context.board = relay;
  context.links = links;
  links->relay = spawn_relay(system, context);
}

Status Node::Impl::open_transport() {
  transport = world.transport;
  if (networked) {
    own_transport = std::make_unique<CafTransport>(
        system,
        CafTransportConfig{config.name, incarnation, config.listen, dials(),
                           world.seeds->next_seed(), config.tls.has_value(),
                           std::make_shared<RefusalLog>(*world.clock, *world.log)},
        *world.metrics);
    transport = own_transport.get();
  }
  if (transport == nullptr) {
    start_herald();
    return {};
  }
  links->courier = spawn_courier(
      system, {hello(), shape, [this](const std::string& text) { return parse(text); }, transport,
               world.clock, world.log, world.metrics, board, activity, links});
  start_herald();
  const CourierActor courier = links->courier;
  if (!config.delay_ns.empty()) caf::anon_send(courier, NetworkFaults{{}, config.delay_ns});
  return transport->start({[courier](std::string from, std::string frame) {
                             caf::anon_send(courier, Frame{std::move(from), std::move(frame)});
                           },
                           [courier](std::string node, bool up) {
                             caf::anon_send(courier, Link{std::move(node), up});
                           }});
}

void Node::Impl::start_herald() {
  if (!world.policy.take) return;
  links->herald = spawn_herald(system, {config.policy, config.policy_stored, world.policy,
                                        world.clock, world.log, policies, links});
}

/// Order: questions are answered, then the network falls silent, then the owners end, and last the
/// actors that they depend on. Waits for all of them.
void Node::Impl::stop() {
  if (collector != 0) world.metrics->remove_collector(collector);
  caf::scoped_actor waiter{system};
  const auto end = [&waiter](auto& actor) {
    if (!actor) return;
    waiter->send_exit(actor, caf::exit_reason::kill);
    waiter->wait_for(actor);
  };
  if (links->desk) {
    waiter->send(links->desk, StopAtom::value);
    waiter->wait_for(links->desk);
  }
  if (transport != nullptr) transport->stop();
  end(links->courier);
  end(links->herald);
  if (links->replication) {
    waiter->send(links->replication, StopAtom::value);
    waiter->wait_for(links->replication);
  }
  end(links->relay);
  end(links->broker);
  end(links->writer);
  end(links->clerk);
  links->desk = nullptr;
  links->courier = nullptr;
  links->herald = nullptr;
  links->replication = nullptr;
  links->relay = nullptr;
  links->broker = nullptr;
  links->writer = nullptr;
  links->clerk = nullptr;
}

void Node::Impl::collect_metrics(telemetry::MetricSink& sink) const {
  using telemetry::metric::kOwnersActive;
  using telemetry::metric::kOwnersDormant;
  const std::uint64_t active = ownership->owners_active;
  sink.gauge(kOwnersActive.name, kOwnersActive.help, {}, static_cast<double>(active));
  if (config.owner) {
    using telemetry::metric::kRelayBuckets;
    sink.gauge(kRelayBuckets.name, kRelayBuckets.help, {}, static_cast<double>(relay->buckets));
  }
  if (world.store == nullptr) return;
  const std::uint64_t records = world.store->approximate_records();
  sink.gauge(kOwnersDormant.name, kOwnersDormant.help, {},
             static_cast<double>(records - std::min(records, active)));
}

Node::Node(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::start(NodeConfig config, World world,
                                          std::shared_ptr<const ownership::LimitBook> book) {
  auto impl = std::make_unique<Impl>(std::move(config), world);
  if (const Status started = impl->start(std::move(book)); !started) {
    return tl::unexpected<Error>(started.error());
  }
  return std::unique_ptr<Node>(new Node(std::move(impl)));
}

void Node::wake_broker() {
  if (!impl_->links->broker || impl_->wake->exchange(true)) return;
  caf::anon_send(impl_->links->broker, WakeAtom::value);
}

void Node::set_book(std::shared_ptr<const ownership::LimitBook> book) {
  if (!impl_->links->replication) return;
  caf::anon_send(impl_->links->replication, Book(book));
  caf::anon_send(impl_->links->relay, Book(book));
  caf::anon_send(impl_->links->clerk, Book(std::move(book)));
}

void Node::cut_off(std::set<std::string> nodes) {
  if (!impl_->links->courier) return;
  caf::anon_send(impl_->links->courier, NetworkFaults{std::move(nodes), impl_->config.delay_ns});
}

void Node::spread_policy(policy::PolicyText text) {
  if (impl_->links->herald) caf::anon_send(impl_->links->herald, std::move(text));
}

void Node::tell_activity(ActivityReport report) {
  impl_->activity->hear(impl_->config.name, report, impl_->world.clock->boot_ns());
  if (impl_->links->courier) caf::anon_send(impl_->links->courier, std::move(report));
}

edge::ActivityTable::Top Node::activity() const {
  return impl_->activity->top(impl_->world.clock->boot_ns());
}

void Node::describe(const RegisterId& reg, const std::string& customer, DescribeCallback done) {
  codec::OwnerQuery query{0, reg, customer, codec::OwnerQuery::Kind::describe, 0, {}};
  caf::anon_send(impl_->links->desk, Question{std::move(query), std::move(done)});
}

std::shared_ptr<const Shape> Node::shape() const { return impl_->shape->read(); }

void Node::propose(std::uint64_t version, const std::string& document, TopologyCallback done) {
  codec::OwnerQuery query{0,       kTopologyRegister, "topology", codec::OwnerQuery::Kind::propose,
                          version, document};
  const auto answered = [done = std::move(done)](const Result<OwnerDescription>& reply) {
    done(reply ? Status{} : Status(tl::unexpected<Error>(reply.error())));
  };
  caf::anon_send(impl_->links->desk, Question{std::move(query), answered});
}

void Node::recover(std::uint64_t version, const std::string& document, TopologyCallback done) {
  if (!impl_->links->replication) {
    return done(failure(ErrorCode::unavailable, "", "this node owns nothing: ask one that does"));
  }
  caf::anon_send(impl_->links->replication, RecoverOrder{version, document, std::move(done)});
}

void Node::kill_owner(const std::string& customer, KillCallback done) {
  const RegisterId reg =
      shape()->placement().register_for(Scope::global, impl_->config.region, customer);
  codec::OwnerQuery query{0, reg, customer, codec::OwnerQuery::Kind::kill, 0, {}};
  const auto answered = [done = std::move(done)](const Result<OwnerDescription>& reply) {
    done(reply ? Status{} : Status(tl::unexpected<Error>(reply.error())));
  };
  caf::anon_send(impl_->links->desk, Question{std::move(query), answered});
}

Node::State Node::state() const {
  State state;
  PeerBoard::Posted posted = impl_->board->read();
  state.incarnation = impl_->incarnation;
  state.peers = std::move(posted.peers);
  state.live_edges = posted.live_edges;
  state.owners_active = impl_->ownership->owners_active;
  state.relay_buckets = impl_->relay->buckets;
  state.cluster_port = impl_->transport == nullptr ? 0 : impl_->transport->port();
  state.slots_owned = impl_->ownership->slots_owned;
  state.registers_incomplete = impl_->ownership->registers_incomplete;
  state.registers_unmarked = impl_->ownership->registers_unmarked;
  state.takeovers = impl_->ownership->takeovers;
  state.store_failed = impl_->ownership->store_failed;
  PolicyBoard::Posted policy = impl_->policies->read();
  state.policy_wanted = policy.wanted;
  state.policy_refused = std::move(policy.refused);
  return state;
}

bool Node::wait_settled(Nanos patience_ns) {
  return !impl_->config.owner || impl_->ownership->wait_settled(patience_ns);
}

void Node::drain(Nanos deadline_ns, std::function<void()> done) {
  const Links& links = *impl_->links;
  DrainOrder order{deadline_ns, std::move(done)};
  if (links.broker) return caf::anon_send(links.broker, std::move(order));
  if (links.relay) return caf::anon_send(links.relay, std::move(order));
  order.done();
}

}  // namespace weir::actors
