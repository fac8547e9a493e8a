// Goal: what an edge says of a bucket is in range for every input and exact when it is alone.
// Method: named cases on one Holder with hand-made answers.
#include <gtest/gtest.h>

#include "src/edge/estimate.h"

namespace weir::edge {
namespace {

constexpr Nanos kStart = 1000 * kSecond;
constexpr lease::LeaseTerms kTerms;

/// A holder that has `granted` in hand and was told of `level` free ones.
lease::Holder told(std::int64_t granted, std::int64_t level, std::int64_t outstanding,
                   Nanos next_token_ns) {
  lease::Holder holder;
  lease::Holder::Demand demand;
  demand.need = demand.waiting = 1;
  demand.fresh_incarnation = 1;
  const auto request = holder.poll(demand, kTerms, kStart);
  LeaseAnswer answer;
  answer.lessee.incarnation = 1;
  answer.sequence = request->sequence;
  answer.status = LeaseStatus::granted;
  answer.granted = granted;
  answer.ttl_ns = kTerms.ttl_ns;
  answer.level = level;
  answer.outstanding = outstanding;
  answer.next_token_ns = next_token_ns;
  holder.on_answer(answer, kTerms, kStart);
  return holder;
}

TEST(Estimate, AddsWhatFlowsInUpToTheClamp) {
  const LimitNumbers numbers{10, 1, kSecond};
  const auto holder = told(2, 3, 2, 400 * kMillisecond);
  EXPECT_EQ(estimate(holder, numbers, kStart).remaining, 5);
  EXPECT_EQ(estimate(holder, numbers, kStart).next_token_ns, 400 * kMillisecond);
  EXPECT_EQ(estimate(holder, numbers, kStart).reset_ns, 4400 * kMillisecond);
  EXPECT_EQ(estimate(holder, numbers, kStart + 399 * kMillisecond).remaining, 5);
  EXPECT_EQ(estimate(holder, numbers, kStart + 400 * kMillisecond).remaining, 6);
  EXPECT_EQ(estimate(holder, numbers, kStart + 1400 * kMillisecond).remaining, 7);
  EXPECT_EQ(estimate(holder, numbers, kStart + kMinute).remaining, 10);
  EXPECT_EQ(estimate(holder, numbers, kStart + kMinute).reset_ns, 0);
}

TEST(Estimate, WhatIsSpentHereIsGoneUntilItIsReported) {
  const LimitNumbers numbers{10, 1, kSecond};
  auto holder = told(10, 0, 10, 0);
  holder.take(4, kStart);
  EXPECT_EQ(estimate(holder, numbers, kStart).remaining, 6);
  EXPECT_EQ(estimate(holder, numbers, kStart + kHour).remaining, 6) << "clamped: all is out";
}

TEST(Estimate, StaysInRangeForAnyNumbers) {
  for (const std::int64_t capacity : {std::int64_t{1}, std::int64_t{100}, INT64_MAX}) {
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, INT64_MAX}) {
      for (const Nanos period_ns : {Nanos{0}, kMillisecond, kYear}) {
        const LimitNumbers numbers{capacity, count, period_ns};
        for (const std::int64_t level : {std::int64_t{0}, INT64_MAX}) {
          for (const Nanos first_ns : {Nanos{0}, Nanos{1}, kForever}) {
            const auto about =
                estimate(told(INT64_MAX, level, INT64_MAX, first_ns), numbers, kStart + kYear);
            EXPECT_GE(about.remaining, 0);
            EXPECT_LE(about.remaining, capacity);
            EXPECT_GE(about.next_token_ns, 0);
            EXPECT_GE(about.reset_ns, about.next_token_ns);
            EXPECT_GE(window_s(LimitDefinition{}, numbers), 1);
          }
        }
      }
    }
  }
}

TEST(Milliseconds, AreRoundedUpAndNeverStaysNever) {
  EXPECT_EQ(to_ms(0), 0);
  EXPECT_EQ(to_ms(1), 1);
  EXPECT_EQ(to_ms(kMillisecond), 1);
  EXPECT_EQ(to_ms(kMillisecond + 1), 2);
  EXPECT_EQ(to_ms(-1), -1);
  EXPECT_EQ(to_ms(kForever), -1);
}

TEST(WindowLength, IsTheCapacityOverTheRateInSecondsRoundedUp) {
  const LimitDefinition limit;
  EXPECT_EQ(window_s(limit, {100, 600, kMinute}), 10);
  EXPECT_EQ(window_s(limit, {10, 1, 5 * kSecond}), 50);
  EXPECT_EQ(window_s(limit, {1, 1000, kSecond}), 1);
  EXPECT_EQ(window_s(limit, {11, 10, kSecond}), 2);
}

TEST(WindowLength, OfACalendarIsItsNominalLength) {
  LimitDefinition limit;
  limit.algorithm = Algorithm::fixed_window;
  limit.window = Window::minute;
  EXPECT_EQ(window_s(limit, {100, 0, 0}), 60);
  limit.window = Window::day;
  EXPECT_EQ(window_s(limit, {100, 0, 0}), 86'400);
}

}  // namespace
}  // namespace weir::edge
