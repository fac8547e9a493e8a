// The work of an active seat: commits, record reads, teaching stores that do not vote yet.

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"
#include "src/ownership/replica.h"
#include "src/ownership/seat.h"

namespace weir::ownership {

bool Seat::submit(std::uint64_t ticket, std::vector<std::pair<std::string, LedgerRecord>> records,
                  Nanos now_ns, Effects& out) {
  if (phase_ != Phase::active || !release_to_.empty()) return false;
  if (gathered_records_ + records.size() > config_.max_gathered) return false;
  gathered_records_ += records.size();
  gathered_.push_back({ticket, std::move(records)});
  flush(now_ns, out);
  set_deadline(now_ns);
  return true;
}

bool Seat::admitting() const {
  return std::any_of(learners_.begin(), learners_.end(), [](const auto& item) {
    return item.second.wants_vote || (item.second.install && item.second.install->admit);
  });
}

/// One commit in flight per register; what gathered meanwhile goes with the next (B7), as much of
/// it as a frame has room for.
void Seat::flush(Nanos now_ns, Effects& out) {
  if (phase_ != Phase::active || commit_ || gathered_.empty()) return;
  if (renews_ || admitting() || (move_ && move_->marking)) return;
  Commit commit;
  commit.id = ++commit_id_;
  std::size_t bytes = 0;
  while (!gathered_.empty()) {
    for (const auto& [bucket, ledger] : gathered_.front().records) {
      bytes += record_bytes(bucket, ledger);
    }
    if (bytes > kMaxRecordBytesPerMessage && !commit.tickets.empty()) break;
    Gathered next = std::move(gathered_.front());
    gathered_.pop_front();
    gathered_records_ -= next.records.size();
    for (auto& [bucket, ledger] : next.records) {
      if (!WEIR_MUTANT(sequence_repeats) || sequence_ == 0) ++sequence_;
      commit.records.push_back({std::move(bucket), {epoch_, sequence_}, std::move(ledger)});
    }
    commit.tickets.push_back(next.ticket);
  }
  commit_ = std::move(commit);
  send_commit(now_ns, out);
}

void Seat::send_commit(Nanos now_ns, Effects& out) {
  commit_->sent_ns = now_ns;
  for (const std::string& node : quorums_.members()) {
    if (commit_->accepted.contains(node)) continue;
    out.send.emplace_back(node, Accept{reg_, epoch_, commit_->id, commit_->records});
  }
}

void Seat::on(const std::string& from, const Accepted& reply, Nanos now_ns, Effects& out) {
  if (!quorums_.contains(from)) return;
  if (!reply.accepted) note_refusal(reply.highest, reply.stage, now_ns, out);
  const bool mine = phase_ == Phase::active && reply.epoch == epoch_ && commit_ &&
                    commit_->id == reply.commit && reply.store.node == from;
  if (mine && reply.accepted && counts(reply.store)) {
    // A newer version of a bucket than ours can only be of this epoch: it says all that ours says
    // (B5).
    commit_->accepted.insert(from);
    conclude_commit(now_ns, out);
  }
  set_deadline(now_ns);
  // The answers of this commit leave first, then the register.
  if (releasing() && !commit_ && gathered_.empty()) deadline_ns_ = now_ns;
}

void Seat::conclude_commit(Nanos now_ns, Effects& out) {
  if (!quorums_.majority(commit_->accepted)) return;
  for (auto& [node, learner] : learners_) {
    for (const StoredRecord& record : commit_->records) {
      learner.touched[record.bucket] = {record, now_ns};
    }
  }
  out.committed.insert(out.committed.end(), commit_->tickets.begin(), commit_->tickets.end());
  commit_.reset();
  for (auto& [node, learner] : learners_) {
    if (learner.wants_vote && !learner.install) admit(node, learner, now_ns, out);
  }
  flush(now_ns, out);
}

void Seat::load(std::uint64_t ticket, const std::string& bucket, Nanos now_ns, Effects& out) {
  if (phase_ != Phase::active) {
    out.loaded.push_back({ticket, failure(ErrorCode::unavailable, "register",
                                          to_string(reg_) + " is not owned here")});
    return;
  }
  const std::uint64_t token = ++token_;
  Reading& reading = readings_[token];
  reading.ticket = ticket;
  reading.bucket = bucket;
  send_read(token, reading, now_ns, out);
  set_deadline(now_ns);
}

void Seat::list(std::uint64_t ticket, const std::string& after, Nanos now_ns, Effects& out) {
  if (phase_ != Phase::active) return;
  const std::uint64_t token = ++token_;
  Listing& listing = listings_[token];
  listing.ticket = ticket;
  listing.after = after;
  send_list(token, listing, now_ns, out);
  set_deadline(now_ns);
}

void Seat::send_list(std::uint64_t token, Listing& listing, Nanos now_ns, Effects& out) {
  listing.sent_ns = now_ns;
  for (const std::string& node : voters()) {
    if (listing.page.contains(node)) continue;
    out.send.emplace_back(node, Scan{reg_, epoch_, token, listing.after});
  }
}

void Seat::send_read(std::uint64_t token, Reading& reading, Nanos now_ns, Effects& out) {
  reading.sent_ns = now_ns;
  for (const std::string& node : quorums_.members()) {
    if (reading.replies.contains(node)) continue;
    out.send.emplace_back(node, Read{reg_, epoch_, token, reading.bucket});
  }
}

/// The newest version that a majority has, with the greatest age among its holders (B9). Nothing at
/// a majority: there never was one (B10).
void Seat::on(const std::string& from, const ReadReply& reply, Nanos now_ns, Effects& out) {
  if (!quorums_.contains(from)) return;
  if (!reply.accepted) note_refusal(reply.highest, reply.stage, now_ns, out);
  const auto found = readings_.find(reply.token);
  const bool mine = phase_ == Phase::active && reply.epoch == epoch_ && found != readings_.end() &&
                    reply.store.node == from;
  if (!mine || !reply.accepted || !reply.votes || !counts(reply.store)) return;
  Reading& reading = found->second;
  reading.replies.try_emplace(from, reply.record, now_ns);
  std::set<std::string> from_whom;
  for (const auto& [node, answer] : reading.replies) from_whom.insert(node);
  if (!quorums_.majority(from_whom)) return;
  std::optional<AgedRecord> newest;
  for (const auto& [node, answer] : reading.replies) {
    if (!answer.first) continue;
    AgedRecord aged = *answer.first;
    aged.age_ns = add_saturating(aged.age_ns, now_ns - answer.second);
    if (!newest || newest->record.version < aged.record.version) {
      newest = std::move(aged);
    } else if (newest->record.version == aged.record.version) {
      newest->age_ns = std::max(newest->age_ns, aged.age_ns);
    }
  }
  for (const auto& [node, answer] : reading.replies) {
    if (!WEIR_MUTANT(age_of_any_holder) || !answer.first) continue;
    newest->age_ns = std::max(newest->age_ns, answer.first->age_ns);
  }
  out.loaded.push_back({reading.ticket, std::move(newest)});
  readings_.erase(found);
  set_deadline(now_ns);
}

/// Members that promised without a vote are taught, provided that our prepare announced their
/// number and had its majority without them; a number that came later needs a new epoch first (C2).
void Seat::find_learners(Nanos now_ns, Effects& out) {
  // Whoever a new epoch was wanted for may have voted by the list since.
  renews_ = false;
  for (const std::string& node : quorums_.members()) {
    const std::uint32_t number = number_of(known_, node);
    const auto promise = promises_.find(node);
    const bool votes = promise != promises_.end() && bound(promise->second);
    if (votes || number == 0 || newly_joins(node)) continue;
    if (promise == promises_.end() || promise->second.store.number < number) continue;
    if (number_of(announced_, node) != number) {
      return renew(now_ns, out);
    }
    auto [at, is_new] = learners_.try_emplace(node);
    if (is_new || at->second.store.number != number) {
      at->second = Learner{};
      at->second.store = {node, number};
      at->second.began_ns = now_ns;
      send_scan(at->second, now_ns, out);
    }
  }
  teach(now_ns, out);
}

/// See teaches_early. Whoever may vote by the list is not taught, it is only bidden.
void Seat::find_learners_early(Nanos now_ns, Effects& out) {
  for (const std::string& node : quorums_.sets.back()) {
    const auto promise = promises_.find(node);
    if (promise == promises_.end() || bound(promise->second)) continue;
    const StoreMark& store = promise->second.store;
    if (!counts(store) || (newly_joins(node) && listed(store))) continue;
    // The old set's majority has noted its number with our prepare, so no store of before counts.
    if (number_of(announced_, node) != store.number) continue;
    auto [at, is_new] = learners_.try_emplace(node);
    if (!is_new && at->second.store == store) continue;
    at->second = Learner{};
    at->second.store = store;
    at->second.began_ns = now_ns;
    send_scan(at->second, now_ns, out);
  }
}

/// Repeats what is unanswered.
void Seat::teach(Nanos now_ns, Effects& out) {
  std::erase_if(learners_, [&](const auto& item) { return !counts(item.second.store); });
  for (auto& [node, learner] : learners_) {
    if (now_ns - learner.sent_ns < config_.retry_ns) continue;
    if (learner.wants_vote && !learner.install) continue;
    if (learner.install) {
      if (learner.install->admit && now_ns - learner.began_ns > 2 * config_.suspicion_ns) {
        // It went away while it was being admitted: commits go on without counting it.
        const StoreMark store = learner.store;
        learner = Learner{};
        learner.store = store;
        learner.began_ns = now_ns;
        send_scan(learner, now_ns, out);
        continue;
      }
      send_install(node, learner, now_ns, out);
    } else {
      send_scan(learner, now_ns, out);
    }
  }
}

/// As `scan_for_move`: a page keeps its token, and only who has not answered is asked again.
void Seat::send_scan(Learner& learner, Nanos now_ns, Effects& out) {
  learner.sent_ns = now_ns;
  if (learner.scan_token == 0) learner.scan_token = ++token_;
  for (const std::string& node : voters()) {
    if (learner.page.contains(node)) continue;
    out.send.emplace_back(node, Scan{reg_, epoch_, learner.scan_token, learner.after});
  }
}

void Seat::on(const std::string& from, const ScanReply& reply, Nanos now_ns, Effects& out) {
  if (!quorums_.contains(from)) return;
  if (!reply.accepted) note_refusal(reply.highest, reply.stage, now_ns, out);
  const bool early = teaches_early();
  if ((phase_ != Phase::active && !early) || reply.epoch != epoch_) return;
  if (!reply.accepted || !reply.votes || reply.store.node != from || !counts(reply.store)) return;
  if (const auto found = listings_.find(reply.token); found != listings_.end()) {
    Listing& listing = found->second;
    listing.page[from] = since_boot(reply, now_ns);
    std::set<std::string> from_whom;
    for (const auto& [voter, page] : listing.page) from_whom.insert(voter);
    if (!quorums_.majority(from_whom)) return;
    Page page = merge(listing.page, now_ns);
    out.listed.push_back({listing.ticket, std::move(page.records), page.reach, page.last});
    listings_.erase(found);
  }
  if (move_ && !move_->copying && move_->token == reply.token) {
    move_->page[from] = since_boot(reply, now_ns);
    copy_for_move(now_ns, out);
  }
  for (auto& [node, learner] : learners_) {
    if (learner.scan_token != reply.token || learner.install) continue;
    learner.page[from] = since_boot(reply, now_ns);
    std::set<std::string> from_whom;
    for (const auto& [voter, page] : learner.page) from_whom.insert(voter);
    if (!answered_by_enough(from_whom)) continue;
    if (early) attempt_ends_ns_ = add_saturating(now_ns, 2 * config_.attempt_ns);
    conclude_page(learner, now_ns);
    send_install(node, learner, now_ns, out);
  }
  set_deadline(now_ns);
}

/// Before it owns, a majority of the old set has everything.
bool Seat::answered_by_enough(const std::set<std::string>& nodes) const {
  if (phase_ == Phase::active) return quorums_.majority(nodes);
  return Quorums{{quorums_.sets.front()}}.majority(nodes);
}

/// With ages less the boot clock: a page may wait for the others of its majority.
ScanReply Seat::since_boot(ScanReply page, Nanos now_ns) {
  for (AgedRecord& aged : page.records) aged.age_ns = subtract_saturating(aged.age_ns, now_ns);
  return page;
}

/// Merges a majority's pages up to where all of them reach, newest version first, greatest age.
Seat::Page Seat::merge(const std::map<std::string, ScanReply>& pages, Nanos now_ns) {
  Page result;
  result.last = true;
  for (const auto& [voter, page] : pages) {
    if (page.last) continue;
    const std::string& end = page.records.back().record.bucket;
    if (result.last || end < result.reach) result.reach = end;
    result.last = false;
  }
  std::map<std::string, AgedRecord> merged;
  for (const auto& [voter, page] : pages) {
    for (const AgedRecord& aged : page.records) {
      const std::string& bucket = aged.record.bucket;
      if (!result.last && bucket > result.reach) break;
      auto [at, is_new] = merged.try_emplace(bucket, aged);
      if (is_new) continue;
      if (at->second.record.version < aged.record.version) {
        at->second = aged;
      } else if (at->second.record.version == aged.record.version) {
        at->second.age_ns = std::max(at->second.age_ns, aged.age_ns);
      }
    }
  }
  for (auto& [bucket, aged] : merged) {
    aged.age_ns = add_saturating(aged.age_ns, now_ns);
    result.records.push_back(std::move(aged));
  }
  return result;
}

void Seat::conclude_page(Learner& learner, Nanos now_ns) {
  Page page = merge(learner.page, now_ns);
  Install install{reg_, epoch_, ++token_, learner.store, {}, false};
  if (!WEIR_MUTANT(learner_without_scan)) install.records = std::move(page.records);
  learner.after = page.reach;
  learner.scanned = page.last;
  learner.page.clear();
  learner.scan_token = 0;
  learner.began_ns = now_ns;
  learner.install = std::move(install);
}

void Seat::send_install(const std::string& node, Learner& learner, Nanos now_ns, Effects& out) {
  learner.sent_ns = now_ns;
  out.send.emplace_back(node, *learner.install);
}

/// Page after page, then what was committed since the scan began, and with the last of it the vote,
/// while no commit is under way.
void Seat::on(const std::string& from, const Installed& reply, Nanos now_ns, Effects& out) {
  if (!quorums_.contains(from)) return;
  if (!reply.accepted) note_refusal(reply.highest, reply.stage, now_ns, out);
  const bool early = teaches_early();
  if ((phase_ != Phase::active && !early) || reply.epoch != epoch_) return;
  if (move_ && move_->copying && move_->token == reply.token && reply.accepted) {
    moved_page(from, now_ns, out);
    set_deadline(now_ns);
    return;
  }
  const auto found = learners_.find(from);
  if (found == learners_.end()) return;
  Learner& learner = found->second;
  if (!learner.install || learner.install->token != reply.token || !reply.accepted) return;
  if (early) attempt_ends_ns_ = add_saturating(now_ns, 2 * config_.attempt_ns);
  if (learner.install->admit) {
    promises_[from].votes = true;
    promises_[from].store = reply.store;
    learners_.erase(found);
    early ? conclude_promises(now_ns, out) : flush(now_ns, out);
    set_deadline(now_ns);
    return;
  }
  learner.install.reset();
  if (!learner.scanned) {
    send_scan(learner, now_ns, out);
    set_deadline(now_ns);
    return;
  }
  learner.wants_vote = true;
  if (!commit_) admit(from, learner, now_ns, out);
  set_deadline(now_ns);
}

/// The last page: what was committed since the scan began. No commit is under way, and none starts
/// before the answer or the learner's end.
void Seat::admit(const std::string& node, Learner& learner, Nanos now_ns, Effects& out) {
  Install last{reg_, epoch_, ++token_, learner.store, {}, true};
  // What does not fit has a majority without this store (test/model/README.md).
  std::size_t bytes = 0;
  for (auto& [bucket, committed] : learner.touched) {
    bytes += record_bytes(bucket, committed.first.ledger);
    if (bytes > kMaxRecordBytesPerMessage) break;
    last.records.push_back({std::move(committed.first), now_ns - committed.second});
  }
  learner.touched.clear();
  learner.began_ns = now_ns;
  learner.install = std::move(last);
  send_install(node, learner, now_ns, out);
}

}  // namespace weir::ownership
