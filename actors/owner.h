// The shell around ownership::Owner, one per (register, customer): messages and one timer become
// events; what the owner did goes to the host, through the replication actor, which drops it when
// this activation is over (PROTOCOL B4). What it owns is in the store; it may be killed at any
// moment.
#pragma once

#include <memory>

#include "actors/messages.h"
#include "src/base/time.h"
#include "src/ownership/host.h"

namespace weir::actors {

/// What all owners of a node share.
struct OwnerContext {
  const Clock* clock = nullptr;
  ownership::OwnerConfig config;
  SharedLinks links;
};

OwnerActor spawn_owner(caf::actor_system& system, std::shared_ptr<const OwnerContext> context,
                       const ownership::Host::OwnerStart& start, const Book& book);

}  // namespace weir::actors
