#include "actors/courier.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "src/telemetry/names.h"

namespace weir::actors {

void PeerBoard::post(Posted posted) {
  const std::lock_guard lock(mutex_);
  posted_ = std::move(posted);
}

PeerBoard::Posted PeerBoard::read() const {
  const std::lock_guard lock(mutex_);
  return posted_;
}

namespace {

/// An edge that still goes by an earlier topology is told again after this.
constexpr Nanos kTellShapeAgainNs = 1 * kSecond;

struct ShapeTold {
  std::uint64_t stage = 0;
  Nanos at_ns = 0;
};

struct Courier {
  explicit Courier(CourierActor::pointer self_pointer) : self(self_pointer) {}

  void begin(const CourierContext& with) {
    context = with;
    shape = context.shape->read();
    peers.emplace(with.self, shape->state.finished.version);
    tick_later();
  }

  Nanos now() const { return context.clock->boot_ns(); }

  telemetry::Counter& dropped(const char* reason) {
    return context.metrics->counter(telemetry::metric::kFramesDropped.name,
                                    telemetry::metric::kFramesDropped.help, {{"reason", reason}});
  }

  /// What waits for `node`; it leaves behind everything that already waits in the mailbox.
  codec::Envelope& outbox_for(const std::string& node) {
    if (outbox.empty()) self->send(self, FlushAtom::value);
    const auto found = outbox.find(node);
    if (found != outbox.end()) return found->second;
    return outbox.emplace(node, peers->address(node)).first->second;
  }

  void flush() {
    for (const auto& [node, envelope] : std::exchange(outbox, {})) {
      for (std::string& frame : codec::encode_frames(envelope)) send(node, std::move(frame));
    }
  }

  void send(const std::string& node, std::string frame) {
    if (!peers->admit(node, frame.size())) return dropped("backlog").add();
    const PeerState* peer = peers->find(node);
    const auto delay = faults.delay_ns.find(peer == nullptr ? std::string() : peer->region);
    if (delay == faults.delay_ns.end()) return leave({node, std::move(frame)});
    self->delayed_send(self, std::chrono::nanoseconds(delay->second), Late{node, std::move(frame)});
  }

  void leave(Late frame) {
    if (faults.cut.contains(frame.to)) return dropped("chaos").add();
    context.transport->send(frame.to, std::move(frame.bytes));
  }

  void receive(const Frame& frame) {
    if (faults.cut.contains(frame.from)) return dropped("chaos").add();
    auto envelope = codec::decode_envelope(frame.bytes);
    if (!envelope || envelope->from != frame.from) return dropped("corrupt").add();
    if (envelope->to != context.self.node) return dropped("not_mine").add();
    PeerTable::Turn turn;
    const bool known = peers->on_frame(*envelope, now(), turn);
    conclude(turn);
    if (!known) return dropped("stranger").add();
    if (envelope->heartbeat) {
      tell_round_trip(*peers->find(frame.from));
      tell_shape(*peers->find(frame.from), envelope->topology_version);
      tell_policy(frame.from,
                  {envelope->heartbeat->policy_version, envelope->heartbeat->policy_hash});
    }
    dispatch(*envelope);
  }

  void dispatch(codec::Envelope& envelope) {
    const Links& links = *context.links;
    // A node speaks for its own lessees only, and hears of its own only.
    std::erase_if(envelope.lease_requests, [&](const LeaseRequest& request) {
      return request.lessee.node != envelope.from;
    });
    std::erase_if(envelope.lease_answers, [&](const LeaseAnswer& answer) {
      return answer.lessee.node != context.self.node;
    });
    // Edges have no part in registers.
    const PeerState* peer = peers->find(envelope.from);
    if (!envelope.register_messages.empty() && peer != nullptr && peer->owner) {
      if (links.replication) {
        self->send(links.replication,
                   RegistersFrom{envelope.from, std::move(envelope.register_messages)});
      } else {
        learn_shape(envelope.register_messages);
      }
    }
    route(self, links, Requests{std::move(envelope.lease_requests)});
    route(self, links, Answers{envelope.from, std::move(envelope.lease_answers)});
    if (links.replication) {
      for (codec::OwnerQuery& query : envelope.owner_queries) {
        self->send(links.replication, Asked{envelope.from, std::move(query)});
      }
    }
    for (codec::OwnerReply& reply : envelope.owner_replies) {
      self->send(links.desk, Replied{envelope.from, std::move(reply)});
    }
    for (codec::PolicyMessage& message : envelope.policy_messages) {
      if (links.herald) self->send(links.herald, PolicyFrom{envelope.from, std::move(message)});
    }
    if (!envelope.activity_reports.empty() && peer != nullptr && peer->edge) {
      context.activity->hear(envelope.from, std::move(envelope.activity_reports.back()), now());
    }
  }

