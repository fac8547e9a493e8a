// Goal: an edge serves calendar and sliding windows: by itself for scope node and under a static
// share, out of leases for the rest, with true words about remaining, reset and retry.
// Method: a Limiter on a fake clock, and an Owner beside it that answers at once.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/edge/limiter.h"
#include "src/edge/local_counter.h"
#include "src/ownership/owner.h"

namespace weir::edge {
namespace {

constexpr Nanos kDayNs = 1'774'656'000 * kSecond;  // 2026-03-28 00:00 UTC
constexpr std::int64_t kHourMs = 3'600'000;

struct FakeClock final : Clock {
  Nanos boot_ns() const override { return boot; }
  Nanos wall_ns() const override { return wall; }
  void pass(Nanos span_ns) {
    boot += span_ns;
    wall += span_ns;
  }
  Nanos boot = 10 * kSecond;
  Nanos wall = kDayNs + 12 * kHour;
};

LimitDefinition daily(Scope scope, std::int64_t quota) {
  LimitDefinition limit;
  limit.name = "daily";
  limit.scope = scope;
  limit.algorithm = Algorithm::fixed_window;
  limit.window = Window::day;
  limit.numbers = {quota, 0, 0};
  return limit;
}

std::shared_ptr<const policy::Policy> policy_of(std::vector<LimitDefinition> limits) {
  PolicyDefinition definition;
  definition.version = 1;
  definition.limits = std::move(limits);
  return std::make_shared<policy::Policy>(std::move(definition));
}

class Book final : public ownership::LimitBook {
 public:
  explicit Book(LimitNumbers numbers) : numbers_(numbers) {}
  std::optional<LimitNumbers> numbers(const BucketKey&) const override { return numbers_; }
  std::optional<limit::WindowSpan> window(const BucketKey&, Nanos wall_ns) const override {
    return calendar_.containing(wall_ns);
  }
  std::uint64_t version() const override { return 1; }

 private:
  LimitNumbers numbers_;
  limit::Calendar calendar_ = *limit::Calendar::make(Window::day, "UTC");
};

struct World {
  explicit World(LimitDefinition limit, std::uint32_t expected_edges = 1) {
    LimiterConfig config;
    config.node = "us-1";
    config.region = "us";
    config.expected_edges = expected_edges;
    limiter.emplace(config, clock, 1, [] {});
    owner.emplace(ownership::OwnerConfig{}, Epoch{1, "eu-1", 1},
                  std::make_shared<Book>(limit.numbers), clock.boot);
    limiter->set_policy(policy_of({std::move(limit)}));
  }

  /// Everything that is due between edge and owner, until nothing is.
  void settle() {
    for (int round = 0; round < 10; ++round) {
      std::vector<LeaseRequest> requests;
      limiter->collect(requests);
      if (!owner_is_up) return;
      for (LeaseRequest& request : requests) {
        step(ownership::Owner::Requested{std::move(request)});
      }
      if (requests.empty()) return;
    }
  }
  void step(ownership::Owner::Event event) {
    ownership::Owner::Effects effects;
    owner->step(std::move(event), ownership::Instant{clock.boot, clock.wall, clock.wall}, effects);
    for (const std::string& bucket : effects.loads) {
      step(ownership::Owner::Loaded{bucket, std::optional<AgedRecord>()});
    }
    if (effects.commit) step(ownership::Owner::Committed{effects.commit->id});
    for (const LeaseAnswer& answer : effects.answers) limiter->on_answer(answer);
  }

  Decision ask(std::int64_t cost = 1) {
    Check check;
    check.customer = "acme";
    check.cost = cost;
    Decision decision;
    const auto decided = limiter->decide(check, decision);
    EXPECT_TRUE(decided);
    if (*decided) {
      settle();
      return decision;
    }
    std::optional<Decision> later;
    limiter->decide_later(check, [&](const Decision& said) { later = said; });
    settle();
    for (int wait = 0; !later && wait < 200; ++wait) {
      clock.pass(kMillisecond);
      settle();
    }
    EXPECT_TRUE(later);
    return later.value_or(Decision{});
  }
  std::int64_t drain() {
    std::int64_t sum = 0;
    while (ask().allowed) ++sum;
    return sum;
  }

