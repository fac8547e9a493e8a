// How a node gives its registers up: one after the other when it is told to stop, all at once when
// its store takes no more writes.

#include <utility>

#include "src/ownership/host.h"

namespace weir::ownership {

/// The owner, or whoever was bidden to become it a moment ago.
std::string Host::next_owner(const RegisterId& reg, Nanos now_ns) const {
  std::string owner = owner_of(reg, now_ns);
  const auto place = places_.find(reg);
  if (!owner.empty() || place == places_.end()) return owner;
  const bool lately = now_ns - place->second.released_ns < config_.seat.suspicion_ns;
  return lately && place->second.successor != config_.self ? place->second.successor : owner;
}

void Host::retire(Nanos now_ns, Effects& out) {
  leaving_ = true;
  for (const auto& [key, running] : owners_) {
    if (to_release_.empty() || to_release_.back() != key.reg) to_release_.push_back(key.reg);
  }
  for (const auto& [reg, counter] : owned_) {
    const auto running = owners_.lower_bound(OwnerKey{reg, {}});
    if (running == owners_.end() || running->first.reg != reg) to_release_.push_back(reg);
  }
  for (auto& place : places_) {
    if (place.second.seat.active()) continue;
    Seat::Effects did;
    place.second.seat.retire({}, now_ns, did);
    take_seat(place, std::move(did), now_ns, out);
  }
  release_some(now_ns, out);
  drain(now_ns, out);
}

/// To the best in rank of those that speak.
void Host::release_some(Nanos now_ns, Effects& out) {
  if (to_release_.empty() || now_ns - releases_ns_ < kReleasesEveryNs) return;
  releases_ns_ = now_ns;
  for (std::size_t left = kReleasesAtOnce; left > 0 && !to_release_.empty(); --left) {
    RegisterId reg = std::move(to_release_.front());
    to_release_.pop_front();
    auto& place = *places_.find(reg);
    if (place.second.seat.trying()) {
      // It is being promised anew, and is released as an owner's.
      to_release_.push_back(std::move(reg));
      continue;
    }
    std::string successor;
    for (const std::string& node : place.second.seat.quorums().members()) {
      if (node == config_.self || silent(node, now_ns) || gone_.contains(node)) continue;
      successor = node;
      break;
    }
    Seat::Effects did;
    place.second.seat.retire(successor, now_ns, did);
    take_seat(place, std::move(did), now_ns, out);
  }
}

void Host::resign(Nanos now_ns, Effects& out) {
  leaving_ = true;
  to_release_.clear();
  for (auto& place : places_) {
    Seat::Effects did;
    place.second.seat.resign(did);
    take_seat(place, std::move(did), now_ns, out);
  }
  drain(now_ns, out);
  beaten_ns_ = INT64_MIN / 2;
  send_beats(now_ns, out);
}

}  // namespace weir::ownership
