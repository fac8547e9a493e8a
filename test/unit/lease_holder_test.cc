// Goal: a holder asks when it must and no more often (PROTOCOL E1, E6, E9, G1), and believes
// exactly the answers that are its own (E2, E3, D1).
// Method: one Holder with its surroundings and answers by hand, on exact instants.
#include <gtest/gtest.h>

#include <vector>

#include "src/base/random.h"
#include "src/lease/holder.h"

namespace weir::lease {
namespace {

constexpr LeaseTerms kTerms{.ttl_ns = 10 * kSecond, .slew_permille = 100};
constexpr Nanos kStart = 1000 * kSecond;

Holder::Demand waiting_for(std::int64_t need, std::uint64_t incarnation = 1) {
  Holder::Demand demand;
  demand.need = demand.waiting = need;
  demand.fresh_incarnation = incarnation;
  return demand;
}

LeaseAnswer answer(const LeaseRequest& to, LeaseStatus status, std::int64_t granted = 0,
                   Nanos ttl_ns = 10 * kSecond) {
  LeaseAnswer answer;
  answer.lessee = to.lessee;
  answer.sequence = to.sequence;
  answer.status = status;
  answer.granted = granted;
  answer.ttl_ns = ttl_ns;
  answer.level = 1000;
  answer.capacity = 5000;
  answer.outstanding = granted;
  return answer;
}

LeaseRequest ask(Holder& holder, const Holder::Demand& demand, Nanos now_ns) {
  const auto request = holder.poll(demand, kTerms, now_ns);
  EXPECT_TRUE(request.has_value());
  return request.value_or(LeaseRequest{});
}

/// A holder with `tokens` in hand.
Holder with(std::int64_t tokens) {
  Holder holder;
  const LeaseRequest request = ask(holder, waiting_for(1), kStart);
  holder.on_answer(answer(request, LeaseStatus::granted, tokens), kTerms, kStart);
  return holder;
}

TEST(E1, ResendWaitsFourRoundTripsAtLeastFiftyMillisecondsAndDoubles) {
  for (const auto& [round_trip_ns, first_ns] :
       {std::pair{2 * kMillisecond, 50 * kMillisecond}, {100 * kMillisecond, 400 * kMillisecond}}) {
    Holder holder;
    auto demand = waiting_for(1);
    demand.round_trip_ns = round_trip_ns;
    Nanos sent_ns = kStart;
    EXPECT_EQ(ask(holder, demand, sent_ns).sequence, 1U);
    Nanos wait_ns = first_ns;
    for (std::uint64_t sequence = 2; sequence < 5; ++sequence) {
      EXPECT_EQ(holder.next_deadline(demand, kTerms, sent_ns), sent_ns + wait_ns);
      EXPECT_FALSE(holder.poll(demand, kTerms, sent_ns + wait_ns - 1));
      sent_ns += wait_ns;
      EXPECT_EQ(ask(holder, demand, sent_ns).sequence, sequence) << "the next, not the same";
      wait_ns = std::min(2 * wait_ns, std::max(first_ns, kLongestResendNs));
    }
  }
}

TEST(E1, AnswersSlowerThanTheLongestRepetitionArriveInTheEnd) {
  Holder holder;
  const auto demand = waiting_for(1);  // no round trip is known yet
  constexpr Nanos kAnswerNs = 1600 * kMillisecond;
  std::vector<std::pair<Nanos, LeaseRequest>> on_the_way;
  Nanos now_ns = kStart;
  bool granted = false;
  while (!granted && now_ns < kStart + 20 * kSecond) {
    if (const auto request = holder.poll(demand, kTerms, now_ns)) {
      on_the_way.emplace_back(now_ns + kAnswerNs, *request);
    }
    const Nanos arrives_ns = on_the_way.front().first;
    now_ns = std::min(arrives_ns, holder.next_deadline(demand, kTerms, now_ns));
    if (now_ns < arrives_ns) continue;
    const auto heard = holder.on_answer(answer(on_the_way.front().second, LeaseStatus::granted, 5),
                                        kTerms, now_ns);
    granted = heard == Holder::Heard::tokens;
    on_the_way.erase(on_the_way.begin());
  }
  EXPECT_TRUE(granted);
}

TEST(E1, RepeatsWhatTheLostRequestSaid) {
  Holder holder = with(10);
  holder.take(4, kStart);
  const LeaseRequest first = ask(holder, waiting_for(8), kStart + kSecond);
  EXPECT_EQ(first.held, 0) << "E6: it gives up what is too little";
  EXPECT_EQ(first.spent_total, 4);
  const LeaseRequest second = ask(holder, waiting_for(8), kStart + 2 * kSecond);
  EXPECT_EQ(second.sequence, first.sequence + 1);
  EXPECT_EQ(second.spent_total, 4);
}

TEST(E1, WhoeverWasAskedIsGoneSoItIsAskedAgainAtOnce) {
  Holder holder;
  EXPECT_FALSE(holder.grantor_gone()) << "nothing is under way";
  const LeaseRequest open = ask(holder, waiting_for(1), kStart);
  EXPECT_TRUE(holder.grantor_gone());
  EXPECT_EQ(holder.next_deadline(waiting_for(1), kTerms, kStart + 1), kStart + 1);
  const LeaseRequest again = ask(holder, waiting_for(1), kStart + 1);
  EXPECT_EQ(again.sequence, open.sequence + 1);

  LeaseAnswer empty = answer(again, LeaseStatus::empty);
  empty.retry_ns = 300 * kMillisecond;
  holder.on_answer(empty, kTerms, kStart + 2);
  EXPECT_FALSE(holder.poll(waiting_for(1), kTerms, kStart + 3)) << "it waits at the owner";
  EXPECT_TRUE(holder.grantor_gone());
  EXPECT_EQ(ask(holder, waiting_for(1), kStart + 3).sequence, again.sequence + 1);
}

TEST(E2, OlderSequencesOtherIncarnationsAndCopiesAreIgnored) {
  Holder holder;
  const LeaseRequest first = ask(holder, waiting_for(1), kStart);
  const LeaseRequest second = ask(holder, waiting_for(1), kStart + kSecond);
  const auto hear = [&](LeaseAnswer said) {
    return holder.on_answer(said, kTerms, kStart + kSecond);
  };
  EXPECT_EQ(hear(answer(first, LeaseStatus::granted, 9)), Holder::Heard::ignored);
  LeaseAnswer other = answer(second, LeaseStatus::granted, 9);
  other.lessee.incarnation = 99;
  EXPECT_EQ(hear(other), Holder::Heard::ignored);
  EXPECT_EQ(hear(answer(second, LeaseStatus::granted, -9)), Holder::Heard::ignored);
  EXPECT_EQ(hear(answer(second, LeaseStatus::granted, 9)), Holder::Heard::tokens);
  EXPECT_EQ(hear(answer(second, LeaseStatus::granted, 9)), Holder::Heard::ignored);
  EXPECT_EQ(holder.held(), 9);
}

TEST(E2, EmptyThenGrantedUnderTheSameSequenceCountsOnceAndALateEmptyChangesNothing) {
  Holder holder;
  const LeaseRequest request = ask(holder, waiting_for(3), kStart);
  LeaseAnswer empty = answer(request, LeaseStatus::empty, 0, 0);
  empty.retry_ns = kSecond;
  empty.level = 0;
  EXPECT_EQ(holder.on_answer(empty, kTerms, kStart), Holder::Heard::denied);
  EXPECT_TRUE(holder.denied(3, kStart + kMillisecond));
  EXPECT_EQ(holder.on_answer(answer(request, LeaseStatus::granted, 3), kTerms, kStart + kSecond),
            Holder::Heard::tokens);
  EXPECT_EQ(holder.on_answer(empty, kTerms, kStart + kSecond), Holder::Heard::ignored);
  EXPECT_FALSE(holder.denied(3, kStart + kSecond));
  EXPECT_EQ(holder.held(), 3);
}

TEST(E3, DeadlineIsTheFirstSendPlusTheGrantedTtlLessTheDriftAndNeverMovesEarlier) {
  Holder holder;
  const LeaseRequest request = ask(holder, waiting_for(1), kStart);
  holder.on_answer(answer(request, LeaseStatus::granted, 50), kTerms, kStart + kSecond);
  EXPECT_EQ(holder.deadline_ns(), kStart + 9 * kSecond);
  // The TTL was lowered and the next answer carries less: what is held lives on as promised.
  const LeaseRequest next = ask(holder, waiting_for(60), kStart + 2 * kSecond);
  holder.on_answer(answer(next, LeaseStatus::granted, 60, kSecond), kTerms, kStart + 2 * kSecond);
  EXPECT_EQ(holder.deadline_ns(), kStart + 9 * kSecond);
  EXPECT_EQ(holder.held(), 60);
  holder.expire(kStart + 9 * kSecond - 1);
  EXPECT_EQ(holder.held(), 60);
  holder.expire(kStart + 9 * kSecond);
  EXPECT_EQ(holder.held(), 0);
}

TEST(E3, WhatRanOutBeforeTheAnswerDoesNotLiveOnByIt) {
  Holder holder = with(10);
  auto demand = waiting_for(1);
  demand.waiting = demand.need = 0;
  const auto renewal = holder.poll(demand, kTerms, kStart + 8 * kSecond);
  ASSERT_TRUE(renewal);
  EXPECT_EQ(renewal->held, 10);
  holder.on_answer(answer(*renewal, LeaseStatus::granted, 5), kTerms, kStart + 9 * kSecond);
  EXPECT_EQ(holder.held(), 5) << "the ten were dropped at 9 s";
}

TEST(D1, UnknownDropsEverythingAndBeginsANewIncarnation) {
  Holder holder = with(10);
  holder.take(2, kStart);
  const LeaseRequest request = ask(holder, waiting_for(20, 2), kStart + kSecond);
  EXPECT_EQ(request.lessee.incarnation, 1U);
  EXPECT_EQ(holder.on_answer(answer(request, LeaseStatus::unknown), kTerms, kStart + kSecond),
            Holder::Heard::restart);
  EXPECT_EQ(holder.held(), 0);
  const LeaseRequest fresh = ask(holder, waiting_for(20, 2), kStart + kSecond);
  EXPECT_EQ(fresh.lessee.incarnation, 2U);
  EXPECT_EQ(fresh.sequence, 1U);
  EXPECT_EQ(fresh.held, 0);
  EXPECT_EQ(fresh.spent_total, 0);
  EXPECT_EQ(fresh.given_back, 0);
}

TEST(D7, GiveBacksAreACounterAndNotRepeatedByANewIncarnation) {
  Holder holder = with(10);
  holder.give_back(3);
  Holder::Demand nobody;
  nobody.fresh_incarnation = 2;
  const LeaseRequest told = ask(holder, nobody, kStart + kSecond);
  EXPECT_EQ(told.given_back, 3);
  holder.give_back(4);
  const LeaseRequest more = ask(holder, nobody, kStart + 2 * kSecond);
  EXPECT_EQ(more.given_back, 7);
  holder.on_answer(answer(more, LeaseStatus::unknown), kTerms, kStart + 2 * kSecond);
  holder.give_back(5);
  const LeaseRequest fresh = ask(holder, nobody, kStart + 2 * kSecond);
  EXPECT_EQ(fresh.given_back, 0) << "unknown lessees may say nothing (D3)";
  holder.on_answer(answer(fresh, LeaseStatus::granted), kTerms, kStart + 2 * kSecond);
  EXPECT_EQ(ask(holder, nobody, kStart + 3 * kSecond).given_back, 5) << "the 7 may be booked";
}

TEST(E5, PutBackRestoresHeldAndSpent) {
  Holder holder = with(10);
  holder.take(4, kStart);
  holder.put_back(4);
  const LeaseRequest request = ask(holder, waiting_for(11), kStart);
  EXPECT_EQ(request.spent_total, 0);
}

TEST(E6, WhoNeedsMoreThanItHoldsGivesUpWhatItHolds) {
  Holder holder = with(10);
  const LeaseRequest request = ask(holder, waiting_for(11), kStart);
  EXPECT_EQ(request.held, 0);
  EXPECT_EQ(request.want, 11);
  EXPECT_EQ(holder.held(), 0);
}

TEST(E6, RecalledHolderReturnsWhatLiesIdleOnly) {
  Holder holder = with(10);
  LeaseAnswer recall = answer({}, LeaseStatus::recall);
  recall.lessee.incarnation = 1;
  holder.take(1, kStart);
  EXPECT_EQ(holder.on_answer(recall, kTerms, kStart), Holder::Heard::recalled);
  Holder::Demand nobody;
  EXPECT_FALSE(holder.poll(nobody, kTerms, kStart + kBusyNs - 1)) << "busy";
  const LeaseRequest back = ask(holder, nobody, kStart + kBusyNs);
  EXPECT_EQ(back.held, 0);
  EXPECT_EQ(back.want, 0);
  EXPECT_EQ(back.spent_total, 1);
}

/// Checks come, each of them held up by another limit: the rate is high and nothing is taken.
TEST(E6, WhatAnotherLimitBlocksAsksForNoMore) {
  Holder holder = with(3);
  Nanos now_ns = kStart;
  while (now_ns < kStart + 2 * kSecond) {
    now_ns += 10 * kMillisecond;
    holder.note_demand(1, now_ns);
  }
  ASSERT_GT(holder.rate_per_s(now_ns), 50);
  Holder::Demand blocked;
  blocked.fresh_incarnation = 1;
  EXPECT_FALSE(holder.poll(blocked, kTerms, now_ns)) << "what it has lies idle";
  holder.take(1, now_ns);
  holder.take(1, now_ns);
  holder.take(1, now_ns);
  EXPECT_GT(ask(holder, blocked, now_ns).want, 3) << "it moves again";
}

TEST(E9, LeavingReturnsEverythingOnceAnsweredItIsEmpty) {
  Holder holder = with(10);
  Holder::Demand leaving;
  leaving.leave = true;
  const LeaseRequest back = ask(holder, leaving, kStart + kSecond);
  EXPECT_EQ(back.held, 0);
  EXPECT_EQ(back.want, 0);
  EXPECT_FALSE(holder.empty());
  holder.on_answer(answer(back, LeaseStatus::granted, 0, 0), kTerms, kStart + kSecond);
  EXPECT_TRUE(holder.empty());
  EXPECT_FALSE(holder.poll(leaving, kTerms, kStart + 2 * kSecond));
}

TEST(G3, AskAgainIsFollowedByTheNextSequence) {
  Holder holder;
  const LeaseRequest request = ask(holder, waiting_for(1), kStart);
  LeaseAnswer empty = answer(request, LeaseStatus::empty, 0, 0);
  empty.retry_ns = kSecond;
  empty.level = 0;
  holder.on_answer(empty, kTerms, kStart);
  EXPECT_FALSE(holder.poll(waiting_for(1), kTerms, kStart + 60 * kMillisecond)) << "nobody polls";
  holder.on_answer(answer(request, LeaseStatus::ask_again, 0, 0), kTerms, kStart + kSecond);
  EXPECT_EQ(ask(holder, waiting_for(1), kStart + kSecond).sequence, request.sequence + 1);
}

TEST(E7, ForgottenDenialAsksAnewThoughParked) {
  Holder holder;
  const LeaseRequest request = ask(holder, waiting_for(1), kStart);
  LeaseAnswer empty = answer(request, LeaseStatus::empty, 0, 0);
  empty.retry_ns = kHour;
  empty.level = 0;
  holder.on_answer(empty, kTerms, kStart);
  holder.forget_denial();
  EXPECT_FALSE(holder.denied(1, kStart + kMillisecond));
  EXPECT_EQ(holder.next_deadline(waiting_for(1), kTerms, kStart), kStart + kLostAfterNs);
  ask(holder, waiting_for(1), kStart + kLostAfterNs);
}

TEST(E8, StrictReturnsWhatIsLeftWhenNobodyWaitsAndSleepsWhileItWaits) {
  Holder holder;
  auto demand = waiting_for(3);
  demand.strict = true;
  const LeaseRequest request = ask(holder, demand, kStart);
  EXPECT_EQ(request.want, 3);
  LeaseAnswer empty = answer(request, LeaseStatus::empty, 0, 0);
  empty.retry_ns = kSecond;
  empty.level = 0;
  holder.on_answer(empty, kTerms, kStart);
  Nanos now_ns = kStart;
  int turns = 0;
  while (now_ns < kStart + kSecond) {  // it was woken every nanosecond
    holder.poll(demand, kTerms, now_ns);
    now_ns = std::max(holder.next_deadline(demand, kTerms, now_ns), now_ns + 1);
    ASSERT_LT(++turns, 20);
  }
}

/// Whatever a holder has been through: when its own deadline comes, it has something to send or a
/// later deadline. A deadline in the past without a request would spin the broker.
TEST(Deadline, NeverNamesAnInstantAtWhichNothingHappens) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Holder holder;
    Holder::Demand demand;
    Nanos now_ns = kStart;
    LeaseRequest last;
    for (int i = 0; i < 60; ++i) {
      demand.waiting = demand.need = random.chance(500) ? 0 : random.between(1, 20);
      demand.strict = random.chance(200);
      demand.leave = demand.waiting == 0 && random.chance(200);
      demand.look = random.chance(100);
      demand.probe = random.chance(100);
      demand.round_trip_ns = random.between(0, 20) * kMillisecond;
      demand.fresh_incarnation = random.next();
      if (random.chance(300)) holder.note_demand(random.between(1, 50), now_ns);
      if (holder.held() > 0 && random.chance(500)) holder.take(1, now_ns);
      if (random.chance(100)) holder.give_back(1);
      if (auto request = holder.poll(demand, kTerms, now_ns)) last = *request;
      if (random.chance(600)) {
        constexpr LeaseStatus kSaid[] = {LeaseStatus::granted, LeaseStatus::empty,
                                         LeaseStatus::unknown, LeaseStatus::ask_again,
                                         LeaseStatus::recall};
        LeaseAnswer said = answer(last, kSaid[random.below(5)], 0);
        if (said.status == LeaseStatus::granted) said.granted = random.between(0, 20);
        said.level = random.between(0, 5);
        said.capacity = random.between(5, 30);
        said.outstanding = said.capacity - said.level;
        said.retry_ns = random.between(0, 3000) * kMillisecond;
        if (said.status == LeaseStatus::empty && random.chance(500)) said.ttl_ns = 0;
        holder.on_answer(said, kTerms, now_ns);
      }
      // Only the clock moves now.
      for (int turns = 0; turns < 50; ++turns) {
        const Nanos next_ns = holder.next_deadline(demand, kTerms, now_ns);
        ASSERT_GE(next_ns, now_ns);
        if (next_ns > now_ns + 20 * kSecond) break;
        const bool idle = next_ns - now_ns <= 1;
        now_ns = next_ns;
        if (auto request = holder.poll(demand, kTerms, now_ns)) {
          last = *request;
          break;
        }
        ASSERT_LT(turns, 40) << "woken for nothing" << (idle ? ", at once" : "");
      }
      now_ns += random.between(0, 500) * kMillisecond;
    }
  }
}

