// All owners of a node: brings requests to the owner of their customer, starts it when there is
// none, and lets quiet ones end without losing a request.
//
// An owner ends by a handshake: it offers, the directory holds back what comes for it from then on
// and tells it so, and the owner either ends or says that it stays. What was held back goes to the
// same owner or, once the old one has ended, to a new one: never are two alive for one customer.
// An owner that died is started again by the next request, with all its state from the store.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "actors/messages.h"
#include "actors/owner.h"
#include "regions/placement.h"
#include "src/telemetry/log.h"

namespace weir::actors {

/// Most owners at once, about 2 KB each. A request for a further customer is answered `pending`:
/// the edge keeps waiting and asks again.
inline constexpr std::size_t kMaxActiveOwners = 250'000;
/// Most requests held back for one customer while its owner ends; a further one is answered
/// `pending`.
inline constexpr std::size_t kMaxHeldRequests = 1024;

struct DirectoryContext {
  std::shared_ptr<const OwnerContext> owners;
  const regions::Placement* placement = nullptr;
  telemetry::Log* log = nullptr;
  std::atomic<std::uint64_t>* active = nullptr;  ///< owners alive, for metrics
  std::size_t most_owners = kMaxActiveOwners;
  bool chaos = false;  ///< owners may be killed by a query
};

DirectoryActor spawn_directory(caf::actor_system& system, const DirectoryContext& context,
                               const Book& book);

}  // namespace weir::actors
