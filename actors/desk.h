// Where questions of this node's server wait for the owner's reply: asked of the register's
// replicas one after the other, where the answers point, until one of them owns it; answered
// exactly once, at the latest after kQueryDeadlineNs.
#pragma once

#include "actors/messages.h"

namespace weir::actors {

/// Most questions that wait at once; a further one fails at once.
inline constexpr std::size_t kMaxQuestions = 1024;
/// Without a reply for so long, or when nobody owns the register yet, the next in rank is asked.
inline constexpr Nanos kNextReplicaNs = 200 * kMillisecond;
/// Redirects that one question follows at once; after that it waits as above.
inline constexpr std::uint32_t kMaxHops = 4;

DeskActor spawn_desk(caf::actor_system& system, SharedLinks links,
                     std::shared_ptr<const ShapeBoard> shape);

}  // namespace weir::actors
