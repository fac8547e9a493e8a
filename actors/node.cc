#include "actors/node.h"

#include <atomic>
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <charconv>
#include <utility>

#include "actors/broker.h"
#include "actors/caf_transport.h"
#include "actors/courier.h"
#include "actors/desk.h"
#include "actors/directory.h"
#include "actors/messages.h"
#include "actors/store_writer.h"
#include "regions/placement.h"
#include "src/telemetry/names.h"

namespace weir::actors {
namespace {

/// Name of the stored epoch counter, a decimal number. For ever.
constexpr std::string_view kEpochKey = "epoch";
/// Threads that run actors; the writer, the reader and the middleman have their own.
constexpr std::size_t kSchedulerThreads = 2;

class SystemConfig : public caf::actor_system_config {
 public:
  explicit SystemConfig(bool networked) {
    set("scheduler.max-threads", kSchedulerThreads);
    // CAF 0.17 steals from the tail of a singly linked list, which it walks with the queue locked:
    // among ten thousand owners that are ready, threads would do little else.
    set("scheduler.policy", caf::atom("sharing"));
    set("logger.verbosity", caf::atom("quiet"));
    if (!networked) return;
    load<caf::io::middleman>();
    // Frames are small and few: the middleman's own thread reads them in order.
    set("middleman.workers", std::size_t{0});
  }
};

/// One above the last, stored before it is used: no two processes on one store share an epoch
/// (PROTOCOL B4).
Result<std::uint64_t> next_epoch(store::Store& store) {
  const auto last = store.read_meta(kEpochKey);
  if (!last) return tl::unexpected<Error>(last.error());
  std::uint64_t counter = 0;
  if (last->has_value()) {
    const std::string& text = **last;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), counter);
    if (error != std::errc{} || end != text.data() + text.size() || counter == UINT64_MAX) {
      return failure(ErrorCode::corrupt, "data", "the stored epoch is not a number");
    }
  }
  store::WriteBatch batch;
  batch.meta.emplace_back(kEpochKey, std::to_string(++counter));
  if (const Status written = store.write(batch); !written) {
    return tl::unexpected<Error>(written.error());
  }
  return counter;
}

std::uint64_t draw_incarnation(SeedSource& seeds) {
  std::uint64_t incarnation = 0;
  while (incarnation == 0) incarnation = seeds.next_seed();
  return incarnation;
}

/// The registers that an edge of `region` may ask.
std::vector<RegisterId> registers_of(const NodeConfig& config) {
  std::vector<RegisterId> registers;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    const auto number = static_cast<Slot>(slot);
    registers.push_back({RegisterId::Kind::global, {}, number});
    registers.push_back({RegisterId::Kind::region, config.region, number});
  }
  for (const auto& [customer, region] : config.topology.pins) {
    registers.push_back({RegisterId::Kind::pin, region, slot_of(customer)});
  }
  return registers;
}

}  // namespace

struct Node::Impl {
  Impl(NodeConfig with, World in)
      : config(std::move(with)),
        world(in),
        incarnation(draw_incarnation(*in.seeds)),
        placement(config.topology),
        networked(in.transport == nullptr && (config.listen || !peers().empty())),
        system_config(networked),
        system(system_config) {}

  ~Impl() { stop(); }

  Status start(Book book);
  void stop();
  void spawn_owners(const Book& book, const Epoch& epoch);
  Status open_transport();
  std::vector<TopologyNode> peers() const;
  codec::Hello hello() const;
  void collect_metrics(telemetry::MetricSink& sink) const;

  const NodeConfig config;
  const World world;
  const std::uint64_t incarnation;
  const regions::Placement placement;
  const bool networked;
  SystemConfig system_config;
  std::atomic<std::uint64_t> owners_active{0};
  const std::shared_ptr<WakeFlag> wake = std::make_shared<WakeFlag>(false);
  const std::shared_ptr<PeerBoard> board = std::make_shared<PeerBoard>();
  std::uint64_t collector = 0;
  caf::actor_system system;
  std::unique_ptr<CafTransport> own_transport;
  Transport* transport = nullptr;
  std::shared_ptr<Links> links = std::make_shared<Links>();
};

