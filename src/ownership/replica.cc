#include "src/ownership/replica.h"

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"

namespace weir::ownership {
namespace {

const RegisterState kUntouched;

}  // namespace

void merge_marks(std::vector<StoreMark>& known, const std::vector<StoreMark>& other) {
  for (const StoreMark& mark : other) {
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&](const StoreMark& own) { return own.node == mark.node; });
    if (at == known.end()) {
      known.push_back(mark);
    } else {
      at->number = std::max(at->number, mark.number);
    }
  }
}

std::uint32_t number_of(const std::vector<StoreMark>& marks, const std::string& node) {
  for (const StoreMark& mark : marks) {
    if (mark.node == node) return mark.number;
  }
  return 0;
}

Replica::Replica(StoreMark own, std::map<RegisterId, RegisterState> states,
                 const RecordReader& records)
    : own_(std::move(own)), states_(std::move(states)), records_(records) {}

const RegisterState& Replica::state(const RegisterId& reg) const {
  const auto found = states_.find(reg);
  return found == states_.end() ? kUntouched : found->second;
}

std::uint64_t Replica::stage_of(const RegisterState& state) const {
  return std::max(floor_, state.stage);
}

/// B1: strictly above the promise, or the same epoch again; J2: not under an earlier stage.
template <typename Message>
bool Replica::may_promise(const RegisterState& state, const Message& message) const {
  return message.epoch >= state.promise && message.stage >= stage_of(state);
}

void Replica::refuse(const std::string& from, RegisterMessage message, Effects& out) const {
  out.answers.push_back({from, std::move(message)});
}

void Replica::answer_after(Write write, const std::string& to, RegisterMessage message,
                           Effects& out) {
  write.token = next_token_++;
  if (!write.state && unsure_.contains(write.reg)) write.state = state(write.reg);
  unsure_.erase(write.reg);
  if (write.state) states_[write.reg] = *write.state;
  for (const StoredRecord& record : write.records) {
    accepting_[{write.reg, record.bucket}] = {write.token, record.version};
  }
  for (const AgedRecord& copy : write.copies) {
    accepting_[{write.reg, copy.record.bucket}] = {write.token, copy.record.version};
  }
  pending_.push_back({write.token, write.reg, {to, std::move(message)}});
  out.writes.push_back(std::move(write));
}

/// What a message promises besides: its epoch and its stage.
template <typename Message>
void Replica::keep_promise(const RegisterState& held, const Message& message, Write& write) const {
  if (held.promise == message.epoch && held.stage == message.stage) return;
  write.state = held;
  write.state->promise = message.epoch;
  write.state->stage = message.stage;
}

/// Whether this store may do what a prepare with a list asks (C3): joining is not voting, and a
/// store that does not vote may join a later list; it votes by the list that it has joined.
bool Replica::follows(const RegisterState& state, const Prepare& message) const {
  const std::vector<StoreMark>& list = message.first_start;
  const bool listed = own_.number != 0 && std::find(list.begin(), list.end(), own_) != list.end();
  if (message.begin) return listed && state.first_start == list;
  if (!message.enlists && message.stage < starts_) return false;
  return listed && (message.enlists || !state.votes);
}

bool Replica::votes_anywhere() const {
  return std::any_of(states_.begin(), states_.end(),
                     [](const auto& item) { return item.second.votes; });
}

