// Goal: the highest policy version reaches every node whatever is lost, beats older files, and two
// contents of one version are refused and shown (PROTOCOL J4).
// Method: one Spread by hand; many over a network that loses, delays and parts them.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "src/base/random.h"
#include "src/policy/spread.h"

namespace weir::policy {
namespace {

PolicyText text_of(std::uint64_t version, std::uint64_t hash = 7) {
  return {{version, hash}, "policy " + std::to_string(version) + "/" + std::to_string(hash)};
}

TEST(Spread, AsksWhoeverHasAHigherVersionAndTakesIt) {
  Spread spread(text_of(5));
  Spread::Effects out;
  spread.heard("eu-1", {5, 7}, 0, out);
  spread.heard("eu-2", {4, 7}, 0, out);
  EXPECT_TRUE(out.ask.empty());
  spread.heard("eu-3", {6, 7}, 0, out);
  EXPECT_EQ(out.ask, std::vector<std::string>{"eu-3"});
  EXPECT_EQ(spread.wanted(), 6U);
  spread.received("eu-3", text_of(6), 1, out);
  EXPECT_EQ(out.adopt, text_of(6));
  EXPECT_EQ(spread.stamp(), (PolicyStamp{6, 7}));
  EXPECT_EQ(spread.wanted(), 0U);
  EXPECT_EQ(spread.next_deadline(), kForever);
}

TEST(Spread, AsksAnotherPeerWhenNoAnswerComes) {
  Spread spread(text_of(5));
  Spread::Effects out;
  spread.heard("eu-1", {6, 7}, 0, out);
  spread.heard("eu-2", {6, 0}, 1, out);
  EXPECT_EQ(out.ask, std::vector<std::string>{"eu-1"}) << "one at a time";
  EXPECT_EQ(spread.next_deadline(), kAskPolicyAgainNs);
  spread.tick(kAskPolicyAgainNs - 1, out);
  EXPECT_EQ(out.ask.size(), 1U);
  spread.tick(kAskPolicyAgainNs, out);
  EXPECT_EQ(out.ask.back(), "eu-2");
  spread.tick(2 * kAskPolicyAgainNs, out);
  EXPECT_EQ(out.ask.back(), "eu-1");
}

TEST(Spread, WhoeverSendsALongTextIsNotGivenUp) {
  Spread spread(text_of(5));
  Spread::Effects out;
  spread.heard("eu-1", {6, 7}, 0, out);
  spread.heard("eu-2", {6, 7}, 1, out);
  spread.progressed("eu-1", kAskPolicyAgainNs - 1);
  spread.progressed("eu-2", 10 * kSecond);
  spread.tick(kAskPolicyAgainNs, out);
  EXPECT_EQ(out.ask, std::vector<std::string>{"eu-1"});
  spread.tick(2 * kAskPolicyAgainNs, out);
  EXPECT_EQ(out.ask.back(), "eu-2");
}

TEST(Spread, APolicyThatCannotBeReadIsNotAskedForAgainUntilThePeerHasAnother) {
  Spread spread(text_of(5));
  Spread::Effects out;
  spread.heard("eu-1", {6, 7}, 0, out);
  spread.unreadable("eu-1", 1, out);
  spread.heard("eu-1", {6, 0}, 2, out);
  spread.tick(kSecond, out);
  EXPECT_EQ(out.ask.size(), 1U);
  EXPECT_EQ(spread.wanted(), 0U);
  spread.heard("eu-1", {7, 7}, kSecond, out);
  EXPECT_EQ(out.ask.size(), 2U);
}

TEST(Spread, SameVersionWithOtherContentIsRefusedAndShown) {
  Spread spread(text_of(5));
  Spread::Effects out;
  EXPECT_FALSE(spread.read(text_of(5, 8), out));
  spread.received("eu-1", text_of(5, 8), 0, out);
  EXPECT_FALSE(out.adopt);
  EXPECT_EQ(spread.refused(), (std::map<std::string, PolicyStamp>{{"eu-1", {5, 8}}}));
  spread.heard("eu-1", {5, 0}, 1, out);
  EXPECT_EQ(spread.refused().size(), 1U) << "a version alone says nothing new";
  ASSERT_TRUE(spread.read(text_of(6), out));
  EXPECT_TRUE(spread.refused().empty()) << "a higher version settles it";
}

TEST(Spread, WhatIsStoredBeatsAnOlderFileAndANewerFileBeatsWhatIsStored) {
  Spread::Effects out;
  Spread restarted(text_of(6));
  EXPECT_FALSE(restarted.read(text_of(5), out));
  EXPECT_FALSE(out.adopt);
  EXPECT_EQ(restarted.read(text_of(6), out), Reload::unchanged);
  EXPECT_EQ(restarted.read(text_of(7), out), Reload::replace);
  EXPECT_EQ(out.adopt, text_of(7));
  Spread fresh(std::nullopt);
  EXPECT_EQ(fresh.own(), PolicyText{});
  EXPECT_EQ(fresh.read(text_of(1), out), Reload::replace);
  EXPECT_EQ(fresh.own(), text_of(1));
}

TEST(Spread, RemembersABoundedNumberOfPeers) {
  Spread spread(text_of(5));
  Spread::Effects out;
  for (std::size_t i = 0; i < kMaxPolicyPeers; ++i) {
    spread.heard("edge-" + std::to_string(i), {5, 7}, 0, out);
  }
  spread.heard("one-more", {6, 7}, 0, out);
  EXPECT_TRUE(out.ask.empty());
  spread.heard("edge-0", {}, 0, out);  // gone: there is room for another one
  spread.heard("one-more", {6, 7}, 0, out);
  EXPECT_EQ(out.ask, std::vector<std::string>{"one-more"});
  spread.heard("one-more", {}, 0, out);
  EXPECT_EQ(spread.wanted(), 0U);
  EXPECT_EQ(spread.next_deadline(), kForever);
}

/// Nodes that tell each other their stamps now and then; half of all messages are lost, and for the
/// first half of the time the nodes are parted in two.
TEST(Spread, TheHighestVersionReachesEveryNodeThroughLossAndPartition) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    std::map<std::string, Spread> nodes;
    for (int i = 0; i < 8; ++i) nodes.emplace("n" + std::to_string(i), text_of(1));
    Spread::Effects none;
    ASSERT_TRUE(nodes.at("n0").read(text_of(3), none));
    ASSERT_TRUE(nodes.at("n7").read(text_of(9), none));
    for (Nanos now_ns = 0; now_ns < 60 * kSecond; now_ns += 100 * kMillisecond) {
      const auto arrives = [&](const std::string& from, const std::string& to) {
        const bool across = (from < "n4") != (to < "n4");
        return random.chance(500) && (!across || now_ns >= 30 * kSecond);
      };
      for (auto& [name, node] : nodes) {
        Spread::Effects out;
        const std::string to = "n" + std::to_string(random.below(nodes.size()));
        if (to != name && arrives(to, name)) node.heard(to, nodes.at(to).stamp(), now_ns, out);
        if (node.next_deadline() <= now_ns) node.tick(now_ns, out);
        for (const std::string& peer : out.ask) {
          if (!arrives(name, peer) || !arrives(peer, name)) continue;
          node.received(peer, nodes.at(peer).own(), now_ns, out);
        }
      }
      if (now_ns == 29 * kSecond) {
        EXPECT_EQ(nodes.at("n1").stamp().version, 3U);
        EXPECT_EQ(nodes.at("n6").stamp().version, 9U);
      }
    }
    for (const auto& [name, node] : nodes) EXPECT_EQ(node.stamp().version, 9U) << name;
  }
}

}  // namespace
}  // namespace weir::policy
