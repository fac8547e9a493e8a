#include "actors/relay.h"

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

using regions::Relay;

struct Shell {
  explicit Shell(RelayActor::pointer self_pointer) : self(self_pointer) {}

  void begin(const RelayContext& with) {
    context = with;
    relay.emplace(context.config, context.seed);
    follow(context.shape->read());
  }

  Nanos now() const { return context.clock->boot_ns(); }

  void step(const Relay::Event& event) {
    Relay::Effects did;
    relay->step(event, now(), did);
    carry(did);
  }

  void carry(Relay::Effects& did) {
    const Nanos now_ns = now();
    for (LeaseAnswer& answer : did.answers) route(self, *context.links, std::move(answer));
    std::map<std::string, std::vector<LeaseRequest>> by_node;
    for (LeaseRequest& request : did.requests) {
      tally.sent(request, now_ns);
      const std::string& node = upstream->target(request.reg, now_ns).node;
      if (!node.empty()) by_node[node].push_back(std::move(request));
    }
    for (auto& [node, group] : by_node) route(self, *context.links, node, std::move(group));
    if (const auto lost = tally.take_unanswered(now_ns)) counter("unanswered").add(lost);
    context.board->buckets = relay->bucket_count();
    finish_drain(now_ns);
    const Nanos next_ns = relay->next_deadline();
    timer.arm(self, drain ? std::min(next_ns, drain->deadline_ns) : next_ns, now_ns);
  }

  void requested(std::vector<LeaseRequest>& requests) {
    Relay::Effects did;
    for (LeaseRequest& request : requests) {
      const auto known = round_trips.find(upstream->guess(request.reg));
      const Nanos round_trip_ns = known == round_trips.end() ? 0 : known->second;
      relay->step(Relay::Requested{std::move(request), round_trip_ns}, now(), did);
    }
    carry(did);
  }

  void answered(const std::vector<LeaseAnswer>& answers, const std::string& from) {
    Relay::Effects did;
    for (const LeaseAnswer& answer : answers) {
      const auto reg = relay->asked_by(answer);
      if (!reg) continue;
      if (const auto status = tally.answered(answer)) counter(to_string(*status)).add();
      const bool again = upstream->learn(*reg, from, answer, now());
      relay->step(Relay::Answered{answer, again}, now(), did);
    }
    carry(did);
  }

  void link(const PeerLink& changed) {
    if (changed.up) return upstream->found(changed.node);
    step(Relay::OwnersGone{upstream->lost(changed.node, now())});
  }

  telemetry::Counter& counter(const std::string& result) {
    return context.metrics->counter(telemetry::metric::kRelayRequests.name,
                                    telemetry::metric::kRelayRequests.help, {{"result", result}});
  }

  /// A relay asks owners only.
  void follow(std::shared_ptr<const Shape> shape) {
    const auto places = [kept = std::move(shape)](const RegisterId& reg) {
      return edge::Router::Places{&kept->placement().replicas(reg), nullptr, false};
    };
    if (upstream) {
      upstream->reset(places);
    } else {
      upstream.emplace(places);
    }
  }

  void begin_drain(DrainOrder& order) {
    drain = std::move(order);
    step(Relay::Leave{});
  }

  /// The registers last: what was lent to this node's own edge and relay is back by then.
  void finish_drain(Nanos now_ns) {
    if (!drain || !(relay->has_returned() || now_ns >= drain->deadline_ns)) return;
    self->send(context.links->replication, *std::exchange(drain, std::nullopt));
  }

  RelayActor::pointer self;
  RelayContext context;
  std::optional<Relay> relay;
  std::optional<edge::Router> upstream;
  std::map<std::string, Nanos> round_trips;  ///< to owner nodes, by their heartbeats
  RequestTally tally;
  Timer timer;
  std::optional<DrainOrder> drain;
};

RelayActor::behavior_type relay_behavior(RelayActor::stateful_pointer<Shell> self,
                                         const RelayContext& context) {
  Shell* shell = &self->state;
  shell->begin(context);
  return {
      [shell](Requests& requests) { shell->requested(requests.all); },
      [shell](const LeaseAnswer& answer) { shell->answered({answer}, shell->context.links->node); },
      [shell](const Answers& answers) { shell->answered(answers.all, answers.from); },
      [shell](const PeerNews& news) {
        shell->round_trips[news.state.node] = news.state.round_trip_ns;
      },
      [shell](const PeerLink& changed) { shell->link(changed); },
      [shell](const ShapeNews& news) { shell->follow(news); },
      [shell](const Book&) { shell->step(Relay::PolicyChanged{}); },
      [shell](TimerAtom, Nanos at_ns) {
        if (shell->timer.fired(at_ns)) shell->step(Relay::Tick{});
      },
      [shell](DrainOrder& order) { shell->begin_drain(order); },
  };
}

}  // namespace

RelayActor spawn_relay(caf::actor_system& system, const RelayContext& context) {
  return system.spawn(relay_behavior, context);
}

}  // namespace weir::actors
