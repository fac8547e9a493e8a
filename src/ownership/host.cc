#include "src/ownership/host.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/base/assert.h"

namespace weir::ownership {
namespace {

std::string customer_of(std::string_view bucket) {
  const auto length = take_varint(bucket);
  if (!length || *length > bucket.size()) return {};
  return std::string(bucket.substr(0, *length));
}

}  // namespace

Host::Host(HostConfig config, Replica replica, std::vector<RegisterId> registers,
           QuorumsOf quorums_of, std::vector<std::string> owner_nodes, Random random, Nanos now_ns)
    : config_(std::move(config)),
      replica_(std::move(replica)),
      quorums_of_(std::move(quorums_of)),
      owner_nodes_(std::move(owner_nodes)),
      random_(random) {
  merge_marks(known_, {replica_.own()});
  Seat::Effects none;
  for (const RegisterId& reg : registers) {
    merge_marks(known_, replica_.state(reg).known);
    seat_of(reg, now_ns).set_quorums(quorums_of_(reg), now_ns, none);
  }
}

Seat& Host::seat_of(const RegisterId& reg, Nanos now_ns) {
  const auto found = seats_.find(reg);
  if (found != seats_.end()) return found->second;
  return seats_
      .try_emplace(reg, reg, config_.self, config_.incarnation, config_.seat,
                   Random(random_.next()), now_ns)
      .first->second;
}

const Seat* Host::seat(const RegisterId& reg) const {
  const auto found = seats_.find(reg);
  return found == seats_.end() ? nullptr : &found->second;
}

bool Host::owns(const RegisterId& reg) const {
  const Seat* at = seat(reg);
  return at != nullptr && at->active();
}

std::size_t Host::registers_owned() const {
  return static_cast<std::size_t>(std::count_if(
      seats_.begin(), seats_.end(), [](const auto& item) { return item.second.active(); }));
}

/// The claim with the highest epoch counts; it is as fresh as its node's last beat, or stale at
/// once when that node no longer makes it.
Seat::Claim Host::claim_of(const RegisterId& reg) const {
  Seat::Claim claim;
  for (const auto& [node, peer] : peers_) {
    const auto owned = peer.owned.find(reg);
    if (owned == peer.owned.end()) continue;
    if (std::tie(owned->second, node) < std::tie(claim.counter, claim.node)) continue;
    claim = {node, owned->second, peer.beat_ns};
  }
  return claim;
}

std::string Host::owner_of(const RegisterId& reg, Nanos now_ns) const {
  if (owns(reg)) return config_.self;
  const Seat::Claim claim = claim_of(reg);
  return now_ns - claim.renewed_ns < config_.seat.suspicion_ns ? claim.node : std::string();
}

void Host::route(const std::string& to, RegisterMessage message) {
  inbox_.emplace_back(to, std::move(message));
}

/// Delivers what is addressed to this node and hands the rest over, until nothing is left.
void Host::drain(Nanos now_ns, Effects& out) {
  while (!inbox_.empty()) {
    auto [to, message] = std::move(inbox_.front());
    inbox_.pop_front();
    if (to == config_.self) {
      handle(config_.self, message, now_ns, out);
    } else {
      out.send.emplace_back(std::move(to), std::move(message));
    }
  }
}

void Host::take_replica(Replica::Effects&& did, Effects& out) {
  for (Replica::Answer& answer : did.answers) route(answer.to, std::move(answer.message));
  std::move(did.writes.begin(), did.writes.end(), std::back_inserter(out.writes));
}

void Host::stop_owners(const RegisterId& reg, Effects& out) {
  const auto first = owners_.lower_bound(OwnerKey{reg, {}});
  auto last = first;
  for (; last != owners_.end() && last->first.reg == reg; ++last) {
    out.owners.push_back(OwnerStop{last->first, last->second.activation});
  }
  owners_.erase(first, last);
  std::erase_if(tickets_, [&](const auto& item) { return item.second.key.reg == reg; });
}

void Host::take_seat(const RegisterId& reg, Seat::Effects&& did, Nanos now_ns, Effects& out) {
  for (auto& [to, message] : did.send) route(to, std::move(message));
  if (did.deposed) {
    ++generation_;
    stop_owners(reg, out);
    out.lost.push_back(reg);
  }
  if (did.activated) {
    ++generation_;
    out.taken.push_back(reg);
    // Peers hear of it at once: a claim is what keeps them from trying.
    beaten_ns_ = INT64_MIN / 2;
  }
  for (const std::uint64_t ticket : did.committed) {
    const auto found = tickets_.find(ticket);
    if (found == tickets_.end()) continue;
    const Ticket done = std::move(found->second);
    tickets_.erase(found);
    out.owners.push_back(OwnerEvent{done.key, done.activation, Owner::Committed{done.commit}});
  }
  for (Seat::Loaded& loaded : did.loaded) {
    const auto found = tickets_.find(loaded.ticket);
    if (found == tickets_.end()) continue;
    Ticket done = std::move(found->second);
    tickets_.erase(found);
    out.owners.push_back(
        OwnerEvent{done.key, done.activation,
                   Owner::Loaded{std::move(done.bucket), std::move(loaded.record)}});
  }
  static_cast<void>(now_ns);
}

void Host::message(const std::string& from, const RegisterMessage& message, Nanos now_ns,
                   Effects& out) {
  handle(from, message, now_ns, out);
  drain(now_ns, out);
}

void Host::handle(const std::string& from, const RegisterMessage& message, Nanos now_ns,
                  Effects& out) {
  Replica::Effects did;
  const auto to_seat = [&](const auto& what) {
    const auto found = seats_.find(what.reg);
    if (found == seats_.end()) return;
    Seat::Effects seat_did;
    found->second.on(from, what, now_ns, seat_did);
    take_seat(what.reg, std::move(seat_did), now_ns, out);
  };
  std::visit(
      [&](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<T, Prepare>) {
          replica_.prepare(from, what, did);
        } else if constexpr (std::is_same_v<T, Read>) {
          replica_.read(from, what, did);
        } else if constexpr (std::is_same_v<T, Accept>) {
          replica_.accept(from, what, did);
        } else if constexpr (std::is_same_v<T, Scan>) {
          replica_.scan(from, what, did);
        } else if constexpr (std::is_same_v<T, Install>) {
          replica_.install(from, what, did);
        } else if constexpr (std::is_same_v<T, Poll>) {
          on_poll(from, what, now_ns);
        } else if constexpr (std::is_same_v<T, Claims>) {
          on_claims(from, what);
        } else if constexpr (std::is_same_v<T, Beat>) {
          on_beat(from, what, now_ns, out);
        } else {
          to_seat(what);
        }
      },
      message);
  take_replica(std::move(did), out);
}