  void tell_activity(const ActivityReport& own) {
    for (const PeerState& peer : peers->states()) {
      if (peer.connected) outbox_for(peer.node).activity_reports.push_back(own);
    }
  }

  /// Of a peer that has another policy, with each of its heartbeats; of one that has ours now,
  /// once.
  void tell_policy(const std::string& peer, const policy::PolicyStamp& stamp) {
    policy::PolicyStamp& told = policies[peer];
    if (!context.links->herald || (stamp == told && stamp == policy_stamp)) return;
    told = stamp;
    self->send(context.links->herald, PeerPolicy{peer, stamp});
  }

  /// An edge that goes by an earlier version hears of this one. Owners tell each other.
  void tell_shape(const PeerState& peer, std::uint64_t version) {
    if (!context.links->replication || !shape->committed || peer.owner) return;
    if (version >= shape->state.finished.version) return;
    const std::uint64_t stage = shape->state.stage();
    ShapeTold& told = shapes_told[peer.node];
    if (told.stage == stage && now() - told.at_ns < kTellShapeAgainNs) return;
    told = {stage, now()};
    outbox_for(peer.node).register_messages.emplace_back(TopologyNews{shape->state});
  }

  /// At a node that only asks.
  void learn_shape(const std::vector<RegisterMessage>& messages) {
    for (const RegisterMessage& message : messages) {
      const auto* news = std::get_if<TopologyNews>(&message);
      if (news == nullptr) continue;
      if (shape->committed && news->state.stage() <= shape->state.stage()) continue;
      auto view = regions::make_view(news->state, context.parse_topology);
      if (!view) {
        context.log->warn("the topology that a peer tells cannot be used",
                          {{"error", view.error().message}});
        continue;
      }
      const auto changed = std::make_shared<const Shape>(Shape{news->state, true, *view});
      context.shape->post(changed);
      if (context.links->broker) self->send(context.links->broker, ShapeNews(changed));
      context.log->info("topology", {{"version", news->state.finished.version}});
      follow(changed);
    }
  }

  void follow(std::shared_ptr<const Shape> changed) {
    shape = std::move(changed);
    peers->set_topology_version(shape->state.finished.version);
    std::vector<TopologyNode> dials;
    for (const std::string& name : shape->view->owner_nodes()) {
      const TopologyNode* node = shape->view->topology().find_node(name);
      const auto next = shape->view->next();
      if (node == nullptr && next) node = next->find_node(name);
      if (node != nullptr && name != context.self.node) dials.push_back(*node);
    }
    context.transport->set_dials(std::move(dials));
  }

  void tell_round_trip(const PeerState& peer) {
    if (!peer.owner || peer.round_trip_ns == 0) return;
    if (context.links->broker) self->send(context.links->broker, PeerNews{peer});
    if (context.links->relay) self->send(context.links->relay, PeerNews{peer});
  }

  void tell_link(const PeerLink& link) {
    if (context.links->replication) self->send(context.links->replication, link);
    if (context.links->relay) self->send(context.links->relay, link);
    if (context.links->broker) self->send(context.links->broker, link);
  }

  void link(const Link& changed) {
    PeerTable::Turn turn;
    peers->on_link(changed.node, changed.up, now(), turn);
    conclude(turn);
  }

