#include "actors/caf_transport.h"

#include <algorithm>
#include <atomic>
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/basp_broker.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "actors/dial.h"
#include "src/base/random.h"
#include "src/telemetry/names.h"

namespace weir::actors {
namespace {

using SharedDials = std::shared_ptr<const std::vector<TopologyNode>>;

}  // namespace
}  // namespace weir::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::SharedDials)

namespace weir::actors {
namespace {

using FrameAtom = caf::atom_constant<caf::atom("frame")>;
using SendAtom = caf::atom_constant<caf::atom("send")>;
using DialAtom = caf::atom_constant<caf::atom("dial")>;
using DialedAtom = caf::atom_constant<caf::atom("dialed")>;
using SeverAtom = caf::atom_constant<caf::atom("sever")>;

using GatewayActor =
    caf::typed_actor<caf::reacts_to<FrameAtom, std::string, std::uint64_t, std::string>,
                     caf::reacts_to<SendAtom, std::string, std::string>,
                     caf::reacts_to<DialAtom, std::string>,
                     caf::reacts_to<DialedAtom, std::string, caf::io::scribe_ptr>,
                     caf::reacts_to<SeverAtom, std::string>, caf::reacts_to<SharedDials>>;

/// How long a peer may take for CAF's handshake once the connection stands.
constexpr std::chrono::seconds kHandshakeTime{2};
/// Incarnations of a peer that are remembered after another took their place.
constexpr std::size_t kMaxReplaced = 8;

/// Closes what `find` finds, in the middleman's thread, where CAF keeps its connections.
template <typename Find>
void close_connection(caf::actor_system& system, const caf::actor& broker, Find find) {
  system.middleman().run_later([broker, find] {
    auto& basp = static_cast<caf::io::basp_broker&>(*caf::actor_cast<caf::abstract_actor*>(broker));
    if (basp.getf(caf::abstract_actor::is_terminated_flag)) return;
    const caf::optional<caf::io::connection_handle> handle = find(basp);
    if (!handle) return;
    basp.close(*handle);
    basp.connection_cleanup(*handle, caf::sec::none);
  });
}

struct Gateway {
  struct Route {
    GatewayActor handle;
    std::uint64_t incarnation = 0;  ///< 0: dialled, nothing heard yet
  };
  struct Dial {
    Endpoint endpoint;
    Nanos wait_ns = kFirstRedialNs;
    bool under_way = false;
  };

  explicit Gateway(GatewayActor::pointer self_pointer) : self(self_pointer) {}

  void begin(CafTransportConfig with, TransportEvents to, telemetry::Counter* no_link) {
    config = std::move(with);
    events = std::move(to);
    dropped = no_link;
    random = Random(config.seed);
    basp = self->system().middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
    set_dials(config.dials);
  }

  void set_dials(const std::vector<TopologyNode>& nodes) {
    std::map<std::string, Dial> wanted;
    for (const TopologyNode& node : nodes) {
      if (node.name == config.name) continue;
      const auto known = dials.find(node.name);
      const bool same = known != dials.end() && known->second.endpoint == node.cluster;
      Dial& dial = wanted[node.name];
      if (same) dial = known->second;
      dial.endpoint = node.cluster;
      if (!same) self->send(self, DialAtom::value, node.name);
    }
    dials = std::move(wanted);
  }

  void receive(std::string& from, std::uint64_t incarnation, std::string& frame) {
    const auto sender = caf::actor_cast<GatewayActor>(self->current_sender());
    if (!sender || from == config.name || incarnation == 0) return;
    if (was_replaced(from, incarnation)) return;
    auto found = routes.find(from);
    if (found != routes.end() && found->second.incarnation != incarnation) {
      if (found->second.incarnation != 0) {
        forget(from, found->second.incarnation);
        events.link(from, false);
        routes.erase(found);
        found = routes.end();
      } else {
        found->second.incarnation = incarnation;
      }
    }
    if (found == routes.end()) name_route(sender);
    if (found == routes.end()) {
      if (routes.size() >= kMaxPeers) {
        dropped->add();
        return;
      }
      add_route(from, {sender, incarnation});
    } else if (caf::actor_cast<caf::actor_control_block*>(found->second.handle) !=
               caf::actor_cast<caf::actor_control_block*>(sender)) {
      // The same gateway seen over a newer connection.
      found->second.handle = sender;
      self->monitor(sender);
    }
    events.frame(std::move(from), std::move(frame));
  }

  /// A node that was dialled by its address alone has said its name.
  void name_route(const GatewayActor& sender) {
    for (auto it = routes.begin(); it != routes.end(); ++it) {
      if (!it->first.starts_with(kJoinPrefix)) continue;
      if (it->second.handle.address() != sender.address()) continue;
      events.link(it->first, false);
      routes.erase(it);
      return;
    }
  }

