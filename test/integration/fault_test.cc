// Goal: killed owners and killed nodes cost no admission too many.
// Method: load on all nodes while owners or a whole process are killed at points of the load, the
// promise judged over the whole history. `on_unreachable: deny`, since a machine too busy to answer
// for half a second would make the other failure policies admit above the bound, as declared.
#include <signal.h>

#include <iostream>

#include "test/integration/fixture.h"

namespace weir::test {
namespace {

using KilledOwner = ClusterTest;
using KilledNode = ClusterTest;

int kills() { return long_run() ? 10 : 4; }
Nanos load_ns() { return (long_run() ? 30 : 8) * kSecond; }

TEST_F(KilledOwner, CostsNoCheckAndNoQuota) {
  constexpr LimitNumbers kLimit{100, 200, kSecond};
  ASSERT_NO_FATAL_FAILURE(start(2, 5,
                                "version: 1\nlimits:\n  - {name: api, scope: global, rate: 200/s, "
                                "burst: 100, on_unreachable: deny}\n",
                                quick_disk()));
  Load load(load_of(http(), 200, 4, load_ns()));
  for (int i = 1; i <= kills(); ++i) {
    ASSERT_TRUE(load.wait_for_permille(1000 * i / (kills() + 1)));
    const auto& asked = node(static_cast<std::size_t>(i) % 5);
    const Answer killed = ask(asked.admin, "POST", "/v1/chaos/kill-owner?customer=acme");
    EXPECT_EQ(killed.status, 200) << killed.text;
  }
  const History history = load.finish();
  expect_bound(history, kLimit, "owner killed");
  EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
  expect_use(history, kLimit, 970);
}

/// The owner's denial of the drained customer, and not that of an edge that was too busy to hear
/// it.
Answer owner_denial(const Endpoint& node) {
  Answer answer;
  EXPECT_TRUE(eventually([&] {
    answer = check(node, "drained", 1, {{"route", "few"}});
    return answer.allowed() || answer.word("source") == "owner";
  }));
  EXPECT_EQ(answer.status, 429) << answer.text;
  return answer;
}

TEST_F(KilledNode, ForgetsNothing) {
  constexpr LimitNumbers kLimit{50, 100, kSecond};
  ASSERT_NO_FATAL_FAILURE(
      start(1, 1,
            "version: 1\nlimits:\n"
            "  - {name: api, match: {route: load}, scope: global, rate: 100/s, burst: 50, "
            "on_unreachable: deny}\n"
            "  - {name: few, match: {route: few}, scope: global, rate: 1/h, burst: 5,\n"
            "     on_unreachable: deny}\n",
            quick_disk()));
  const cli::LocalNode& only = node(0);
  ASSERT_NO_FATAL_FAILURE(spend(only.http, "drained", {{"route", "few"}}, 5));
  Nanos before_ns = now_ns();
  Answer before = owner_denial(only.http);

  LoadShape shape = load_of(http(), 100, 4, load_ns());
  shape.connections_per_node = 8;
  shape.attributes = {{"route", "load"}};
  Load load(shape);
  for (int i = 1; i <= kills(); ++i) {
    ASSERT_TRUE(load.wait_for_permille(1000 * i / (kills() + 1)));
    ASSERT_TRUE(cluster_->kill(only.name, SIGKILL));
    ASSERT_TRUE(cluster_->restart(only.name));
    const Nanos asked_ns = now_ns();
    const Answer after = owner_denial(only.http);
    EXPECT_LE(after.number("remaining"), before.number("remaining"));
    const std::int64_t passed_ms = (now_ns() - before_ns) / kMillisecond + 1;
    EXPECT_GE(after.number("retry_after_ms"), before.number("retry_after_ms") - passed_ms);
    before = after;
    before_ns = asked_ns;
  }
  const History history = load.finish();
  expect_bound(history, kLimit, "node killed");
  EXPECT_GT(tally(history).allowed, 0);
  const bool admits = eventually([&] {
    return check(only.http, "acme", 1, {{"route", "load"}}).allowed();
  });
  EXPECT_TRUE(admits) << "nobody waits for ever for what a dead process had taken";
}

}  // namespace
}  // namespace weir::test
