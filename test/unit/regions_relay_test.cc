// Goal: a relay keeps PROTOCOL section F: it reports what it has lent on as held, sub-leases end
// before the lease that backs them, counters die with their grantor, and only the owner denies.
// Method: a Relay on a virtual clock between edges that say what a test lets them say and an owner
// that is either the production Ledger or answers by hand.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "regions/relay.h"
#include "src/lease/ledger.h"

namespace weir::regions {
namespace {

constexpr lease::LeaseTerms kTerms{.ttl_ns = 5 * kSecond, .slew_permille = 100};
constexpr Nanos kRoundTripNs = 80 * kMillisecond;

class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    config_.node = "us-1";
    config_.terms = kTerms;
    bucket_ = encode(BucketKey{"acme", Scope::global, "", "api", {}});
    relay_.emplace(config_, 7);
    owner_.emplace(bucket_, LimitNumbers{100, 10, kSecond}, 1, kTerms, now_ns_);
  }

  struct Ask {
    std::int64_t want = 0;
    std::int64_t need = 0;
    std::int64_t held = 0;
    std::int64_t spent = 0;
    std::int64_t given_back = 0;
    std::uint64_t grantor = 0;
    std::uint64_t incarnation = 1;
  };

  void step(const Relay::Event& event) {
    Relay::Effects did;
    relay_->step(event, now_ns_, did);
    for (LeaseAnswer& answer : did.answers) below_.push_back(std::move(answer));
    for (LeaseRequest& request : did.requests) above_.push_back(std::move(request));
  }

  /// An edge asks; its sequences count up by themselves.
  void ask(const std::string& edge, const Ask& ask) {
    LeaseRequest request;
    request.reg = reg_;
    request.bucket = bucket_;
    request.lessee = {edge, ask.incarnation};
    request.sequence = ++sequences_[edge];
    request.want = ask.want;
    request.need = ask.need;
    request.held = ask.held;
    request.spent_total = ask.spent;
    request.given_back = ask.given_back;
    request.grantor = ask.grantor;
    request.rate_per_s = rate_per_s_;
    request.policy_version = edge_version_;
    request.hop = LeaseHop::to_relay;
    step(Relay::Requested{request, kRoundTripNs});
  }