  bool was_replaced(const std::string& node, std::uint64_t incarnation) const {
    const auto found = replaced.find(node);
    return found != replaced.end() && std::find(found->second.begin(), found->second.end(),
                                                incarnation) != found->second.end();
  }

  void forget(const std::string& node, std::uint64_t incarnation) {
    if (replaced.size() >= kMaxPeers) replaced.clear();
    auto& old = replaced[node];
    old.push_back(incarnation);
    if (old.size() > kMaxReplaced) old.pop_front();
  }

  void add_route(const std::string& node, Route route) {
    self->monitor(route.handle);
    routes[node] = std::move(route);
    const auto dial = dials.find(node);
    if (dial != dials.end()) dial->second.wait_ns = kFirstRedialNs;
    events.link(node, true);
  }

  void drop_route(const std::string& node) {
    if (routes.erase(node) == 0) return;
    events.link(node, false);
    dial_later(node);
    for (const auto& [name, dial] : dials) {
      if (name.starts_with(kJoinPrefix)) self->send(self, DialAtom::value, name);
    }
  }

  void send(const std::string& node, std::string& frame) {
    const auto found = routes.find(node);
    if (found == routes.end()) {
      dropped->add();
      return;
    }
    self->send(found->second.handle, FrameAtom::value, config.name, config.incarnation,
               std::move(frame));
  }

  void lost(const caf::actor_addr& address) {
    for (const auto& [node, route] : routes) {
      if (route.handle.address() == address) return drop_route(std::string(node));
    }
  }

  void sever(const std::string& node) {
    const auto found = routes.find(node);
    if (found == routes.end()) return;
    close_connection(self->system(), basp,
                     [peer = found->second.handle.node()](caf::io::basp_broker& broker) {
                       return broker.instance.tbl().lookup_direct(peer);
                     });
    drop_route(std::string(node));
  }

  void dial(const std::string& node) {
    const auto found = dials.find(node);
    if (found == dials.end() || found->second.under_way || routes.contains(node)) return;
    found->second.under_way = true;
    // Name look-ups, connects and handshakes block: each attempt has a short-lived thread of its
    // own.
    self->system().spawn<caf::detached>(
        [](caf::event_based_actor* dialler, const GatewayActor& gateway, const std::string& name,
           const Endpoint& endpoint, const SharedRefusals& refusals, bool tls) {
          auto& system = dialler->system();
          const int socket = dial_endpoint(endpoint);
          caf::io::scribe_ptr connection;
          if (socket >= 0) {
            connection = tls ? shake_hands_with(system, socket, name, refusals)
                             : system.middleman().backend().new_scribe(socket);
          }
          dialler->send(gateway, DialedAtom::value, name, std::move(connection));
        },
        GatewayActor(self), node, found->second.endpoint, config.refusals, config.tls);
  }

  void dialed(const std::string& node, caf::io::scribe_ptr& connection) {
    const auto found = dials.find(node);
    if (found == dials.end()) return;
    Dial& dial = found->second;
    if (!connection) {
      dial.under_way = false;
      return dial_later(node);
    }
    const auto handle = connection->hdl();
    self->request(basp, kHandshakeTime, caf::connect_atom::value, std::move(connection),
                  dial.endpoint.port)
        .then(
            [this, node](const caf::node_id&, const caf::strong_actor_ptr& gateway,
                         const std::set<std::string>&) {
              end_dial(node);
              if (routes.contains(node)) return;
              if (!gateway) return dial_later(node);
              add_route(node, {caf::actor_cast<GatewayActor>(gateway), 0});
            },
            [this, node, handle](const caf::error& error) {
              say_why(node, error);
              close_connection(self->system(), basp, [handle](caf::io::basp_broker&) {
                return caf::optional<caf::io::connection_handle>(handle);
              });
              end_dial(node);
              dial_later(node);
            });
  }

  /// Over TLS, whoever reads has said why a peer hung up.
  void say_why(const std::string& node, const caf::error& error) {
    if (error == caf::sec::request_timeout) {
      config.refusals->say(node, "it is connected but said nothing within 2 s");
    } else if (!config.tls) {
      config.refusals->say(node, "it hung up without a word, as a node with TLS does");
    }
  }

  void end_dial(const std::string& node) {
    const auto found = dials.find(node);
    if (found != dials.end()) found->second.under_way = false;
  }