void Replica::prepare(const std::string& from, const Prepare& message, Effects& out) {
  const RegisterState& held = state(message.reg);
  Promise reply;
  reply.reg = message.reg;
  reply.epoch = message.epoch;
  reply.highest = held.promise;
  reply.stage = std::max(message.stage, stage_of(held));
  reply.store = own_;
  const bool lists = !message.first_start.empty();
  if (!may_promise(held, message) || (lists && !follows(held, message))) {
    reply.votes = held.votes;
    reply.known = held.known;
    reply.first_start = held.first_start;
    reply.generation = held.generation;
    refuse(from, std::move(reply), out);
    return;
  }
  RegisterState next = held;
  next.promise = message.epoch;
  next.stage = message.stage;
  merge_marks(next.known, message.known);
  if (lists) {
    if (!message.enlists) next.first_start = message.first_start;
    next.votes = next.votes || message.begin || message.enlists || WEIR_MUTANT(votes_on_join);
    merge_marks(next.known, message.first_start);
  }
  if (WEIR_MUTANT(wiped_votes_at_once)) next.votes = true;
  reply.promised = true;
  reply.highest = message.epoch;
  reply.votes = next.votes;
  reply.known = next.known;
  reply.first_start = next.first_start;
  reply.generation = next.generation;
  Write write;
  write.reg = message.reg;
  if (next != held) write.state = next;
  if (WEIR_MUTANT(promise_not_durable) && !lists) {
    states_[write.reg] = next;
    write.state.reset();
  }
  answer_after(std::move(write), from, std::move(reply), out);
}

void Replica::read(const std::string& from, const Read& message, Effects& out) {
  const RegisterState& held = state(message.reg);
  ReadReply reply;
  reply.reg = message.reg;
  reply.epoch = message.epoch;
  reply.token = message.token;
  reply.store = own_;
  reply.votes = held.votes;
  reply.highest = held.promise;
  reply.stage = std::max(message.stage, stage_of(held));
  if (!may_promise(held, message)) {
    refuse(from, std::move(reply), out);
    return;
  }
  reply.accepted = true;
  reply.highest = message.epoch;
  // The record is looked at when everything handed over before has been stored: see fill().
  reply.record.emplace();
  reply.record->record.bucket = message.bucket;
  Write write;
  write.reg = message.reg;
  if (!WEIR_MUTANT(read_unfenced)) keep_promise(held, message, write);
  answer_after(std::move(write), from, std::move(reply), out);
}

void Replica::scan(const std::string& from, const Scan& message, Effects& out) {
  const RegisterState& held = state(message.reg);
  ScanReply reply;
  reply.reg = message.reg;
  reply.epoch = message.epoch;
  reply.token = message.token;
  reply.store = own_;
  reply.votes = held.votes;
  reply.highest = held.promise;
  reply.stage = std::max(message.stage, stage_of(held));
  if (!may_promise(held, message)) {
    refuse(from, std::move(reply), out);
    return;
  }
  reply.accepted = true;
  reply.highest = message.epoch;
  reply.records.emplace_back().record.bucket = message.after;
  Write write;
  write.reg = message.reg;
  keep_promise(held, message, write);
  answer_after(std::move(write), from, std::move(reply), out);
}

std::optional<Version> Replica::newest(const RegisterId& reg, const std::string& bucket) const {
  const auto under_way = accepting_.find({reg, bucket});
  if (under_way != accepting_.end()) return under_way->second.version;
  const auto stored = records_.read_record(reg, bucket);
  if (!stored) return std::nullopt;
  return stored->has_value() ? (*stored)->record.version : Version{};
}

/// A record is stored unless the replica has, or is storing, a newer version of it (B5); an accept
/// also promises its epoch.
void Replica::accept(const std::string& from, const Accept& message, Effects& out) {
  const RegisterState& held = state(message.reg);
  Accepted reply;
  reply.reg = message.reg;
  reply.epoch = message.epoch;
  reply.commit = message.commit;
  reply.store = own_;
  reply.highest = held.promise;
  reply.stage = std::max(message.stage, stage_of(held));
  const bool refused = !may_promise(held, message) && !WEIR_MUTANT(stale_accepted);
  if (refused || !held.votes) {
    refuse(from, std::move(reply), out);
    return;
  }
  reply.accepted = true;
  reply.highest = message.epoch;
  Write write;
  write.reg = message.reg;
  keep_promise(held, message, write);
  for (const StoredRecord& record : message.records) {
    const auto have = newest(message.reg, record.bucket);
    if (!have) {
      // What cannot be read cannot be judged: refuse, and let the owner's majority do without.
      reply.accepted = false;
      refuse(from, std::move(reply), out);
      return;
    }
    if (*have > record.version && !WEIR_MUTANT(older_replaces_newer)) {
      reply.stale.push_back(record.bucket);
    } else if (*have != record.version) {
      write.records.push_back(record);
    }
  }
  answer_after(std::move(write), from, std::move(reply), out);
}

