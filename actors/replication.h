// The actor that drives ownership::Host: the registers of this node, their replicas and owners.
// Frames of peers, requests of edges, what owners did and what the store has written go in; frames,
// answers, writes, and owners to start, step and stop come out. It decides nothing.
//
// It runs in a thread of its own: a replica reads its store within a step.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.h"
#include "actors/owner.h"
#include "regions/placement.h"
#include "src/base/random.h"
#include "src/ownership/host.h"
#include "src/telemetry/log.h"
#include "src/telemetry/metrics.h"

namespace weir::actors {

/// Most owners at once, about 2 KB each. A request for a further customer is answered `pending`:
/// the edge keeps waiting and asks again.
inline constexpr std::size_t kMaxActiveOwners = 250'000;

/// What the node shows of its registers. Written by the replication actor, read by any thread.
struct OwnershipBoard {
  std::atomic<std::uint64_t> owners_active{0};
  std::atomic<std::uint32_t> slots_owned{0};  ///< of the global registers
  std::atomic<std::uint32_t> registers_owned{0};
  /// Of them, those that some replica does not vote in (yet).
  std::atomic<std::uint32_t> registers_incomplete{0};
  /// While a topology version is under way: stored here and not moved yet.
  std::atomic<std::uint32_t> registers_unmarked{0};
  std::atomic<std::uint64_t> takeovers{0};
  std::atomic<bool> store_failed{false};

  /// Every register that this node takes part in has an owner.
  void set_settled();
  /// False: not within `patience_ns`.
  bool wait_settled(Nanos patience_ns);

 private:
  // Starting waits here, once; the mutex is held for a flag.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool settled_ = false;
};

struct ReplicationContext {
  std::shared_ptr<const OwnerContext> owners;
  std::shared_ptr<ShapeBoard> shape;
  const store::Store* store = nullptr;
  ownership::HostConfig host;
  std::uint32_t store_number = 0;              ///< 0: the store is new (PROTOCOL C2)
  std::map<RegisterId, RegisterState> states;  ///< what the store holds
  TopologyState topology;
  bool topology_assumed = true;  ///< by the node's file; nothing committed is stored here yet
  regions::ParseTopology parse_topology;
  std::uint64_t seed = 0;
  telemetry::Log* log = nullptr;
  telemetry::Metrics* metrics = nullptr;
  std::shared_ptr<OwnershipBoard> board;
  bool chaos = false;  ///< owners may be killed by a query
};

/// What a store knows of its registers; an error when it is none of this version's.
struct StoredRegisters {
  std::uint32_t store_number = 0;
  std::map<RegisterId, RegisterState> states;
  std::optional<TopologyState> topology;  ///< the last committed one that it has heard of
};
Result<StoredRegisters> read_stored_registers(const store::Store& store);

ReplicationActor spawn_replication(caf::actor_system& system, ReplicationContext context,
                                   const Book& book);

}  // namespace weir::actors
