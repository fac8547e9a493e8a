// Answers questions about customers from the store and from their owner, in a thread of its own,
// since it reads the disk.
#pragma once

#include "actors/messages.h"
#include "actors/owner.h"

namespace weir::actors {

ClerkActor spawn_clerk(caf::actor_system& system, const store::Store& store,
                       std::shared_ptr<const OwnerContext> owners, const Book& book);

}  // namespace weir::actors
