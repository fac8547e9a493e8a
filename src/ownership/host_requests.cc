// What a host does with the requests of edges: to the owner, to the next one, or back.

#include <utility>

#include "src/base/mutants.h"
#include "src/ownership/host.h"

namespace weir::ownership {
LeaseAnswer Host::refusal(const LeaseRequest& request, LeaseStatus status, std::string hint) const {
  LeaseAnswer answer = answer_to(request, status);
  answer.owner_hint = std::move(hint);
  return answer;
}

/// Whoever does not own says who should: the owner it knows, or nobody. While a register has no
/// owner its replicas keep the requests for whoever of them wins.
void Host::lease_request(const LeaseRequest& request, Nanos now_ns, Effects& out) {
  const auto bucket = decode_bucket_key(request.bucket);
  if (!bucket || bucket->scope == Scope::node) return;  // no edge of ours writes this
  // Whoever goes by another topology asks for another register, which may know nothing of what the
  // customer has spent in its own (J3).
  if (view_->register_for(*bucket) != request.reg && !WEIR_MUTANT(register_unchecked)) {
    out.answers.push_back(refusal(request, LeaseStatus::not_owner, {}));
    return;
  }
  const auto place = serve(request.reg, now_ns);
  if (place == places_.end() || !place->second.seat.active()) {
    std::string owner = next_owner(request.reg, now_ns);
    // Told of a release that the claims heard here do not show yet.
    const auto released = [&](const Place& at) {
      return at.seat.trying() && at.predecessor == owner;
    };
    const bool waits = owner.empty() || gone_.contains(owner);
    if (place != places_.end() && !leaving_ && (waits || released(place->second))) {
      return hold(request, now_ns, out);
    }
    out.answers.push_back(refusal(request, LeaseStatus::not_owner, std::move(owner)));
    return;
  }
  // Its owner is about to end: the next one gets it.
  if (place->second.seat.releasing()) return hold(request, now_ns, out);
  const OwnerKey key{request.reg, bucket->customer};
  if (leaves(key)) {
    out.answers.push_back(refusal(request, LeaseStatus::pending, {}));
    return;
  }
  auto running = owners_.find(key);
  if (running == owners_.end()) {
    if (owners_.size() >= config_.max_owners) {
      out.answers.push_back(refusal(request, LeaseStatus::pending, {}));
      return;
    }
    running = owners_.emplace(key, Running{++activations_, {}}).first;
    out.owners.push_back(OwnerStart{key, running->second.activation, place->second.seat.epoch(),
                                    generation_of(request.reg)});
  }
  out.owners.push_back(OwnerEvent{key, running->second.activation, Owner::Requested{request}});
}

void Host::hold(const LeaseRequest& request, Nanos now_ns, Effects& out) {
  std::vector<Held>& waiting = held_[request.reg];
  for (Held& held : waiting) {
    if (held.request.bucket != request.bucket || held.request.lessee != request.lessee) continue;
    if (held.request.sequence <= request.sequence) held = {request, now_ns};
    return;
  }
  if (held_count_ >= kMaxHeldRequests) {
    out.answers.push_back(refusal(request, LeaseStatus::not_owner, {}));
    return;
  }
  ++held_count_;
  waiting.push_back({request, now_ns});
  if (waiting.size() == 1) wake(request.reg, now_ns);
}

/// The register has an owner again, here or elsewhere.
void Host::answer_held(const RegisterId& reg, Nanos now_ns, Effects& out) {
  if (held_.empty()) return;
  const std::string owner = next_owner(reg, now_ns);
  if (owner.empty() || gone_.contains(owner)) return;
  const auto waiting = held_.extract(reg);
  if (!waiting) return;
  held_count_ -= waiting.mapped().size();
  for (const Held& held : waiting.mapped()) lease_request(held.request, now_ns, out);
}

void Host::set_link(const std::string& node, bool up, Nanos now_ns, Effects& out) {
  if (!up) {
    gone_.insert(node);
    return;
  }
  if (gone_.erase(node) == 0) return;
  answer_all_held(now_ns, out);
  drain(now_ns, out);
}

void Host::answer_all_held(Nanos now_ns, Effects& out) {
  std::vector<RegisterId> waiting;
  for (const auto& [reg, held] : held_) waiting.push_back(reg);
  for (const RegisterId& reg : waiting) answer_held(reg, now_ns, out);
}

void Host::drop_held(Nanos now_ns) {
  for (auto it = held_.begin(); it != held_.end();) {
    held_count_ -= std::erase_if(
        it->second, [&](const Held& held) { return now_ns - held.since_ns >= kHoldRequestNs; });
    it = it->second.empty() ? held_.erase(it) : std::next(it);
  }
}

}  // namespace weir::ownership