  /// Time passes; the relay ticks when it wants to.
  void pass(Nanos span_ns) {
    const Nanos end_ns = now_ns_ + span_ns;
    int ticks = 0;
    while (relay_->next_deadline() <= end_ns) {
      ASSERT_LT(++ticks, 100'000) << "the relay spins";
      now_ns_ = std::max(now_ns_, relay_->next_deadline());
      step(Relay::Tick{});
    }
    now_ns_ = end_ns;
  }

  LeaseRequest last_above() {
    EXPECT_FALSE(above_.empty());
    return above_.empty() ? LeaseRequest{} : above_.back();
  }

  /// The owner answers the latest request by hand, a round trip after it.
  void answer(LeaseStatus status, std::int64_t granted = 0, Nanos retry_ns = 0) {
    const LeaseRequest request = last_above();
    pass(kRoundTripNs);
    LeaseAnswer answer;
    answer.bucket = bucket_;
    answer.lessee = request.lessee;
    answer.sequence = request.sequence;
    answer.status = status;
    answer.granted = granted;
    answer.ttl_ns = status == LeaseStatus::granted ? kTerms.ttl_ns : 0;
    answer.retry_ns = retry_ns;
    answer.capacity = 100;
    answer.policy_version = owner_version_;
    answer.window_left_ns = std::max<Nanos>(0, window_end_ns_ - now_ns_);
    answer.hop = LeaseHop::from_relay;
    step(Relay::Answered{answer});
  }

  /// The production ledger answers all that has been asked, a round trip later.
  void owner_answers() {
    const std::vector<LeaseRequest> asked = std::exchange(above_, {});
    pass(kRoundTripNs / 2);
    lease::Ledger::Outcome out;
    for (const LeaseRequest& request : asked) out.append(owner_->request(request, now_ns_));
    out.append(owner_->tick(now_ns_));
    pass(kRoundTripNs / 2);
    for (const auto* answers : {&out.now, &out.after_commit}) {
      for (const LeaseAnswer& answer : *answers) step(Relay::Answered{answer});
    }
  }

  /// What was last said to an edge.
  LeaseAnswer told(const std::string& edge) {
    for (auto it = below_.rbegin(); it != below_.rend(); ++it) {
      if (it->lessee.node == edge) return *it;
    }
    ADD_FAILURE() << "nothing was said to " << edge;
    return {};
  }

  Relay::View view() {
    const auto views = relay_->view();
    EXPECT_EQ(views.size(), 1U);
    return views.empty() ? Relay::View{} : views.front();
  }

  RelayConfig config_;
  RegisterId reg_ = register_of(Scope::global, "", "acme");
  std::string bucket_;
  Nanos now_ns_ = 1000 * kSecond;
  std::optional<Relay> relay_;
  std::optional<lease::Ledger> owner_;
  Nanos window_end_ns_ = 0;         ///< of the limit; 0: it has none
  std::int64_t rate_per_s_ = 0;     ///< of each edge: no demand that lasts
  std::uint64_t edge_version_ = 0;  ///< of the policy
  std::uint64_t owner_version_ = 0;
  std::map<std::string, std::uint64_t> sequences_;
  std::vector<LeaseAnswer> below_;
  std::vector<LeaseRequest> above_;
};

TEST_F(RelayTest, OneCallServesManyEdgesAndPendingIsNoDenial) {
  for (int i = 0; i < 20; ++i) {
    ask("edge-" + std::to_string(i), {.want = 3, .need = 1});
    EXPECT_EQ(below_.back().status, LeaseStatus::pending);
  }
  ASSERT_EQ(above_.size(), 1U);
  EXPECT_EQ(above_[0].need, 1);
  EXPECT_EQ(above_[0].hop, LeaseHop::from_relay);
  answer(LeaseStatus::granted, 60);
  for (int i = 0; i < 20; ++i) {
    const LeaseAnswer granted = told("edge-" + std::to_string(i));
    EXPECT_EQ(granted.status, LeaseStatus::granted);
    EXPECT_GE(granted.granted, 1);
    EXPECT_EQ(granted.grantor, view().grantor);
    EXPECT_EQ(granted.upstream_round_trip_ns, kRoundTripNs);
  }
  EXPECT_LE(view().outstanding + view().level, 60);
}

TEST_F(RelayTest, WantsAboveAreTheSumOfTheWantsBelow) {
  rate_per_s_ = 4;
  ask("a", {.want = 5, .need = 2});
  ask("b", {.want = 7, .need = 3});
  EXPECT_EQ(above_.size(), 1U);  // one unanswered request at a time
  pass(4 * kRoundTripNs);
  ASSERT_EQ(above_.size(), 2U);
  const LeaseRequest both = last_above();
  EXPECT_EQ(both.want, 12);
  EXPECT_EQ(both.need, 2);  // of the one whose turn it is
  EXPECT_EQ(both.rate_per_s, 8);
  EXPECT_EQ(both.weight, 2U);
}

TEST_F(RelayTest, WhatIsLentOnIsReportedAsHeldWhenTheOwnLevelIsGivenUp) {
  ask("a", {.want = 5, .need = 5});
  answer(LeaseStatus::granted, 8);
  const std::int64_t level = view().level;
  ASSERT_EQ(view().outstanding + level, 8);
  ASSERT_GT(level, 0);
  ask("b", {.want = 20, .need = 20});
  EXPECT_EQ(last_above().held, view().outstanding);
  EXPECT_EQ(last_above().need, 20);
  EXPECT_EQ(view().level, 0);
  EXPECT_EQ(told("b").status, LeaseStatus::pending);
}

TEST_F(RelayTest, SpentIsWhatIsReportedBelow) {
  ask("a", {.want = 6, .need = 6});
  answer(LeaseStatus::granted, 6);
  const std::uint64_t grantor = view().grantor;
  ask("a", {.want = 9, .need = 9, .held = 0, .spent = 4, .grantor = grantor});
  EXPECT_EQ(last_above().spent_total, 4);
  EXPECT_EQ(last_above().held, 0);  // a gave 2 up, and the relay does so, too
}

TEST_F(RelayTest, SubLeasesEndBeforeTheirBacking) {
  ask("a", {.want = 4, .need = 1});
  const Nanos sent_ns = now_ns_;
  answer(LeaseStatus::granted, 40);
  EXPECT_EQ(view().deadline_ns, sent_ns + kTerms.lessee_ns());
  std::uint64_t grants = 0;
  for (int i = 0; i < 60; ++i) {
    below_.clear();
    ask("edge-" + std::to_string(i), {.want = 1, .need = 1});
    const LeaseAnswer said = below_.back();
    if (said.granted > 0) {
      ++grants;
      const Nanos end_ns =
          now_ns_ + lease::LeaseTerms::grantor_ns(said.ttl_ns, kTerms.slew_permille);
      EXPECT_LE(end_ns, sent_ns + kTerms.lessee_ns());
      EXPECT_GT(said.ttl_ns, 0);
    }
    pass(100 * kMillisecond);
  }
  EXPECT_GT(grants, 20U);
  // The owner never spoke again: nothing is left, and what was lent on counts as spent.
  EXPECT_EQ(view().level, 0);
  EXPECT_EQ(view().outstanding, 0);
  EXPECT_EQ(last_above().held, 0);
  EXPECT_GE(last_above().spent_total, static_cast<std::int64_t>(grants));
}

TEST_F(RelayTest, ARenewedBackingExtendsSubLeases) {
  ask("a", {.want = 2, .need = 2});
  answer(LeaseStatus::granted, 2);
  const std::uint64_t grantor = view().grantor;
  above_.clear();
  pass(3 * kSecond);
  ASSERT_FALSE(above_.empty()) << "a relay renews what it has lent on";
  EXPECT_EQ(last_above().held, 2);
  const Nanos sent_ns = now_ns_;
  answer(LeaseStatus::granted, 0);
  EXPECT_GT(view().deadline_ns, sent_ns);
  ask("a", {.held = 2, .grantor = grantor});
  EXPECT_EQ(told("a").status, LeaseStatus::granted);
  EXPECT_GT(told("a").ttl_ns, kSecond);
}

TEST_F(RelayTest, AfterUnknownThereIsANewGrantorAndOldCountersAreNotBelieved) {
  ask("a", {.want = 5, .need = 5});
  answer(LeaseStatus::granted, 5);
  const std::uint64_t old_grantor = view().grantor;
  ask("b", {.want = 9, .need = 9});
  answer(LeaseStatus::unknown);
  EXPECT_NE(view().grantor, old_grantor);
  EXPECT_EQ(view().outstanding, 0);
  // b had nothing of the old one: it waits on, and is asked for anew.
  EXPECT_EQ(last_above().held, 0);
  EXPECT_EQ(last_above().spent_total, 0);
  EXPECT_EQ(last_above().need, 9);
  EXPECT_EQ(last_above().lessee.incarnation, view().grantor);
  ask("a", {.want = 5, .need = 5, .held = 2, .spent = 3, .grantor = old_grantor});
  EXPECT_EQ(told("a").status, LeaseStatus::unknown);
}

TEST_F(RelayTest, CountersOfAnotherGrantorAreUnknownEvenWithALiveEntry) {
  ask("a", {.want = 5, .need = 5});
  answer(LeaseStatus::granted, 5);
  ask("a", {.given_back = 3, .grantor = view().grantor + 1});
  EXPECT_EQ(told("a").status, LeaseStatus::unknown);
  EXPECT_EQ(last_above().given_back, 0);
}

TEST_F(RelayTest, GiveBacksAreThePassedOnNotCreditedHere) {
  ask("a", {.want = 5, .need = 5});
  answer(LeaseStatus::granted, 5);
  ask("a", {.want = 0, .held = 5, .given_back = 4, .grantor = view().grantor});
  EXPECT_EQ(view().level + view().outstanding, 5);
  pass(kSecond);
  EXPECT_EQ(last_above().given_back, 4);
}

TEST_F(RelayTest, OnlyTheOwnersEmptyIsADenialAndItsAgeIsTold) {
  ask("a", {.want = 5, .need = 5});
  answer(LeaseStatus::empty, 0, 3 * kSecond);
  EXPECT_EQ(told("a").status, LeaseStatus::empty);
  EXPECT_EQ(told("a").retry_ns, 3 * kSecond);
  pass(400 * kMillisecond);
  ask("b", {.want = 5, .need = 5});
  EXPECT_EQ(told("b").status, LeaseStatus::empty);
  EXPECT_EQ(told("b").retry_ns, 2600 * kMillisecond);
  EXPECT_EQ(told("b").age_ns, 400 * kMillisecond);
  pass(700 * kMillisecond);  // older than a second: no denial any more
  ask("c", {.want = 5, .need = 5});
  EXPECT_EQ(told("c").status, LeaseStatus::pending);
}

TEST_F(RelayTest, ANeedThatNeverFitsIsDeniedForEverAndBlocksNobody) {
  ask("a", {.want = 500, .need = 500});
  answer(LeaseStatus::empty, 0, -1);
  EXPECT_EQ(told("a").retry_ns, -1);
  ask("b", {.want = 1, .need = 1});
  EXPECT_EQ(told("b").status, LeaseStatus::pending);
  EXPECT_EQ(last_above().need, 1);
}

TEST_F(RelayTest, AnOwnerThatIsSilentSendsEdgesElsewhere) {
  ask("a", {.want = 5, .need = 5});
  pass(config_.suspicion_ns - kMillisecond);
  EXPECT_EQ(told("a").status, LeaseStatus::pending);
  pass(2 * kMillisecond);
  EXPECT_EQ(told("a").status, LeaseStatus::not_owner);
  ask("b", {.want = 5, .need = 5});
  EXPECT_EQ(told("b").status, LeaseStatus::not_owner);
  answer(LeaseStatus::empty, 0, kSecond);
  ask("c", {.want = 5, .need = 5});
  EXPECT_EQ(told("c").status, LeaseStatus::empty);
}

TEST_F(RelayTest, ARelayWithoutAPlaceSendsEdgesElsewhere) {
  ask("a", {.want = 5, .need = 5});
  answer(LeaseStatus::crowded);
  EXPECT_EQ(told("a").status, LeaseStatus::not_owner);
}

TEST_F(RelayTest, ARecallIsPassedOn) {
  ask("a", {.want = 5, .need = 5});
  answer(LeaseStatus::granted, 5);
  pass(1500 * kMillisecond);
  answer(LeaseStatus::recall);
  EXPECT_EQ(told("a").status, LeaseStatus::recall);
  ask("a", {.held = 0, .spent = 1, .grantor = view().grantor});
  pass(200 * kMillisecond);
  EXPECT_EQ(last_above().held, 0);
  EXPECT_EQ(last_above().spent_total, 1);
}

TEST_F(RelayTest, ALookWaitsForTheOwnersWord) {
  ask("a", {});
  EXPECT_EQ(told("a").status, LeaseStatus::pending);
  owner_answers();
  EXPECT_EQ(told("a").status, LeaseStatus::granted);
  EXPECT_EQ(told("a").level, 100);
  EXPECT_EQ(told("a").capacity, 100);
}

TEST_F(RelayTest, LeavingReturnsItsOwnLevelOnly) {
  ask("a", {.want = 3, .need = 3});
  answer(LeaseStatus::granted, 10);
  ASSERT_EQ(view().outstanding, 3);
  step(Relay::Leave{});
  pass(kSecond);
  EXPECT_EQ(last_above().held, 3);
  EXPECT_EQ(last_above().want, 0);
}

/// The holder had heard nothing under its new incarnation yet when the old window ended, and kept
/// it; the grantor began another, so that the next request forgot what was lent on.
TEST_F(RelayTest, AWindowThatEndsWhileANewIncarnationAsksChangesNeither) {
  window_end_ns_ = now_ns_ + 5 * kRoundTripNs;
  ask("a", {.want = 3, .need = 3});
  answer(LeaseStatus::granted, 10);
  ask("b", {.want = 60, .need = 60});
  answer(LeaseStatus::unknown);
  pass(window_end_ns_ - now_ns_ - kRoundTripNs / 2);
  ask("c", {.want = 5, .need = 5});
  window_end_ns_ += kMinute;
  answer(LeaseStatus::granted, 70);
  EXPECT_EQ(view().grantor, last_above().lessee.incarnation);
  EXPECT_GT(view().outstanding, 0);
  const std::int64_t outstanding = view().outstanding;
  ask("d", {.want = 60, .need = 60});
  EXPECT_EQ(last_above().held, outstanding) << "it stands for what is lent on";
  EXPECT_EQ(view().outstanding, outstanding);
}

/// A grant that was asked for before the window ended would go on with an incarnation whose
/// sub-leases are forgotten.
TEST_F(RelayTest, AGrantOfTheWindowBeforeIsNotLentOn) {
  window_end_ns_ = now_ns_ + kSecond;
  ask("a", {.want = 3, .need = 3});
  answer(LeaseStatus::granted, 3);
  pass(window_end_ns_ - now_ns_ - kRoundTripNs / 2);
  ask("b", {.want = 5, .need = 5});
  const std::uint64_t before = last_above().lessee.incarnation;
  window_end_ns_ += kMinute;
  answer(LeaseStatus::granted, 5);
  EXPECT_NE(told("b").status, LeaseStatus::granted);
  EXPECT_NE(last_above().lessee.incarnation, before);
  EXPECT_EQ(last_above().held, 0);
  EXPECT_EQ(last_above().spent_total, 0);
  answer(LeaseStatus::granted, 5);
  EXPECT_EQ(told("b").granted, 5);
  EXPECT_EQ(view().grantor, last_above().lessee.incarnation);
}

TEST_F(RelayTest, WhoLeavesSendsEdgesOnAndSaysWhenAllIsBack) {
  ask("a", {.want = 3, .need = 3});
  answer(LeaseStatus::granted, 10);
  ask("b", {.want = 60, .need = 60});
  ASSERT_EQ(told("b").status, LeaseStatus::pending);
  answer(LeaseStatus::granted, 0);
  step(Relay::Leave{});
  EXPECT_EQ(told("b").status, LeaseStatus::not_owner);
  EXPECT_FALSE(relay_->has_returned());
  answer(LeaseStatus::granted);
  EXPECT_TRUE(relay_->has_returned());
  ask("c", {.want = 1, .need = 1});
  EXPECT_EQ(told("c").status, LeaseStatus::not_owner);
  bucket_ = encode(BucketKey{"acme", Scope::global, "", "other", {}});
  ask("d", {.want = 1, .need = 1});
  EXPECT_EQ(told("d").status, LeaseStatus::not_owner);
  EXPECT_EQ(told("d").hop, LeaseHop::to_relay);
}

TEST_F(RelayTest, EdgesThatAskForOneBucketTooManyAreSentOn) {
  config_.most_buckets = 1;
  relay_.emplace(config_, 7);
  ask("a", {.want = 1, .need = 1});
  EXPECT_EQ(told("a").status, LeaseStatus::pending);
  bucket_ = encode(BucketKey{"acme", Scope::global, "", "other", {}});
  ask("b", {.want = 1, .need = 1});
  EXPECT_EQ(told("b").status, LeaseStatus::not_owner);
  EXPECT_EQ(relay_->bucket_count(), 1U);
}

TEST_F(RelayTest, ABucketIsAnotherOneUnderAnotherRegister) {
  ask("a", {.want = 1, .need = 1});
  const LeaseRequest global = last_above();
  reg_ = {RegisterId::Kind::pin, "us", reg_.slot};
  ask("a", {.want = 1, .need = 1});
  const LeaseRequest pinned = last_above();
  EXPECT_EQ(pinned.reg, reg_);
  EXPECT_NE(pinned.lessee, global.lessee);
  EXPECT_EQ(relay_->asked_by(answer_to(global, LeaseStatus::granted)), global.reg);
  EXPECT_EQ(relay_->asked_by(answer_to(pinned, LeaseStatus::granted)), pinned.reg);
  LeaseAnswer strange = answer_to(pinned, LeaseStatus::granted);
  strange.lessee.incarnation ^= 1;
  EXPECT_EQ(relay_->asked_by(strange), std::nullopt);
}

TEST_F(RelayTest, NobodyAsksAnyMoreAndNothingIsKept) {
  ask("a", {.want = 3, .need = 3});
  owner_answers();
  ask("a", {.held = 0, .spent = 3, .grantor = view().grantor});
  for (int i = 0; i < 20; ++i) {
    owner_answers();
    pass(kSecond);
  }
  EXPECT_EQ(relay_->bucket_count(), 0U);
  EXPECT_EQ(owner_->outstanding(), 0);
  EXPECT_EQ(relay_->next_deadline(), kForever);
}

/// [limit 5, cost 3, three edges hold 2, 2, 1] behind a relay, and a need of 60 among small ones.
TEST_F(RelayTest, ALargeNeedIsNotStarvedBySmallOnes) {
  std::map<std::string, std::int64_t> got;
  std::map<std::string, std::int64_t> need = {{"a", 1}, {"b", 1}, {"large", 60}};
  std::map<std::string, std::int64_t> spent;
  std::map<std::string, Nanos> asked_ns;
  const Nanos end_ns = now_ns_ + 120 * kSecond;
  for (const auto& [edge, tokens] : need) ask(edge, {.want = tokens, .need = tokens});
  while (now_ns_ < end_ns) {
    owner_answers();
    const std::uint64_t grantor = view().grantor;
    std::vector<LeaseAnswer> said = std::exchange(below_, {});
    for (const LeaseAnswer& answer : said) {
      const std::string& edge = answer.lessee.node;
      if (answer.granted > 0) {
        got[edge] += answer.granted;
        spent[edge] += answer.granted;
      }
      if (answer.granted > 0 || answer.status == LeaseStatus::ask_again) asked_ns[edge] = 0;
    }
    for (const auto& [edge, tokens] : need) {
      if (now_ns_ - asked_ns[edge] < 2400 * kMillisecond) continue;  // as a Holder does (G3)
      asked_ns[edge] = now_ns_;
      ask(edge, {.want = tokens, .need = tokens, .spent = spent[edge], .grantor = grantor});
    }
  }
  const std::int64_t all = got["a"] + got["b"] + got["large"];
  EXPECT_GE(all, 1100);  // 100 and 10 per second
  EXPECT_LE(all, 1400);
  EXPECT_GE(got["large"], 180);
  EXPECT_GE(got["a"], 180);
  EXPECT_GE(got["b"], 180);
}

TEST_F(RelayTest, WhatWasLentUnderAnOlderPolicyIsNotLentOnToWhoKnowsAHigherOne) {
  edge_version_ = owner_version_ = 6;
  rate_per_s_ = 100;
  ask("a", {.want = 10, .need = 1});
  answer(LeaseStatus::granted, 30);
  EXPECT_EQ(told("a").status, LeaseStatus::granted);
  const std::int64_t level = view().level;
  ASSERT_GT(level, 0) << "something is left to lend on";

  edge_version_ = 7;
  ask("b", {.want = 5, .need = 1});
  EXPECT_EQ(told("b").status, LeaseStatus::pending);
  EXPECT_EQ(view().level, 0);
  EXPECT_EQ(last_above().policy_version, 7U);
  EXPECT_EQ(last_above().held, view().outstanding) << "the own level goes back";
  answer(LeaseStatus::granted, 5);
  EXPECT_EQ(told("b").granted, 0) << "on its way before the owner heard of it";
  EXPECT_EQ(view().level, 0);
  pass(kRoundTripNs);
  owner_version_ = 7;
  answer(LeaseStatus::granted, 5);
  EXPECT_EQ(told("b").status, LeaseStatus::granted);
  EXPECT_GT(told("b").granted, 0);
}

TEST_F(RelayTest, WhatEdgesGiveUpUnderAnOlderPolicyIsNotLentOnEither) {
  edge_version_ = owner_version_ = 6;
  ask("a", {.want = 10, .need = 10});
  answer(LeaseStatus::granted, 10);
  ASSERT_EQ(told("a").granted, 10);
  edge_version_ = 7;
  ask("b", {.want = 5, .need = 1});
  ask("a", {.held = 0, .spent = 2, .grantor = view().grantor});
  EXPECT_EQ(told("b").granted, 0);
  EXPECT_EQ(told("b").status, LeaseStatus::pending);
  answer(LeaseStatus::empty, 0, kSecond);
  EXPECT_EQ(told("b").status, LeaseStatus::pending) << "that was said of the older limit";
}

TEST_F(RelayTest, WhatWasWithheldIsServedOnceWhenTheOwnerKnowsThePolicy) {
  edge_version_ = owner_version_ = 6;
  ask("a", {.want = 1, .need = 1});
  answer(LeaseStatus::granted, 1);
  ASSERT_EQ(told("a").granted, 1);
  edge_version_ = 7;
  ask("b", {.want = 4, .need = 1});
  const LeaseRequest asked = last_above();
  EXPECT_EQ(asked.held, 1);
  ask("a", {.held = 0, .grantor = view().grantor});  // it gives its token up
  owner_version_ = 7;
  answer(LeaseStatus::granted, 2);
  EXPECT_GT(told("b").granted, 0);
  EXPECT_LE(view().level + view().outstanding, asked.held + 2) << "what the owner knows to be out";
}

TEST_F(RelayTest, AnOwnerThatIsGoneIsFollowedByTheNextAtOnce) {
  ask("a", {.want = 5, .need = 1});
  const std::uint64_t sequence = last_above().sequence;
  step(Relay::OwnersGone{{{RegisterId::Kind::region, "us", reg_.slot}}});
  EXPECT_EQ(above_.size(), 1U) << "another register's";
  step(Relay::OwnersGone{{reg_}});
  ASSERT_EQ(above_.size(), 2U);
  EXPECT_EQ(last_above().sequence, sequence + 1);
}

TEST_F(RelayTest, AnOutageIsNoRoundTrip) {
  ask("a", {.want = 1, .need = 1});
  pass(10 * kSecond);
  answer(LeaseStatus::granted, 10);
  ask("b", {.want = 1, .need = 1});
  EXPECT_LE(told("b").upstream_round_trip_ns, kRoundTripNs + config_.suspicion_ns);
}

}  // namespace
}  // namespace weir::regions
