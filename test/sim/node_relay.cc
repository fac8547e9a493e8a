// The relays on a node, wired as the actors wire them (PROTOCOL F).

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

void Node::relay_request(const LeaseRequest& request) {
  const auto bucket = decode_bucket_key(request.bucket);
  if (!bucket) return;
  const ownership::OwnerKey key{request.reg, bucket->customer};
  auto& relay = process_->relays[key];
  if (!relay) {
    regions::RelayConfig config;
    config.node = settings_.name;
    config.reg = request.reg;
    config.terms = shared_.terms;
    config.round_trip_ns = process_->round_trips[request.reg];
    config.suspicion_ns = shared_.seat.suspicion_ns;
    relay = std::make_unique<regions::Relay>(config, shared_.world.random.next(), clock_.boot_ns());
  }
  step_relay(key, regions::Relay::Requested{request});
}

void Node::relay_answer(const LeaseAnswer& answer, const std::string& from) {
  const auto bucket = decode_bucket_key(answer.bucket);
  if (!bucket) return;
  // A customer that was pinned meanwhile has a relay for each register (J3).
  std::vector<ownership::OwnerKey> keys;
  for (const auto& [key, relay] : process_->relays) {
    if (key.customer == bucket->customer) keys.push_back(key);
  }
  edge::Router& upstream = *process_->upstream;
  const Nanos now_ns = clock_.boot_ns();
  for (const auto& key : keys) {
    bool again = false;
    if (answer.status == LeaseStatus::not_owner) {
      again = upstream.redirected(key.reg, from, LeaseHop::direct, answer.owner_hint, now_ns);
    } else {
      upstream.heard(key.reg, from, LeaseHop::direct, now_ns);
    }
    step_relay(key, regions::Relay::Answered{answer, again});
  }
}

void Node::relay_all(const regions::Relay::Event& event) {
  std::vector<ownership::OwnerKey> keys;
  for (const auto& [key, relay] : process_->relays) keys.push_back(key);
  for (const auto& key : keys) step_relay(key, event);
}

void Node::step_relay(const ownership::OwnerKey& key, const regions::Relay::Event& event) {
  const auto found = process_->relays.find(key);
  if (found == process_->relays.end()) return;
  regions::Relay::Effects did;
  found->second->step(event, clock_.boot_ns(), did);
  for (const LeaseAnswer& answer : did.answers) answer_edge(answer);
  for (const LeaseRequest& request : did.requests) {
    ++relay_requests_;
    ask(process_->upstream->target(request.reg, clock_.boot_ns()).node, request);
  }
  process_->round_trips[key.reg] = found->second->round_trip_ns();
  if (did.passive) {
    process_->relays.erase(found);
  } else {
    schedule_relay(key);
  }
}

void Node::schedule_relay(const ownership::OwnerKey& key) {
  const regions::Relay* relay = process_->relays.at(key).get();
  const Nanos deadline_ns = relay->next_deadline();
  if (deadline_ns == kForever) return;
  const Nanos wait_ns = std::max<Nanos>(kMicrosecond, deadline_ns - clock_.boot_ns());
  shared_.world.after(clock_.true_span(wait_ns),
                      [this, key, relay, alive = std::weak_ptr<Process>(process_)] {
                        const auto same = alive.lock();
                        if (!same || same != process_) return;
                        in_process([this, key, relay] {
                          const auto again = process_->relays.find(key);
                          if (again == process_->relays.end()) return;
                          if (again->second.get() != relay) return;
                          if (relay->next_deadline() > clock_.boot_ns()) return;
                          step_relay(key, regions::Relay::Tick{});
                        });
                      });
}

std::vector<regions::Relay::View> Node::relay_views() const {
  std::vector<regions::Relay::View> views;
  if (!process_) return views;
  for (const auto& [key, relay] : process_->relays) {
    for (auto& view : relay->view()) views.push_back(std::move(view));
  }
  return views;
}

}  // namespace weir::sim
