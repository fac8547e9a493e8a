// One seat, with the rest of its replica set played by hand, for tests of rules.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/ownership/seat.h"

namespace weir::ownership {

inline const RegisterId kReg{RegisterId::Kind::global, "", 7};
inline constexpr SeatConfig kConfig;
inline constexpr Nanos kStart = 1000 * kSecond;

/// The seat of `self` in the set a, b, c; what it sends is kept by kind.
class Bench {
 public:
  explicit Bench(std::string self = "a")
      : self_(std::move(self)), seat(kReg, self_, 77, kConfig, Random(1), kStart) {
    Layout layout;
    layout.quorums = {{{"a", "b", "c"}}};
    seat.set_layout(layout, now_ns, did);
  }

  void tick(const Seat::Claim& claim = {}, const std::vector<StoreMark>& known = {}) {
    seat.tick(claim, known, now_ns, did);
  }
  /// Ticks whenever the seat wants it, for `span_ns`.
  void run(Nanos span_ns, const Seat::Claim& claim = {}, const std::vector<StoreMark>& known = {}) {
    const Nanos end_ns = now_ns + span_ns;
    while (seat.next_deadline() <= end_ns) {
      now_ns = std::max(now_ns + 1, seat.next_deadline());
      tick(claim, known);
    }
    now_ns = end_ns;
  }
  /// The same once, at a later time: a claim has grown old.
  void tick_after(Nanos span_ns, const Seat::Claim& claim) {
    now_ns += span_ns;
    tick(claim);
  }
  template <typename Reply>
  void hear(const std::string& from, const Reply& reply) {
    seat.on(from, reply, now_ns, did);
  }
  /// Messages of one kind that have been sent since the last call, with their receivers.
  template <typename Message>
  std::vector<std::pair<std::string, Message>> sent() {
    std::vector<std::pair<std::string, Message>> result;
    for (const auto& [to, message] : did.send) {
      if (const auto* found = std::get_if<Message>(&message)) result.emplace_back(to, *found);
    }
    std::erase_if(did.send,
                  [](const auto& item) { return std::holds_alternative<Message>(item.second); });
    return result;
  }
  void poll_replies(const std::string& from, bool misses, const std::string& owner = {}) {
    const auto polls = sent<Poll>();
    if (!polls.empty()) poll_token_ = polls.back().second.token;
    PollReply reply;
    reply.reg = kReg;
    reply.token = poll_token_;
    reply.misses = misses;
    reply.owner = owner;
    hear(from, reply);
  }
  /// Everybody misses the owner, if there was one: it prepares.
  void prepares() {
    run(3 * kSecond);
    for (const char* node : {"a", "b", "c"}) poll_replies(node, true);
  }
  void promises(const std::string& from, bool votes, std::vector<StoreMark> first_start = {},
                std::uint32_t number = 1) {
    auto reply = by<Promise>(from, number);
    reply.promised = true;
    reply.votes = votes;
    reply.first_start = std::move(first_start);
    hear(from, reply);
  }
  /// Owns with the votes of all.
  void owns() {
    prepares();
    for (const char* node : {"a", "b", "c"}) promises(node, true);
    ASSERT_TRUE(seat.active());
    did = {};
  }
  void submit(std::uint64_t ticket, std::int64_t level) {
    LedgerRecord ledger;
    ledger.level = level;
    EXPECT_TRUE(seat.submit(ticket, {{"bucket " + std::to_string(ticket), ledger}}, now_ns, did));
  }
  void accepts(const std::string& from, std::uint64_t commit, std::uint32_t number = 1) {
    auto reply = by<Accepted>(from, number);
    reply.commit = commit;
    reply.accepted = true;
    hear(from, reply);
  }
  void refuses(const std::string& from, const Epoch& highest) {
    auto reply = by<Accepted>(from, 1);
    reply.highest = highest;
    hear(from, reply);
  }
  void installed(const std::string& from, std::uint64_t token, std::uint32_t number) {
    auto reply = by<Installed>(from, number);
    reply.token = token;
    reply.accepted = true;
    hear(from, reply);
  }
  /// An answer to this seat's epoch by the store of a node.
  template <typename Reply>
  Reply by(const std::string& node, std::uint32_t number = 1) const {
    Reply reply;
    reply.reg = kReg;
    reply.epoch = reply.highest = seat.epoch();
    reply.store = {node, number};
    return reply;
  }

 private:
  std::string self_;
  std::uint64_t poll_token_ = 0;

 public:
  Nanos now_ns = kStart;
  Seat::Effects did;
  Seat seat;
};

inline AgedRecord aged(std::uint64_t sequence, std::int64_t level, Nanos age_ns) {
  AgedRecord result;
  result.record.bucket = "x";
  result.record.version = {{1, "z", 1}, sequence};
  result.record.ledger.level = level;
  result.age_ns = age_ns;
  return result;
}

}  // namespace weir::ownership