  FakeClock clock;
  std::optional<Limiter> limiter;
  std::optional<ownership::Owner> owner;
  bool owner_is_up = true;
};

TEST(EdgeWindow, ScopeNodeCountsCalendarWindowsByItself) {
  World world(daily(Scope::node, 10));
  const Decision first = world.ask(3);
  EXPECT_TRUE(first.allowed);
  ASSERT_EQ(first.limits.size(), 1U);
  EXPECT_EQ(first.limits[0].remaining, 7);
  EXPECT_EQ(first.limits[0].reset_ms, 12 * kHourMs);
  EXPECT_EQ(first.limits[0].window_s, 86400);
  EXPECT_EQ(world.drain(), 7);
  EXPECT_EQ(world.ask().retry_after_ms, 12 * kHourMs);
  EXPECT_EQ(world.ask(11).retry_after_ms, -1);
  EXPECT_TRUE(world.ask(-2).allowed);
  EXPECT_EQ(world.drain(), 2);
  world.clock.pass(12 * kHour);
  EXPECT_EQ(world.drain(), 10);
}

TEST(EdgeWindow, ScopeNodeCountsSlidingWindowsByItself) {
  LimitDefinition limit;
  limit.name = "api";
  limit.scope = Scope::node;
  limit.algorithm = Algorithm::sliding_window;
  limit.numbers = {10, 10, kSecond};
  World world(limit);
  EXPECT_EQ(world.drain(), 10);
  const Decision refused = world.ask(4);
  EXPECT_EQ(refused.retry_after_ms, 1400);  // ten seconds are a window's start
  EXPECT_EQ(refused.limits[0].window_s, 1);
  world.clock.pass(1400 * kMillisecond);
  EXPECT_TRUE(world.ask(4).allowed);
}

TEST(EdgeWindow, LeasedWindowsSayWhenTheyEnd) {
  World world(daily(Scope::global, 10));
  const Decision first = world.ask();
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.remaining, 9);
  EXPECT_LE(first.reset_ms, 12 * kHourMs);
  EXPECT_GT(first.reset_ms, 12 * kHourMs - 1000);
  EXPECT_EQ(first.limits[0].window_s, 86400);
  EXPECT_EQ(world.drain(), 9);
  const Decision refused = world.ask();
  EXPECT_EQ(refused.remaining, 0);
  EXPECT_EQ(refused.retry_after_ms, refused.reset_ms);
  EXPECT_GT(refused.retry_after_ms, 12 * kHourMs - 1000);
  world.clock.pass(refused.retry_after_ms * kMillisecond - kMillisecond);
  EXPECT_FALSE(world.ask().allowed);
  world.clock.pass(kMillisecond);
  EXPECT_EQ(world.drain(), 10);
}

TEST(EdgeWindow, AStaticShareIsTheQuotaDividedAmongTheEdges) {
  World world(daily(Scope::global, 10), 2);
  EXPECT_TRUE(world.ask().allowed);
  world.owner_is_up = false;
  world.clock.pass(6 * kSecond);
  EXPECT_FALSE(world.ask().allowed);
  world.clock.pass(kSecond);
  std::int64_t admitted = 0;
  for (int i = 0; i < 50; ++i) admitted += world.ask().allowed ? 1 : 0;
  EXPECT_EQ(admitted, 5);
  EXPECT_EQ(world.ask().source, Source::static_share);
  world.clock.pass(12 * kHour);
  world.ask();
  world.clock.pass(kSecond);
  admitted = 0;
  for (int i = 0; i < 50; ++i) admitted += world.ask().allowed ? 1 : 0;
  EXPECT_GE(admitted, 4);
  EXPECT_LE(admitted, 5);
}

TEST(LocalCounterTest, WindowToBucketToWindowDoesNotGiveTwoQuotas) {
  const auto day = *limit::Calendar::make(Window::day, "UTC");
  const LimitNumbers quota{10, 0, 0};
  const LimitNumbers bucket{10, 1, kSecond};
  LocalCounter::Now now{kSecond, kDayNs};
  LocalCounter counter(quota, now.boot_ns);
  counter.keep(Algorithm::fixed_window, quota, &day, now);
  EXPECT_TRUE(counter.take(10, now).allowed);
  counter.keep(Algorithm::token_bucket, bucket, nullptr, now);
  EXPECT_FALSE(counter.take(1, now).allowed);
  now = {now.boot_ns + kMinute, now.wall_ns + kMinute};
  counter.keep(Algorithm::token_bucket, bucket, nullptr, now);
  EXPECT_TRUE(counter.take(10, now).allowed);
  EXPECT_GT(counter.time_to_idle({now.boot_ns + kHour, now.wall_ns + kHour}), 0);
  counter.keep(Algorithm::fixed_window, quota, &day, now);
  EXPECT_FALSE(counter.take(1, now).allowed);
  now = {now.boot_ns + kDay, now.wall_ns + kDay};
  EXPECT_EQ(counter.time_to_idle(now), 0);
  counter.keep(Algorithm::fixed_window, quota, &day, now);
  EXPECT_TRUE(counter.take(10, now).allowed);
}

TEST(LocalCounterTest, WhatABucketSpendsWithinAWindowCountsInItOnce) {
  const auto day = *limit::Calendar::make(Window::day, "UTC");
  const LimitNumbers quota{100, 0, 0};
  const LimitNumbers bucket{100, 1, kSecond};
  const LocalCounter::Now now{kSecond, kDayNs};
  LocalCounter counter(quota, now.boot_ns);
  counter.keep(Algorithm::fixed_window, quota, &day, now);
  EXPECT_TRUE(counter.take(30, now).allowed);
  counter.keep(Algorithm::token_bucket, bucket, nullptr, now);
  EXPECT_TRUE(counter.take(20, now).allowed);
  counter.give_back(5, now);
  counter.keep(Algorithm::fixed_window, quota, &day, now);
  EXPECT_EQ(counter.about(now).remaining, 55);
}

TEST(LocalCounterTest, WhatIsSpentStaysSpentAcrossAlgorithms) {
  const LimitNumbers numbers{10, 10, kSecond};
  const LocalCounter::Now now{kSecond, kDayNs};
  LocalCounter counter(numbers, now.boot_ns);
  counter.keep(Algorithm::token_bucket, numbers, nullptr, now);
  EXPECT_TRUE(counter.take(6, now).allowed);
  counter.keep(Algorithm::sliding_window, numbers, nullptr, now);
  EXPECT_EQ(counter.about(now).remaining, 4);
  counter.keep(Algorithm::token_bucket, numbers, nullptr, now);
  EXPECT_EQ(counter.about(now).remaining, 4);
}

}  // namespace
}  // namespace weir::edge
