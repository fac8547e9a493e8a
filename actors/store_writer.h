// The two actors that touch the disk, each in a thread of its own, so that no scheduler thread
// waits for it.
//
// The writer commits in groups: what arrives while a synced write runs goes into the next one. It
// gives every record its version (PROTOCOL B4): one counter per register that never repeats within
// the epoch, in the order in which commits arrive. A failed write is answered as failed to all
// whose records were in it; the owners resign (C5).
#pragma once

#include "actors/messages.h"
#include "src/base/time.h"
#include "src/telemetry/log.h"
#include "src/telemetry/metrics.h"

namespace weir::actors {

struct WriterContext {
  store::Store* store = nullptr;
  const Clock* clock = nullptr;
  telemetry::Log* log = nullptr;
  telemetry::Metrics* metrics = nullptr;
  Epoch epoch;
};

WriterActor spawn_store_writer(caf::actor_system& system, const WriterContext& context);
ReaderActor spawn_store_reader(caf::actor_system& system, const store::Store& store);

}  // namespace weir::actors
