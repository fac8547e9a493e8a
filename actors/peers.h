// What a node knows of the others from their frames alone: who is heard, how far away they are,
// how much of what was sent has arrived. Pure: no clock, no transport; actors/courier.cc drives it.
//
// Nothing true depends on it (PROTOCOL: detectors decide who tries and when): a peer that is not
// heard is reported, and spared frames that would only pile up.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "actors/transport.h"
#include "src/base/time.h"
#include "src/codec/envelope.h"

namespace weir::actors {

inline constexpr Nanos kHeartbeatNs = 100 * kMillisecond;
/// A peer not heard for this long is reported as not connected.
inline constexpr Nanos kPeerSilenceNs = 1 * kSecond;
/// A link not heard for this long is given up for a new connection, again each time as long.
inline constexpr Nanos kSeverNs = 3 * kSecond;
/// An edge heard within this time counts as live (PROTOCOL I3).
inline constexpr Nanos kEdgeLiveNs = 3 * kSecond;
/// A peer without a link and unheard for this long is forgotten, so that edges can come and go.
inline constexpr Nanos kForgetPeerNs = 60 * kSecond;
/// Most bytes on their way to one peer, that it has not echoed. Beyond it frames are dropped: what
/// they asked is asked again.
inline constexpr std::int64_t kMaxUnechoedBytes = 16 * 1024 * 1024;

class PeerTable {
 public:
  /// `self` is what the node says of itself.
  PeerTable(codec::Hello self, std::uint64_t topology_version);

  struct Turn {
    std::vector<codec::Envelope> heartbeats;
    std::vector<std::string> severed;  ///< links to give up
    std::vector<PeerState> changed;    ///< connected or lost; a restart is both
  };

  void set_topology_version(std::uint64_t version) { topology_version_ = version; }
  /// Which policy is in force here.
  void set_policy(std::uint64_t version, std::uint64_t hash) {
    policy_version_ = version;
    policy_hash_ = hash;
  }
  /// The transport has a way to `node`, or none any more.
  void on_link(const std::string& node, bool up, Nanos now_ns, Turn& turn);
  /// Something came from a peer. False: it is not from the process that speaks for that name now.
  bool on_frame(const codec::Envelope& envelope, Nanos now_ns, Turn& turn);
  /// Once each kHeartbeatNs.
  void on_tick(Nanos now_ns, Turn& turn);

  /// Whether `bytes` more may go to `node`, and counts them as sent.
  bool admit(const std::string& node, std::size_t bytes);

  /// The edges heard lately, this node included if it is one; as a maximum with what owners say.
  std::uint32_t live_edges(Nanos now_ns) const;
  std::vector<PeerState> states() const;
  /// Of one peer, or nullptr.
  const PeerState* find(std::string_view node) const;
  /// An envelope to `node` with this node's name and incarnation.
  codec::Envelope address(const std::string& node) const;

 private:
  struct Peer {
    PeerState state;
    bool link = false;
    Nanos link_ns = 0;  ///< when the link came up, was severed, or went
    std::uint64_t sent_sequence = 0;
    std::uint64_t heard_sequence = 0;
    Nanos heard_sent_ns = 0;  ///< sent_ns of the newest heartbeat from there
    Nanos heard_beat_ns = 0;  ///< when that came
    std::uint32_t said_edges = 0;
    std::int64_t sent_bytes = 0;
    std::int64_t echoed_bytes = 0;
    struct Sent {
      Nanos at_ns;
      std::int64_t bytes;  ///< sent before this heartbeat
    };
    std::deque<Sent> unechoed;  ///< heartbeats, oldest first
  };

  void on_hello(Peer& peer, const codec::Hello& hello, Turn& turn);
  void on_heartbeat(Peer& peer, const codec::Heartbeat& heartbeat, Nanos now_ns);
  void set_connected(Peer& peer, bool connected, Turn& turn);
  codec::Envelope heartbeat_to(const std::string& node, Peer& peer, Nanos now_ns);
  std::uint32_t heard_edges(Nanos now_ns) const;

  codec::Hello self_;
  std::uint64_t topology_version_;
  std::uint64_t policy_version_ = 0;
  std::uint64_t policy_hash_ = 0;
  std::map<std::string, Peer, std::less<>> peers_;
};

}  // namespace weir::actors
