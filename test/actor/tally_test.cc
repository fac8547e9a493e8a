// Goal: every request counts once. Method: the tally alone.
#include "actors/tally.h"

#include <gtest/gtest.h>

namespace weir::actors {
namespace {

LeaseRequest request(std::uint64_t incarnation, std::uint64_t sequence) {
  LeaseRequest request;
  request.lessee = {"a", incarnation};
  request.sequence = sequence;
  return request;
}

LeaseAnswer answer(std::uint64_t incarnation, std::uint64_t sequence, LeaseStatus status) {
  LeaseAnswer answer;
  answer.lessee = {"a", incarnation};
  answer.sequence = sequence;
  answer.status = status;
  return answer;
}

TEST(Tally, FirstAnswerIsTheResult) {
  RequestTally tally;
  tally.sent(request(1, 1), kSecond);
  EXPECT_EQ(tally.answered(answer(1, 1, LeaseStatus::empty)), LeaseStatus::empty);
  EXPECT_EQ(tally.answered(answer(1, 1, LeaseStatus::granted)), std::nullopt);
  EXPECT_EQ(tally.answered(answer(2, 1, LeaseStatus::granted)), std::nullopt);
  EXPECT_EQ(tally.take_unanswered(kSecond), 0U);
}

TEST(Tally, OvertakenAndForgottenRequestsAreUnanswered) {
  RequestTally tally;
  tally.sent(request(1, 1), kSecond);
  tally.sent(request(1, 2), kSecond);
  EXPECT_EQ(tally.answered(answer(1, 1, LeaseStatus::granted)), std::nullopt);
  EXPECT_EQ(tally.take_unanswered(kSecond), 1U);
  EXPECT_EQ(tally.take_unanswered(2 * kSecond + kUnansweredNs), 0U);
  EXPECT_EQ(tally.take_unanswered(2 * kSecond + 2 * kUnansweredNs), 1U);
  EXPECT_EQ(tally.answered(answer(1, 2, LeaseStatus::granted)), std::nullopt);
}

TEST(Tally, RequestOfTheOlderGenerationIsStillAnswered) {
  RequestTally tally;
  tally.sent(request(1, 1), kUnansweredNs);
  tally.sent(request(2, 1), 2 * kUnansweredNs + 1);
  EXPECT_EQ(tally.answered(answer(1, 1, LeaseStatus::granted)), LeaseStatus::granted);
}

}  // namespace
}  // namespace weir::actors