TEST(F4, ARequestThatIsPendingAtARelayIsParkedThere) {
  Holder holder;
  auto demand = waiting_for(1);
  const LeaseRequest request = ask(holder, demand, kStart);
  LeaseAnswer pending = answer(request, LeaseStatus::pending, 0, 0);
  pending.hop = LeaseHop::to_relay;
  demand.upstream_ns = 80 * kMillisecond;
  EXPECT_EQ(holder.on_answer(pending, kTerms, kStart), Holder::Heard::pending);
  EXPECT_FALSE(holder.open());
  EXPECT_FALSE(holder.denied(1, kStart)) << "no denial";
  // Asked again only when the relay must have heard from the owner.
  EXPECT_FALSE(holder.poll(demand, kTerms, kStart + 319 * kMillisecond).has_value());
  const LeaseAnswer granted = answer(request, LeaseStatus::granted, 3);
  EXPECT_EQ(holder.on_answer(granted, kTerms, kStart + 90 * kMillisecond), Holder::Heard::tokens);
  EXPECT_EQ(holder.held(), 3);
}

TEST(F4, ALostPushIsAskedForAgain) {
  Holder holder;
  auto demand = waiting_for(1);
  LeaseAnswer pending = answer(ask(holder, demand, kStart), LeaseStatus::pending, 0, 0);
  pending.hop = LeaseHop::to_relay;
  demand.upstream_ns = 80 * kMillisecond;
  holder.on_answer(pending, kTerms, kStart);
  EXPECT_EQ(ask(holder, demand, kStart + 320 * kMillisecond).sequence, 2U);
}

TEST(F3, CountersNameTheGrantorThatTheyWereBegunWith) {
  Holder holder;
  const LeaseRequest request = ask(holder, waiting_for(1), kStart);
  EXPECT_EQ(request.grantor, 0U);
  LeaseAnswer granted = answer(request, LeaseStatus::granted, 1);
  granted.grantor = 42;
  holder.on_answer(granted, kTerms, kStart);
  EXPECT_EQ(ask(holder, waiting_for(5), kStart).grantor, 42U);
}

TEST(E7, ADenialThatARelayPassesOnHasTheAgeOfTheOwnersWord) {
  Holder holder;
  LeaseAnswer empty = answer(ask(holder, waiting_for(1), kStart), LeaseStatus::empty, 0, 0);
  empty.retry_ns = 10 * kSecond;
  empty.level = 0;
  empty.age_ns = 700 * kMillisecond;
  holder.on_answer(empty, kTerms, kStart);
  EXPECT_TRUE(holder.denied(1, kStart + 299 * kMillisecond));
  EXPECT_FALSE(holder.denied(1, kStart + 300 * kMillisecond));
}

}  // namespace
}  // namespace weir::lease
