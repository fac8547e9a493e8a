// The joint phase of a topology change at a register's owner (PROTOCOL J2): scan, copy, mark.

#include <algorithm>
#include <utility>

#include "src/base/mutants.h"
#include "src/ownership/seat.h"

namespace weir::ownership {

/// Starts the move, and repeats what is unanswered.
void Seat::tick_move(Nanos now_ns, Effects& out) {
  if (!layout_.joint()) return;
  if (!move_) {
    move_.emplace();
    if (WEIR_MUTANT(moves_without_copy)) {
      move_->scanned = true;
      return mark_moved(now_ns, out);
    }
    return scan_for_move(now_ns, out);
  }
  if (move_->marking) {
    // Waits for the commit that was under way when the copying ended.
    if (move_->sent_ns == 0 || now_ns - move_->sent_ns >= config_.retry_ns) {
      mark_moved(now_ns, out);
    }
    return;
  }
  if (now_ns - move_->sent_ns < config_.retry_ns) return;
  move_->copying ? copy_for_move(now_ns, out) : scan_for_move(now_ns, out);
}

/// Asks those that have not answered. A page keeps its token: were each repetition another
/// question, a round trip longer than `retry_ns` would never bring an answer to the latest.
void Seat::scan_for_move(Nanos now_ns, Effects& out) {
  move_->sent_ns = now_ns;
  if (move_->token == 0) move_->token = ++token_;
  for (const std::string& node : voters()) {
    if (move_->page.contains(node)) continue;
    out.send.emplace_back(node, Scan{reg_, epoch_, move_->token, move_->after});
  }
}

/// Majorities have answered the scan: their newest records go to all members of the new set whose
/// stores are known; again to those that have not answered.
void Seat::copy_for_move(Nanos now_ns, Effects& out) {
  if (!move_->copying) {
    std::set<std::string> from_whom;
    for (const auto& [voter, page] : move_->page) from_whom.insert(voter);
    if (!quorums_.majority(from_whom)) return;
    Page page = merge(move_->page, now_ns);
    move_->records = std::move(page.records);
    move_->after = std::move(page.reach);
    move_->scanned = page.last;
    move_->page.clear();
    move_->copying = true;
    move_->token = ++token_;
    move_->done.clear();
  }
  move_->sent_ns = now_ns;
  for (const std::string& node : quorums_.sets.back()) {
    const auto promise = promises_.find(node);
    if (promise == promises_.end() || move_->done.contains(node)) continue;
    out.send.emplace_back(
        node, Install{reg_, epoch_, move_->token, promise->second.store, move_->records, false});
  }
}

void Seat::moved_page(const std::string& from, Nanos now_ns, Effects& out) {
  move_->done.insert(from);
  if (!Quorums{{quorums_.sets.back()}}.majority(move_->done)) return;
  move_->copying = false;
  move_->token = 0;
  move_->records.clear();
  if (move_->scanned) {
    mark_moved(now_ns, out);
  } else {
    scan_for_move(now_ns, out);
  }
}

/// The mark is a promise of the later stage, by majorities of both sets. No commit is under way,
/// and none starts before it is done.
void Seat::mark_moved(Nanos now_ns, Effects& out) {
  if (!move_->marking) {
    move_->marking = true;
    move_->done.clear();
    move_->sent_ns = 0;
  }
  if (commit_) return;
  move_->sent_ns = now_ns;
  for (const std::string& node : quorums_.members()) {
    if (move_->done.contains(node)) continue;
    Prepare mark{reg_, epoch_, {}, false, false, announced_};
    mark.stage = layout_.target;
    out.send.emplace_back(node, std::move(mark));
  }
}

/// The new set alone counts from now on. An owner outside of it gives the register up.
void Seat::marked(const std::string& from, Nanos now_ns, Effects& out) {
  move_->done.insert(from);
  if (!quorums_.majority(move_->done)) return;
  move_.reset();
  layout_.stage = layout_.target;
  layout_.quorums.sets.erase(layout_.quorums.sets.begin());
  layout_.listed.clear();
  quorums_ = layout_.quorums;
  if (!quorums_.contains(self_)) {
    out.send.emplace_back(quorums_.members().front(), Release{reg_, epoch_});
    become_idle(kForever, out);
    return;
  }
  flush(now_ns, out);
}

}  // namespace weir::ownership
