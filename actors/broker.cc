#include "actors/broker.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/tally.h"
#include "src/edge/router.h"
#include "src/telemetry/names.h"

namespace weir::actors {
namespace {

struct Broker {
  explicit Broker(BrokerActor::pointer self_pointer) : self(self_pointer) {}

  /// One turn: everything that is due leaves now, one message per node.
  void collect() {
    context.wake->store(false);
    std::vector<LeaseRequest> requests;
    const Nanos next_ns = context.limiter->collect(requests);
    const Nanos now_ns = context.clock->boot_ns();
    std::map<std::string, std::vector<LeaseRequest>> by_node;
    for (LeaseRequest& request : requests) {
      tally.sent(request, now_ns);
      if (const auto key = decode_bucket_key(request.bucket)) {
        request.reg = shape->placement().register_for(key->scope, key->region, key->customer);
      }
      const edge::Router::Target& to = router->target(request.reg, now_ns);
      request.hop = to.hop;
      if (!to.node.empty()) by_node[to.node].push_back(std::move(request));
    }
    for (auto& [node, group] : by_node) route(self, *context.links, node, std::move(group));
    if (const auto lost = tally.take_unanswered(now_ns)) counter("unanswered").add(lost);
    finish_drain(now_ns);
    timer.arm(self, drain ? std::min(next_ns, drain->deadline_ns) : next_ns, now_ns);
  }

  void answer(const LeaseAnswer& what, const std::string& from) {
    if (const auto status = tally.answered(what)) counter(to_string(*status)).add();
    const auto key = decode_bucket_key(what.bucket);
    if (!key) return;
    const Nanos now_ns = context.clock->boot_ns();
    const RegisterId reg = shape->placement().register_for(key->scope, key->region, key->customer);
    const bool again = router->learn(reg, from, what, now_ns);
    if (what.status != LeaseStatus::not_owner) found_owner(reg, from);
    if (again) context.limiter->ask_again_now(what);
    context.limiter->on_answer(what);
  }

  /// Waits are measured in round trips to whoever owns the register now, or to its relay (I1).
  void found_owner(const RegisterId& reg, const std::string& node) {
    const auto [owner, is_new] = owners.try_emplace(reg, node);
    if (!is_new && owner->second == node) return;
    owner->second = node;
    const auto round_trip = round_trips.find(node);
    context.limiter->set_round_trip(reg, round_trip == round_trips.end() ? 0 : round_trip->second);
  }

  telemetry::Counter& counter(const std::string& result) {
    const auto found = counters.find(result);
    if (found != counters.end()) return *found->second;
    auto& made =
        context.metrics->counter(telemetry::metric::kLeaseRequests.name,
                                 telemetry::metric::kLeaseRequests.help, {{"result", result}});
    counters.emplace(result, &made);
    return made;
  }

  void news(const PeerState& peer) {
    Nanos& told_ns = round_trips[peer.node];
    const Nanos change_ns = std::abs(peer.round_trip_ns - told_ns);
    if (change_ns < kNotableRoundTripNs || change_ns < told_ns / 4) return;
    told_ns = peer.round_trip_ns;
    for (const auto& [reg, first] : registers) {
      const auto owner = owners.find(reg);
      const std::string& asked = owner != owners.end() ? owner->second : first;
      if (asked == peer.node) context.limiter->set_round_trip(reg, told_ns);
    }
  }

  void link(const PeerLink& changed) {
    if (changed.up) return router->found(changed.node);
    context.limiter->grantors_gone(router->lost(changed.node, context.clock->boot_ns()));
    collect();
  }

  /// Other replica sets: guesses start anew. The registers are those that this edge may ask.
  void follow(std::shared_ptr<const Shape> changed) {
    shape = std::move(changed);
    const auto places = [kept = shape, region = context.region](const RegisterId& reg) {
      const regions::Placement& placement = kept->placement();
      return edge::Router::Places{&placement.replicas(reg), placement.relays(reg, region),
                                  placement.home(reg) != region};
    };
    if (router) {
      router->reset(places);
    } else {
      router.emplace(places);
    }
    owners.clear();
    registers.clear();
    const auto may_ask = [this](const RegisterId& reg) {
      registers.emplace_back(reg, router->guess(reg));
    };
    for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
      const auto number = static_cast<Slot>(slot);
      may_ask({RegisterId::Kind::global, {}, number});
      may_ask({RegisterId::Kind::region, context.region, number});
    }
    for (const auto& [customer, region] : shape->view->topology().pins) {
      may_ask({RegisterId::Kind::pin, region, slot_of(customer)});
    }
  }

  void begin_drain(DrainOrder& order) {
    drain = std::move(order);
    context.limiter->begin_return();
    collect();
  }

  void finish_drain(Nanos now_ns) {
    if (!drain || !(context.limiter->all_returned() || now_ns >= drain->deadline_ns)) return;
    DrainOrder order = *std::exchange(drain, std::nullopt);
    if (!context.links->relay) return order.done();
    self->send(context.links->relay, std::move(order));
  }

  BrokerActor::pointer self;
  BrokerContext context;
  Timer timer;
  RequestTally tally;
  std::optional<edge::Router> router;
  std::shared_ptr<const Shape> shape;
  /// Whose round trip this edge may want to know, with the node that it would ask first.
  std::vector<std::pair<RegisterId, std::string>> registers;
  std::map<RegisterId, std::string> owners;                          ///< who spoke last as such
  std::map<std::string, telemetry::Counter*, std::less<>> counters;  ///< by result
  std::map<std::string, Nanos> round_trips;                          ///< as told to the limiter
  std::optional<DrainOrder> drain;
};

BrokerActor::behavior_type broker_behavior(BrokerActor::stateful_pointer<Broker> self,
                                           const BrokerContext& context) {
  Broker* broker = &self->state;
  broker->context = context;
  broker->follow(context.shape->read());
  return {
      [broker](WakeAtom) { broker->collect(); },
      [broker](TimerAtom, Nanos at_ns) {
        if (broker->timer.fired(at_ns)) broker->collect();
      },
      [broker](const LeaseAnswer& answer) {
        broker->answer(answer, broker->context.links->node);
        broker->finish_drain(broker->context.clock->boot_ns());
      },
      [broker](const Answers& answers) {
        for (const LeaseAnswer& answer : answers.all) broker->answer(answer, answers.from);
        broker->finish_drain(broker->context.clock->boot_ns());
      },
      [broker](EdgesAtom, std::uint32_t count) { broker->context.limiter->set_live_edges(count); },
      [broker](const PeerNews& news) { broker->news(news.state); },
      [broker](const PeerLink& changed) { broker->link(changed); },
      [broker](const ShapeNews& news) { broker->follow(news); },
      [broker](DrainOrder& order) { broker->begin_drain(order); },
  };
}

}  // namespace

BrokerActor spawn_broker(caf::actor_system& system, const BrokerContext& context) {
  return system.spawn(broker_behavior, context);
}

}  // namespace weir::actors
