#include "src/ownership/host.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/base/assert.h"

namespace weir::ownership {
namespace {

/// A node that has not been heard for so many suspicion times is sent nothing that wants an answer.
constexpr Nanos kSilentAfterSuspicions = 2;

}  // namespace

Host::Host(HostConfig config, Replica replica, TopologyState topology, bool assumed,
           MakeView make_view, Random random, Nanos now_ns)
    : config_(std::move(config)),
      replica_(std::move(replica)),
      topology_(std::move(topology)),
      assumed_(assumed),
      make_view_(std::move(make_view)),
      random_(random) {
  auto view = make_view_(topology_);
  WEIR_ASSERT(view.has_value());
  view_ = std::move(*view);
  owner_nodes_ = view_->owner_nodes();
  replica_.set_floor(2 * topology_.finished.version, topology_.stage());
  merge_marks(known_, {replica_.own()});
  merge_marks(known_, {{config_.self, config_.previous_number}});
  for (const auto& [reg, state] : replica_.states()) {
    merge_marks(known_, state.known);
    serve(reg, now_ns);
  }
  for (const RegisterId& reg : view_->registers(config_.self)) place_of(reg, now_ns);
}

Host::Places::value_type& Host::place_of(const RegisterId& reg, Nanos now_ns) {
  const auto found = places_.find(reg);
  if (found != places_.end()) return *found;
  const auto number = static_cast<std::uint32_t>(places_.size());
  SeatConfig config = config_.seat;
  config.settled_ns += number * kHandOverSpacingNs;
  Seat seat(reg, config_.self, config_.incarnation, config, Random(random_.next()), now_ns);
  auto& place = *places_.try_emplace(reg, Place{std::move(seat), number}).first;
  Seat::Effects none;
  place.second.seat.set_layout(layout_of(reg), now_ns, none);
  requeue(place.second);
  return place;
}

/// The place of a register that this node has a part in, made when it is first heard of: registers
/// of regions without owner nodes are in no list. end(): it has none.
Host::Places::iterator Host::serve(const RegisterId& reg, Nanos now_ns) {
  const auto found = places_.find(reg);
  if (found != places_.end() || places_.size() >= kMaxRegistersPerNode) return found;
  if (!layout_of(reg).quorums.contains(config_.self)) return found;
  place_of(reg, now_ns);
  return places_.find(reg);
}

const Seat* Host::seat(const RegisterId& reg) const {
  const auto found = places_.find(reg);
  return found == places_.end() ? nullptr : &found->second.seat;
}

bool Host::owns(const RegisterId& reg) const { return owned_.contains(reg); }

void Host::requeue(Place& place) {
  if (place.seat.trying() != place.trying) {
    place.trying = place.seat.trying();
    place.trying ? ++trying_ : --trying_;
  }
  if (place.seat.phase() != Seat::Phase::idle) place.waits = false;
  if (place.waits) return;
  const Nanos deadline_ns = place.seat.next_deadline();
  if (deadline_ns == place.queued_ns) return;
  if (place.queued_ns != kForever) queue_.erase({place.queued_ns, &place});
  if (deadline_ns != kForever) queue_.emplace(deadline_ns, &place);
  place.queued_ns = deadline_ns;
}

void Host::wake(const RegisterId& reg, Nanos now_ns) {
  const auto found = places_.find(reg);
  if (found == places_.end()) return;
  found->second.seat.wake(now_ns);
  requeue(found->second);
}

void Host::wake_owned(Nanos now_ns) {
  for (const auto& [reg, counter] : owned_) wake(reg, now_ns);
}

/// The claim with the highest epoch counts; it is as fresh as its node's last beat, or gone at once
/// when that node no longer makes it.
Seat::Claim Host::claim_of(const RegisterId& reg) const {
  Seat::Claim claim;
  const auto found = claims_.find(reg);
  if (found == claims_.end()) return claim;
  for (const auto& [node, counter] : found->second) {
    if (std::tie(counter, node) < std::tie(claim.counter, claim.node)) continue;
    claim = {node, counter, peers_.at(node).beat_ns};
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

bool Host::silent(const std::string& node, Nanos now_ns) const {
  const auto peer = peers_.find(node);
  return peer == peers_.end() || peer->second.incarnation == 0 ||
         now_ns - peer->second.heard_ns >= kSilentAfterSuspicions * config_.seat.suspicion_ns;
}

/// Delivers what is addressed to this node and hands the rest over, until nothing is left. Nobody
/// hears the answer of a silent node; a release wants none.
void Host::drain(Nanos now_ns, Effects& out) {
  while (!inbox_.empty()) {
    auto [to, message] = std::move(inbox_.front());
    inbox_.pop_front();
    if (to == config_.self) {
      handle(config_.self, message, now_ns, out);
    } else if (!silent(to, now_ns) || std::holds_alternative<Release>(message)) {
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
    for (const std::uint64_t ticket : last->second.tickets) tickets_.erase(ticket);
  }
  owners_.erase(first, last);
}

void Host::take_seat(Places::value_type& place, Seat::Effects&& did, Nanos now_ns, Effects& out) {
  auto& [reg, at] = place;
  for (auto& [to, message] : did.send) {
    if (std::holds_alternative<Release>(message)) {
      at.successor = to;
      at.released_ns = now_ns;
    }
    std::visit(
        [&](auto& what) {
          if constexpr (requires { what.stage; }) {
            if (what.stage == 0) what.stage = at.seat.stage();
          }
        },
        message);
    route(to, std::move(message));
  }
  if (did.deposed) {
    ++generation_;
    owned_.erase(reg);
    stop_owners(reg, out);
    out.lost.push_back(reg);
  }
  if (did.activated) {
    at.predecessor.clear();
    ++generation_;
    owned_[reg] = at.seat.epoch().counter;
    if (!at.last_owner.empty()) ++takeovers_;
    out.taken.push_back(reg);
  }
  if (reg == kTopologyRegister && (did.deposed || did.activated)) leads_ = false;
  take_results(did, now_ns, out);
  requeue(place.second);
  if (did.activated || did.deposed) answer_held(reg, now_ns, out);
  if (did.activated && reg == kTopologyRegister) lead(now_ns, out);
  if (did.behind > at.seat.stage()) catch_up(place, did.behind, now_ns, out);
}

void Host::take_results(Seat::Effects& did, Nanos now_ns, Effects& out) {
  const auto take = [this](std::uint64_t number) {
    auto ticket = tickets_.extract(number);
    if (ticket) {
      const auto running = owners_.find(ticket.mapped().key);
      if (running != owners_.end()) std::erase(running->second.tickets, number);
    }
    return ticket;
  };
  for (Seat::Listed& listed : did.listed) listed_customer(listed, now_ns, out);
  for (const std::uint64_t number : did.committed) {
    if (committed_move(number, now_ns)) continue;
    const auto ticket = take(number);
    if (!ticket) continue;
    const Ticket& done = ticket.mapped();
    if (done.key.reg == kTopologyRegister) {
      committed_topology(now_ns, out);
      continue;
    }
    out.commits.push_back(now_ns - done.since_ns);
    out.owners.push_back(OwnerEvent{done.key, done.activation, Owner::Committed{done.commit}});
  }
  for (Seat::Loaded& loaded : did.loaded) {
    const auto ticket = take(loaded.ticket);
    if (!ticket) continue;
    Ticket& done = ticket.mapped();
    if (done.key.reg == kTopologyRegister) {
      loaded_topology(loaded.record, now_ns, out);
      continue;
    }
    out.owners.push_back(
        OwnerEvent{done.key, done.activation,
                   Owner::Loaded{std::move(done.bucket), std::move(loaded.record)}});
  }
}

void Host::message(const std::string& from, const RegisterMessage& message, Nanos now_ns,
                   Effects& out) {
  handle(from, message, now_ns, out);
  drain(now_ns, out);
  probe_writes(out, now_ns);
}

void Host::handle(const std::string& from, const RegisterMessage& message, Nanos now_ns,
                  Effects& out) {
  if (foreign(message)) return;
  Replica::Effects did;
  const auto to_seat = [&](const auto& what) {
    const auto found = places_.find(what.reg);
    if (found == places_.end()) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(what)>, Release>) {
      // A late one: somebody else has owned the register since.
      if (what.epoch.counter < claim_of(what.reg).counter) return;
      found->second.predecessor = from;
    }
    Seat::Effects seat_did;
    found->second.seat.on(from, what, now_ns, seat_did);
    take_seat(*found, std::move(seat_did), now_ns, out);
  };
  std::visit(
      [&](const auto& what) {
        using T = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<T, Prepare>) {
          const auto place = serve(what.reg, now_ns);
          replica_.prepare(from, what, did);
          if (place != places_.end() && replica_.state(what.reg).promise == what.epoch) {
            place->second.promised_ns = now_ns;
          }
        } else if constexpr (std::is_same_v<T, Read>) {
          replica_.read(from, what, did);
        } else if constexpr (std::is_same_v<T, Accept>) {
          replica_.accept(from, what, did);
          if (const auto at = places_.find(what.reg); at != places_.end()) {
            at->second.accepted_ns = now_ns;
          }
        } else if constexpr (std::is_same_v<T, Scan>) {
          replica_.scan(from, what, did);
        } else if constexpr (std::is_same_v<T, Install>) {
          replica_.install(from, what, did);
        } else if constexpr (std::is_same_v<T, Poll>) {
          on_poll(from, what, now_ns);
        } else if constexpr (std::is_same_v<T, Claims>) {
          on_claims(from, what, now_ns, out);
        } else if constexpr (std::is_same_v<T, Beat>) {
          on_beat(from, what, now_ns, out);
        } else if constexpr (std::is_same_v<T, TopologyNews>) {
          adopt(what.state, now_ns, out);
        } else if constexpr (std::is_same_v<T, Unmarked>) {
          reports_[from] = what;
        } else if constexpr (std::is_same_v<T, MoveOver>) {
          on_move(from, what, now_ns, out);
        } else if constexpr (std::is_same_v<T, MovedOver>) {
          on_moved(what, now_ns, out);
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
    // Somebody else is about to own it: two who try at once only depose each other.
    const auto place = places_.find(poll.reg);
    if (place != places_.end() && reply.highest.node != from &&
        now_ns - place->second.promised_ns < attempt_ns(now_ns)) {
      reply.misses = false;
    }
  }
  route(from, reply);
}

void Host::on_claims(const std::string& from, const Claims& claims, Nanos now_ns, Effects& out) {
  Peer& peer = peers_[from];
  if (claims.incarnation != peer.incarnation || claims.generation < peer.generation) return;
  peer.generation = claims.generation;
  Owned owned = claims.owned;
  std::sort(owned.begin(), owned.end());
  set_claims(from, peer, std::move(owned), now_ns, out);
}

/// Both lists are in order: what stands in one only has changed.
void Host::set_claims(const std::string& node, Peer& peer, Owned owned, Nanos now_ns,
                      Effects& out) {
  Owned gone;
  Owned come;
  std::set_difference(peer.owned.begin(), peer.owned.end(), owned.begin(), owned.end(),
                      std::back_inserter(gone));
  std::set_difference(owned.begin(), owned.end(), peer.owned.begin(), peer.owned.end(),
                      std::back_inserter(come));
  peer.owned = std::move(owned);
  for (const auto& [reg, counter] : gone) {
    const auto claim = claims_.find(reg);
    if (claim == claims_.end()) continue;
    std::erase(claim->second, std::pair(node, counter));
    if (claim->second.empty()) claims_.erase(claim);
  }
  for (const auto& [reg, counter] : come) claims_[reg].emplace_back(node, counter);
  for (const auto& [reg, counter] : gone) claim_changed(reg, now_ns, out);
  for (const auto& [reg, counter] : come) {
    const auto place = places_.find(reg);
    if (place != places_.end()) place->second.last_owner = node;
    claim_changed(reg, now_ns, out);
  }
}

void Host::claim_changed(const RegisterId& reg, Nanos now_ns, Effects& out) {
  wake(reg, now_ns);
  answer_held(reg, now_ns, out);
}

void Host::on_beat(const std::string& from, const Beat& beat, Nanos now_ns, Effects& out) {
  Peer& peer = peers_[from];
  // It may have missed what was asked of it.
  if (peer.incarnation != beat.incarnation || silent(from, now_ns)) wake_owned(now_ns);
  if (peer.incarnation != beat.incarnation) {
    // Another process: what the old one claimed is no longer claimed.
    set_claims(from, peer, {}, now_ns, out);
    peer = Peer{};
    peer.incarnation = beat.incarnation;
  }
  peer.heard_ns = now_ns;
  // Until its list has come, an unknown generation renews nothing.
  const bool was_stale = now_ns - peer.beat_ns >= config_.seat.suspicion_ns;
  if (beat.claims_generation == peer.generation) {
    peer.beat_ns = now_ns;
    peer.stale = false;
    // What it owns has an owner again.
    if (was_stale) answer_all_held(now_ns, out);
  }
  peer.knows_generation = beat.claims_seen;
  if (beat.wall_ns > 0) peer.wall_ahead_ns = subtract_saturating(beat.wall_ns, now_ns);
  const std::vector<StoreMark> before = known_;
  merge_marks(known_, beat.known);
  merge_marks(known_, {{from, beat.store}});
  if (known_ != before) wake_owned(now_ns);
  if (!assumed_ && beat.topology_stage < topology_.stage()) {
    route(from, TopologyNews{topology_});
  }
  number_store(out);
}

/// A beat every now and then; a changed list of claims soon, and again until it is echoed.
void Host::send_beats(Nanos now_ns, Effects& out) {
  const bool beats = now_ns - beaten_ns_ >= config_.beat_every_ns;
  const bool news =
      told_generation_ != generation_ && now_ns - claimed_ns_ >= config_.claims_every_ns;
  if (!beats && !news) return;
  beaten_ns_ = claimed_ns_ = now_ns;
  told_generation_ = generation_;
  Claims claims;
  claims.generation = generation_;
  claims.incarnation = config_.incarnation;
  std::set<std::string> nodes(owner_nodes_.begin(), owner_nodes_.end());
  // Nodes that are about to join, or have left, hear of the topology, too.
  for (const auto& [node, peer] : peers_) {
    if (!silent(node, now_ns)) nodes.insert(node);
  }
  for (const std::string& node : nodes) {
    if (node == config_.self) continue;
    Peer& peer = peers_.try_emplace(node).first->second;
    if (peer.knows_generation != generation_) {
      if (claims.owned.empty()) claims.owned.assign(owned_.begin(), owned_.end());
      out.send.emplace_back(node, claims);
    }
    Beat beat;
    beat.incarnation = config_.incarnation;
    beat.store = replica_.own().number;
    beat.claims_generation = generation_;
    beat.claims_seen = peer.generation;
    beat.known = known_;
    beat.topology_stage = assumed_ ? 0 : topology_.stage();
    if (wall_ahead_ns_) beat.wall_ns = std::max<Nanos>(0, now_ns + *wall_ahead_ns_);
    out.send.emplace_back(node, std::move(beat));
  }
  drop_held(now_ns);
}

bool Host::in_use(const Places::value_type& place, Nanos now_ns) const {
  return now_ns - place.second.accepted_ns < kInUseNs || held_.contains(place.first);
}

/// Wakes, once, those who follow the claims of a node that has not renewed them.
void Host::find_stale_claims(Nanos now_ns) {
  for (auto& [node, peer] : peers_) {
    if (peer.stale || now_ns - peer.beat_ns < config_.seat.suspicion_ns) continue;
    peer.stale = true;
    for (const auto& [reg, counter] : peer.owned) wake(reg, now_ns);
  }
}

/// Those whose turn to try has come, and those whose deadline has.
std::vector<Host::Places::value_type*> Host::due(Nanos now_ns) {
  std::vector<Places::value_type*> due;
  for (std::size_t free = kMaxAttempts - std::min(trying_, kMaxAttempts); free > 0; --free) {
    while (!waiting_.empty() && !waiting_.front()->waits) waiting_.pop_front();
    if (waiting_.empty()) break;
    waiting_.front()->waits = false;
    due.push_back(&*places_.find(waiting_.front()->seat.reg()));
    waiting_.pop_front();
  }
  for (const auto& [deadline_ns, place] : queue_) {
    if (deadline_ns > now_ns || due.size() >= kMaxSeatsPerTick) break;
    due.push_back(&*places_.find(place->seat.reg()));
  }
  return due;
}

void Host::tick(Nanos now_ns, Effects& out) {
  number_store(out);
  find_stale_claims(now_ns);
  start_moves(now_ns, out);
  release_some(now_ns, out);
  for (Places::value_type* place : due(now_ns)) {
    Seat& seat = place->second.seat;
    if (seat.phase() == Seat::Phase::idle && trying_ >= kMaxAttempts) {
      place->second.waits = true;
      waiting_.push_back(&place->second);
      if (place->second.queued_ns != kForever) {
        queue_.erase({place->second.queued_ns, &place->second});
        place->second.queued_ns = kForever;
      }
      continue;
    }
    Seat::Effects did;
    seat.set_attempt(attempt_ns(now_ns));
    seat.set_in_use(in_use(*place, now_ns));
    seat.tick(claim_of(place->first), known_, now_ns, did);
    take_seat(*place, std::move(did), now_ns, out);
  }
  move_customers(now_ns, out);
  report_unmarked(now_ns, out);
  finish_topology(now_ns, out);
  drain(now_ns, out);
  send_beats(now_ns, out);
}

Nanos Host::next_deadline() const {
  if (!waiting_.empty() && trying_ < kMaxAttempts) return INT64_MIN / 2;
  Nanos next_ns = add_saturating(beaten_ns_, config_.beat_every_ns);
  if (!to_move_.empty()) next_ns = std::min(next_ns, add_saturating(moves_ns_, kMovesEveryNs));
  if (!to_release_.empty()) {
    next_ns = std::min(next_ns, add_saturating(releases_ns_, kReleasesEveryNs));
  }
  if (told_generation_ != generation_) {
    next_ns = std::min(next_ns, add_saturating(claimed_ns_, config_.claims_every_ns));
  }
  for (const auto& [node, peer] : peers_) {
    if (peer.stale || peer.owned.empty()) continue;
    next_ns = std::min(next_ns, add_saturating(peer.beat_ns, config_.seat.suspicion_ns));
  }
  return queue_.empty() ? next_ns : std::min(next_ns, queue_.begin()->first);
}

void Host::owner_did(const OwnerKey& key, std::uint64_t activation, Owner::Effects&& did,
                     Nanos now_ns, Effects& out) {
  const auto running = owners_.find(key);
  if (running == owners_.end() || running->second.activation != activation) return;
  std::move(did.answers.begin(), did.answers.end(), std::back_inserter(out.answers));
  auto& place = *places_.find(key.reg);
  Seat& seat = place.second.seat;
  Seat::Effects seat_did;
  bool ends = did.resign || did.passive;
  const auto open = [&](std::uint64_t commit, const std::string& bucket) {
    tickets_[++ticket_] = {key, activation, commit, bucket, now_ns};
    running->second.tickets.push_back(ticket_);
    return ticket_;
  };
  for (const std::string& bucket : did.loads) seat.load(open(0, bucket), bucket, now_ns, seat_did);
  if (did.commit) {
    const std::uint64_t ticket = open(did.commit->id, {});
    if (!seat.submit(ticket, std::move(did.commit->records), now_ns, seat_did)) ends = true;
  }
  if (ends) {
    out.owners.push_back(OwnerStop{key, activation});
    owner_died(key, activation);
  }
  take_seat(place, std::move(seat_did), now_ns, out);
  drain(now_ns, out);
}

std::size_t Host::registers_incomplete() const {
  return static_cast<std::size_t>(std::count_if(
      owned_.begin(), owned_.end(),
      [this](const auto& owned) { return !places_.at(owned.first).seat.complete(); }));
}

std::optional<std::uint64_t> Host::activation_of(const OwnerKey& key) const {
  const auto running = owners_.find(key);
  if (running == owners_.end()) return std::nullopt;
  return running->second.activation;
}

void Host::owner_died(const OwnerKey& key, std::uint64_t activation) {
  const auto running = owners_.find(key);
  if (running == owners_.end() || running->second.activation != activation) return;
  for (const std::uint64_t ticket : running->second.tickets) tickets_.erase(ticket);
  owners_.erase(running);
}

/// How long a candidate may need: a promise is a write. Where the disk takes longer than an
/// attempt, each attempt would end before its promises come, and the next one would want new ones.
Nanos Host::attempt_ns(Nanos now_ns) const {
  const Nanos waiting_ns = probe_ == 0 ? 0 : now_ns - probed_ns_;
  const Nanos writes_ns = multiply_saturating(kWritesPerAttempt, std::max(write_ns_, waiting_ns));
  return std::max(config_.seat.attempt_ns, std::min(writes_ns, config_.seat.longest_attempt_ns));
}

/// Takes the time of one write after the other.
void Host::probe_writes(const Effects& out, Nanos now_ns) {
  if (probe_ != 0 || out.writes.empty()) return;
  probe_ = out.writes.back().token;
  probed_ns_ = now_ns;
}

void Host::stored(std::uint64_t token, bool ok, Nanos now_ns, Effects& out) {
  if (probe_ != 0 && token >= probe_) {
    write_ns_ = std::max(now_ns - probed_ns_, write_ns_ - write_ns_ / 4);
    probe_ = 0;
  }
  Replica::Effects did;
  if (ok) {
    replica_.stored(token, did);
  } else {
    replica_.failed(token);
  }
  take_replica(std::move(did), out);
  drain(now_ns, out);
}

}  // namespace weir::ownership
