#include "actors/peers.h"

#include <algorithm>
#include <utility>

namespace weir::actors {
namespace {

/// Heartbeats remembered until their echo; an older one's echo measures nothing any more.
constexpr std::size_t kMaxUnechoedHeartbeats = 600;
/// Weight of a new sample in the smoothed round trip: one in this many (RFC 6298's gain).
constexpr Nanos kSmoothing = 8;

}  // namespace

PeerTable::PeerTable(codec::Hello self, std::uint64_t topology_version)
    : self_(std::move(self)), topology_version_(topology_version) {}

void PeerTable::set_connected(Peer& peer, bool connected, Turn& turn) {
  if (peer.state.connected == connected) return;
  peer.state.connected = connected;
  turn.changed.push_back(peer.state);
}

void PeerTable::on_link(const std::string& node, bool up, Nanos now_ns, Turn& turn) {
  Peer& peer = peers_[node];
  peer.state.node = node;
  peer.link = up;
  peer.link_ns = now_ns;
  // What was on its way over the old link is gone, and so is the way to measure it.
  peer.unechoed.clear();
  peer.sent_bytes = peer.echoed_bytes = 0;
  if (!up) return set_connected(peer, false, turn);
  turn.heartbeats.push_back(heartbeat_to(node, peer, now_ns));
}

bool PeerTable::on_frame(const codec::Envelope& envelope, Nanos now_ns, Turn& turn) {
  const auto found = peers_.find(envelope.from);
  if (found == peers_.end()) return false;
  Peer& peer = found->second;
  if (envelope.hello) on_hello(peer, *envelope.hello, turn);
  if (envelope.from_incarnation != peer.state.incarnation) return false;
  peer.state.heard_ns = now_ns;
  if (envelope.heartbeat) on_heartbeat(peer, *envelope.heartbeat, now_ns);
  set_connected(peer, peer.link, turn);
  return true;
}

void PeerTable::on_hello(Peer& peer, const codec::Hello& hello, Turn& turn) {
  if (hello.node != peer.state.node) return;
  if (hello.incarnation != peer.state.incarnation) {
    set_connected(peer, false, turn);
    peer.state.incarnation = hello.incarnation;
    peer.state.round_trip_ns = 0;
    peer.heard_sequence = 0;
    peer.heard_sent_ns = peer.heard_beat_ns = 0;
    peer.said_edges = 0;
    peer.unechoed.clear();
    peer.sent_bytes = peer.echoed_bytes = 0;
  }
  peer.state.region = hello.region;
  peer.state.edge = hello.edge;
  peer.state.owner = hello.owner;
}

void PeerTable::on_heartbeat(Peer& peer, const codec::Heartbeat& heartbeat, Nanos now_ns) {
  if (heartbeat.sequence <= peer.heard_sequence) return;
  peer.heard_sequence = heartbeat.sequence;
  peer.heard_sent_ns = heartbeat.sent_ns;
  peer.heard_beat_ns = now_ns;
  peer.said_edges = heartbeat.live_edges;

  bool echoed = false;
  while (!peer.unechoed.empty() && peer.unechoed.front().at_ns <= heartbeat.echo_ns) {
    echoed = peer.unechoed.front().at_ns == heartbeat.echo_ns;
    peer.echoed_bytes = peer.unechoed.front().bytes;
    peer.unechoed.pop_front();
  }
  // Only the first echo of a heartbeat measures: later ones repeat it.
  const Nanos sample_ns = now_ns - heartbeat.echo_ns - heartbeat.echo_delay_ns;
  if (!echoed || sample_ns <= 0) return;
  Nanos& smoothed_ns = peer.state.round_trip_ns;
  smoothed_ns = smoothed_ns == 0 ? sample_ns : smoothed_ns + (sample_ns - smoothed_ns) / kSmoothing;
}

void PeerTable::on_tick(Nanos now_ns, Turn& turn) {
  for (auto it = peers_.begin(); it != peers_.end();) {
    Peer& peer = it->second;
    const Nanos quiet_ns = now_ns - std::max(peer.state.heard_ns, peer.link_ns);
    if (now_ns - peer.state.heard_ns >= kPeerSilenceNs) set_connected(peer, false, turn);
    if (!peer.link && quiet_ns >= kForgetPeerNs) {
      it = peers_.erase(it);
      continue;
    }
    if (peer.link && quiet_ns >= kSeverNs) {
      peer.link_ns = now_ns;
      turn.severed.push_back(it->first);
    } else if (peer.link) {
      turn.heartbeats.push_back(heartbeat_to(it->first, peer, now_ns));
    }
    ++it;
  }
}

codec::Envelope PeerTable::address(const std::string& node) const {
  codec::Envelope envelope;
  envelope.from = self_.node;
  envelope.to = node;
  envelope.from_incarnation = self_.incarnation;
  envelope.topology_version = topology_version_;
  return envelope;
}

/// Each heartbeat carries the hello, so that neither a lost frame nor a restart leaves a peer
/// unknown for longer than a beat.
codec::Envelope PeerTable::heartbeat_to(const std::string& node, Peer& peer, Nanos now_ns) {
  codec::Envelope envelope = address(node);
  envelope.hello = self_;
  codec::Heartbeat& heartbeat = envelope.heartbeat.emplace();
  heartbeat.sequence = ++peer.sent_sequence;
  heartbeat.sent_ns = now_ns;
  heartbeat.live_edges = heard_edges(now_ns);
  heartbeat.policy_version = policy_version_;
  heartbeat.policy_hash = policy_hash_;
  if (peer.heard_beat_ns != 0) {
    heartbeat.echo_ns = peer.heard_sent_ns;
    heartbeat.echo_delay_ns = now_ns - peer.heard_beat_ns;
  }
  peer.unechoed.push_back({now_ns, peer.sent_bytes});
  if (peer.unechoed.size() > kMaxUnechoedHeartbeats) peer.unechoed.pop_front();
  return envelope;
}

bool PeerTable::admit(const std::string& node, std::size_t bytes) {
  const auto found = peers_.find(node);
  if (found == peers_.end() || !found->second.link) return false;
  Peer& peer = found->second;
  const auto more = static_cast<std::int64_t>(bytes);
  if (peer.sent_bytes - peer.echoed_bytes + more > kMaxUnechoedBytes) return false;
  peer.sent_bytes += more;
  return true;
}

std::uint32_t PeerTable::heard_edges(Nanos now_ns) const {
  const auto live = [now_ns](const auto& item) {
    const PeerState& state = item.second.state;
    return state.edge && state.heard_ns != 0 && now_ns - state.heard_ns <= kEdgeLiveNs;
  };
  const auto others = std::count_if(peers_.begin(), peers_.end(), live);
  return static_cast<std::uint32_t>(others) + (self_.edge ? 1U : 0U);
}

std::uint32_t PeerTable::live_edges(Nanos now_ns) const {
  std::uint32_t most = std::max(1U, self_.owner ? heard_edges(now_ns) : 1U);
  for (const auto& [node, peer] : peers_) {
    const bool fresh = peer.heard_beat_ns != 0 && now_ns - peer.heard_beat_ns <= kEdgeLiveNs;
    if (fresh && peer.state.owner) most = std::max(most, peer.said_edges);
  }
  return most;
}

std::vector<PeerState> PeerTable::states() const {
  std::vector<PeerState> states;
  for (const auto& [node, peer] : peers_) states.push_back(peer.state);
  return states;
}

const PeerState* PeerTable::find(std::string_view node) const {
  const auto found = peers_.find(node);
  return found == peers_.end() ? nullptr : &found->second.state;
}

}  // namespace weir::actors
