#include "src/ownership/seat.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"
#include "src/ownership/replica.h"

namespace weir::ownership {
namespace {

/// Epochs of one generation: no register has so many owners.
constexpr unsigned kGenerationShift = 40;

}  // namespace

bool Quorums::contains(const std::string& node) const {
  return std::any_of(sets.begin(), sets.end(), [&](const auto& set) {
    return std::find(set.begin(), set.end(), node) != set.end();
  });
}

std::vector<std::string> Quorums::members() const {
  std::vector<std::string> result;
  for (const auto& set : sets) {
    for (const std::string& node : set) {
      if (std::find(result.begin(), result.end(), node) == result.end()) result.push_back(node);
    }
  }
  return result;
}

bool Quorums::majority(const std::set<std::string>& nodes) const {
  if (sets.empty()) return false;
  const auto end = WEIR_MUTANT(moves_with_old_set) ? sets.begin() + 1 : sets.end();
  return std::all_of(sets.begin(), end, [&](const auto& set) {
    const auto present = std::count_if(
        set.begin(), set.end(), [&](const std::string& node) { return nodes.contains(node); });
    return static_cast<std::size_t>(present) * 2 > set.size();
  });
}

Seat::Seat(RegisterId reg, std::string self, std::uint64_t incarnation, SeatConfig config,
           Random random, Nanos now_ns)
    : reg_(std::move(reg)),
      self_(std::move(self)),
      incarnation_(incarnation),
      config_(config),
      random_(random),
      up_since_ns_(now_ns),
      unclaimed_since_ns_(now_ns),
      deadline_ns_(now_ns),
      idle_until_ns_(now_ns) {}

std::size_t Seat::rank_of(const std::string& node) const {
  const auto members = quorums_.members();
  return static_cast<std::size_t>(std::find(members.begin(), members.end(), node) -
                                  members.begin());
}

void Seat::to_all(const RegisterMessage& message, Effects& out) const {
  for (const std::string& node : quorums_.members()) out.send.emplace_back(node, message);
}

/// A store counts unless it is known to have been replaced (C2).
bool Seat::counts(const StoreMark& store) const {
  if (WEIR_MUTANT(replaced_store_counts)) return store.number != 0;
  return store.number != 0 && store.number >= number_of(known_, store.node);
}

void Seat::set_layout(Layout layout, Nanos now_ns, Effects& out) {
  if (layout == layout_ || layout.stage < layout_.stage) return;
  const bool moves = layout.quorums != quorums_;
  layout_ = std::move(layout);
  quorums_ = layout_.quorums;
  highest_counter_ = std::max(highest_counter_, layout_.generation << kGenerationShift);
  idle_until_ns_ = deadline_ns_ = now_ns;
  // It gave the register up for good as one that was no member any more; perhaps it is one again.
  if (not_before_ns_ == kForever && !retiring_) not_before_ns_ = now_ns;
  if (!moves || phase_ == Phase::idle) return;
  const bool owned = phase_ == Phase::active;
  const bool releases = releasing() && release_to_ != self_;
  if (releases) out.send.emplace_back(release_to_, Release{reg_, epoch_});
  // Whoever was bidden to own is not contended with.
  become_idle(releases ? add_saturating(now_ns, 2 * config_.suspicion_ns) : now_ns, out);
  if (owned && !releases && quorums_.contains(self_) && !retiring_) start_prepare(now_ns, out);
}

/// A refusal says which epoch or which stage is in its way.
void Seat::note_refusal(const Epoch& highest, std::uint64_t stage, Nanos now_ns, Effects& out) {
  note_higher(highest, now_ns, out);
  const bool our_mark = move_ && move_->marking && stage == layout_.target;
  if (stage > layout_.stage && !our_mark) out.behind = std::max(out.behind, stage);
}

void Seat::tick(const Claim& claim, const std::vector<StoreMark>& known, Nanos now_ns,
                Effects& out) {
  deadline_ns_ = kForever;
  merge_marks(known_, known);
  highest_counter_ = std::max(highest_counter_, claim.counter);
  if (!claim.node.empty() && claim.node != self_) {
    claimed_ = true;
  } else if (claimed_) {
    claimed_ = false;
    unclaimed_since_ns_ = add_saturating(now_ns, config_.stagger_ns);
  }
  switch (phase_) {
    case Phase::idle:
      tick_idle(claim, now_ns, out);
      break;
    case Phase::polling:
    case Phase::preparing:
    case Phase::starting:
      if (now_ns >= attempt_ends_ns_) {
        become_idle(add_saturating(now_ns, random_.between(0, config_.stagger_ns)), out);
        break;
      }
      if (now_ns - sent_ns_ >= config_.retry_ns) {
        phase_ == Phase::polling ? send_poll(now_ns, out) : send_prepare(now_ns, out);
      }
      if (teaches_early()) teach(now_ns, out);
      break;
    case Phase::active:
      if (std::tie(claim.counter, claim.node) > std::tie(epoch_.counter, self_)) {
        // Deposed without having heard of it: a later epoch is claimed.
        become_idle(add_saturating(now_ns, config_.stagger_ns), out);
      } else {
        tick_active(now_ns, out);
      }
      break;
  }
  set_deadline(now_ns);
}

/// Nobody has claimed the register for the suspicion time; right after a start nobody may have
/// claimed it yet, which a poll finds out at once. Each rank waits longer, not counting an owner of
/// a better rank who is missed.
Nanos Seat::missed_at(const Claim& claim) const {
  const auto rank = static_cast<Nanos>(rank_of(self_));
  if (claim.node.empty() || claim.node == self_) {
    // The first in rank has all of the suspicion time to start, beside thousands of others.
    const Nanos waits_ns = rank == 0 ? 0 : config_.suspicion_ns + config_.stagger_ns * rank;
    return add_saturating(unclaimed_since_ns_, waits_ns);
  }
  const Nanos better = rank_of(claim.node) < rank_of(self_) ? 1 : 0;
  const Nanos dormant_ns = in_use_ ? 0 : config_.dormant_ns;
  return add_saturating(claim.renewed_ns,
                        config_.suspicion_ns + dormant_ns + config_.stagger_ns * (rank - better));
}

void Seat::tick_idle(const Claim& claim, Nanos now_ns, Effects& out) {
  idle_until_ns_ = kForever;
  if (retiring_ || !quorums_.contains(self_)) return;
  const Nanos missed_ns = missed_at(claim);
  if (now_ns >= missed_ns) {
    idle_until_ns_ = not_before_ns_;
    if (now_ns >= not_before_ns_) start_poll(now_ns, out);
    return;
  }
  const bool theirs = !claim.node.empty() && claim.node != self_;
  const bool fresh = theirs && now_ns - claim.renewed_ns < config_.suspicion_ns;
  if (!fresh) idle_until_ns_ = missed_ns;
  if (!theirs || rank_of(self_) > rank_of(claim.node)) return;
  Nanos asks_ns = std::max(add_saturating(up_since_ns_, config_.settled_ns),
                           add_saturating(asked_hand_over_ns_, config_.hand_over_every_ns));
  if (now_ns >= asks_ns) {
    asked_hand_over_ns_ = now_ns;
    asks_ns = add_saturating(now_ns, config_.hand_over_every_ns);
    out.send.emplace_back(claim.node, HandOver{reg_});
  }
  idle_until_ns_ = std::min(idle_until_ns_, asks_ns);
}

void Seat::become_idle(Nanos not_before_ns, Effects& out) {
  if (phase_ == Phase::active) {
    out.deposed = true;
    out.activated = false;
    out.committed.clear();
    out.loaded.clear();
    out.listed.clear();
  }
  phase_ = Phase::idle;
  not_before_ns_ = idle_until_ns_ = not_before_ns;
  poll_.clear();
  promises_.clear();
  first_start_.clear();
  commit_.reset();
  gathered_.clear();
  gathered_records_ = 0;
  readings_.clear();
  learners_.clear();
  move_.reset();
  listings_.clear();
  renews_ = false;
  release_to_.clear();
}

/// A higher epoch was promised: this one is over (B2). The next try waits a random while, so that
/// two candidates do not depose each other for ever.
void Seat::note_higher(const Epoch& highest, Nanos now_ns, Effects& out) {
  highest_counter_ = std::max(highest_counter_, highest.counter);
  if (phase_ == Phase::idle || phase_ == Phase::polling || highest <= epoch_) return;
  become_idle(add_saturating(now_ns, config_.stagger_ns + random_.between(0, config_.suspicion_ns)),
              out);
}

void Seat::start_poll(Nanos now_ns, Effects& out) {
  if (WEIR_MUTANT(prepare_without_poll)) return start_prepare(now_ns, out);
  phase_ = Phase::polling;
  ++token_;
  poll_.clear();
  attempt_ends_ns_ = add_saturating(now_ns, 2 * config_.suspicion_ns);
  send_poll(now_ns, out);
}

void Seat::send_poll(Nanos now_ns, Effects& out) {
  sent_ns_ = now_ns;
  for (const std::string& node : quorums_.members()) {
    if (!poll_.contains(node) || !poll_.at(node).misses)
      out.send.emplace_back(node, Poll{reg_, token_});
  }
}

void Seat::on(const std::string& from, const PollReply& reply, Nanos now_ns, Effects& out) {
  highest_counter_ = std::max(highest_counter_, reply.highest.counter);
  if (phase_ != Phase::polling || reply.token != token_ || !quorums_.contains(from)) return;
  poll_[from] = reply;
  conclude_poll(now_ns, out);
  set_deadline(now_ns);
}

/// Prepares only if a majority also misses the owner. The word of the named owner itself voids what
/// others say of it (B8).
void Seat::conclude_poll(Nanos now_ns, Effects& out) {
  std::set<std::string> missing;
  for (const auto& [node, reply] : poll_) {
    const auto named = poll_.find(reply.owner);
    const bool denied = named != poll_.end() && named->second.misses;
    if (reply.misses || denied) missing.insert(node);
  }
  if (!quorums_.majority(missing)) return;
  start_prepare(now_ns, out);
  if (WEIR_MUTANT(takeover_unprepared)) become_active(now_ns, out);
}

void Seat::start_prepare(Nanos now_ns, Effects& out) {
  phase_ = Phase::preparing;
  if (!WEIR_MUTANT(epoch_reused) || epoch_.counter != highest_counter_) ++highest_counter_;
  epoch_ = {highest_counter_, self_, incarnation_};
  promises_.clear();
  first_start_.clear();
  announced_ = known_;
  attempt_ends_ns_ =
      add_saturating(now_ns, config_.attempt_ns + random_.between(0, config_.attempt_ns));
  send_prepare(now_ns, out);
}

void Seat::send_prepare(Nanos now_ns, Effects& out) {
  sent_ns_ = now_ns;
  const bool joins = phase_ == Phase::starting;
  to_all(Prepare{reg_, epoch_, joins ? first_start_ : std::vector<StoreMark>{}, false, false,
                 announced_},
         out);
}

void Seat::on(const std::string& from, const Promise& reply, Nanos now_ns, Effects& out) {
  if (!quorums_.contains(from)) return;
  if (!reply.promised) note_refusal(reply.highest, reply.stage, now_ns, out);
  const bool mine = reply.epoch == epoch_ && phase_ != Phase::idle && phase_ != Phase::polling;
  if (mine && reply.promised && reply.store.node == from) {
    merge_marks(known_, reply.known);
    // A store that votes goes on voting; an older word of it may come late.
    Promise& held = promises_[from];
    const bool votes = held.votes && held.store == reply.store;
    held = reply;
    held.votes = held.votes || votes;
    if (phase_ != Phase::active) {
      conclude_promises(now_ns, out);
    } else if (!held.votes) {
      // Majorities were there without it. It is to count all the same, should others be lost.
      enlist(out);
    }
    if (move_ && move_->marking && reply.stage >= layout_.target) marked(from, now_ns, out);
  }
  set_deadline(now_ns);
  // One that does not vote yet is to be taught.
  if (phase_ == Phase::active && mine && !reply.votes) {
    deadline_ns_ = std::min(deadline_ns_, add_saturating(now_ns, config_.retry_ns / 2));
  }
}

std::set<std::string> Seat::voters() const {
  std::set<std::string> result;
  for (const auto& [node, promise] : promises_) {
    if (promise.votes && counts(promise.store)) result.insert(node);
  }
  return result;
}

/// Every member has promised and votes: there is nothing left to ask of it.
bool Seat::complete() const {
  const std::vector<std::string> members = quorums_.members();
  return std::all_of(members.begin(), members.end(), [&](const std::string& node) {
    const auto promise = promises_.find(node);
    return promise != promises_.end() && promise->second.votes && counts(promise->second.store);
  });
}

void Seat::conclude_promises(Nanos now_ns, Effects& out) {
  if (phase_ == Phase::starting) {
    if (all_joined()) become_active(now_ns, out);
    return;
  }
  // A store that votes by a list shows that all of it have joined (C3).
  for (const auto& [node, promise] : promises_) {
    if (promise.votes && !promise.first_start.empty()) first_start_ = promise.first_start;
  }
  if (bound_by_majority()) {
    become_active(now_ns, out);
  } else {
    enlist(out);
    if (!layout_.recovers) try_first_start(now_ns, out);
    if (!teaches_early()) return;
    send_begin(out);  // only who votes answers scans
    find_learners_early(now_ns, out);
  }
}

bool Seat::listed(const StoreMark& store) const {
  return std::find(layout_.listed.begin(), layout_.listed.end(), store) != layout_.listed.end();
}

/// A majority of the set that is being left votes: nothing of before is unknown to it, and nothing
/// more is committed without it.
bool Seat::old_set_bound() const {
  std::set<std::string> old;
  for (const auto& [node, promise] : promises_) {
    if (bound(promise) || layout_.recovers) old.insert(node);
  }
  return Quorums{{quorums_.sets.front()}}.majority(old);
}

/// In the joint phase the new set may lack voters whom no owner can teach, for without them there
/// is none: stores that had not caught up in the old set, or that were replaced since the version
/// listed them. Whoever has the promises of the old set's majority teaches them before it owns.
/// An owner that goes by the new set alone already, since one replica had promised the mark, may
/// have committed what the old set does not know. So a majority of the new set, too, must be of
/// stores that have been there all along: one of them would know that owner, and refuse.
bool Seat::teaches_early() const {
  if (phase_ != Phase::preparing || !layout_.joint() || !old_set_bound()) return false;
  std::set<std::string> there;
  for (const auto& [node, promise] : promises_) {
    if (counts(promise.store) && (bound(promise) || listed(promise.store))) there.insert(node);
  }
  return Quorums{{quorums_.sets.back()}}.majority(there);
}

/// Only the version under way makes this node a member.
bool Seat::newly_joins(const std::string& node) const {
  const auto& old = quorums_.sets.front();
  return layout_.joint() && std::find(old.begin(), old.end(), node) == old.end();
}

/// Stores that the version lists vote in the registers that they newly join, once the register is
/// known to exist: a majority of the old set votes (J2).
void Seat::enlist(Effects& out) const {
  if ((!layout_.joint() && !layout_.recovers) || !old_set_bound()) return;
  for (const auto& [node, promise] : promises_) {
    if (promise.votes || !listed(promise.store)) continue;
    if (!newly_joins(node) && !layout_.recovers) continue;
    out.send.emplace_back(node, Prepare{reg_, epoch_, layout_.listed, false, true, announced_});
  }
}

/// A promise that makes an owner: of a store that votes, or that is on the list by which others do.
bool Seat::bound(const Promise& promise) const {
  if (!counts(promise.store)) return false;
  return promise.votes || (!first_start_.empty() && promise.first_start == first_start_);
}

bool Seat::bound_by_majority() const {
  std::set<std::string> nodes;
  for (const auto& [node, promise] : promises_) {
    if (bound(promise)) nodes.insert(node);
  }
  return quorums_.majority(nodes);
}

/// Bids those who have joined the list, but do not vote yet, to vote.
void Seat::send_begin(Effects& out) {
  for (const auto& [node, promise] : promises_) {
    if (promise.votes || !bound(promise)) continue;
    out.send.emplace_back(node, Prepare{reg_, epoch_, first_start_, true, false, announced_});
  }
}

/// C3: a register starts only when all of its set have promised and none votes in it.
void Seat::try_first_start(Nanos now_ns, Effects& out) {
  std::vector<StoreMark> list;
  for (const std::string& node : quorums_.members()) {
    const auto found = promises_.find(node);
    if (WEIR_MUTANT(started_by_majority) && found == promises_.end()) continue;
    if (found == promises_.end() || found->second.votes) return;
    if (!counts(found->second.store)) return;
    list.push_back(found->second.store);
  }
  if (list.size() * 2 <= quorums_.members().size()) return;
  first_start_ = std::move(list);
  phase_ = Phase::starting;
  send_prepare(now_ns, out);
}

bool Seat::all_joined() const {
  return std::all_of(first_start_.begin(), first_start_.end(), [&](const StoreMark& mark) {
    const auto found = promises_.find(mark.node);
    return found != promises_.end() && found->second.store == mark &&
           found->second.first_start == first_start_ && counts(mark);
  });
}

void Seat::become_active(Nanos now_ns, Effects& out) {
  phase_ = Phase::active;
  sequence_ = 0;
  commit_id_ = 0;
  sent_ns_ = now_ns;
  out.activated = true;
  out.deposed = false;
  send_begin(out);
}

/// Repeats what is unanswered; asks members that have not promised yet; teaches those that do not
/// vote.
void Seat::tick_active(Nanos now_ns, Effects& out) {
  if (commit_ && now_ns - commit_->sent_ns >= config_.retry_ns) send_commit(now_ns, out);
  for (auto& [token, reading] : readings_) {
    if (now_ns - reading.sent_ns >= config_.retry_ns) send_read(token, reading, now_ns, out);
  }
  for (auto& [token, listing] : listings_) {
    if (now_ns - listing.sent_ns >= config_.retry_ns) send_list(token, listing, now_ns, out);
  }
  if (now_ns - sent_ns_ >= config_.hand_over_every_ns) {
    sent_ns_ = now_ns;
    for (const std::string& node : quorums_.members()) {
      const auto found = promises_.find(node);
      if (found == promises_.end() || !counts(found->second.store)) {
        out.send.emplace_back(node, Prepare{reg_, epoch_, {}, false, false, announced_});
      }
    }
    send_begin(out);
    enlist(out);
  }
  find_learners(now_ns, out);
  if (phase_ != Phase::active) return;
  tick_move(now_ns, out);
  if (phase_ != Phase::active) return;
  flush(now_ns, out);
  release_if_drained(now_ns, out);
}

std::vector<std::string> Seat::learners() const {
  std::vector<std::string> result;
  for (const auto& [node, learner] : learners_) result.push_back(node);
  return result;
}

void Seat::on(const std::string& from, const HandOver&, Nanos now_ns, Effects& out) {
  if (phase_ != Phase::active || !quorums_.contains(from) || rank_of(from) > rank_of(self_)) return;
  release_to_ = from;
  release_if_drained(now_ns, out);
  set_deadline(now_ns);
}

void Seat::retire(const std::string& successor, Nanos now_ns, Effects& out) {
  retiring_ = true;
  if (phase_ != Phase::active) {
    become_idle(kForever, out);
    return;
  }
  if (release_to_.empty()) release_to_ = successor.empty() ? self_ : successor;
  release_if_drained(now_ns, out);
  set_deadline(now_ns);
}

void Seat::resign(Effects& out) {
  retiring_ = true;
  const auto members = quorums_.members();
  const auto next = std::find_if(members.begin(), members.end(),
                                 [&](const std::string& node) { return node != self_; });
  if (phase_ == Phase::active && next != members.end()) {
    out.send.emplace_back(*next, Release{reg_, epoch_});
  }
  become_idle(kForever, out);
  deadline_ns_ = kForever;
}

/// A new epoch, as soon as nothing is being committed.
void Seat::renew(Nanos now_ns, Effects& out) {
  if (!release_to_.empty()) return;  // the next owner's prepare will do
  renews_ = true;
  if (commit_) return;
  become_idle(now_ns, out);
  start_prepare(now_ns, out);
}

/// Gives the register up once nothing is being committed: drain, commit, release (B8).
void Seat::release_if_drained(Nanos now_ns, Effects& out) {
  if (release_to_.empty() || commit_ || !gathered_.empty()) return;
  if (!out.committed.empty()) return;  // the answers of this commit leave first
  if (release_to_ != self_) out.send.emplace_back(release_to_, Release{reg_, epoch_});
  become_idle(add_saturating(now_ns, 2 * config_.suspicion_ns), out);
}

void Seat::on(const std::string& from, const Release& release, Nanos now_ns, Effects& out) {
  highest_counter_ = std::max(highest_counter_, release.epoch.counter);
  const bool waits = phase_ == Phase::idle || phase_ == Phase::polling;
  if (!waits || retiring_ || !quorums_.contains(self_) || release.epoch.node != from) return;
  start_prepare(now_ns, out);
  set_deadline(now_ns);
}

/// What a tick has set is only ever brought forward until the next one: traffic does not put off
/// what is due.
void Seat::set_deadline(Nanos now_ns) {
  if (phase_ == Phase::idle) {
    deadline_ns_ = std::min(deadline_ns_, idle_until_ns_);
    return;
  }
  const bool open = phase_ != Phase::active || commit_ || !gathered_.empty() ||
                    !readings_.empty() || !learners_.empty() || !release_to_.empty() || renews_ ||
                    move_.has_value() || !listings_.empty();
  if (open) {
    deadline_ns_ = std::min(deadline_ns_, add_saturating(now_ns, config_.retry_ns / 2));
  } else if (!complete()) {
    deadline_ns_ = std::min(deadline_ns_, add_saturating(now_ns, config_.hand_over_every_ns));
  }
}

}  // namespace weir::ownership