/// Copies for a store that learns; with the last page it votes. Only for this incarnation, and only
/// from an owner whom it may promise (C2).
void Replica::install(const std::string& from, const Install& message, Effects& out) {
  const RegisterState& held = state(message.reg);
  Installed reply;
  reply.reg = message.reg;
  reply.epoch = message.epoch;
  reply.token = message.token;
  reply.store = own_;
  reply.highest = held.promise;
  reply.stage = std::max(message.stage, stage_of(held));
  if (!may_promise(held, message) || message.store != own_) {
    refuse(from, std::move(reply), out);
    return;
  }
  reply.accepted = true;
  reply.highest = message.epoch;
  RegisterState next = held;
  next.promise = message.epoch;
  next.stage = message.stage;
  if (message.admit) {
    next.votes = true;
    next.first_start.clear();
    merge_marks(next.known, {own_});
  }
  Write write;
  write.reg = message.reg;
  if (next != held) write.state = next;
  for (const AgedRecord& copy : message.records) {
    const auto have = newest(message.reg, copy.record.bucket);
    if (!have) {
      reply.accepted = false;
      refuse(from, std::move(reply), out);
      return;
    }
    if (*have < copy.record.version) write.copies.push_back(copy);
  }
  answer_after(std::move(write), from, std::move(reply), out);
}

/// What a reader gets to see is what is stored when its answer leaves.
void Replica::fill(RegisterMessage& message) const {
  if (auto* reply = std::get_if<ReadReply>(&message); reply != nullptr && reply->accepted) {
    auto found = records_.read_record(reply->reg, reply->record->record.bucket);
    if (!found) {
      reply->accepted = false;
      reply->record.reset();
    } else {
      reply->record = std::move(*found);
    }
  }
  if (auto* reply = std::get_if<ScanReply>(&message); reply != nullptr && reply->accepted) {
    const std::string after = reply->records.front().record.bucket;
    auto found = records_.read_register(reply->reg, after, kScanPage);
    reply->accepted = found.has_value();
    reply->records = found ? std::move(*found) : std::vector<AgedRecord>{};
    reply->last = reply->records.size() < kScanPage;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < reply->records.size(); ++i) {
      const StoredRecord& record = reply->records[i].record;
      bytes += record_bytes(record.bucket, record.ledger);
      if (i == 0 || bytes <= kMaxRecordBytesPerMessage) continue;
      reply->records.resize(i);
      reply->last = false;
    }
  }
}

void Replica::stored(std::uint64_t token, Effects& out) {
  while (!pending_.empty() && pending_.front().token <= token) {
    Pending done = std::move(pending_.front());
    pending_.pop_front();
    fill(done.answer.message);
    out.answers.push_back(std::move(done.answer));
  }
  std::erase_if(accepting_, [&](const auto& item) { return item.second.token <= token; });
}

/// Answers behind it in the same register took it for granted (the same accept, sent again, writes
/// nothing): they are dropped with it, and asked for again.
void Replica::failed(std::uint64_t token) {
  std::erase_if(accepting_, [&](const auto& item) { return item.second.token == token; });
  const auto failed = std::find_if(pending_.begin(), pending_.end(),
                                   [&](const Pending& pending) { return pending.token == token; });
  if (failed == pending_.end()) return;
  const RegisterId reg = failed->reg;
  unsure_.insert(reg);
  std::erase_if(pending_, [&](const Pending& pending) {
    return pending.reg == reg && pending.token >= token;
  });
}

}  // namespace weir::ownership
