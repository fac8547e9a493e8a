// What lessees and grantors say to each other, and what a grantor stores. Values only; src/codec
// puts them on the wire (proto/weir/v1/cluster.proto).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/time.h"
#include "src/model/ids.h"
#include "src/model/limit.h"

namespace weir {

/// Between whom a request and its answers go. For ever on the wire.
enum class LeaseHop : std::uint8_t {
  direct = 0,      ///< an edge and the owner
  to_relay = 1,    ///< an edge and a relay
  from_relay = 2,  ///< a relay and the owner
};

/// One bucket's request for tokens; also its report and its give-up (PROTOCOL D3).
struct LeaseRequest {
  RegisterId reg;
  std::string bucket;  ///< encoded BucketKey
  LesseeId lessee;
  std::uint64_t sequence = 0;    ///< from 1, one counter per incarnation
  std::int64_t held = 0;         ///< tokens in hand, one snapshot with spent_total
  std::int64_t spent_total = 0;  ///< tokens spent since the incarnation began
  std::int64_t given_back = 0;   ///< tokens given back (negative cost) since the incarnation began
  std::int64_t want = 0;         ///< tokens; 0: a report, a look or a return
  std::int64_t need = 0;         ///< cost of the oldest waiting check; 0: nobody waits
  std::int64_t rate_per_s = 0;   ///< measured demand, tokens per second
  bool strict = false;           ///< grant exactly: no taper
  std::uint64_t policy_version = 0;
  LeaseHop hop = LeaseHop::direct;
  /// Whose the counters above are: the incarnation of the relay that they were begun with, 0: the
  /// owner, whose record outlives it (PROTOCOL F3).
  std::uint64_t grantor = 0;
  std::uint32_t weight = 1;  ///< lessees for whom a relay asks: its part is theirs together

  friend bool operator==(const LeaseRequest&, const LeaseRequest&) = default;
};

enum class LeaseStatus : std::uint8_t {
  granted = 1,  ///< `granted` tokens (may be 0: the report is booked and the TTL extended)
  empty = 2,    ///< nothing to give now; `retry_ns` says when `need` fits; the request stays parked
  unknown = 3,  ///< no such entry: drop what you hold, start a new incarnation
  pending = 4,  ///< not decided yet (relay upstream, activation); keep waiting
  not_owner = 5,  ///< ask `owner_hint`
  no_limit = 6,   ///< the grantor's policy has no such limit
  crowded = 7,    ///< the record has its most lessees; ask a relay
  ask_again = 8,  ///< tokens are there for you, but your request is too old to carry them (G3)
  recall = 9,     ///< give back what you hold and do not need now (E6, G4)
};
const char* to_string(LeaseStatus status);

struct LeaseAnswer {
  std::string bucket;
  LesseeId lessee;
  std::uint64_t sequence = 0;
  LeaseStatus status = LeaseStatus::pending;
  std::int64_t granted = 0;
  Nanos ttl_ns =
      0;  ///< of all that the lessee holds, from the first send of `sequence`; 0: no extension
  Nanos retry_ns = 0;       ///< until `need` (at least 1 token) fits; -1: never; 0 unless empty
  std::int64_t level = 0;   ///< free tokens after this answer
  Nanos next_token_ns = 0;  ///< until `level` grows by one if nothing else happens; 0: it will not
  std::int64_t outstanding = 0;  ///< tokens out on lease in all, this lessee's included
  std::int64_t capacity = 0;     ///< by the grantor's policy
  std::uint64_t policy_version = 0;
  Epoch epoch;
  std::string owner_hint;  ///< node; for not_owner
  /// Limits with a calendar window: until the window ends, by the grantor's wall clock; else 0.
  Nanos window_left_ns = 0;
  LeaseHop hop = LeaseHop::direct;
  // What a relay adds. Level, outstanding, capacity and window are the owner's word all the same.
  std::uint64_t grantor = 0;         ///< incarnation of the relay as a grantor; 0: the owner
  Nanos upstream_round_trip_ns = 0;  ///< from the relay to the owner (PROTOCOL F4)
  Nanos age_ns = 0;                  ///< how long ago the owner said so

  friend bool operator==(const LeaseAnswer&, const LeaseAnswer&) = default;
};

/// To whoever asked, on the way that the request took; all else is left to fill in.
inline LeaseAnswer answer_to(const LeaseRequest& request, LeaseStatus status) {
  LeaseAnswer answer;
  answer.bucket = request.bucket;
  answer.lessee = request.lessee;
  answer.sequence = request.sequence;
  answer.status = status;
  answer.hop = request.hop;
  return answer;
}

/// One lessee in a stored ledger.
struct LesseeRecord {
  LesseeId lessee;
  std::uint64_t sequence = 0;
  std::int64_t outstanding = 0;
  std::int64_t spent_total = 0;
  std::int64_t given_back = 0;
  Nanos ttl_remaining_ns = 0;  ///< at the moment of the snapshot
  bool relay = false;          ///< it holds one of the places for relays (PROTOCOL D9)

  friend bool operator==(const LesseeRecord&, const LesseeRecord&) = default;
};

/// Longest document in a record.
inline constexpr std::size_t kMaxDocumentBytes = 512 * 1024;

/// A bucket's ledger as stored: relative to the moment of its snapshot, so that it can be aged by
/// whoever reads it (PROTOCOL B9).
struct LedgerRecord {
  std::int64_t level = 0;      ///< whole free tokens
  std::uint64_t fraction = 0;  ///< of a token, in units of 1 / numbers.rate_period_ns
  LimitNumbers numbers;        ///< in force at the snapshot
  std::uint64_t policy_version = 0;
  std::vector<LesseeRecord> lessees;
  /// The calendar window in force, UTC [start, end), and the tokens spent in it (PROTOCOL H1). Kept
  /// until its end even when the limit has become a token bucket. 0, 0, 0: none.
  Nanos window_start_ns = 0;
  Nanos window_end_ns = 0;
  std::int64_t used = 0;
  /// The generation of the register under which it was stored (PROTOCOL C4).
  std::uint64_t generation = 0;
  /// The topology version under which the bucket left this register (J3); 0: it lives here.
  std::uint64_t moved_under = 0;
  /// Records that are no ledgers hold a text instead: the cluster's shape (TopologyState).
  std::string document;

  friend bool operator==(const LedgerRecord&, const LedgerRecord&) = default;
};

/// A record with its version, as a replica keeps it.
struct StoredRecord {
  std::string bucket;  ///< encoded BucketKey
  Version version;
  LedgerRecord ledger;

  friend bool operator==(const StoredRecord&, const StoredRecord&) = default;
};

/// A stored record as read back: how long ago the replica accepted it, by its own clocks (B9).
struct AgedRecord {
  StoredRecord record;
  Nanos age_ns = 0;  ///< never negative, never more than the truth

  friend bool operator==(const AgedRecord&, const AgedRecord&) = default;
};

}  // namespace weir
