// The structured bindings name every member on purpose: one that is added to a message and not
// carried here is a compile error.
#include "src/codec/register_message.h"

#include <utility>

#include "src/codec/common_message.h"
#include "src/codec/ledger_message.h"
#include "weir/v1/cluster.pb.h"

namespace weir::codec {
namespace {

// Kinds on the wire, for ever: one above the place in RegisterMessage.
constexpr std::uint32_t kKinds = std::variant_size_v<RegisterMessage>;
static_assert(kKinds == 20);
/// Claims, beats, news and unmarked are about a node or the cluster, not about one register.
constexpr std::uint32_t kFirstKindWithoutRegister = 15;
constexpr std::uint32_t kLastKindWithoutRegister = 18;

void fill_mark(const StoreMark& from, v1::StoreMark& to) {
  to.set_node(from.node);
  to.set_number(from.number);
}

template <typename List>
void fill_marks(const std::vector<StoreMark>& from, List& to) {
  for (const StoreMark& mark : from) fill_mark(mark, *to.Add());
}

void add_record(const StoredRecord& record, Nanos age_ns, v1::RegisterMessage& to) {
  auto& out = *to.add_records();
  out.set_bucket(record.bucket);
  fill(record, *out.mutable_ledger());
  out.set_age_ns(age_ns);
}

void add_records(const std::vector<AgedRecord>& records, v1::RegisterMessage& to) {
  for (const AgedRecord& aged : records) add_record(aged.record, aged.age_ns, to);
}

void fill_place(const RegisterId& reg, const Epoch& epoch, v1::RegisterMessage& to) {
  fill(reg, *to.mutable_reg());
  fill(epoch, *to.mutable_epoch());
}

void fill_kind(const Prepare& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, first_start, begin, enlists, known, stage] = from;
  to.set_stage(stage);
  to.set_enlists(enlists);
  fill_place(reg, epoch, to);
  to.set_begin(begin);
  fill_marks(first_start, *to.mutable_first_start());
  fill_marks(known, *to.mutable_known());
}

void fill_kind(const Promise& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, promised, highest, store, votes, generation, known, first_start, stage] =
      from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_accepted(promised);
  fill(highest, *to.mutable_highest());
  fill_mark(store, *to.mutable_store());
  to.set_votes(votes);
  to.set_generation(generation);
  fill_marks(known, *to.mutable_known());
  fill_marks(first_start, *to.mutable_first_start());
}

void fill_kind(const Read& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, token, bucket, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(token);
  to.set_bucket(bucket);
}

void fill_kind(const ReadReply& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, token, accepted, highest, store, votes, record, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(token);
  to.set_accepted(accepted);
  fill(highest, *to.mutable_highest());
  fill_mark(store, *to.mutable_store());
  to.set_votes(votes);
  if (record) add_record(record->record, record->age_ns, to);
}

void fill_kind(const Accept& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, commit, records, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(commit);
  for (const StoredRecord& record : records) add_record(record, 0, to);
}

void fill_kind(const Accepted& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, commit, accepted, highest, store, stale, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(commit);
  to.set_accepted(accepted);
  fill(highest, *to.mutable_highest());
  fill_mark(store, *to.mutable_store());
  for (const std::string& bucket : stale) to.add_stale(bucket);
}

void fill_kind(const Poll& from, v1::RegisterMessage& to) {
  const auto& [reg, token] = from;
  fill(reg, *to.mutable_reg());
  to.set_token(token);
}

void fill_kind(const PollReply& from, v1::RegisterMessage& to) {
  const auto& [reg, token, misses, highest, owner] = from;
  fill(reg, *to.mutable_reg());
  to.set_token(token);
  to.set_misses(misses);
  fill(highest, *to.mutable_highest());
  to.set_owner(owner);
}

void fill_kind(const Scan& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, token, after, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(token);
  to.set_bucket(after);
}

