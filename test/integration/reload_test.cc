// Goal: a policy changes under load as API.md says: each step shows in /v1/status, no check fails,
// no counter is reset. Method: SIGHUP to every node between points of a load. A second customer,
// drained at the start of a limit that nobody changes, tells whether counters survive.
#include <signal.h>

#include <string>

#include "test/integration/fixture.h"

namespace weir::test {
namespace {

class Reload : public ClusterTest {
 protected:
  static std::string policy(int version, const std::string& api) {
    return "version: " + std::to_string(version) + "\nlimits:\n" + api +
           "  - {name: few, match: {route: few}, scope: global, rate: 1/h, burst: 5, "
           "on_unreachable: deny}\n";
  }
  static std::string api(const std::string& numbers) {
    return "  - {name: api, match: {route: load}, scope: global, on_unreachable: deny, " + numbers +
           "}\n";
  }

  void expect_few_drained(const std::string& when) {
    for (const Endpoint& node : http()) {
      const Answer denied = check(node, "drained", 1, {{"route", "few"}});
      EXPECT_EQ(denied.status, 429) << when << " " << denied.text;
      EXPECT_EQ(denied.word("name"), "few") << when;
    }
  }

  /// So that a policy goes in several pieces.
  static std::string many_customers() {
    std::string text = "customers:\n";
    for (int i = 0; i < 5000; ++i) {
      text += "  customer-" + std::to_string(i) + std::string(80, 'x') +
              ": {limits: {few: {burst: 9}}}\n";
    }
    return text;
  }

  /// A limit raised from 5 to 8 after 5 were spent has no more than what flows in now.
  void expect_few_left() {
    const Answer denied = check(node(0).http, "acme", 1, {{"route", "load"}});
    EXPECT_EQ(denied.status, 429) << denied.text;
    EXPECT_EQ(denied.number("limit"), 8) << denied.text;
  }

  void change_under_load(int regions, int nodes) {
    ASSERT_NO_FATAL_FAILURE(
        start(regions, nodes, policy(1, api("rate: 100/s, burst: 50")), patient_node()));
    ASSERT_NO_FATAL_FAILURE(spend(node(0).http, "drained", {{"route", "few"}}, 5));
    expect_few_drained("at first");
    LoadShape shape = load_of(http(), 100, 4, (long_run() ? 30 : 14) * kSecond);
    shape.attributes = {{"route", "load"}};
    Load load(shape);

    const std::string lowered = policy(3, api("rate: 50/s, burst: 20"));
    struct Step {
      const char* name;
      std::string text;
      int version;  ///< 0: refused
    };
    const std::vector<Step> steps{
        {"raised", policy(2, api("rate: 200/s, burst: 80")), 2},
        {"lowered", lowered, 3},
        {"broken", "version: 4\nlimits:\n  - {name: api, scope: globl, rate: 1/s}\n", 0},
        {"mended", lowered, 3},
        {"removed", policy(5, ""), 5},
        {"restored", policy(6, api("rate: 50/s, burst: 20")), 6},
    };
    std::vector<Nanos> began_ns;
    std::vector<Nanos> done_ns;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      ASSERT_TRUE(load.wait_for_permille(static_cast<std::int64_t>(1000 * (i + 1)) /
                                         static_cast<std::int64_t>(steps.size() + 1)));
      SCOPED_TRACE(steps[i].name);
      began_ns.push_back(now_ns());
      ASSERT_NO_FATAL_FAILURE(reload(steps[i].text, steps[i].version));
      done_ns.push_back(now_ns());
      expect_few_drained(steps[i].name);
    }
    const History history = load.finish();
    EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
    judge(history, began_ns, done_ns);
  }

  /// Judges the stretches between the steps, each from when all nodes had taken it until the next
  /// began. What was out on lease when the limit was lowered may still be spent until its lease
  /// ends (D8), so the stretch with the low limit begins with the older capacity.
  static void judge(const History& history, const std::vector<Nanos>& began_ns,
                    const std::vector<Nanos>& done_ns) {
    enum Step : std::size_t { kRaised, kLowered, kBroken, kMended, kRemoved, kRestored };
    const auto between = [&](Nanos from_ns, Nanos to_ns) {
      History part;
      for (const CheckRecord& record : history) {
        if (record.invoked_ns >= from_ns && record.returned_ns <= to_ns) part.push_back(record);
      }
      return part;
    };
    expect_bound(between(0, began_ns[kRaised]), {50, 100, kSecond}, "at first");
    expect_bound(between(0, done_ns[kLowered]), {80, 200, kSecond}, "raised");
    expect_bound(between(done_ns[kLowered], began_ns[kRemoved]), {80, 50, kSecond},
                 "lowered, broken and mended");
    const History free = between(done_ns[kRemoved], began_ns[kRestored]);
    EXPECT_GT(tally(free).allowed, 0);
    EXPECT_EQ(tally(free).denied, 0) << "no limit, no denial";
    const History last = between(done_ns[kRestored], kForever);
    EXPECT_GT(tally(last).denied, 0) << "the limit rules again";
    expect_bound(last, {20, 50, kSecond}, "restored");
  }
};

/// PROTOCOL J4.
TEST_F(Reload, AVersionThatOneNodeHasReadReachesAllAndOutlivesARestart) {
  ASSERT_NO_FATAL_FAILURE(start(2, 5, policy(1, api("rate: 1/h, burst: 5")), patient_node()));
  ASSERT_NO_FATAL_FAILURE(spend(node(4).http, "acme", {{"route", "load"}}, 5));
  const auto policy_of = [&](std::size_t at) {
    const auto now = status(node(at));
    return now.contains("policy") ? now.at("policy").as_object() : boost::json::object{};
  };
  const auto all_have = [&](std::int64_t version) {
    for (std::size_t i = 0; i < cluster_->nodes().size(); ++i) {
      const auto now = policy_of(i);
      if (!now.contains("version") || now.at("version").to_number<std::int64_t>() != version) {
        return false;
      }
    }
    return true;
  };
  write_policy(policy(2, api("rate: 1/h, burst: 8")) + many_customers());
  ASSERT_EQ(kill(node(4).pid, SIGHUP), 0);  // an edge in the other region
  ASSERT_TRUE(eventually([&] { return all_have(2); }));
  EXPECT_EQ(policy_of(4).at("origin"), "file");
  EXPECT_NE(policy_of(0).at("origin"), "file");
  // Raised at once, and nothing reset: what was spent is spent.
  ASSERT_NO_FATAL_FAILURE(expect_few_left());

  write_policy(policy(1, api("rate: 1/h, burst: 500")));
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGKILL));
  ASSERT_TRUE(cluster_->restart(node(0).name));
  ASSERT_TRUE(eventually([&] { return all_have(2); }));
  EXPECT_TRUE(policy_of(0).at("last_error").is_object()) << "the older file is shown";

  // The same version with other content.
  write_policy(policy(2, api("rate: 1/h, burst: 500")));
  ASSERT_EQ(kill(node(1).pid, SIGHUP), 0);
  ASSERT_TRUE(eventually([&] { return policy_of(1).at("last_error").is_object(); }));
  EXPECT_EQ(policy_of(1).at("hash"), policy_of(2).at("hash"));
}

TEST_F(Reload, OneNodeFollowsThePolicyUnderLoad) { change_under_load(1, 1); }

TEST_F(Reload, AClusterFollowsThePolicyUnderLoad) { change_under_load(2, 5); }

}  // namespace
}  // namespace weir::test