std::vector<TopologyNode> Node::Impl::peers() const {
  std::vector<TopologyNode> others;
  for (const TopologyRegion& region : config.topology.regions) {
    for (const TopologyNode& node : region.nodes) {
      if (node.name != config.name) others.push_back(node);
    }
  }
  return others;
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
  links->desk = spawn_desk(system, links, placement);
  Epoch epoch{0, config.name, incarnation};
  if (config.owner) {
    const auto counter = next_epoch(*world.store);
    if (!counter) return tl::unexpected<Error>(counter.error());
    epoch.counter = *counter;
    spawn_owners(book, epoch);
  }
  if (config.edge) {
    links->broker = spawn_broker(system, {world.limiter, world.clock, world.metrics, &placement,
                                          registers_of(config), wake, links});
  }
  if (const Status opened = open_transport(); !opened) return opened;
  collector =
      world.metrics->add_collector([this](telemetry::MetricSink& sink) { collect_metrics(sink); });
  if (links->broker) caf::anon_send(links->broker, WakeAtom::value);
  world.log->info("node started", {{"node", config.name},
                                   {"region", config.region},
                                   {"epoch", to_string(epoch)},
                                   {"cluster_port", transport == nullptr ? 0 : transport->port()}});
  return {};
}

void Node::Impl::spawn_owners(const Book& book, const Epoch& epoch) {
  links->writer =
      spawn_store_writer(system, {world.store, world.clock, world.log, world.metrics, epoch});
  links->reader = spawn_store_reader(system, *world.store);
  ownership::OwnerConfig owners;
  owners.terms = config.terms;
  owners.max_clock_error_ns = config.max_clock_error_ns;
  owners.quiet_ns = config.quiet_ns;
  DirectoryContext context;
  context.owners =
      std::make_shared<const OwnerContext>(OwnerContext{world.clock, owners, epoch, links});
  context.placement = &placement;
  context.log = world.log;
  context.active = &owners_active;
  if (config.most_owners != 0) context.most_owners = config.most_owners;
  context.chaos = config.chaos;
  links->directory = spawn_directory(system, context, book);
}

Status Node::Impl::open_transport() {
  transport = world.transport;
  if (networked) {
    own_transport =
        std::make_unique<CafTransport>(system,
                                       CafTransportConfig{config.name, incarnation, config.listen,
                                                          peers(), world.seeds->next_seed()},
                                       *world.metrics);
    transport = own_transport.get();
  }
  if (transport == nullptr) return {};
  links->courier = spawn_courier(system, {hello(), config.topology.version, transport, world.clock,
                                          world.log, world.metrics, board, links});
  const CourierActor courier = links->courier;
  return transport->start({[courier](std::string from, std::string frame) {
                             caf::anon_send(courier, Frame{std::move(from), std::move(frame)});
                           },
                           [courier](std::string node, bool up) {
                             caf::anon_send(courier, Link{std::move(node), up});
                           }});
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
  if (links->directory) {
    waiter->send(links->directory, StopAtom::value);
    waiter->wait_for(links->directory);
  }
  end(links->broker);
  end(links->writer);
  end(links->reader);
  links->desk = nullptr;
  links->courier = nullptr;
  links->directory = nullptr;
  links->broker = nullptr;
  links->writer = nullptr;
  links->reader = nullptr;
}

void Node::Impl::collect_metrics(telemetry::MetricSink& sink) const {
  using telemetry::metric::kOwnersActive;
  using telemetry::metric::kOwnersDormant;
  const std::uint64_t active = owners_active;
  sink.gauge(kOwnersActive.name, kOwnersActive.help, {}, static_cast<double>(active));
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
  if (impl_->links->directory) caf::anon_send(impl_->links->directory, Book(std::move(book)));
}

void Node::describe(const RegisterId& reg, const std::string& customer, DescribeCallback done) {
  codec::OwnerQuery query{0, reg, customer, codec::OwnerQuery::Kind::describe};
  caf::anon_send(impl_->links->desk, Question{std::move(query), std::move(done)});
}

void Node::kill_owner(const std::string& customer, KillCallback done) {
  const RegisterId reg =
      impl_->placement.register_for(Scope::global, impl_->config.region, customer);
  codec::OwnerQuery query{0, reg, customer, codec::OwnerQuery::Kind::kill};
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
  state.owners_active = impl_->owners_active;
  state.cluster_port = impl_->transport == nullptr ? 0 : impl_->transport->port();
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    const auto& replicas =
        impl_->placement.replicas({RegisterId::Kind::global, {}, static_cast<Slot>(slot)});
    if (!replicas.empty() && replicas.front() == impl_->config.name) ++state.slots_owned;
  }
  return state;
}

void Node::drain(Nanos deadline_ns, std::function<void()> done) {
  if (impl_->links->broker) {
    caf::anon_send(impl_->links->broker, DrainOrder{deadline_ns, std::move(done)});
  } else {
    done();
  }
}

}  // namespace weir::actors
