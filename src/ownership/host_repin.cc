// Customers that change their register with a topology version, because a pin was set, moved or
// removed (PROTOCOL J3). When the register itself has moved, the old register's owner lets go of
// each, commits its buckets as moved, and hands them to the new register's owner, who commits them
// there; only then the version can be finished and edges ask the new register. What is told twice
// is the same, for nothing is granted in between.

#include <algorithm>
#include <utility>

#include "src/base/mutants.h"
#include "src/lease/ledger.h"
#include "src/ownership/host.h"

namespace weir::ownership {
namespace {

/// A page that was not taken is sent again.
constexpr Nanos kResendMoveNs = 200 * kMillisecond;

/// The record as it is now: refilled and expired up to this instant.
LedgerRecord aged_to_now(const AgedRecord& aged, Nanos now_ns) {
  lease::Ledger ledger(aged.record.bucket, aged.record.ledger, aged.age_ns, {}, now_ns);
  LedgerRecord record = ledger.record(now_ns);
  record.generation = aged.record.ledger.generation;
  return record;
}

}  // namespace

bool Host::leaves(const OwnerKey& key) const {
  const auto found = leaving_customers_.find(key.customer);
  return found != leaving_customers_.end() && found->second.from == key.reg;
}

/// Starts what is due, and repeats what was not taken.
void Host::move_customers(Nanos now_ns, Effects& out) {
  if (!topology_.next || assumed_) return;
  // Of registers that were lost meanwhile the next owner takes care.
  std::erase_if(leaving_customers_, [&](const auto& item) {
    const Leaving& leaving = item.second;
    return !owns(leaving.from) || seat(leaving.from)->epoch() != leaving.epoch;
  });
  for (const TopologyView::Repin& repin : view_->repinned()) {
    if (moved_customers_.contains(repin.customer) || !owns(repin.from)) continue;
    if (seat(repin.from)->stage() != topology_.last_stage()) continue;
    auto [at, is_new] = leaving_customers_.try_emplace(repin.customer);
    Leaving& leaving = at->second;
    if (is_new) {
      leaving.from = repin.from;
      leaving.to = repin.to;
      leaving.epoch = seat(repin.from)->epoch();
      leaving.after = customer_prefix(repin.customer);
      const OwnerKey key{repin.from, repin.customer};
      if (const auto running = owners_.find(key); running != owners_.end()) {
        const std::uint64_t activation = running->second.activation;
        out.owners.push_back(OwnerStop{key, activation});
        owner_died(key, activation);
      }
      list_customer(leaving, now_ns, out);
    } else if (leaving.token != 0 && now_ns - leaving.sent_ns >= kResendMoveNs) {
      send_move(repin.customer, leaving, now_ns);
    }
  }
  drain(now_ns, out);
}

void Host::list_customer(Leaving& leaving, Nanos now_ns, Effects& out) {
  leaving.ticket = ++ticket_;
  leaving.token = 0;
  auto& place = *places_.find(leaving.from);
  Seat::Effects did;
  place.second.seat.list(leaving.ticket, leaving.after, now_ns, did);
  take_seat(place, std::move(did), now_ns, out);
}

/// A page of what the old register has: committed there as moved before anybody hears of it.
void Host::listed_customer(Seat::Listed& listed, Nanos now_ns, Effects& out) {
  const auto found =
      std::find_if(leaving_customers_.begin(), leaving_customers_.end(),
                   [&](const auto& item) { return item.second.ticket == listed.ticket; });
  if (found == leaving_customers_.end() || !topology_.next) return;
  Leaving& leaving = found->second;
  const std::string prefix = customer_prefix(found->first);
  leaving.records.clear();
  leaving.last = listed.last;
  leaving.after = listed.reach;
  std::vector<std::pair<std::string, LedgerRecord>> moved;
  for (AgedRecord& aged : listed.records) {
    if (!aged.record.bucket.starts_with(prefix)) {
      leaving.last = true;
      break;
    }
    LedgerRecord ledger = aged_to_now(aged, now_ns);
    leaving.records.push_back({{aged.record.bucket, aged.record.version, ledger}, 0});
    ledger.moved_under = topology_.next->version;
    moved.emplace_back(std::move(aged.record.bucket), std::move(ledger));
  }
  leaving.sent_ns = now_ns;
  leaving.ticket = ++ticket_;
  auto& place = *places_.find(leaving.from);
  Seat::Effects did;
  if (moved.empty()) {
    did.committed.push_back(leaving.ticket);
  } else if (!place.second.seat.submit(leaving.ticket, std::move(moved), now_ns, did)) {
    leaving_customers_.erase(found);
  }
  take_seat(place, std::move(did), now_ns, out);
}

/// A commit of moved buckets is stored, here or in their new register. False: it was another's.
bool Host::committed_move(std::uint64_t ticket, Nanos now_ns) {
  if (auto taken = taking_.extract(ticket)) {
    route(taken.mapped().first, taken.mapped().second);
    return true;
  }
  const auto found = std::find_if(leaving_customers_.begin(), leaving_customers_.end(),
                                  [&](const auto& item) { return item.second.ticket == ticket; });
  if (found == leaving_customers_.end()) return false;
  Leaving& leaving = found->second;
  leaving.ticket = 0;
  leaving.token = ++ticket_;
  send_move(found->first, leaving, now_ns);
  return true;
}

void Host::send_move(const std::string& customer, Leaving& leaving, Nanos now_ns) {
  // What is refilled, and what runs out, meanwhile is the new owner's to add.
  for (AgedRecord& aged : leaving.records) {
    aged.age_ns = add_saturating(aged.age_ns, now_ns - leaving.sent_ns);
  }
  leaving.sent_ns = now_ns;
  const std::string owner = owner_of(leaving.to, now_ns);
  if (owner.empty() || !topology_.next) return;
  route(owner,
        MoveOver{leaving.to, topology_.next->version, customer, leaving.token, leaving.records});
}

/// The new register's owner stores what came, before it says that it has it.
void Host::on_move(const std::string& from, const MoveOver& move, Nanos now_ns, Effects& out) {
  if (!topology_.next || topology_.next->version != move.version || !owns(move.reg)) return;
  const MovedOver moved{move.reg, move.version, move.customer, move.token};
  if (move.records.empty()) return route(from, moved);
  std::vector<std::pair<std::string, LedgerRecord>> records;
  for (const AgedRecord& aged : move.records) {
    LedgerRecord ledger = aged_to_now(aged, now_ns);
    if (WEIR_MUTANT(moved_as_new)) {
      ledger.level = ledger.numbers.capacity;
      ledger.lessees.clear();
    }
    records.emplace_back(aged.record.bucket, std::move(ledger));
  }
  const std::uint64_t ticket = ++ticket_;
  taking_[ticket] = {from, moved};
  auto& place = *places_.find(move.reg);
  Seat::Effects did;
  if (!place.second.seat.submit(ticket, std::move(records), now_ns, did)) taking_.erase(ticket);
  take_seat(place, std::move(did), now_ns, out);
}

void Host::on_moved(const MovedOver& moved, Nanos now_ns, Effects& out) {
  const auto found = leaving_customers_.find(moved.customer);
  if (found == leaving_customers_.end() || !topology_.next) return;
  Leaving& leaving = found->second;
  if (moved.version != topology_.next->version || moved.token != leaving.token) return;
  if (!leaving.last) return list_customer(leaving, now_ns, out);
  moved_customers_.insert(moved.customer);
  leaving.token = 0;
  leaving.records.clear();
  reported_ns_ = INT64_MIN / 2;
}

}  // namespace weir::ownership