  void tick() {
    PeerTable::Turn turn;
    peers->on_tick(now(), turn);
    conclude(turn);
    const std::uint32_t edges = peers->live_edges(now());
    if (context.links->broker) self->send(context.links->broker, EdgesAtom::value, edges);
    context.board->post({peers->states(), edges});
    tick_later();
  }

  void tick_later() {
    self->delayed_send(self, std::chrono::nanoseconds(kHeartbeatNs), TimerAtom::value);
  }

  void conclude(const PeerTable::Turn& turn) {
    for (const codec::Envelope& heartbeat : turn.heartbeats) {
      send(heartbeat.to, codec::encode_envelope(heartbeat));
    }
    for (const std::string& node : turn.severed) context.transport->sever(node);
    for (const PeerState& peer : turn.changed) {
      if (peer.owner) tell_link({peer.node, peer.connected});
      if (peer.connected) {
        context.log->info(
            "peer connected",
            {{"peer", peer.node}, {"region", peer.region}, {"incarnation", peer.incarnation}});
      } else {
        policies.erase(peer.node);
        shapes_told.erase(peer.node);
        if (context.links->herald) self->send(context.links->herald, PeerPolicy{peer.node, {}});
        context.log->warn(
            "peer lost",
            {{"peer", peer.node}, {"region", peer.region}, {"incarnation", peer.incarnation}});
      }
    }
    if (!turn.changed.empty()) context.board->post({peers->states(), peers->live_edges(now())});
  }

  CourierActor::pointer self;
  CourierContext context;
  std::shared_ptr<const Shape> shape;
  std::optional<PeerTable> peers;
  std::map<std::string, codec::Envelope> outbox;  ///< by node
  NetworkFaults faults;
  policy::PolicyStamp policy_stamp;                     ///< in force here
  std::map<std::string, ShapeTold> shapes_told;         ///< by connected peer
  std::map<std::string, policy::PolicyStamp> policies;  ///< told last, by connected peer
};

CourierActor::behavior_type courier_behavior(CourierActor::stateful_pointer<Courier> self,
                                             const CourierContext& context) {
  Courier* courier = &self->state;
  courier->begin(context);
  return {
      [courier](RequestsFor& requests) {
        auto& out = courier->outbox_for(requests.node).lease_requests;
        std::move(requests.all.begin(), requests.all.end(), std::back_inserter(out));
      },
      [courier](RegistersFor& registers) {
        auto& out = courier->outbox_for(registers.node).register_messages;
        std::move(registers.all.begin(), registers.all.end(), std::back_inserter(out));
      },
      [courier](LeaseAnswer& answer) {
        courier->outbox_for(answer.lessee.node).lease_answers.push_back(std::move(answer));
      },
      [courier](Asked& asked) {
        courier->outbox_for(asked.node).owner_queries.push_back(std::move(asked.query));
      },
      [courier](Replied& replied) {
        courier->outbox_for(replied.node).owner_replies.push_back(std::move(replied.reply));
      },
      [courier](PolicyFor& policy) {
        courier->outbox_for(policy.node).policy_messages.push_back(std::move(policy.message));
      },
      [courier](const ActivityReport& own) { courier->tell_activity(own); },
      [courier](const policy::PolicyStamp& own) {
        courier->policy_stamp = own;
        courier->peers->set_policy(own.version, own.content_hash);
      },
      [courier](const NetworkFaults& faults) { courier->faults = faults; },
      [courier](Late& frame) { courier->leave(std::move(frame)); },
      [courier](const Frame& frame) { courier->receive(frame); },
      [courier](const Link& link) { courier->link(link); },
      [courier](const ShapeNews& news) { courier->follow(news); },
      [courier](FlushAtom) { courier->flush(); },
      [courier](TimerAtom) { courier->tick(); },
  };
}

}  // namespace

CourierActor spawn_courier(caf::actor_system& system, const CourierContext& context) {
  return system.spawn(courier_behavior, context);
}

}  // namespace weir::actors