/// Does this node miss the owner that its promise names? Only that owner's own claim counts (B8).
void Host::on_poll(const std::string& from, const Poll& poll, Nanos now_ns) {
  PollReply reply;
  reply.reg = poll.reg;
  reply.token = poll.token;
  reply.highest = replica_.state(poll.reg).promise;
  if (owns(poll.reg)) {
    reply.owner = config_.self;
  } else {
    const Seat::Claim claim = claim_of(poll.reg);
    const bool fresh = now_ns - claim.renewed_ns < config_.seat.suspicion_ns;
    const bool named = claim.counter == reply.highest.counter && claim.node == reply.highest.node;
    reply.misses = !fresh || !named;
    if (!reply.misses) reply.owner = claim.node;
  }
  route(from, reply);
}

void Host::on_claims(const std::string& from, const Claims& claims) {
  Peer& peer = peers_[from];
  if (claims.generation < peer.generation) return;
  peer.generation = claims.generation;
  peer.owned.clear();
  for (const auto& [reg, counter] : claims.owned) peer.owned[reg] = counter;
}

void Host::on_beat(const std::string& from, const Beat& beat, Nanos now_ns, Effects& out) {
  Peer& peer = peers_[from];
  if (peer.incarnation != beat.incarnation) {
    // Another process: what the old one claimed is no longer claimed.
    peer = Peer{};
    peer.incarnation = beat.incarnation;
  }
  // Until its list has come, an unknown generation renews nothing.
  if (beat.claims_generation == peer.generation) peer.beat_ns = now_ns;
  peer.knows_generation = beat.claims_seen;
  merge_marks(known_, beat.known);
  merge_marks(known_, {{from, beat.store}});
  number_store(out);
}

/// A store without a number takes the one above what a majority of its peers knows of it (C2).
void Host::number_store(Effects& out) {
  if (replica_.own().number != 0 || numbering_) return;
  std::size_t heard = 0;
  std::size_t others = 0;
  for (const std::string& node : owner_nodes_) {
    if (node == config_.self) continue;
    ++others;
    // Only a beat sets an incarnation: a peer that was merely sent to has said nothing.
    const auto peer = peers_.find(node);
    if (peer != peers_.end() && peer->second.incarnation != 0) ++heard;
  }
  if (others > 0 && heard * 2 <= others) return;
  numbering_ = true;
  out.number = number_of(known_, config_.self) + 1;
  replica_.set_number(out.number);
}

void Host::numbered(Nanos now_ns, Effects& out) {
  merge_marks(known_, {replica_.own()});
  beaten_ns_ = INT64_MIN / 2;
  tick(now_ns, out);
}

void Host::send_beats(Nanos now_ns, Effects& out) {
  if (now_ns - beaten_ns_ < config_.beat_every_ns) return;
  beaten_ns_ = now_ns;
  Claims claims;
  claims.generation = generation_;
  for (const auto& [reg, seat] : seats_) {
    if (seat.active()) claims.owned.emplace_back(reg, seat.epoch().counter);
  }
  for (const std::string& node : owner_nodes_) {
    if (node == config_.self) continue;
    Peer& peer = peers_.try_emplace(node).first->second;
    if (peer.knows_generation != generation_) out.send.emplace_back(node, claims);
    Beat beat;
    beat.incarnation = config_.incarnation;
    beat.store = replica_.own().number;
    beat.claims_generation = generation_;
    beat.claims_seen = peer.generation;
    beat.known = known_;
    out.send.emplace_back(node, std::move(beat));
  }
}

