// The cluster's shape at one node (PROTOCOL J1, J2): what it knows, whom it tells, and, where the
// register `topology` is owned, how a version starts and ends.

#include <algorithm>
#include <utility>

#include "src/ownership/host.h"

namespace weir::ownership {
namespace {

/// Nodes say how much is left to be moved so often.
constexpr Nanos kReportEveryNs = 500 * kMillisecond;

/// The one record of the register.
const std::string& record_key() {
  static const std::string key = encode(BucketKey{"topology", Scope::global, {}, "topology", {}});
  return key;
}

}  // namespace

Layout Host::layout_of(const RegisterId& reg) const {
  return view_->layout(reg, replica_.state(reg).stage);
}

/// Of a topology version that this node has not heard to be committed: it does not act on that; the
/// news come with the sender's next beat (J1).
bool Host::foreign(const RegisterMessage& message) const {
  return std::visit(
      [this](const auto& what) {
        if constexpr (requires { what.stage; }) return what.stage > topology_.last_stage();
        return false;
      },
      message);
}

/// A replica knows a later stage of the register than its seat.
void Host::catch_up(Places::value_type& place, std::uint64_t stage, Nanos now_ns, Effects& out) {
  if (stage > topology_.last_stage()) return;
  Seat::Effects did;
  place.second.seat.set_layout(view_->layout(place.first, stage), now_ns, did);
  take_seat(place, std::move(did), now_ns, out);
}

/// A committed state. What was assumed from a file gives way to any; else the later one counts.
bool Host::adopt(const TopologyState& state, Nanos now_ns, Effects& out) {
  if (!assumed_ && state.stage() <= topology_.stage()) return false;
  auto view = make_view_(state);
  if (!view) return false;
  topology_ = state;
  assumed_ = false;
  view_ = std::move(*view);
  out.topology = topology_;
  follow(now_ns, out);
  return true;
}

void Host::follow(Nanos now_ns, Effects& out) {
  owner_nodes_ = view_->owner_nodes();
  replica_.set_floor(2 * topology_.finished.version, topology_.stage());
  reports_.clear();
  reported_ns_ = INT64_MIN / 2;
  unmarked_ = 0;
  leaving_customers_.clear();
  moved_customers_.clear();
  taking_.clear();
  for (const RegisterId& reg : view_->registers(config_.self)) place_of(reg, now_ns);
  to_move_.clear();
  moving_.clear();
  for (auto& place : places_) {
    Layout layout = layout_of(place.first);
    if (place.second.seat.active() && layout.joint()) {
      // What is owned goes on as it is until its turn has come; what is in use comes first, before
      // this node and the others are busy with thousands.
      in_use(place, now_ns) ? to_move_.push_front(place.first) : to_move_.push_back(place.first);
      continue;
    }
    Seat::Effects did;
    place.second.seat.set_layout(std::move(layout), now_ns, did);
    take_seat(place, std::move(did), now_ns, out);
  }
}

/// Registers owned here enter the joint phase a few at a time: each stands still for as long as it
/// takes to promise it anew, and all at once would stand still for as long as all take.
void Host::start_moves(Nanos now_ns, Effects& out) {
  if (to_move_.empty() || now_ns - moves_ns_ < kMovesEveryNs) return;
  moves_ns_ = now_ns;
  std::erase_if(moving_, [&](const RegisterId& reg) {
    const Seat::Phase phase = places_.find(reg)->second.seat.phase();
    return phase == Seat::Phase::active || phase == Seat::Phase::idle;
  });
  while (!to_move_.empty() && moving_.size() < kMovesAtOnce) {
    const RegisterId reg = std::move(to_move_.front());
    to_move_.pop_front();
    auto& place = *places_.find(reg);
    Seat::Effects did;
    place.second.seat.set_layout(layout_of(reg), now_ns, did);
    take_seat(place, std::move(did), now_ns, out);
    moving_.insert(reg);
  }
}

/// This node owns the register now: its record says what is committed.
void Host::lead(Nanos now_ns, Effects& out) {
  proposed_.reset();
  auto& place = *places_.find(kTopologyRegister);
  tickets_[++ticket_] = {{kTopologyRegister, {}}, 0, 0, record_key(), now_ns};
  Seat::Effects did;
  place.second.seat.load(ticket_, record_key(), now_ns, did);
  take_seat(place, std::move(did), now_ns, out);
}

/// What was read may be the word of a minority: it is committed once more before anybody acts on
/// it.
void Host::loaded_topology(const Result<std::optional<AgedRecord>>& record, Nanos now_ns,
                           Effects& out) {
  if (!owns(kTopologyRegister) || !record) return;
  if (!record->has_value()) {
    // A cluster that is new: what all its nodes assume becomes its first version.
    commit_topology(topology_, now_ns, out);
    return;
  }
  auto state = decode_topology_state((*record)->record.ledger.document);
  if (!state) return;
  // The record of before a recovery gives way to that.
  const bool older = !assumed_ && state->stage() < topology_.stage();
  commit_topology(older ? topology_ : std::move(*state), now_ns, out);
}

void Host::commit_topology(TopologyState state, Nanos now_ns, Effects& out) {
  LedgerRecord record;
  record.document = encode(state);
  proposed_ = std::move(state);
  tickets_[++ticket_] = {{kTopologyRegister, {}}, 0, 1, {}, now_ns};
  auto& place = *places_.find(kTopologyRegister);
  Seat::Effects did;
  if (!place.second.seat.submit(ticket_, {{record_key(), std::move(record)}}, now_ns, did)) {
    proposed_.reset();
  }
  take_seat(place, std::move(did), now_ns, out);
}

void Host::committed_topology(Nanos now_ns, Effects& out) {
  if (!proposed_) return;
  const TopologyState state = std::move(*proposed_);
  proposed_.reset();
  leads_ = true;
  if (state == topology_ && assumed_) {
    assumed_ = false;
    out.topology = topology_;
    return;
  }
  adopt(state, now_ns, out);
}

Status Host::propose(std::uint64_t version, const std::string& document, Nanos now_ns,
                     Effects& out) {
  const auto same = [&](const TopologyState& state) {
    return state.next && state.next->version == version && state.next->document == document;
  };
  // Asked once more, by whoever has not heard the answer.
  if (leads_ && !assumed_ && (proposed_ ? same(*proposed_) : same(topology_))) return {};
  if (!leads_ || proposed_ || assumed_) {
    return failure(ErrorCode::unavailable, "topology", "not decided at this node now");
  }
  if (topology_.next) {
    return failure(ErrorCode::unavailable, "version",
                   "version " + std::to_string(topology_.next->version) + " is still under way");
  }
  if (version <= topology_.finished.version || version > kMaxTopologyVersion) {
    return failure(ErrorCode::invalid_argument, "version",
                   "must be above " + std::to_string(topology_.finished.version));
  }
  TopologyState state = topology_;
  state.next = TopologyVersion{
      version, document, {}, topology_.finished.generation, topology_.finished.generation_began};
  if (Status all = all_heard(*state.next, now_ns); !all) return all;
  if (Status listed = list_stores(state, *state.next, now_ns); !listed) return listed;
  if (WEIR_MUTANT(version_uncommitted)) adopt(state, now_ns, out);
  commit_topology(std::move(state), now_ns, out);
  return {};
}

/// A version lists the stores of its nodes by their numbers. Of one that is down nobody knows
/// whether it comes back with the store that it had: then the list would name another, and a set
/// with two such stores would have no majority of those that it lists (J2).
Status Host::all_heard(const TopologyVersion& version, Nanos now_ns) const {
  auto view = make_view_(TopologyState{version, {}});
  if (!view) return tl::unexpected(view.error());
  for (const std::string& node : (*view)->owner_nodes()) {
    if (node == config_.self || !silent(node, now_ns)) continue;
    return failure(ErrorCode::invalid_argument, "regions",
                   "node " + node + " is not heard: start it, or leave it out");
  }
  return {};
}

/// The stores of a version (one of `state`'s) by their numbers. A node that is new to the cluster
/// must be heard.
Status Host::list_stores(TopologyState& state, TopologyVersion& version, Nanos now_ns) const {
  auto view = make_view_(state);
  if (!view) return tl::unexpected(view.error());
  for (const std::string& node : (*view)->owner_nodes()) {
    const bool added = !std::binary_search(owner_nodes_.begin(), owner_nodes_.end(), node);
    const std::uint32_t number = number_of(known_, node);
    if (added && (number == 0 || silent(node, now_ns))) {
      return failure(ErrorCode::invalid_argument, "regions",
                     "node " + node + " is not heard: start it before it is added");
    }
    if (number != 0) version.listed.push_back({node, number});
  }
  return {};
}

Status Host::recover(std::uint64_t version, const std::string& document, Nanos now_ns,
                     Effects& out) {
  const std::uint64_t last = topology_.next ? topology_.next->version : topology_.finished.version;
  if (version <= last || version > kMaxTopologyVersion) {
    return failure(ErrorCode::invalid_argument, "version", "must be above " + std::to_string(last));
  }
  TopologyState state;
  state.finished = {version, document, {}, topology_.finished.generation + 1, version};
  if (Status listed = list_stores(state, state.finished, now_ns); !listed) return listed;
  adopt(state, now_ns, out);
  drain(now_ns, out);
  return {};
}

/// R = 1 after amnesia is a new generation by itself (C4).
std::uint64_t Host::generation_of(const RegisterId& reg) const {
  const Quorums quorums = layout_of(reg).quorums;
  const bool alone = quorums.sets.size() == 1 && quorums.sets.front().size() == 1;
  const std::uint64_t wiped = alone && replica_.own().number > 1 ? replica_.own().number - 1 : 0;
  return topology_.finished.generation + wiped;
}

/// What this node stores that has not moved; told to the owner of the register `topology`.
void Host::report_unmarked(Nanos now_ns, Effects& out) {
  if (!topology_.next || assumed_ || now_ns - reported_ns_ < kReportEveryNs) return;
  reported_ns_ = now_ns;
  Unmarked report;
  report.version = topology_.next->version;
  for (const auto& [reg, state] : replica_.states()) {
    const bool touched = state.votes || state.promise != Epoch{};
    if (reg == kTopologyRegister || !touched || !view_->layout(reg, state.stage).joint()) continue;
    ++report.count;
    report.registers.push_back(reg);
  }
  unmarked_ = report.count;
  report.moved.assign(moved_customers_.begin(), moved_customers_.end());
  if (report.count > kMaxUnmarked) report.registers.clear();
  if (leads_) {
    reports_[config_.self] = std::move(report);
    return;
  }
  const std::string owner = owner_of(kTopologyRegister, now_ns);
  if (!owner.empty() && owner != config_.self) route(owner, std::move(report));
  drain(now_ns, out);
}

/// No register is left to be moved: for each, a majority of both sets says so.
bool Host::all_moved() const {
  std::set<RegisterId> registers;
  std::map<std::string, std::set<RegisterId>> left;
  for (const auto& [node, report] : reports_) {
    if (report.version != topology_.next->version) continue;
    if (report.count != report.registers.size()) continue;
    left[node].insert(report.registers.begin(), report.registers.end());
    registers.insert(report.registers.begin(), report.registers.end());
  }
  const auto moved = [&](const RegisterId& reg) {
    std::set<std::string> nodes;
    for (const auto& [node, unmarked] : left) {
      if (!unmarked.contains(reg)) nodes.insert(node);
    }
    return view_->layout(reg, topology_.stage()).quorums.majority(nodes);
  };
  if (!std::all_of(registers.begin(), registers.end(), moved)) return false;
  const auto all = view_->all();
  if (!std::all_of(all.begin(), all.end(), moved)) return false;
  const auto customers = view_->repinned();
  return std::all_of(customers.begin(), customers.end(), [&](const auto& repin) {
    return std::any_of(reports_.begin(), reports_.end(), [&](const auto& item) {
      const Unmarked& report = item.second;
      return report.version == topology_.next->version &&
             std::find(report.moved.begin(), report.moved.end(), repin.customer) !=
                 report.moved.end();
    });
  });
}

/// The version is finished when everything has moved, the register `topology` last (J1).
void Host::finish_topology(Nanos now_ns, Effects& out) {
  if (!leads_ || !topology_.next || proposed_) return;
  auto& place = *places_.find(kTopologyRegister);
  if (place.second.seat.stage() != topology_.last_stage() || !all_moved()) return;
  TopologyState state;
  state.finished = *topology_.next;
  commit_topology(std::move(state), now_ns, out);
}

/// Whether enough others of this set were heard that one of them is among those who noted this
/// node's last number: a majority of the set, without this node (C2).
bool Host::heard_enough(const std::vector<std::string>& set) const {
  const bool member = std::find(set.begin(), set.end(), config_.self) != set.end();
  const auto heard = std::count_if(set.begin(), set.end(), [&](const std::string& node) {
    // Only a beat sets an incarnation: a peer that was merely sent to has said nothing.
    const auto peer = peers_.find(node);
    return node != config_.self && peer != peers_.end() && peer->second.incarnation != 0;
  });
  const std::size_t enough = set.size() - set.size() / 2 - (member ? 1 : 0);
  return static_cast<std::size_t>(heard) >= enough;
}

/// A store without a number takes the one above the highest that its peers noted of it (C2).
void Host::number_store(Effects& out) {
  const std::uint32_t own = replica_.own().number;
  const bool outnumbered = number_of(known_, config_.self) > own && !replica_.votes_anywhere();
  if ((own != 0 && !outnumbered) || numbering_) return;
  if (!heard_enough(owner_nodes_)) return;
  for (const auto& [reg, place] : places_) {
    const Quorums quorums = layout_of(reg).quorums;
    if (!std::all_of(quorums.sets.begin(), quorums.sets.end(),
                     [&](const auto& set) { return heard_enough(set); })) {
      return;
    }
  }
  numbering_ = true;
  out.number = number_of(known_, config_.self) + 1;
  replica_.set_number(out.number);
}

void Host::numbered(Nanos now_ns, Effects& out) {
  numbering_ = false;
  merge_marks(known_, {replica_.own()});
  beaten_ns_ = INT64_MIN / 2;
  tick(now_ns, out);
}

}  // namespace weir::ownership
