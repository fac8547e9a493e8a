// What the nodes of a replica set say to each other about one register (PROTOCOL B, C). Values
// only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/model/ids.h"
#include "src/model/lease.h"

namespace weir {

/// Most records of one message. A commit or page has fewer; a message with more is refused.
inline constexpr std::size_t kMaxRecordsPerMessage = 4096;
/// Most bytes of records that a commit or a page gathers, by `record_bytes`: above it the next
/// record waits for the next one, so that a frame has room and heartbeats pass in between.
inline constexpr std::size_t kMaxRecordBytesPerMessage = 512 * 1024;
/// Most registers that one node serves, so that a list of its claims fits a frame. It takes no part
/// in further ones.
inline constexpr std::size_t kMaxRegistersPerNode = 65'536;
/// Most stores in a list of numbers: all that a cluster ever had.
inline constexpr std::size_t kMaxStoreMarks = 1024;
/// Highest topology version; twice it is a stage.
inline constexpr std::uint64_t kMaxTopologyVersion = std::uint64_t{1} << 62;
/// Most unmarked registers that one message lists.
inline constexpr std::size_t kMaxUnmarked = 1024;
/// Most customers whose register one topology version changes.
inline constexpr std::size_t kMaxMovedCustomers = 10'000;
/// The register that holds the cluster's shape (J1), and the one record in it.
inline const RegisterId kTopologyRegister{RegisterId::Kind::topology, {}, 0};

/// The number of a node's store incarnation as its peers know it: one above the highest that a
/// majority of them knew when the store was new (PROTOCOL C2). 0: a store that has not been
/// numbered yet.
struct StoreMark {
  std::string node;
  std::uint32_t number = 0;

  friend auto operator<=>(const StoreMark&, const StoreMark&) = default;
};

/// Every message between an owner and a replica names the register's stage (PROTOCOL J): twice the
/// topology version whose replica set alone counts, or one more while the next version's set counts
/// too. A stage is never left for a lower one.
///
/// "Promise me to refuse every lower epoch." With `first_start`: and join these stores, with which
/// this register is to start. With `begin` as well: all of them have joined, vote (C3).
struct Prepare {
  RegisterId reg;
  Epoch epoch;
  std::vector<StoreMark> first_start;
  bool begin = false;
  /// A store that the topology version under way lists votes in a register it newly joins (J2).
  bool enlists = false;
  std::vector<StoreMark> known;  ///< store numbers to be noted with the promise (C2)
  std::uint64_t stage = 0;

  friend bool operator==(const Prepare&, const Prepare&) = default;
};

struct Promise {
  RegisterId reg;
  Epoch epoch;  ///< of the prepare
  bool promised = false;
  Epoch highest;  ///< the promise in force; above `epoch` when refused
  StoreMark store;
  bool votes = false;
  std::uint64_t generation = 0;
  std::vector<StoreMark> known;        ///< the highest number known of each store of the set
  std::vector<StoreMark> first_start;  ///< the list it has joined, or votes by
  std::uint64_t stage = 0;

  friend bool operator==(const Promise&, const Promise&) = default;
};

/// Reads one bucket's record; it is a prepare for that replica (B3).
struct Read {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t token = 0;
  std::string bucket;
  std::uint64_t stage = 0;

  friend bool operator==(const Read&, const Read&) = default;
};

struct ReadReply {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t token = 0;
  bool accepted = false;
  Epoch highest;
  StoreMark store;
  bool votes = false;
  std::optional<AgedRecord> record;
  std::uint64_t stage = 0;

  friend bool operator==(const ReadReply&, const ReadReply&) = default;
};

/// Stores records of one commit.
struct Accept {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t commit = 0;
  std::vector<StoredRecord> records;
  std::uint64_t stage = 0;

  friend bool operator==(const Accept&, const Accept&) = default;
};

struct Accepted {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t commit = 0;
  bool accepted = false;
  Epoch highest;
  StoreMark store;
  std::vector<std::string> stale;  ///< buckets of which it has a newer version (B5): not stored
  std::uint64_t stage = 0;

  friend bool operator==(const Accepted&, const Accepted&) = default;
};

/// "Do you miss the owner of this register?" Changes nothing (B8).
struct Poll {
  RegisterId reg;
  std::uint64_t token = 0;

  friend bool operator==(const Poll&, const Poll&) = default;
};

struct PollReply {
  RegisterId reg;
  std::uint64_t token = 0;
  bool misses = false;
  Epoch highest;
  std::string owner;  ///< whose claim it has seen lately, when it does not miss it

  friend bool operator==(const PollReply&, const PollReply&) = default;
};

/// A page of a register's records in key order, dormant ones too. It is a prepare like Read.
struct Scan {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t token = 0;
  std::string after;
  std::uint64_t stage = 0;

  friend bool operator==(const Scan&, const Scan&) = default;
};

struct ScanReply {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t token = 0;
  bool accepted = false;
  Epoch highest;
  StoreMark store;
  bool votes = false;
  std::vector<AgedRecord> records;
  bool last = false;
  std::uint64_t stage = 0;

  friend bool operator==(const ScanReply&, const ScanReply&) = default;
};

/// Copies records as they are, version and age unchanged, to a store that learns (C2, J2).
struct Install {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t token = 0;
  StoreMark store;  ///< for this incarnation only
  std::vector<AgedRecord> records;
  bool admit = false;  ///< with this page the store has everything: it votes from now on
  std::uint64_t stage = 0;