void Host::tick(Nanos now_ns, Effects& out) {
  number_store(out);
  for (auto& [reg, seat] : seats_) {
    if (seat.next_deadline() > now_ns) continue;
    Seat::Effects did;
    seat.tick(claim_of(reg), known_, now_ns, did);
    take_seat(reg, std::move(did), now_ns, out);
  }
  drain(now_ns, out);
  send_beats(now_ns, out);
}

Nanos Host::next_deadline() const {
  Nanos next_ns = add_saturating(beaten_ns_, config_.beat_every_ns);
  for (const auto& [reg, seat] : seats_) next_ns = std::min(next_ns, seat.next_deadline());
  return next_ns;
}

LeaseAnswer Host::refusal(const LeaseRequest& request, LeaseStatus status, std::string hint) const {
  LeaseAnswer answer;
  answer.bucket = request.bucket;
  answer.lessee = request.lessee;
  answer.sequence = request.sequence;
  answer.status = status;
  answer.owner_hint = std::move(hint);
  return answer;
}

/// Whoever does not own says who should: the owner it knows, or nobody.
void Host::lease_request(const LeaseRequest& request, Nanos now_ns, Effects& out) {
  const auto seat = seats_.find(request.reg);
  if (seat == seats_.end() || !seat->second.active()) {
    out.answers.push_back(refusal(request, LeaseStatus::not_owner, owner_of(request.reg, now_ns)));
    return;
  }
  const OwnerKey key{request.reg, customer_of(request.bucket)};
  auto running = owners_.find(key);
  if (running == owners_.end()) {
    if (owners_.size() >= config_.max_owners) {
      out.answers.push_back(refusal(request, LeaseStatus::pending, {}));
      return;
    }
    running = owners_.emplace(key, Running{++activations_}).first;
    out.owners.push_back(OwnerStart{key, running->second.activation, seat->second.epoch()});
  }
  out.owners.push_back(OwnerEvent{key, running->second.activation, Owner::Requested{request}});
}

void Host::owner_did(const OwnerKey& key, std::uint64_t activation, Owner::Effects&& did,
                     Nanos now_ns, Effects& out) {
  const auto running = owners_.find(key);
  if (running == owners_.end() || running->second.activation != activation) return;
  std::move(did.answers.begin(), did.answers.end(), std::back_inserter(out.answers));
  Seat& seat = seats_.at(key.reg);
  Seat::Effects seat_did;
  bool ends = did.resign || did.passive;
  for (std::string& bucket : did.loads) {
    tickets_[++ticket_] = {key, activation, 0, bucket};
    seat.load(ticket_, bucket, now_ns, seat_did);
  }
  if (did.commit) {
    tickets_[++ticket_] = {key, activation, did.commit->id, {}};
    if (!seat.submit(ticket_, std::move(did.commit->records), now_ns, seat_did)) ends = true;
  }
  if (ends) {
    out.owners.push_back(OwnerStop{key, activation});
    owner_died(key, activation);
  }
  take_seat(key.reg, std::move(seat_did), now_ns, out);
  drain(now_ns, out);
}

void Host::owner_died(const OwnerKey& key, std::uint64_t activation) {
  const auto running = owners_.find(key);
  if (running == owners_.end() || running->second.activation != activation) return;
  owners_.erase(running);
  std::erase_if(tickets_, [&](const auto& item) { return item.second.activation == activation; });
}

void Host::stored(std::uint64_t token, bool ok, Nanos now_ns, Effects& out) {
  Replica::Effects did;
  if (ok) {
    replica_.stored(token, did);
  } else {
    replica_.failed(token);
  }
  take_replica(std::move(did), out);
  drain(now_ns, out);
}

void Host::set_topology(std::vector<RegisterId> registers, QuorumsOf quorums_of,
                        std::vector<std::string> owner_nodes, Nanos now_ns, Effects& out) {
  quorums_of_ = std::move(quorums_of);
  owner_nodes_ = std::move(owner_nodes);
  for (const RegisterId& reg : registers) seat_of(reg, now_ns);
  for (auto& [reg, seat] : seats_) {
    Seat::Effects did;
    seat.set_quorums(quorums_of_(reg), now_ns, did);
    take_seat(reg, std::move(did), now_ns, out);
  }
  drain(now_ns, out);
}

void Host::retire(Nanos now_ns, Effects& out) {
  for (auto& [reg, seat] : seats_) {
    Seat::Effects did;
    seat.retire(now_ns, did);
    take_seat(reg, std::move(did), now_ns, out);
  }
  drain(now_ns, out);
  beaten_ns_ = INT64_MIN / 2;
  send_beats(now_ns, out);
}

}  // namespace weir::ownership