void fill_kind(const ScanReply& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, token, accepted, highest, store, votes, records, last, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(token);
  to.set_accepted(accepted);
  fill(highest, *to.mutable_highest());
  fill_mark(store, *to.mutable_store());
  to.set_votes(votes);
  add_records(records, to);
  to.set_last(last);
}

void fill_kind(const Install& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, token, store, records, admit, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(token);
  fill_mark(store, *to.mutable_store());
  add_records(records, to);
  to.set_last(admit);
}

void fill_kind(const Installed& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch, token, accepted, highest, store, stage] = from;
  to.set_stage(stage);
  fill_place(reg, epoch, to);
  to.set_token(token);
  to.set_accepted(accepted);
  fill(highest, *to.mutable_highest());
  fill_mark(store, *to.mutable_store());
}

void fill_kind(const HandOver& from, v1::RegisterMessage& to) {
  const auto& [reg] = from;
  fill(reg, *to.mutable_reg());
}

void fill_kind(const Release& from, v1::RegisterMessage& to) {
  const auto& [reg, epoch] = from;
  fill_place(reg, epoch, to);
}

void fill_kind(const Claims& from, v1::RegisterMessage& to) {
  const auto& [generation, owned, incarnation] = from;
  to.set_token(generation);
  to.set_incarnation(incarnation);
  for (const auto& [reg, counter] : owned) {
    auto& claim = *to.add_claims();
    fill(reg, *claim.mutable_reg());
    claim.set_counter(counter);
  }
}

void fill_kind(const Beat& from, v1::RegisterMessage& to) {
  const auto& [incarnation, store, claims_generation, claims_seen, known, topology_stage, wall_ns] =
      from;
  to.set_stage(topology_stage);
  to.set_incarnation(incarnation);
  to.set_store_number(store);
  to.set_claims_generation(claims_generation);
  to.set_claims_seen(claims_seen);
  to.set_wall_ns(wall_ns);
  fill_marks(known, *to.mutable_known());
}

void fill_kind(const TopologyNews& from, v1::RegisterMessage& to) {
  const auto& [state] = from;
  to.set_bucket(encode(state));
}

void fill_kind(const Unmarked& from, v1::RegisterMessage& to) {
  const auto& [version, count, registers, moved] = from;
  for (const std::string& customer : moved) to.add_customers(customer);
  to.set_token(version);
  to.set_generation(count);
  for (const RegisterId& reg : registers) fill(reg, *to.add_claims()->mutable_reg());
}

void fill_kind(const MoveOver& from, v1::RegisterMessage& to) {
  const auto& [reg, version, customer, token, records] = from;
  fill(reg, *to.mutable_reg());
  to.set_version(version);
  to.set_customer(customer);
  to.set_token(token);
  add_records(records, to);
}

void fill_kind(const MovedOver& from, v1::RegisterMessage& to) {
  const auto& [reg, version, customer, token] = from;
  fill(reg, *to.mutable_reg());
  to.set_version(version);
  to.set_customer(customer);
  to.set_token(token);
}

StoreMark take_mark(v1::StoreMark& from) {
  return {std::move(*from.mutable_node()), from.number()};
}

template <typename List>
std::vector<StoreMark> take_marks(List& from) {
  std::vector<StoreMark> to;
  to.reserve(static_cast<std::size_t>(from.size()));
  for (auto& mark : from) to.push_back(take_mark(mark));
  return to;
}

std::vector<AgedRecord> take_records(v1::RegisterMessage& from) {
  std::vector<AgedRecord> to;
  to.reserve(static_cast<std::size_t>(from.records_size()));
  for (auto& record : *from.mutable_records()) {
    to.push_back(
        {take_record(std::move(*record.mutable_bucket()), record.ledger()), record.age_ns()});
  }
  return to;
}

