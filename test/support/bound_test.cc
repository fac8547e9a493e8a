// Goal: the judge of the promise is right: it finds what is planted, and nothing else.
// Method: histories of an ideal bucket (never a breach), the same with one admission too many, and
// small random histories against a judge that tries all pairs.
#include "test/support/bound.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "src/base/random.h"

namespace weir::test {
namespace {

constexpr LimitNumbers kTenPerSecond{5, 10, kSecond};
constexpr Nanos kStart = 1'000'000 * kSecond;

CheckRecord admitted(Nanos invoked_ns, Nanos returned_ns, std::int64_t cost = 1) {
  CheckRecord record;
  record.invoked_ns = invoked_ns;
  record.returned_ns = returned_ns;
  record.cost = cost;
  record.verdict = Verdict::allowed;
  return record;
}

/// `burst` at once, then one each 100 ms: exactly what kTenPerSecond permits, when burst is 5.
History steady(int burst, int seconds) {
  History history;
  for (int i = 0; i < burst; ++i) history.push_back(admitted(kStart, kStart + 1));
  for (int i = 1; i <= seconds * 10; ++i) {
    const Nanos at_ns = kStart + i * 100 * kMillisecond;
    history.push_back(admitted(at_ns, at_ns + 1));
  }
  return history;
}

/// Every pair of instants, one by one.
bool breached_by_trying_all(const History& history, const LimitNumbers& limit) {
  for (const CheckRecord& first : history) {
    for (const CheckRecord& last : history) {
      std::int64_t tokens = 0;
      for (const CheckRecord& record : history) {
        const bool inside =
            record.invoked_ns >= first.invoked_ns && record.returned_ns <= last.returned_ns;
        if (inside && record.verdict == Verdict::allowed && record.cost > 0) tokens += record.cost;
      }
      const Nanos length_ns = last.returned_ns - first.invoked_ns;
      if (length_ns < 0) continue;
      if ((tokens - limit.capacity) * limit.rate_period_ns > limit.rate_count * length_ns) {
        return true;
      }
    }
  }
  return false;
}

TEST(Bound, NothingIsNoBreach) {
  EXPECT_FALSE(find_breach({}, kTenPerSecond));
  EXPECT_EQ(use_of_quota_permille({}, kTenPerSecond), 1000);
}

TEST(Bound, TheWholeQuotaIsNoBreach) { EXPECT_FALSE(find_breach(steady(5, 60), kTenPerSecond)); }

TEST(Bound, OneTooManyIsFoundWhereverItIs) {
  for (const int at : {0, 1, 77, 300, 604}) {
    History history = steady(5, 60);
    history.push_back(history[static_cast<std::size_t>(at)]);
    const auto breach = find_breach(history, kTenPerSecond);
    ASSERT_TRUE(breach) << at;
    EXPECT_EQ(breach->admitted, breach->permitted + 1) << to_string(*breach);
  }
}

TEST(Bound, ASecondBurstIsFoundInTheMiddleOfAQuietHistory) {
  History history{admitted(kStart, kStart + 1)};
  for (int i = 0; i < 6; ++i) {
    history.push_back(admitted(kStart + kMinute, kStart + kMinute + kMillisecond));
  }
  history.push_back(admitted(kStart + kHour, kStart + kHour + 1));
  const auto breach = find_breach(history, kTenPerSecond);
  ASSERT_TRUE(breach);
  EXPECT_EQ(breach->from_ns, kStart + kMinute);
  EXPECT_EQ(breach->to_ns, kStart + kMinute + kMillisecond);
  EXPECT_EQ(breach->admitted, 6);
  EXPECT_EQ(breach->permitted, 5);
}

TEST(Bound, AnAnswerThatTookLongProvesNothing) {
  History history = steady(5, 1);
  // Decided before all the others, perhaps: half a second earlier, when there was a token for it.
  history.push_back(admitted(kStart - 500 * kMillisecond, kStart + kSecond));
  EXPECT_FALSE(find_breach(history, kTenPerSecond));
}

TEST(Bound, CostsCountAsTheyAre) {
  EXPECT_FALSE(find_breach({admitted(kStart, kStart + 1, 5)}, kTenPerSecond));
  EXPECT_TRUE(find_breach({admitted(kStart, kStart + 1, 6)}, kTenPerSecond));
  EXPECT_FALSE(find_breach({admitted(kStart, kStart + 1, 5), admitted(kStart, kStart + 1, 0)},
                           kTenPerSecond));
}

TEST(Bound, WhatWasDeniedOrFailedIsNoAdmission) {
  History history = steady(5, 1);
  for (const Verdict verdict : {Verdict::denied, Verdict::failed}) {
    history.push_back(admitted(kStart, kStart + 1));
    history.back().verdict = verdict;
  }
  EXPECT_FALSE(find_breach(history, kTenPerSecond));
}

TEST(Bound, AgreesWithTryingAllPairs) {
  Random random(7);
  int breached = 0;
  constexpr int kHistories = 3000;
  for (int round = 0; round < kHistories; ++round) {
    const LimitNumbers limit{1 + static_cast<std::int64_t>(random.below(4)),
                             1 + static_cast<std::int64_t>(random.below(3)),
                             1 + static_cast<std::int64_t>(random.below(6))};
    History history;
    const std::uint64_t size = 1 + random.below(12);
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto invoked_ns = static_cast<Nanos>(random.below(20));
      const Nanos returned_ns = invoked_ns + static_cast<Nanos>(random.below(8));
      history.push_back(
          admitted(invoked_ns, returned_ns, static_cast<std::int64_t>(random.below(3))));
      if (random.below(5) == 0) history.back().verdict = Verdict::denied;
    }
    const bool expected = breached_by_trying_all(history, limit);
    breached += expected ? 1 : 0;
    const auto breach = find_breach(history, limit);
    ASSERT_EQ(breach.has_value(), expected) << "round " << round;
    if (!breach) continue;
    ASSERT_GT(breach->admitted, breach->permitted) << "round " << round;
  }
  EXPECT_GT(breached, kHistories / 10);
  EXPECT_LT(breached, kHistories * 9 / 10);
}

TEST(Bound, UseOfQuotaFollowsTheDemandThereWas) {
  EXPECT_EQ(use_of_quota_permille(steady(5, 60), kTenPerSecond), 1000);
  EXPECT_EQ(ideal_admissions(steady(5, 60), kTenPerSecond), 605);
  History half = steady(5, 60);
  for (std::size_t i = 0; i < half.size(); i += 2) half[i].verdict = Verdict::denied;
  EXPECT_EQ(use_of_quota_permille(half, kTenPerSecond), 302 * 1000 / 605);
  EXPECT_EQ(use_of_quota_permille({admitted(kStart, kStart + 1)}, kTenPerSecond), 1000);
}

TEST(History, SurvivesAFile) {
  History history = steady(2, 1);
  history.front().source = "lease";
  history.front().verdict = Verdict::denied;
  history.front().remaining = 3;
  history.front().retry_after_ms = 17;
  history.front().node = 4;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("weir-history-" + std::to_string(::getpid())))
          .string();
  ASSERT_TRUE(write_history(path, history));
  const auto read = read_history(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, history);
  EXPECT_FALSE(read_history(path));
}

}  // namespace
}  // namespace weir::test
