// Where questions of this node's server wait for the owner's reply: routed to the owning node,
// answered exactly once, at the latest after kQueryDeadlineNs.
#pragma once

#include "actors/messages.h"
#include "regions/placement.h"

namespace weir::actors {

/// Most questions that wait at once; a further one fails at once.
inline constexpr std::size_t kMaxQuestions = 1024;

DeskActor spawn_desk(caf::actor_system& system, SharedLinks links,
                     const regions::Placement& placement);

}  // namespace weir::actors
