// The state behind a Limiter, internal to src/edge: stripes of customers, each guarded by its
// mutex.
#pragma once

#include <array>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/base/hash.h"
#include "src/base/random.h"
#include "src/edge/limiter.h"
#include "src/edge/local_counter.h"
#include "src/lease/holder.h"
#include "src/model/ids.h"

namespace weir::edge {

/// Customers are spread over this many stripes by their slot, so that a slot's health has one
/// guard.
inline constexpr std::size_t kStripes = 64;

/// A limit's name as a small number, for counters; names are interned and never forgotten.
using LimitId = std::uint16_t;

/// A policy with the ids of its limits, by their index.
struct PolicyInForce {
  std::shared_ptr<const policy::Policy> policy;
  std::vector<LimitId> ids;
  std::vector<bool> by_customer;                          ///< whether `by` contains the customer
  std::vector<std::optional<limit::Calendar>> calendars;  ///< of fixed windows
};

struct Entry;

/// Checks decided since Limiter::busiest last looked.
struct CheckTally {
  std::uint32_t decided = 0;
  std::uint32_t denied = 0;

  void add(bool allowed) {
    ++decided;
    denied += allowed ? 0 : 1;
  }
};
/// Most customers of one stripe that are counted although they have no leased bucket here: blocked
/// and unlimited ones, and those with node-scope limits alone. A further one is not counted.
inline constexpr std::size_t kMaxOthersPerStripe = 256;

/// A check that waits for tokens. In one entry's queue and in its stripe's deadlines until done.
struct Waiter {
  Check check;
  Limiter::Completion done;
  Nanos since_ns = 0;
  Nanos deadline_ns = 0;
  Entry* entry = nullptr;  ///< whose tokens it waits for; null: finished
};

/// A leased bucket at this edge. In its stripe's map, in its list of the longest idle, and, while
/// scheduled_ns is not kForever, in its order of what is due.
struct Entry : boost::intrusive::list_base_hook<>,
               boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
  std::string key;  ///< encoded BucketKey
  lease::Holder holder;
  LimitId limit = 0;
  Scope scope = Scope::global;
  Slot slot = 0;
  FailurePolicy on_unreachable = FailurePolicy::static_share;
  bool strict = false;
  bool look = false;     ///< somebody waits for a first word
  bool evicted = false;  ///< leaves as soon as its return has been asked once
  CheckTally tally;      ///< of the checks whose first leased bucket it is
  Nanos used_ns = 0;
  Nanos scheduled_ns = kForever;
  std::int64_t other_need =
      0;  ///< of a check that waits in another entry's queue, or of a shadow limit
  std::int64_t waiting = 0;  ///< costs of the queue
  std::unique_ptr<std::deque<std::shared_ptr<Waiter>>> queue;
  std::unique_ptr<LocalCounter> static_share;  ///< level kept across re-entries (I3)
};

struct DueSooner {
  bool operator()(const Entry& a, const Entry& b) const { return a.scheduled_ns < b.scheduled_ns; }
};

/// A bucket of scope node.
struct NodeBucket {
  LocalCounter counter;
  LimitId limit = 0;
};

using NodeBuckets = boost::unordered_flat_map<std::string, std::unique_ptr<NodeBucket>, StringHash,
                                              std::equal_to<>>;

/// Whether the owner of one register speaks (PROTOCOL I2).
struct Health {
  Nanos silent_since_ns = 0;  ///< first send without a word since; 0: nothing is open
  Nanos closed_ns = 0;        ///< when the last unanswered request was given up
  std::uint32_t open = 0;     ///< unanswered requests
  bool degraded = false;
  std::uint32_t round_trip_us = 0;  ///< measured on answers; 0: not yet
  std::uint32_t node_round_trip_us = 0;
  std::uint32_t upstream_us = 0;  ///< from the relay that answers here to the owner; 0: no relay
};

struct LimitStats {
  std::array<std::array<std::uint64_t, 9>, 2> checks{};  ///< [allowed][source]
  std::uint64_t shadow_denied = 0;
  std::int64_t overshoot_tokens = 0;
  Nanos failure_applied_ns = 0;
  FailurePolicy failure_policy = FailurePolicy::static_share;
};

struct Stripe {
  using Finished = std::vector<std::pair<Limiter::Completion, Decision>>;

  mutable std::mutex mutex;
  std::shared_ptr<const PolicyInForce> policy;
  boost::unordered_flat_map<std::string, std::unique_ptr<Entry>, StringHash, std::equal_to<>>
      entries;
  boost::intrusive::list<Entry> idle_order;  ///< the longest idle first
  NodeBuckets node_buckets;
  Nanos swept_ns = 0;
  Nanos scanned_ns = 0;  ///< when `busiest` last looked
  /// Of the checks without a leased bucket, by customer.
  boost::unordered_flat_map<std::string, CheckTally, StringHash, std::equal_to<>> others;
  bool wake_due = false;  ///< the broker is to be woken once the mutex is free
  boost::intrusive::multiset<Entry, boost::intrusive::compare<DueSooner>> due;
  std::multimap<Nanos, std::shared_ptr<Waiter>> waiters;
  std::array<std::array<Health, kSlotCount / kStripes>, 2> health;  ///< [region?][slot / kStripes]
  std::vector<LimitStats> stats;
  std::vector<Degradation> degradations;
  Random random{0};

  Health& health_of(const Entry& entry) {
    return health[entry.scope == Scope::region ? 1 : 0][entry.slot / kStripes];
  }
  const Health& health_of(const Entry& entry) const {
    return health[entry.scope == Scope::region ? 1 : 0][entry.slot / kStripes];
  }
  LimitStats& stats_of(LimitId id) {
    if (stats.size() <= id) stats.resize(id + 1U);
    return stats[id];
  }
};

/// Node-scope buckets that belong to no customer: one for all stripes. Locked after a stripe, never
/// before.
struct SharedBuckets {
  mutable std::mutex mutex;
  NodeBuckets node_buckets;
  Nanos swept_ns = 0;
};

}  // namespace weir::edge
