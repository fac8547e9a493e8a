#include "test/sim/say.h"

#include <variant>

namespace weir::sim {
namespace {

std::string marks(const std::vector<StoreMark>& list) {
  std::string text;
  for (const StoreMark& mark : list) text += " " + mark.node + "#" + std::to_string(mark.number);
  return text;
}

template <typename Message>
std::string about(const char* what, const Message& message) {
  return std::string(what) + " " + to_string(message.reg) + " " +
         std::to_string(message.epoch.counter) + "." + message.epoch.node + " stage " +
         std::to_string(message.stage);
}

template <typename Reply>
std::string refused(const Reply& reply) {
  return " refused for " + std::to_string(reply.highest.counter) + "." + reply.highest.node;
}

std::string say_one(const Prepare& m) {
  return about("prepare", m) + (m.begin ? " begin" : "") + (m.enlists ? " enlist" : "") +
         marks(m.first_start);
}
std::string say_one(const Promise& m) {
  return about("promise", m) + " of #" + std::to_string(m.store.number) +
         (m.promised ? "" : refused(m)) + (m.votes ? " votes" : "") + marks(m.first_start);
}
std::string say_one(const Read& m) { return about("read", m); }
std::string say_one(const ReadReply& m) {
  return about("read reply", m) + (m.accepted ? (m.votes ? "" : " no vote") : refused(m));
}
std::string say_one(const Accept& m) {
  return about("accept", m) + " commit " + std::to_string(m.commit) + " of " +
         std::to_string(m.records.size());
}
std::string say_one(const Accepted& m) {
  return about("accepted", m) + " commit " + std::to_string(m.commit) +
         (m.accepted ? "" : refused(m));
}
std::string say_one(const Scan& m) { return about("scan", m); }
std::string say_one(const ScanReply& m) {
  return about("scan reply", m) + " with " + std::to_string(m.records.size()) +
         (m.accepted ? "" : refused(m));
}
std::string say_one(const Install& m) {
  return about("install", m) + " in #" + std::to_string(m.store.number) + " " +
         std::to_string(m.records.size()) + (m.admit ? " admit" : "");
}
std::string say_one(const Installed& m) {
  return about("installed", m) + (m.accepted ? "" : refused(m));
}
std::string say_one(const Poll& m) { return "poll " + to_string(m.reg); }
std::string say_one(const PollReply& m) {
  return "poll reply " + to_string(m.reg) + (m.misses ? " misses" : " has " + m.owner);
}
std::string say_one(const HandOver& m) { return "hand over " + to_string(m.reg); }
std::string say_one(const Release& m) { return "release " + to_string(m.reg); }
std::string say_one(const Claims& m) { return "claims " + std::to_string(m.owned.size()); }
std::string say_one(const TopologyNews& m) {
  return "topology stage " + std::to_string(m.state.stage());
}
std::string say_one(const Unmarked& m) {
  std::string text =
      "unmarked " + std::to_string(m.count) + " of version " + std::to_string(m.version);
  for (const RegisterId& reg : m.registers) text += " " + to_string(reg);
  for (const std::string& customer : m.moved) text += " moved " + customer;
  return text;
}
std::string say_one(const MoveOver& m) {
  return "move over " + m.customer + " to " + to_string(m.reg) + " with " +
         std::to_string(m.records.size());
}
std::string say_one(const MovedOver& m) { return "moved over " + m.customer; }
std::string say_one(const Beat& m) { return "beat" + marks(m.known); }

}  // namespace

std::string say(const RegisterMessage& message) {
  return std::visit([](const auto& what) { return say_one(what); }, message);
}

std::string say(const LeaseRequest& request) {
  return "asks " + to_string(request.reg) + " lessee " +
         std::to_string(request.lessee.incarnation % 1000) + " #" +
         std::to_string(request.sequence) + " held " + std::to_string(request.held) + " spent " +
         std::to_string(request.spent_total) + " need " + std::to_string(request.need) + " want " +
         std::to_string(request.want);
}

std::string say(const LeaseAnswer& answer) {
  return "answers lessee " + std::to_string(answer.lessee.incarnation % 1000) + " #" +
         std::to_string(answer.sequence) + " " + to_string(answer.status) + " " +
         std::to_string(answer.granted) + " level " + std::to_string(answer.level) + " out " +
         std::to_string(answer.outstanding) +
         (answer.window_left_ns == 0
              ? ""
              : " left " + std::to_string(answer.window_left_ns / kMillisecond) + " ms") +
         (answer.ttl_ns == 0 ? "" : " ttl " + std::to_string(answer.ttl_ns / kMillisecond)) +
         (answer.owner_hint.empty() ? "" : " ask " + answer.owner_hint);
}

}  // namespace weir::sim