  void dial_later(const std::string& node) {
    const auto found = dials.find(node);
    if (found == dials.end()) return;
    const Nanos wait_ns = found->second.wait_ns;
    found->second.wait_ns = std::min(2 * wait_ns, kLastRedialNs);
    const auto jitter = static_cast<Nanos>(random.below(static_cast<std::uint64_t>(wait_ns / 2)));
    self->delayed_send(self, std::chrono::nanoseconds(wait_ns + jitter), DialAtom::value, node);
  }

  GatewayActor::pointer self;
  CafTransportConfig config;
  TransportEvents events;
  telemetry::Counter* dropped = nullptr;
  Random random{0};
  caf::actor basp;
  std::map<std::string, Route> routes;
  std::map<std::string, Dial> dials;
  std::map<std::string, std::deque<std::uint64_t>> replaced;
};

GatewayActor::behavior_type gateway_behavior(GatewayActor::stateful_pointer<Gateway> self,
                                             const CafTransportConfig& config,
                                             const TransportEvents& events,
                                             telemetry::Counter* dropped) {
  Gateway& gateway = self->state;
  gateway.begin(config, events, dropped);
  self->set_down_handler([&gateway](const caf::down_msg& down) { gateway.lost(down.source); });
  return {
      [&gateway](FrameAtom, std::string& from, std::uint64_t incarnation, std::string& frame) {
        gateway.receive(from, incarnation, frame);
      },
      [&gateway](SendAtom, const std::string& node, std::string& frame) {
        gateway.send(node, frame);
      },
      [&gateway](DialAtom, const std::string& node) { gateway.dial(node); },
      [&gateway](DialedAtom, const std::string& node, caf::io::scribe_ptr& connection) {
        gateway.dialed(node, connection);
      },
      [&gateway](SeverAtom, const std::string& node) { gateway.sever(node); },
      [&gateway](const SharedDials& dials) { gateway.set_dials(*dials); },
  };
}

Result<std::uint16_t> publish(const GatewayActor& gateway, caf::actor_system& system,
                              const CafTransportConfig& config) {
  const Endpoint& listen = *config.listen;
  auto& middleman = system.middleman();
  if (config.tls) {
    return publish_with_tls(system, middleman.named_broker<caf::io::basp_broker>(caf::atom("BASP")),
                            caf::actor_cast<caf::strong_actor_ptr>(gateway),
                            system.message_types(gateway), listen, config.refusals);
  }
  const auto port = middleman.publish(gateway, listen.port, listen.host.c_str(), true);
  if (!port) return failure(ErrorCode::io, "", system.render(port.error()));
  return *port;
}

}  // namespace

struct CafTransport::Impl {
  caf::actor_system& system;
  CafTransportConfig config;
  telemetry::Counter& dropped;
  GatewayActor gateway = GatewayActor();
  std::atomic<std::uint16_t> port{0};
};

CafTransport::CafTransport(caf::actor_system& system, CafTransportConfig config,
                           telemetry::Metrics& metrics)
    : impl_(
          new Impl{system,
                   std::move(config),
                   metrics.counter(telemetry::metric::kFramesDropped.name,
                                   telemetry::metric::kFramesDropped.help, {{"reason", "no_link"}}),
                   {},
                   {}}) {}

CafTransport::~CafTransport() { stop(); }

void CafTransport::stop() {
  if (!impl_->gateway) return;
  if (impl_->port != 0) impl_->system.middleman().unpublish(impl_->gateway, impl_->port);
  caf::scoped_actor waiter{impl_->system};
  waiter->send_exit(impl_->gateway, caf::exit_reason::kill);
  waiter->wait_for(impl_->gateway);
  impl_->gateway = GatewayActor();
}

Status CafTransport::start(TransportEvents events) {
  Impl& impl = *impl_;
  impl.gateway = impl.system.spawn(gateway_behavior, impl.config, std::move(events), &impl.dropped);
  if (!impl.config.listen) return {};
  const auto port = publish(impl.gateway, impl.system, impl.config);
  if (!port) {
    return failure(ErrorCode::io, "listen.cluster",
                   "cannot listen on " + to_string(*impl.config.listen) +
                       "; the address must be one of this machine's and the port free (" +
                       port.error().message + ")");
  }
  impl.port = *port;
  return {};
}

void CafTransport::send(const std::string& node, std::string frame) {
  caf::anon_send(impl_->gateway, SendAtom::value, node, std::move(frame));
}

void CafTransport::sever(const std::string& node) {
  caf::anon_send(impl_->gateway, SeverAtom::value, node);
}

void CafTransport::set_dials(std::vector<TopologyNode> nodes) {
  caf::anon_send(impl_->gateway,
                 std::make_shared<const std::vector<TopologyNode>>(std::move(nodes)));
}

std::uint16_t CafTransport::port() const { return impl_->port; }

}  // namespace weir::actors
