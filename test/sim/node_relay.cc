// The relay of a node, wired as the actors wire it (PROTOCOL F).

#include <algorithm>
#include <utility>

#include "test/sim/node.h"

namespace weir::sim {

edge::Router::Places Node::places(const RegisterId& reg, bool relays) const {
  const regions::Placement& placement = shared_.view->placement();
  edge::Router::Places places;
  places.replicas = &placement.replicas(reg);
  if (!relays) return places;
  places.relays = placement.relays(reg, settings_.region);
  places.relays_first = placement.home(reg) != settings_.region;
  return places;
}

/// The relay is there from the first request: where there are none, nothing is drawn for it, and a
/// seed means what it did before there were relays.
void Node::relay_request(const LeaseRequest& request) {
  if (!process_->relay) {
    regions::RelayConfig config;
    config.node = settings_.name;
    config.terms = shared_.terms;
    config.suspicion_ns = shared_.seat.suspicion_ns;
    process_->relay = std::make_unique<regions::Relay>(config, shared_.world.random.next());
    process_->upstream = std::make_unique<edge::Router>(
        [this](const RegisterId& reg) { return places(reg, false); });
  }
  step_relay(regions::Relay::Requested{request});
}

void Node::relay_answer(const LeaseAnswer& answer, const std::string& from) {
  if (!process_->relay) return;
  const auto reg = process_->relay->asked_by(answer);
  if (!reg) return;
  const bool again = process_->upstream->learn(*reg, from, answer, clock_.boot_ns());
  step_relay(regions::Relay::Answered{answer, again});
}

void Node::step_relay(const regions::Relay::Event& event) {
  if (!process_->relay) return;
  regions::Relay::Effects did;
  process_->relay->step(event, clock_.boot_ns(), did);
  for (const LeaseAnswer& answer : did.answers) answer_edge(answer);
  for (const LeaseRequest& request : did.requests) {
    ++relay_requests_;
    ask(process_->upstream->target(request.reg, clock_.boot_ns()).node, request);
  }
  schedule_relay();
}

void Node::schedule_relay() {
  Process& process = *process_;
  const Nanos deadline_ns = process.relay->next_deadline();
  if (deadline_ns == kForever) return;
  const Nanos wait_ns = std::max<Nanos>(kMicrosecond, deadline_ns - clock_.boot_ns());
  const Nanos at_ns = shared_.world.now_ns() + clock_.true_span(wait_ns);
  if (at_ns >= process.relay_at_ns) return;
  process.relay_at_ns = at_ns;
  shared_.world.at(at_ns, [this, at_ns, alive = std::weak_ptr<Process>(process_)] {
    const auto same = alive.lock();
    if (!same || same != process_ || same->relay_at_ns != at_ns) return;
    same->relay_at_ns = kForever;
    in_process([this] { step_relay(regions::Relay::Tick{}); });
  });
}

std::vector<regions::Relay::View> Node::relay_views() const {
  if (!process_ || !process_->relay) return {};
  return process_->relay->view();
}

}  // namespace weir::sim
