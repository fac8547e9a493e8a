// Goal: what a node believes of its peers follows from their frames alone. Method: two tables talk
// through the test's hands on a clock of its own.
#include "actors/peers.h"

#include <gtest/gtest.h>

namespace weir::actors {
namespace {

codec::Hello hello_of(const std::string& node, std::uint64_t incarnation, bool edge = true,
                      bool owner = true) {
  codec::Hello hello;
  hello.node = node;
  hello.incarnation = incarnation;
  hello.region = "eu";
  hello.edge = edge;
  hello.owner = owner;
  return hello;
}

/// Tables of a and b with a link and a way of `delay_ns` in each direction.
struct Pair {
  PeerTable a{hello_of("a", 1), 1};
  PeerTable b{hello_of("b", 2), 1};
  Nanos now_ns = 100 * kSecond;
  Nanos delay_ns = 10 * kMillisecond;
  PeerTable::Turn at_a;
  PeerTable::Turn at_b;

  Pair() {
    a.on_link("b", true, now_ns, at_a);
    b.on_link("a", true, now_ns, at_b);
    exchange();
  }
  void exchange() {
    const auto from_a = std::exchange(at_a.heartbeats, {});
    const auto from_b = std::exchange(at_b.heartbeats, {});
    now_ns += delay_ns;
    for (const auto& frame : from_a) EXPECT_TRUE(b.on_frame(frame, now_ns, at_b));
    for (const auto& frame : from_b) EXPECT_TRUE(a.on_frame(frame, now_ns, at_a));
  }
  void beat() {
    now_ns += kHeartbeatNs;
    a.on_tick(now_ns, at_a);
    b.on_tick(now_ns, at_b);
    exchange();
  }
};

TEST(Peers, HelloMakesAPeerKnownAndConnectedOnce) {
  Pair pair;
  for (int i = 0; i < 5; ++i) pair.beat();
  ASSERT_EQ(pair.at_a.changed.size(), 1U);
  EXPECT_TRUE(pair.at_a.changed[0].connected);
  EXPECT_EQ(pair.at_a.changed[0].incarnation, 2U);
  EXPECT_EQ(pair.at_a.changed[0].region, "eu");
  EXPECT_TRUE(pair.at_a.changed[0].owner);
}

TEST(Peers, RoundTripLeavesOutTheTimeThatTheEchoWaited) {
  Pair pair;
  for (int i = 0; i < 50; ++i) pair.beat();
  EXPECT_EQ(pair.a.find("b")->round_trip_ns, 2 * pair.delay_ns);
  pair.delay_ns = 40 * kMillisecond;
  for (int i = 0; i < 100; ++i) pair.beat();
  EXPECT_NEAR(static_cast<double>(pair.a.find("b")->round_trip_ns), 80e6, 1e6);
}

TEST(Peers, SilentPeerIsLostAfterASecondAndSeveredAfterThree) {
  Pair pair;
  pair.beat();
  pair.at_a = {};
  const Nanos last_ns = pair.a.find("b")->heard_ns;
  pair.a.on_tick(last_ns + kPeerSilenceNs - 1, pair.at_a);
  EXPECT_TRUE(pair.at_a.changed.empty());
  pair.a.on_tick(last_ns + kPeerSilenceNs, pair.at_a);
  ASSERT_EQ(pair.at_a.changed.size(), 1U);
  EXPECT_FALSE(pair.at_a.changed[0].connected);
  EXPECT_TRUE(pair.at_a.severed.empty());
  pair.a.on_tick(last_ns + kSeverNs, pair.at_a);
  EXPECT_EQ(pair.at_a.severed, std::vector<std::string>{"b"});
  pair.at_a = {};
  pair.a.on_tick(last_ns + kSeverNs + kHeartbeatNs, pair.at_a);
  EXPECT_TRUE(pair.at_a.severed.empty());
  EXPECT_EQ(pair.at_a.heartbeats.size(), 1U);
}

TEST(Peers, RestartReplacesThePeerAndLateFramesOfTheOldProcessAreRefused) {
  Pair pair;
  pair.beat();
  pair.at_a = {};
  codec::Envelope old = pair.b.address("a");
  PeerTable again{hello_of("b", 3), 1};
  PeerTable::Turn at_again;
  again.on_link("a", true, pair.now_ns, at_again);
  EXPECT_TRUE(pair.a.on_frame(at_again.heartbeats.at(0), pair.now_ns, pair.at_a));
  ASSERT_EQ(pair.at_a.changed.size(), 2U);
  EXPECT_FALSE(pair.at_a.changed[0].connected);
  EXPECT_EQ(pair.at_a.changed[0].incarnation, 2U);
  EXPECT_TRUE(pair.at_a.changed[1].connected);
  EXPECT_EQ(pair.at_a.changed[1].incarnation, 3U);
  EXPECT_FALSE(pair.a.on_frame(old, pair.now_ns, pair.at_a));
  EXPECT_EQ(pair.a.find("b")->round_trip_ns, 0);
}

TEST(Peers, FrameBeforeItsHelloIsOfAStranger) {
  PeerTable table{hello_of("a", 1), 1};
  PeerTable::Turn turn;
  codec::Envelope frame;
  frame.from = "b";
  frame.from_incarnation = 2;
  EXPECT_FALSE(table.on_frame(frame, kSecond, turn));
  table.on_link("b", true, kSecond, turn);
  EXPECT_FALSE(table.on_frame(frame, kSecond, turn));
  EXPECT_TRUE(turn.changed.empty());
}

TEST(Peers, WhatIsNotEchoedIsBounded) {
  Pair pair;
  for (int i = 0; i < 3; ++i) pair.beat();
  constexpr std::size_t kFrame = 1024 * 1024;
  std::size_t sent = 0;
  while (pair.a.admit("b", kFrame)) sent += kFrame;
  EXPECT_EQ(sent, static_cast<std::size_t>(kMaxUnechoedBytes));
  EXPECT_FALSE(pair.a.admit("b", 1));
  EXPECT_FALSE(pair.a.admit("nobody", 1));
  // A heartbeat sent after the frames and echoed says that they have arrived.
  pair.beat();
  pair.beat();
  EXPECT_TRUE(pair.a.admit("b", kFrame));
  // So does a new link: what was on the old one is gone.
  while (pair.a.admit("b", kFrame)) {
  }
  pair.a.on_link("b", false, pair.now_ns, pair.at_a);
  EXPECT_FALSE(pair.a.admit("b", 1));
  pair.a.on_link("b", true, pair.now_ns, pair.at_a);
  EXPECT_TRUE(pair.a.admit("b", 1));
}

TEST(Peers, LiveEdgesAreCountedByOwnersAndBelievedByEdges) {
  PeerTable owner{hello_of("o", 1, false, true), 1};
  PeerTable::Turn at_owner;
  Nanos now_ns = 100 * kSecond;
  EXPECT_EQ(owner.live_edges(now_ns), 1U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::string name = "e" + std::to_string(i);
    PeerTable edge{hello_of(name, i + 2, true, false), 1};
    PeerTable::Turn at_edge;
    owner.on_link(name, true, now_ns, at_owner);
    edge.on_link("o", true, now_ns, at_edge);
    EXPECT_TRUE(owner.on_frame(at_edge.heartbeats.at(0), now_ns, at_owner));
    EXPECT_EQ(edge.live_edges(now_ns), 1U);
  }
  EXPECT_EQ(owner.live_edges(now_ns), 3U);
  PeerTable edge{hello_of("e0", 2, true, false), 1};
  PeerTable::Turn at_edge;
  edge.on_link("o", true, now_ns, at_edge);
  at_owner = {};
  owner.on_tick(now_ns, at_owner);
  ASSERT_FALSE(at_owner.heartbeats.empty());
  EXPECT_TRUE(edge.on_frame(at_owner.heartbeats.at(0), now_ns, at_edge));
  EXPECT_EQ(edge.live_edges(now_ns), 3U);
  EXPECT_EQ(edge.live_edges(now_ns + kEdgeLiveNs + 1), 1U);
  EXPECT_EQ(owner.live_edges(now_ns + kEdgeLiveNs + 1), 1U);
}

TEST(Peers, UnlinkedPeerIsForgottenAtLast) {
  Pair pair;
  pair.a.on_link("b", false, pair.now_ns, pair.at_a);
  pair.a.on_tick(pair.now_ns + kForgetPeerNs - kSecond, pair.at_a);
  EXPECT_EQ(pair.a.states().size(), 1U);
  pair.a.on_tick(pair.now_ns + kForgetPeerNs, pair.at_a);
  EXPECT_TRUE(pair.a.states().empty());
}

}  // namespace
}  // namespace weir::actors
