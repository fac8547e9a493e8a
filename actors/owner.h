// The shell around ownership::Owner, one per (register, customer): messages and one timer become
// events, effects become messages. What it owns is in the store; it may be killed at any moment.
//
// Only this activation can release what it computed (PROTOCOL B4): the writer answers the actor
// that asked, and a dead one hears nothing.
#pragma once

#include <memory>

#include "actors/messages.h"
#include "src/base/time.h"
#include "src/ownership/owner.h"

namespace weir::actors {

/// What all owners of a node share.
struct OwnerContext {
  const Clock* clock = nullptr;
  ownership::OwnerConfig config;
  Epoch epoch;
  SharedLinks links;
};

/// Now, as an owner on its own knows it: the one wall clock that it trusts is this node's.
inline ownership::Instant instant(const Clock& clock) {
  const Nanos wall_ns = clock.wall_ns();
  return {clock.boot_ns(), wall_ns, wall_ns};
}

OwnerActor spawn_owner(caf::actor_system& system, std::shared_ptr<const OwnerContext> context,
                       const RegisterId& reg, const Book& book);

}  // namespace weir::actors