Accept take_accept(v1::RegisterMessage& from) {
  Accept to{take(*from.mutable_reg()), take(*from.mutable_epoch()), from.token(), {}, from.stage()};
  to.records.reserve(static_cast<std::size_t>(from.records_size()));
  for (auto& record : *from.mutable_records()) {
    to.records.push_back(take_record(std::move(*record.mutable_bucket()), record.ledger()));
  }
  return to;
}

ReadReply take_read_reply(v1::RegisterMessage& from) {
  ReadReply to{take(*from.mutable_reg()),
               take(*from.mutable_epoch()),
               from.token(),
               from.accepted(),
               take(*from.mutable_highest()),
               take_mark(*from.mutable_store()),
               from.votes(),
               {},
               from.stage()};
  auto records = take_records(from);
  if (!records.empty()) to.record = std::move(records.front());
  return to;
}

Accepted take_accepted(v1::RegisterMessage& from) {
  Accepted to{take(*from.mutable_reg()),
              take(*from.mutable_epoch()),
              from.token(),
              from.accepted(),
              take(*from.mutable_highest()),
              take_mark(*from.mutable_store()),
              {},
              from.stage()};
  for (auto& bucket : *from.mutable_stale()) to.stale.push_back(std::move(bucket));
  return to;
}

Claims take_claims(v1::RegisterMessage& from) {
  Claims to{from.token(), {}, from.incarnation()};
  to.owned.reserve(static_cast<std::size_t>(from.claims_size()));
  for (auto& claim : *from.mutable_claims()) {
    to.owned.emplace_back(take(*claim.mutable_reg()), claim.counter());
  }
  return to;
}

Unmarked take_unmarked(v1::RegisterMessage& from) {
  Unmarked to{from.token(), from.generation(), {}, {}};
  for (auto& customer : *from.mutable_customers()) to.moved.push_back(std::move(customer));
  for (auto& claim : *from.mutable_claims()) to.registers.push_back(take(*claim.mutable_reg()));
  return to;
}

Status check_mark(const char* field, const v1::StoreMark& mark) {
  return check_name(field, mark.node(), true);
}

template <typename List>
Status check_marks(const char* field, const List& marks) {
  if (static_cast<std::size_t>(marks.size()) > kMaxStoreMarks) {
    return corrupt(field, "are more than a replica set may have");
  }
  for (const auto& mark : marks) {
    if (auto status = check_mark(field, mark); !status) return status;
  }
  return {};
}

Status check_records(const v1::RegisterMessage& message) {
  const auto count = static_cast<std::size_t>(message.records_size());
  if (count > kMaxRecordsPerMessage ||
      static_cast<std::size_t>(message.stale_size()) > kMaxRecordsPerMessage) {
    return corrupt("records", "are too many");
  }
  for (const auto& record : message.records()) {
    if (auto status = check_bucket(record.bucket()); !status) return status;
    if (auto status = check_ledger(record.ledger()); !status) return status;
    if (record.age_ns() < 0) return corrupt("records.age_ns", "must not be negative");
  }
  for (const std::string& bucket : message.stale()) {
    if (auto status = check_bucket(bucket); !status) return status;
  }
  return {};
}

Status check_claims(const v1::RegisterMessage& message) {
  if (static_cast<std::size_t>(message.claims_size()) > kMaxRegistersPerNode) {
    return corrupt("claims", "are more than a node may own");
  }
  for (const auto& claim : message.claims()) {
    if (auto status = check(claim.reg()); !status) return status;
  }
  return {};
}

}  // namespace

void fill(const RegisterMessage& from, v1::RegisterMessage& to) {
  to.set_kind(static_cast<std::uint32_t>(from.index()) + 1);
  std::visit([&to](const auto& what) { fill_kind(what, to); }, from);
}

