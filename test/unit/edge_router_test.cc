// Goal: an edge asks its region's relays first and always finds a way to the owner (PROTOCOL F,
// D9). Method: named cases on a Router with two relays and three replicas.
#include <gtest/gtest.h>

#include "src/edge/router.h"

namespace weir::edge {
namespace {

class RouterTest : public testing::Test {
 protected:
  using Node = std::pair<std::string, LeaseHop>;

  Node target(Router& router) {
    const Router::Target& to = router.target(reg_, now_ns_);
    return {to.node, to.hop};
  }
  /// What is asked after so long without a word.
  Node target_after(Router& router, Nanos silence_ns) {
    target(router);
    now_ns_ += silence_ns;
    return target(router);
  }

  const std::vector<std::string> replicas_ = {"eu-1", "eu-2", "eu-3"};
  const std::vector<std::string> relays_ = {"us-1", "us-2"};
  RegisterId reg_;
  Nanos now_ns_ = 1000 * kSecond;
  Router near_{[this](const RegisterId&) { return Router::Places{&replicas_, nullptr, false}; }};
  Router far_{[this](const RegisterId&) { return Router::Places{&replicas_, &relays_, true}; }};
  Router home_{[this](const RegisterId&) { return Router::Places{&replicas_, &relays_, false}; }};
};

const LeaseHop kDirect = LeaseHop::direct;
const LeaseHop kToRelay = LeaseHop::to_relay;

TEST_F(RouterTest, TheOwnerIsAskedAtHomeAndARelayAbroad) {
  EXPECT_EQ(target(near_), (Node{"eu-1", kDirect}));
  EXPECT_EQ(target(home_), (Node{"eu-1", kDirect}));
  EXPECT_EQ(target(far_), (Node{"us-1", kToRelay}));
}

TEST_F(RouterTest, SilentRelaysAreFollowedByTheNextAndThenByTheOwner) {
  EXPECT_EQ(target_after(far_, kRouteSilenceNs - 1), (Node{"us-1", kToRelay}));
  EXPECT_EQ(target_after(far_, kRouteSilenceNs), (Node{"us-2", kToRelay}));
  EXPECT_EQ(target_after(far_, 2 * kRouteSilenceNs), (Node{"eu-1", kDirect}));
  EXPECT_EQ(target_after(far_, 4 * kRouteSilenceNs), (Node{"eu-2", kDirect}));
}

TEST_F(RouterTest, ARelayThatDoesNotReachTheOwnerIsLeftAtOnce) {
  target(far_);
  EXPECT_TRUE(far_.redirected(reg_, "us-1", kToRelay, "", now_ns_));
  EXPECT_EQ(target(far_), (Node{"us-2", kToRelay}));
  EXPECT_TRUE(far_.redirected(reg_, "us-1", kToRelay, "", now_ns_)) << "left already: ask there";
  EXPECT_TRUE(far_.redirected(reg_, "us-2", kToRelay, "", now_ns_));
  EXPECT_EQ(target(far_), (Node{"eu-1", kDirect}));
}

TEST_F(RouterTest, WhoeverHasNoConnectionIsPassedOver) {
  target(near_);
  EXPECT_EQ(near_.lost("eu-2", now_ns_), std::set<RegisterId>{}) << "it was not asked";
  EXPECT_EQ(near_.lost("eu-1", now_ns_), std::set<RegisterId>{reg_});
  EXPECT_EQ(target(near_), (Node{"eu-3", kDirect}));
  EXPECT_FALSE(near_.redirected(reg_, "eu-3", kDirect, "eu-1", now_ns_)) << "not to be reached";
  EXPECT_EQ(target(near_), (Node{"eu-3", kDirect}));
  near_.found("eu-1");
  EXPECT_TRUE(near_.redirected(reg_, "eu-3", kDirect, "eu-1", now_ns_));
  EXPECT_EQ(target(near_), (Node{"eu-1", kDirect}));

  near_.lost("eu-3", now_ns_);
  near_.lost("eu-1", now_ns_);
  EXPECT_FALSE(target(near_).first.empty()) << "somebody is asked all the same";
}

TEST_F(RouterTest, ARelayWithoutAConnectionIsPassedOver) {
  far_.lost("us-1", now_ns_);
  EXPECT_EQ(target(far_), (Node{"us-2", kToRelay}));
  EXPECT_EQ(far_.lost("us-2", now_ns_), std::set<RegisterId>{reg_});
  EXPECT_EQ(target(far_), (Node{"eu-1", kDirect}));
  now_ns_ += kDetourNs;
  EXPECT_EQ(target(far_), (Node{"eu-1", kDirect})) << "there is still none";
  far_.heard(reg_, "eu-1", kDirect, now_ns_);
  far_.found("us-2");
  now_ns_ += kDetourNs;
  EXPECT_EQ(target(far_), (Node{"us-2", kToRelay}));
}

TEST_F(RouterTest, TheRelayIsTriedAgainAfterADetour) {
  target(far_);
  far_.redirected(reg_, "us-1", kToRelay, "", now_ns_);
  far_.redirected(reg_, "us-2", kToRelay, "", now_ns_);
  target(far_);
  far_.heard(reg_, "eu-1", kDirect, now_ns_);
  now_ns_ += kDetourNs - 1;
  EXPECT_EQ(target(far_), (Node{"eu-1", kDirect}));
  far_.heard(reg_, "eu-1", kDirect, now_ns_);
  now_ns_ += 1;
  EXPECT_EQ(target(far_), (Node{"us-1", kToRelay}));
}

TEST_F(RouterTest, ALateWordOfTheOtherWayDoesNotTurnTheRouteBack) {
  target(home_);
  EXPECT_TRUE(home_.crowded(reg_, "eu-1", kDirect, now_ns_));
  EXPECT_EQ(target(home_), (Node{"us-1", kToRelay}));
  home_.heard(reg_, "eu-1", kDirect, now_ns_);
  EXPECT_EQ(target(home_), (Node{"us-1", kToRelay}));
}

TEST_F(RouterTest, WhoHasNoPlaceGoesFromRelayToRelay) {
  target(home_);
  EXPECT_TRUE(home_.crowded(reg_, "eu-1", kDirect, now_ns_));
  EXPECT_EQ(target(home_), (Node{"us-1", kToRelay}));
  EXPECT_TRUE(home_.crowded(reg_, "us-1", kToRelay, now_ns_));
  EXPECT_EQ(target(home_), (Node{"us-2", kToRelay}));
  EXPECT_FALSE(home_.crowded(reg_, "us-2", kToRelay, now_ns_)) << "all are full: no hurry";
  EXPECT_EQ(target(home_), (Node{"eu-1", kDirect}));
}

TEST_F(RouterTest, WithoutRelaysACrowdedOwnerIsAskedAgainLater) {
  target(near_);
  EXPECT_FALSE(near_.crowded(reg_, "eu-1", kDirect, now_ns_));
  EXPECT_EQ(target(near_), (Node{"eu-1", kDirect}));
}

TEST_F(RouterTest, RedirectsAreFollowedAFewTimes) {
  target(near_);
  EXPECT_TRUE(near_.redirected(reg_, "eu-1", kDirect, "eu-3", now_ns_));
  EXPECT_EQ(target(near_), (Node{"eu-3", kDirect}));
  EXPECT_TRUE(near_.redirected(reg_, "eu-3", kDirect, "eu-1", now_ns_));
  EXPECT_TRUE(near_.redirected(reg_, "eu-1", kDirect, "eu-3", now_ns_));
  EXPECT_TRUE(near_.redirected(reg_, "eu-3", kDirect, "eu-1", now_ns_));
  EXPECT_FALSE(near_.redirected(reg_, "eu-1", kDirect, "eu-3", now_ns_));
  EXPECT_FALSE(near_.redirected(reg_, "eu-3", kDirect, "", now_ns_));
  EXPECT_EQ(target(near_), (Node{"eu-1", kDirect}));
}

TEST_F(RouterTest, AnswersSayTheWay) {
  const auto answer = [](LeaseStatus status, LeaseHop hop) {
    LeaseAnswer said;
    said.status = status;
    said.hop = hop;
    return said;
  };
  EXPECT_EQ(far_.guess(reg_), "us-1");
  EXPECT_EQ(home_.guess(reg_), "eu-1");
  target(home_);
  EXPECT_TRUE(home_.learn(reg_, "eu-1", answer(LeaseStatus::crowded, kDirect), now_ns_));
  EXPECT_EQ(target(home_), (Node{"us-1", kToRelay}));
  EXPECT_FALSE(home_.learn(reg_, "us-1", answer(LeaseStatus::granted, kToRelay), now_ns_));
  EXPECT_EQ(home_.guess(reg_), "us-1");
  // A relay's own router, with answers that name the hop between relay and owner.
  target(near_);
  LeaseAnswer elsewhere = answer(LeaseStatus::not_owner, LeaseHop::from_relay);
  elsewhere.owner_hint = "eu-3";
  EXPECT_TRUE(near_.learn(reg_, "eu-1", elsewhere, now_ns_));
  EXPECT_EQ(target(near_), (Node{"eu-3", kDirect}));
  EXPECT_FALSE(
      near_.learn(reg_, "eu-3", answer(LeaseStatus::crowded, LeaseHop::from_relay), now_ns_));
  EXPECT_EQ(target(near_), (Node{"eu-3", kDirect})) << "it is the owner all the same";
}

}  // namespace
}  // namespace weir::edge
