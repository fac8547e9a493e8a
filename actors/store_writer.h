// The actor that writes to the disk, in a thread of its own, so that no scheduler thread waits for
// it. What arrives while a synced write runs goes into the next one. A failed write is answered as
// failed to all that was in it: the node resigns what it owns (PROTOCOL C5).
#pragma once

#include "actors/messages.h"
#include "src/base/time.h"
#include "src/telemetry/log.h"

namespace weir::actors {

struct WriterContext {
  store::Store* store = nullptr;
  telemetry::Log* log = nullptr;
  SharedLinks links;
};

WriterActor spawn_store_writer(caf::actor_system& system, const WriterContext& context);

}  // namespace weir::actors