Status check(const v1::RegisterMessage& message) {
  if (message.kind() < 1 || message.kind() > kKinds) return corrupt("kind", "is unknown");
  if (message.kind() < kFirstKindWithoutRegister || message.kind() > kLastKindWithoutRegister) {
    if (auto status = check(message.reg()); !status) return status;
  }
  for (const auto* epoch : {&message.epoch(), &message.highest()}) {
    if (auto status = check_name("epoch.node", epoch->node(), true); !status) return status;
  }
  if (auto s = check_mark("store.node", message.store()); !s) return s;
  if (auto s = check_marks("first_start", message.first_start()); !s) return s;
  if (auto s = check_marks("known", message.known()); !s) return s;
  if (auto s = check_name("owner", message.owner(), true); !s) return s;
  if (static_cast<std::size_t>(message.customers_size()) > kMaxMovedCustomers) {
    return corrupt("customers", "are too many");
  }
  if (message.kind() > kLastKindWithoutRegister && message.customer().empty()) {
    return corrupt("customer", "is missing");
  }
  if (message.kind() == 17) {
    if (auto state = decode_topology_state(message.bucket()); !state) {
      return corrupt("bucket", "is no state of a topology");
    }
  } else if (!message.bucket().empty()) {
    if (auto s = check_bucket(message.bucket()); !s) return s;
  }
  if (message.wall_ns() < 0) return corrupt("wall_ns", "must not be negative");
  if (auto s = check_records(message); !s) return s;
  return check_claims(message);
}

RegisterMessage take(v1::RegisterMessage& from) {
  const auto reg = [&from] { return take(*from.mutable_reg()); };
  const auto epoch = [&from] { return take(*from.mutable_epoch()); };
  const auto highest = [&from] { return take(*from.mutable_highest()); };
  const auto store = [&from] { return take_mark(*from.mutable_store()); };
  const auto known = [&from] { return take_marks(*from.mutable_known()); };
  const auto first_start = [&from] { return take_marks(*from.mutable_first_start()); };
  switch (from.kind()) {
    case 1:
      return Prepare{reg(),          epoch(), first_start(), from.begin(),
                     from.enlists(), known(), from.stage()};
    case 2:
      return Promise{reg(),        epoch(),           from.accepted(), highest(),     store(),
                     from.votes(), from.generation(), known(),         first_start(), from.stage()};
    case 3:
      return Read{reg(), epoch(), from.token(), std::move(*from.mutable_bucket()), from.stage()};
    case 4:
      return take_read_reply(from);
    case 5:
      return take_accept(from);
    case 6:
      return take_accepted(from);
    case 7:
      return Poll{reg(), from.token()};
    case 8:
      return PollReply{reg(), from.token(), from.misses(), highest(),
                       std::move(*from.mutable_owner())};
    case 9:
      return Scan{reg(), epoch(), from.token(), std::move(*from.mutable_bucket()), from.stage()};
    case 10:
      return ScanReply{reg(),   epoch(),      from.token(),       from.accepted(), highest(),
                       store(), from.votes(), take_records(from), from.last(),     from.stage()};
    case 11:
      return Install{reg(),       epoch(),     from.token(), store(), take_records(from),
                     from.last(), from.stage()};
    case 12:
      return Installed{reg(),     epoch(), from.token(), from.accepted(),
                       highest(), store(), from.stage()};
    case 13:
      return HandOver{reg()};
    case 14:
      return Release{reg(), epoch()};
    case 15:
      return take_claims(from);
    case 16:
      return Beat{from.incarnation(),
                  from.store_number(),
                  from.claims_generation(),
                  from.claims_seen(),
                  known(),
                  from.stage(),
                  from.wall_ns()};
    case 17: {
      auto state = decode_topology_state(from.bucket());
      return TopologyNews{state ? std::move(*state) : TopologyState{}};
    }
    case 18:
      return take_unmarked(from);
    case 19:
      return MoveOver{reg(), from.version(), std::move(*from.mutable_customer()), from.token(),
                      take_records(from)};
    default:
      return MovedOver{reg(), from.version(), std::move(*from.mutable_customer()), from.token()};
  }
}

}  // namespace weir::codec
