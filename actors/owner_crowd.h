// The owner actors of a node, by their activation: started, stepped and stopped as the host says.
// Used by the replication actor, on its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

#include "actors/messages.h"
#include "actors/owner.h"
#include "src/ownership/host.h"

namespace weir::actors {

class OwnerCrowd {
 public:
  /// Now, for the owners of a register.
  using Time = std::function<ownership::Instant(const RegisterId&)>;

  OwnerCrowd(caf::scheduled_actor* home, std::shared_ptr<const OwnerContext> context, Book book,
             Time time)
      : home_(home), context_(std::move(context)), book_(std::move(book)), time_(std::move(time)) {}

  void carry(ownership::Host::OwnerStart&& start);
  void carry(ownership::Host::OwnerStop&& stop);
  void carry(ownership::Host::OwnerEvent&& event);
  void set_book(const Book& book);

  /// Whether `did` says all that its owner will say of what was sent to it so far: only then may it
  /// end, or a request that is on its way would be lost.
  bool has_seen_all(const OwnerDid& did) const;
  /// Which owner it was that has ended by itself.
  std::optional<std::pair<ownership::OwnerKey, std::uint64_t>> ended(
      const caf::actor_addr& address);
  OwnerActor find(std::uint64_t activation) const;
  void kill_all();
  std::size_t size() const { return owners_.size(); }

 private:
  struct Entry {
    OwnerActor actor;
    ownership::OwnerKey key;
    std::uint64_t sent = 0;  ///< events
  };
  void send(Entry& entry, ownership::Owner::Event event);

  caf::scheduled_actor* home_;
  std::shared_ptr<const OwnerContext> context_;
  Book book_;
  Time time_;
  std::unordered_map<std::uint64_t, Entry> owners_;  ///< by activation
  std::unordered_map<caf::actor_id, std::uint64_t> activations_;
};

}  // namespace weir::actors
