// Cluster frames: what one node says to another in one message <-> bytes of weir.v1.Envelope. The
// format is for ever (test/vectors/envelopes.txt). Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/activity.h"
#include "src/model/ids.h"
#include "src/model/lease.h"
#include "src/model/register.h"

namespace weir::codec {

/// Largest frame. `encode_frames` splits what is larger; a larger one is refused on receipt.
inline constexpr std::size_t kMaxFrameBytes = 4 * 1024 * 1024;
/// Most requests, answers, queries, replies and register messages in one frame, together. As above.
inline constexpr std::size_t kMaxItemsPerFrame = 16 * 1024;
/// Longest piece of a policy. A longer one is refused.
inline constexpr std::size_t kMaxPolicyPieceBytes = 256 * 1024;
/// Longest policy that is told, as long as the longest file that is read. Nobody asks on after
/// that.
inline constexpr std::uint64_t kMaxPolicyBytes = 64 * 1024 * 1024;
/// Most buckets of one OwnerReply. The encoder leaves out the rest.
inline constexpr std::size_t kMaxBucketsPerReply = 128;
/// Longest OwnerReply::error, bytes. The encoder leaves out a longer one's end.
inline constexpr std::size_t kMaxReplyErrorBytes = 1024;
/// Longest encoded bucket key: customer, region, limit and eight attributes at their limits.
inline constexpr std::size_t kMaxBucketBytes = 16 * 1024;

/// The first message on a connection, and again after a restart.
struct Hello {
  std::string node;
  std::uint64_t incarnation = 0;  ///< of the process
  std::string region;
  bool edge = false;
  bool owner = false;
  std::uint64_t topology_version = 0;
  std::uint64_t topology_hash = 0;

  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Heartbeat {
  std::uint64_t sequence = 0;
  Nanos sent_ns = 0;        ///< sender's boot clock
  Nanos echo_ns = 0;        ///< sent_ns of the newest heartbeat from the other side; 0: none yet
  Nanos echo_delay_ns = 0;  ///< how long ago that was received
  std::uint32_t live_edges = 0;      ///< edges that the sender has heard lately
  std::uint64_t policy_version = 0;  ///< in force at the sender; 0: none
  std::uint64_t policy_hash = 0;     ///< of its text

  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// The policy on its way to a node that has an older one: each piece is asked for, so that no more
/// than one is ever on its way (PROTOCOL J4).
struct PolicyMessage {
  enum class Kind : std::uint8_t { ask = 1, piece = 2 };
  Kind kind = Kind::ask;
  std::uint64_t version = 0;  ///< ask: of what came before, 0 when nothing did
  std::uint64_t hash = 0;     ///< likewise
  std::uint64_t offset = 0;   ///< bytes of the text before this piece
  std::uint64_t total = 0;    ///< piece: bytes of the whole text
  std::string text = {};      ///< piece: at most kMaxPolicyPieceBytes

  friend bool operator==(const PolicyMessage&, const PolicyMessage&) = default;
};

/// A question about one customer for its owner.
struct OwnerQuery {
  enum class Kind : std::uint8_t { describe = 1, kill = 2 /* chaos only */, propose = 3 };
  std::uint64_t id = 0;  ///< chosen by the asker, repeated in the reply
  RegisterId reg;
  std::string customer;
  Kind kind = Kind::describe;
  std::uint64_t version = 0;  ///< propose: of the topology, with its text
  std::string document = {};

  friend bool operator==(const OwnerQuery&, const OwnerQuery&) = default;
};

struct LesseeDescription {
  std::string node;
  std::int64_t outstanding = 0;    ///< tokens
  std::int64_t expires_in_ms = 0;  ///< not negative
  bool relay = false;

  friend bool operator==(const LesseeDescription&, const LesseeDescription&) = default;
};

struct BucketDescription {
  std::string bucket;  ///< encoded BucketKey
  std::int64_t capacity = 0;
  std::int64_t level = 0;
  std::int64_t outstanding = 0;
  std::int64_t reset_ms = 0;
  std::int64_t next_token_ms = 0;
  std::vector<LesseeDescription> lessees;  ///< at most kMaxLesseesPerRecord

  friend bool operator==(const BucketDescription&, const BucketDescription&) = default;
};

struct OwnerReply {
  std::uint64_t id = 0;
  bool found = false;
  std::string error;  ///< for a person; empty when there is none
  std::string node;   ///< who answered as the owner; may be empty
  Epoch epoch;
  std::vector<BucketDescription> buckets;
  bool not_owner = false;       ///< ask `owner_hint`, if it is not empty
  std::string owner_hint = {};  ///< node
  bool forbidden = false;       ///< `error` says why

  friend bool operator==(const OwnerReply&, const OwnerReply&) = default;
};

struct Envelope {
  std::string from;  ///< node
  std::string to;    ///< node; empty in a Hello to a peer whose name is not known yet
  std::uint64_t from_incarnation = 0;
  std::uint64_t topology_version = 0;
  std::optional<Hello> hello;
  std::optional<Heartbeat> heartbeat;
  std::vector<LeaseRequest> lease_requests;
  std::vector<LeaseAnswer> lease_answers;
  std::vector<OwnerQuery> owner_queries;
  std::vector<OwnerReply> owner_replies;
  std::vector<RegisterMessage> register_messages;  ///< between owner nodes only
  std::vector<PolicyMessage> policy_messages;
  std::vector<ActivityReport> activity_reports;  ///< from edges

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

/// One frame. The caller knows that the envelope is small (`encode_frames` otherwise).
std::string encode_envelope(const Envelope& envelope);

/// As many frames as it takes to stay within kMaxFrameBytes and kMaxItemsPerFrame, at least one,
/// items in their order. Hello and heartbeat are in the first.
std::vector<std::string> encode_frames(const Envelope& envelope);

/// Refuses (ErrorCode::corrupt; above the limits: too_large) the whole frame when its bytes were
/// cut or altered, its format is unknown, or any item holds what no node could have said: an
/// unknown enum value, a negative amount, a slot out of range, bytes that are no bucket key, a name
/// that is empty or too long. The error's field names the item.
Result<Envelope> decode_envelope(std::string_view bytes);

}  // namespace weir::codec
