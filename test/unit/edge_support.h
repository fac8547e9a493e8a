// One Limiter whose owner is the test itself: it sees each request and gives each answer.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/unit/lease_cluster.h"

namespace weir::test {

class LoneEdge {
 public:
  explicit LoneEdge(std::vector<LimitDefinition> limits, edge::LimiterConfig config = {})
      : limiter_(std::move(config), clock, 1, [this] { ++wakes; }) {
    limiter_.set_policy(policy_of(std::move(limits)));
  }

  edge::Limiter& limiter() { return limiter_; }
  void pass(Nanos span_ns) { clock.now_ns += span_ns; }

  /// Decides at once, or parks the check; `last` is its answer when it comes.
  void check(const Check& check) {
    last.reset();
    Decision decision;
    const auto decided = limiter_.decide(check, decision);
    ASSERT_TRUE(decided.has_value());
    if (*decided) {
      last = decision;
    } else {
      limiter_.decide_later(check, [this](const Decision& said) { last = said; });
    }
  }

  std::vector<LeaseRequest> collect() {
    std::vector<LeaseRequest> out;
    next_ns = limiter_.collect(out);
    return out;
  }
  /// The one request that is due; fails when there are more or none.
  LeaseRequest request() {
    auto out = collect();
    EXPECT_EQ(out.size(), 1U);
    return out.empty() ? LeaseRequest{} : out.front();
  }

  static LeaseAnswer answer(const LeaseRequest& to, LeaseStatus status, std::int64_t granted = 0) {
    LeaseAnswer answer;
    answer.bucket = to.bucket;
    answer.lessee = to.lessee;
    answer.sequence = to.sequence;
    answer.status = status;
    answer.granted = granted;
    answer.ttl_ns = status == LeaseStatus::granted ? 5 * kSecond : 0;
    answer.level = 1000;
    answer.capacity = 2000;
    answer.outstanding = granted;
    return answer;
  }
  void grant(const LeaseRequest& to, std::int64_t tokens) {
    limiter_.on_answer(answer(to, LeaseStatus::granted, tokens));
  }
  void empty(const LeaseRequest& to, Nanos retry_ns) {
    auto said = answer(to, LeaseStatus::empty);
    said.retry_ns = retry_ns;
    said.level = 0;
    limiter_.on_answer(said);
  }
  /// Checks `check` and grants `tokens` for it.
  void hold(const Check& check, std::int64_t tokens) {
    this->check(check);
    for (const LeaseRequest& request : collect()) grant(request, tokens);
    ASSERT_TRUE(last && last->allowed);
  }
  std::int64_t held() {
    std::int64_t sum = 0;
    for (const auto& gauges : limiter_.gauges()) sum += gauges.lease_tokens;
    return sum;
  }

  FakeClock clock;
  std::optional<Decision> last;
  Nanos next_ns = 0;
  int wakes = 0;

 private:
  edge::Limiter limiter_;
};

}  // namespace weir::test
