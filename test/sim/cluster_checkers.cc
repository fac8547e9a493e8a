#include "test/sim/cluster_checkers.h"

#include <algorithm>

namespace weir::sim {
namespace {

std::string name_of(const std::string& bucket) {
  const auto key = decode_bucket_key(bucket);
  return key ? key->limit + " of " + key->customer : bucket;
}

std::int64_t outstanding(const LedgerRecord& record, Nanos age_ns) {
  std::int64_t sum = 0;
  for (const LesseeRecord& lessee : record.lessees) {
    if (lessee.ttl_remaining_ns > age_ns) sum = add_saturating(sum, lessee.outstanding);
  }
  return sum;
}

std::int64_t room_beside(const LedgerRecord& record, Nanos age_ns) {
  return std::max<std::int64_t>(
      0, subtract_saturating(record.numbers.capacity, outstanding(record, age_ns)));
}

/// What is free by a record of this age: until a lease ends, what flows in stops below it (D5).
std::int64_t level_at(const LedgerRecord& record, Nanos age_ns) {
  std::vector<Nanos> instants = {age_ns};
  for (const LesseeRecord& lessee : record.lessees) {
    if (lessee.ttl_remaining_ns < age_ns) instants.push_back(lessee.ttl_remaining_ns);
  }
  std::sort(instants.begin(), instants.end());
  limit::Level level{record.level, record.fraction};
  Nanos from_ns = 0;
  for (const Nanos to_ns : instants) {
    const Nanos before_ns = std::max<Nanos>(from_ns, to_ns - 1);
    level = limit::refill(level, record.numbers, to_ns - from_ns, room_beside(record, before_ns));
    from_ns = to_ns;
  }
  return level.tokens;
}

}  // namespace

const AgedRecord* BucketCopies::newest() const {
  const AgedRecord* best = nullptr;
  for (const Copy& copy : copies) {
    if (!copy.record) continue;
    if (best == nullptr || best->record.version < copy.record->record.version) {
      best = &*copy.record;
    }
  }
  return best;
}

std::pair<Nanos, Nanos> BucketCopies::ages() const {
  const AgedRecord* best = newest();
  std::pair<Nanos, Nanos> result{kForever, 0};
  for (const Copy& copy : copies) {
    if (!copy.record || copy.record->record.version != best->record.version) continue;
    result.first = std::min(result.first, copy.record->age_ns);
    result.second = std::max(result.second, copy.record->age_ns);
  }
  return result;
}

Version AgreementChecker::committed_version(const BucketCopies& copies) const {
  const auto found = committed_.find({copies.reg, copies.bucket});
  return found == committed_.end() ? Version{} : found->second;
}

void AgreementChecker::committed(const BucketCopies& copies, const Epoch& epoch, Nanos true_ns) {
  const AgedRecord* newest = nullptr;
  for (const auto& copy : copies.copies) {
    if (!copy.record || copy.record->record.version.epoch != epoch) continue;
    if (newest == nullptr || newest->record.version < copy.record->record.version) {
      newest = &*copy.record;
    }
  }
  if (newest == nullptr) return;
  Version& known = committed_[{copies.reg, copies.bucket}];
  known = std::max(known, newest->record.version);
  // Its owner may hear of a commit after the next owner has made another.
  const std::pair now{newest->record.version, newest->record.ledger.policy_version};
  auto& highest = policies_[copies.bucket];
  if (now.first > highest.first && now.second < highest.second) {
    violated(true_ns, name_of(copies.bucket) + ": committed by policy " +
                          std::to_string(now.second) + " after policy " +
                          std::to_string(highest.second));
  }
  if (now.first > highest.first) highest = now;
  sampled(copies, true_ns);
}

void AgreementChecker::sampled(const BucketCopies& copies, Nanos true_ns) {
  judge();
  const Version known = committed_version(copies);
  std::size_t lacking = 0;
  for (const auto& copy : copies.copies) {
    if (!copy.votes) continue;
    if ((copy.record ? copy.record->record.version : Version{}) < known) ++lacking;
  }
  if (lacking * 2 <= copies.copies.size()) return;
  violated(true_ns, name_of(copies.bucket) + ": " + std::to_string(lacking) + " of " +
                        std::to_string(copies.copies.size()) +
                        " stores vote without the committed version " + to_string(known.epoch) +
                        "/" + std::to_string(known.sequence));
}

namespace {

/// A record that is committed or newer counts so much as out to this lessee. `node` empty: to the
/// relay with this incarnation, whatever its node.
bool is_backed(const BucketCopies& copies, const Version& committed, const LesseeId& lessee,
               std::int64_t tokens) {
  for (const auto& copy : copies.copies) {
    if (!copy.record || copy.record->record.version < committed) continue;
    for (const LesseeRecord& entry : copy.record->record.ledger.lessees) {
      const bool same = entry.lessee.incarnation == lessee.incarnation &&
                        (lessee.node.empty() ? entry.relay : entry.lessee.node == lessee.node);
      if (same && entry.outstanding >= tokens && entry.ttl_remaining_ns > copy.record->age_ns) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

void ConservationChecker::sampled(const BucketCopies& copies, const Version& committed,
                                  const std::vector<LiveLease>& leases,
                                  const std::vector<RelayLevel>& relays, std::int64_t capacity,
                                  Nanos true_ns) {
  std::int64_t held = 0;
  std::map<std::uint64_t, std::int64_t> lent;  // by the relay's incarnation
  for (const RelayLevel& relay : relays) {
    lent[relay.grantor] += relay.level;
    held = add_saturating(held, relay.level);
  }
  for (const LiveLease& lease : leases) {
    judge();
    held = add_saturating(held, lease.held);
    if (lease.grantor != 0) {
      lent[lease.grantor] += lease.held;
    } else if (!forgets_ && !is_backed(copies, committed, lease.lessee, lease.held)) {
      violated(true_ns, lease.lessee.node + " may spend " + std::to_string(lease.held) +
                            " tokens of " + name_of(copies.bucket) +
                            " that no committed record counts as out");
    }
  }
  for (const auto& [grantor, tokens] : lent) {
    if (tokens == 0 || forgets_ || is_backed(copies, committed, {"", grantor}, tokens)) continue;
    violated(true_ns, "a relay's lease " + std::to_string(grantor) + " and those under it are " +
                          std::to_string(tokens) + " tokens of " + name_of(copies.bucket) +
                          " that no committed record counts as out");
  }
  if (held > capacity) {
    violated(true_ns, "edges hold " + std::to_string(held) + " of " + name_of(copies.bucket) +
                          " with capacity " + std::to_string(capacity));
  }
  const AgedRecord* newest = copies.newest();
  if (newest == nullptr) return;
  const LedgerRecord& ledger = newest->record.ledger;
  const std::int64_t room =
      std::max<std::int64_t>(0, ledger.numbers.capacity - outstanding(ledger, 0));
  if (ledger.level > room) {
    violated(true_ns, "the record of " + name_of(copies.bucket) + " has " +
                          std::to_string(ledger.level) + " free beside " +
                          std::to_string(outstanding(ledger, 0)) + " out");
  }
}

void ConservationChecker::activated(const BucketCopies& copies, const Version& loaded,
                                    const LimitNumbers& numbers, std::int64_t tokens,
                                    Nanos slack_ns, Nanos true_ns) {
  const AgedRecord* newest = copies.newest();
  if (forgets_ || newest == nullptr || newest->record.version != loaded) return;
  const LedgerRecord& ledger = newest->record.ledger;
  if (ledger.numbers != numbers || ledger.window_end_ns != 0) return;
  judge();
  const auto [youngest_ns, oldest_ns] = copies.ages();
  const std::int64_t most = level_at(ledger, oldest_ns + slack_ns) +
                            outstanding(ledger, std::max<Nanos>(0, youngest_ns - slack_ns)) + 1;
  if (tokens <= most) return;
  violated(true_ns, "an owner begins with " + std::to_string(tokens) + " tokens of " +
                        name_of(copies.bucket) + " where the record gives " + std::to_string(most));
}

void ConservationChecker::spent_late(const std::string& edge, const std::string& bucket,
                                     Nanos true_ns) {
  violated(true_ns, edge + " admits by a lease of " + name_of(bucket) + " after its deadline");
}

void ConservationChecker::watch_excess(const BucketCopies& copies, Nanos true_ns) {
  constexpr Nanos kJitterNs = 200 * kMillisecond;
  auto& ends_ns = excess_ends_ns_[copies.bucket];
  const AgedRecord* newest = copies.newest();
  if (forgets_ || newest == nullptr || newest->record.ledger.window_end_ns != 0 ||
      outstanding(newest->record.ledger, 0) <= newest->record.ledger.numbers.capacity) {
    ends_ns.clear();
    return;
  }
  judge();
  const Nanos age_ns = copies.ages().second;
  for (const LesseeRecord& lessee : newest->record.ledger.lessees) {
    const Nanos end_ns = true_ns - age_ns + lessee.ttl_remaining_ns;
    const Nanos before_ns = ends_ns.try_emplace(lessee.lessee, end_ns).first->second;
    if (end_ns <= before_ns + kJitterNs) continue;
    violated(true_ns, lessee.lessee.node + " keeps tokens of " + name_of(copies.bucket) +
                          " longer though more is out than the lowered limit allows");
  }
}

void DenialChecker::sampled(const BucketCopies& copies, std::int64_t cost, Nanos true_ns) {
  const AgedRecord* newest = copies.newest();
  if (newest == nullptr) {  // never booked: new, full
    full_.try_emplace(copies.bucket, Full{{}, true_ns});
    return;
  }
  // Below the ceiling tokens may be saved for a larger need (E6).
  const LedgerRecord& ledger = newest->record.ledger;
  const auto is_full = [&](Nanos age_ns) {
    return level_at(ledger, age_ns) >= std::max(cost, room_beside(ledger, age_ns));
  };
  const auto found = full_.find(copies.bucket);
  const bool is_new = found == full_.end() || found->second.version != newest->record.version;
  // A record is as old as its commit took when it is first seen here, and its bucket may have
  // filled up since: what counts is the instant that it was taken at.
  if (is_new && !is_full(0) && found != full_.end()) full_.erase(found);
  // An owner may have heard only those whose age is too small since they rebooted (B9).
  if (!is_full(copies.ages().first)) {
    full_.erase(copies.bucket);
    return;
  }
  full_.try_emplace(copies.bucket, Full{{}, true_ns}).first->second.version =
      newest->record.version;
}

void DenialChecker::denied(const std::string& bucket, Nanos quiet_since_ns, Nanos allowance_ns,
                           Nanos denied_ns, Nanos true_ns) {
  judge();
  const auto found = full_.find(bucket);
  if (found == full_.end()) return;
  const Nanos since_ns = found->second.since_ns;
  if (denied_ns - std::max(since_ns, quiet_since_ns) <= allowance_ns) return;
  violated(true_ns, name_of(bucket) + " denied at " + std::to_string(denied_ns / kMicrosecond) +
                        " us though its record has had enough for " +
                        std::to_string((true_ns - since_ns) / kMillisecond) + " ms");
}

}  // namespace weir::sim