  friend bool operator==(const Install&, const Install&) = default;
};

struct Installed {
  RegisterId reg;
  Epoch epoch;
  std::uint64_t token = 0;
  bool accepted = false;
  Epoch highest;
  StoreMark store;
  std::uint64_t stage = 0;

  friend bool operator==(const Installed&, const Installed&) = default;
};

/// "I rank before you and am well: drain, commit, release" (B8), and the answer to it.
struct HandOver {
  RegisterId reg;

  friend bool operator==(const HandOver&, const HandOver&) = default;
};
struct Release {
  RegisterId reg;
  Epoch epoch;

  friend bool operator==(const Release&, const Release&) = default;
};

/// Every register that a node owns, with the epoch's counter: its own renewed claim (B8). The
/// heartbeat carries the generation alone; a list is sent when it changed and until its generation
/// is echoed.
struct Claims {
  std::uint64_t generation = 0;
  std::vector<std::pair<RegisterId, std::uint64_t>> owned;
  std::uint64_t incarnation = 0;  ///< of the sender's process: an earlier one's may come late

  friend bool operator==(const Claims&, const Claims&) = default;
};

/// A node's sign of life.
struct Beat {
  std::uint64_t incarnation = 0;        ///< of the process
  std::uint32_t store = 0;              ///< number of its store
  std::uint64_t claims_generation = 0;  ///< of the sender
  std::uint64_t claims_seen = 0;        ///< generation of the receiver's that the sender knows
  std::vector<StoreMark> known;         ///< store numbers that the sender knows
  std::uint64_t topology_stage = 0;     ///< of the committed state that the sender knows; 0: none
  Nanos wall_ns = 0;                    ///< the sender's wall clock (H1); 0: not told

  friend bool operator==(const Beat&, const Beat&) = default;
};

/// A topology version as the cluster keeps it: the text of its file, and its stores by their
/// numbers when it was proposed: these may vote at once in registers that they newly join (J1, J2).
struct TopologyVersion {
  std::uint64_t version = 0;
  std::string document;
  std::vector<StoreMark> listed;
  /// Grows with each recovery from a lost majority (C4), and since which version it holds.
  std::uint64_t generation = 0;
  std::uint64_t generation_began = 0;

  friend bool operator==(const TopologyVersion&, const TopologyVersion&) = default;
};

/// What a node knows of the cluster's shape, and the record of the register `topology`: the last
/// finished version and the one under way.
struct TopologyState {
  TopologyVersion finished;
  std::optional<TopologyVersion> next;

  /// Twice the finished version, one more while another is under way; orders states.
  std::uint64_t stage() const { return 2 * finished.version + (next ? 1 : 0); }
  /// The highest stage that a register may be in.
  std::uint64_t last_stage() const { return next ? 2 * next->version : 2 * finished.version; }

  friend bool operator==(const TopologyState&, const TopologyState&) = default;
};
std::string encode(const TopologyState& state);
Result<TopologyState> decode_topology_state(std::string_view bytes);

/// A committed state, told to a node that knows an earlier one.
struct TopologyNews {
  TopologyState state;

  friend bool operator==(const TopologyNews&, const TopologyNews&) = default;
};

/// While `version` is under way: the registers of which the sender has a state that is not marked
/// as moved yet. Whoever owns the register `topology` finishes the version when no register is
/// left.
struct Unmarked {
  std::uint64_t version = 0;
  std::uint64_t count = 0;
  std::vector<RegisterId> registers;  ///< all `count`, or none when they are too many
  std::vector<std::string> moved;     ///< customers whose change of register is done (J3)

  friend bool operator==(const Unmarked&, const Unmarked&) = default;
};

/// Buckets of a customer whose register changes with `version`, as its old register's owner has
/// committed them as moved; the new one's owner commits them in `reg` (PROTOCOL J3).
struct MoveOver {
  RegisterId reg;
  std::uint64_t version = 0;
  std::string customer;
  std::uint64_t token = 0;
  std::vector<AgedRecord> records;

  friend bool operator==(const MoveOver&, const MoveOver&) = default;
};
struct MovedOver {
  RegisterId reg;
  std::uint64_t version = 0;
  std::string customer;
  std::uint64_t token = 0;

  friend bool operator==(const MovedOver&, const MovedOver&) = default;
};

/// What a replica has promised and joined in one register. Stored as a whole, small; the format is
/// for ever: varints and counted texts as in BucketKey, first a format number (1).
struct RegisterState {
  Epoch promise;
  bool votes = false;
  std::uint64_t generation = 0;
  std::vector<StoreMark> first_start;  ///< the list that it joined (C3)
  std::vector<StoreMark> known;        ///< store numbers noted with promises (C2); never lowered
  std::uint64_t stage = 0;             ///< the highest under which it has promised (J2)

  friend bool operator==(const RegisterState&, const RegisterState&) = default;
};
std::string encode(const RegisterState& state);
Result<RegisterState> decode_register_state(std::string_view bytes);

/// The key of a register in a store's meta values: "register/" and the register; parsed back by the
/// second.
inline constexpr std::string_view kRegisterMetaPrefix = "register/";
std::string meta_key(const RegisterId& reg);
std::optional<RegisterId> register_of_meta_key(std::string_view key);

/// Bytes of a record on the wire and on disk, estimated from above.
std::size_t record_bytes(const std::string& bucket, const LedgerRecord& ledger);

using RegisterMessage =
    std::variant<Prepare, Promise, Read, ReadReply, Accept, Accepted, Poll, PollReply, Scan,
                 ScanReply, Install, Installed, HandOver, Release, Claims, Beat, TopologyNews,
                 Unmarked, MoveOver, MovedOver>;

}  // namespace weir
