#include "actors/owner_crowd.h"

#include <utility>

namespace weir::actors {

void OwnerCrowd::carry(ownership::Host::OwnerStart&& start) {
  OwnerActor actor = spawn_owner(home_->home_system(), context_, start, book_);
  home_->monitor(actor);
  activations_.emplace(actor->id(), start.activation);
  owners_.emplace(start.activation, Entry{std::move(actor), std::move(start.key), 0});
}

void OwnerCrowd::carry(ownership::Host::OwnerStop&& stop) {
  const auto found = owners_.find(stop.activation);
  if (found == owners_.end()) return;
  home_->demonitor(found->second.actor.address());
  home_->send_exit(found->second.actor, caf::exit_reason::kill);
  activations_.erase(found->second.actor->id());
  owners_.erase(found);
}

void OwnerCrowd::carry(ownership::Host::OwnerEvent&& event) {
  const auto found = owners_.find(event.activation);
  if (found != owners_.end()) send(found->second, std::move(event.event));
}

void OwnerCrowd::send(Entry& entry, ownership::Owner::Event event) {
  ++entry.sent;
  caf::anon_send(entry.actor, ForOwner{std::move(event), time_(entry.key.reg)});
}

void OwnerCrowd::set_book(const Book& book) {
  book_ = book;
  for (auto& [activation, entry] : owners_) send(entry, ownership::Owner::PolicyChanged{book});
}

bool OwnerCrowd::has_seen_all(const OwnerDid& did) const {
  const auto found = owners_.find(did.activation);
  return found != owners_.end() && found->second.sent == did.seen;
}

std::optional<std::pair<ownership::OwnerKey, std::uint64_t>> OwnerCrowd::ended(
    const caf::actor_addr& address) {
  const auto activation = activations_.find(address.id());
  if (activation == activations_.end()) return std::nullopt;
  auto entry = owners_.extract(activation->second);
  activations_.erase(activation);
  return std::pair(std::move(entry.mapped().key), entry.key());
}

OwnerActor OwnerCrowd::find(std::uint64_t activation) const {
  const auto found = owners_.find(activation);
  return found == owners_.end() ? OwnerActor() : found->second.actor;
}

void OwnerCrowd::kill_all() {
  for (auto& [activation, entry] : owners_) home_->send_exit(entry.actor, caf::exit_reason::kill);
}

}  // namespace weir::actors
