// Goal: in a region far from the owners a relay keeps the limit exact, spares calls over the wide
// area, and may die. Method: real processes, region `eu` with three owner nodes, region `us` with
// edges and one owner node for the relay; the promise judged over what clients saw.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "test/integration/fixture.h"

namespace weir::test {
namespace {

constexpr const char* kRequests = "weir_lease_requests_total";
constexpr const char* kRelayRequests = "weir_relay_requests_total";

Nanos load_ns() { return (long_run() ? 40 : 8) * kSecond; }

class RelayedRegion : public ClusterTest {
 protected:
  std::vector<const cli::LocalNode*> far_nodes() const {
    std::vector<const cli::LocalNode*> nodes;
    for (const cli::LocalNode& each : cluster_->nodes()) {
      if (each.region == "us") nodes.push_back(&each);
    }
    return nodes;
  }
  std::vector<Endpoint> far_http() const {
    std::vector<Endpoint> endpoints;
    for (const cli::LocalNode* each : far_nodes()) endpoints.push_back(each->http);
    return endpoints;
  }
  double far_metric(const char* name, const char* label = "") const {
    double sum = 0;
    for (const cli::LocalNode* each : far_nodes()) {
      if (each->pid != 0) sum += metric(each->admin, name, label);
    }
    return sum;
  }
};

TEST_F(RelayedRegion, KeepsTheLimitWithFewerCallsToTheOwner) {
  // One and a half times the limit, from the far region alone.
  const auto load = [&] {
    LoadShape shape = load_of(far_http(), 300, 1, load_ns());
    return Load(shape).finish();
  };
  ASSERT_NO_FATAL_FAILURE(start(2, 5, kUsualPolicy, quick_disk()));
  const History direct = load();
  const double direct_calls = far_metric(kRequests);
  expect_bound(direct, kUsualLimit, "edges that ask the owner");
  EXPECT_EQ(far_metric(kRelayRequests), 0);
  cluster_->stop();
  expect_no_deaths();
  cluster_.reset();
  std::filesystem::remove_all(path("cluster"));

  relays_ = 1;
  ASSERT_NO_FATAL_FAILURE(start(2, 6, kUsualPolicy, quick_disk()));
  const History relayed = load();
  const double asked = far_metric(kRequests);
  const double calls = far_metric(kRelayRequests);
  expect_bound(relayed, kUsualLimit, "edges that ask a relay");
  EXPECT_EQ(tally(relayed).failed, 0);
  expect_use(relayed, kUsualLimit, 985);
  std::cout << "calls to the owner: " << direct_calls << " for " << direct.size()
            << " checks directly, " << calls << " for " << relayed.size()
            << " by a relay that was asked " << asked << " times\n";
  EXPECT_GT(calls, 0);
  // While an owner is silent nobody has an answer to count.
  if (tally(direct).degraded + tally(relayed).degraded > 0) return;
  EXPECT_LT(calls / static_cast<double>(relayed.size()),
            direct_calls / static_cast<double>(direct.size()));
}

TEST_F(RelayedRegion, AKilledRelayIsGoneRoundAndNothingIsGrantedTwice) {
  relays_ = 1;
  ASSERT_NO_FATAL_FAILURE(start(2, 6, kUsualPolicy, quick_disk()));
  const cli::LocalNode relay = *far_nodes()[0];
  std::vector<Endpoint> living = http();
  std::erase(living, relay.http);
  Load load(load_of(living, 200, 2, load_ns()));
  ASSERT_TRUE(load.wait_for_permille(250));
  EXPECT_TRUE(eventually([&] { return metric(relay.admin, kRelayRequests) > 0; }));
  ASSERT_TRUE(cluster_->kill(relay.name, SIGKILL));
  ASSERT_TRUE(load.wait_for_permille(600));
  ASSERT_TRUE(cluster_->restart(relay.name));
  const History history = load.finish();
  expect_bound(history, kUsualLimit, "relay killed");
  EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
  // Whoever held nothing of it went on at the owner.
  for (const cli::LocalNode* each : far_nodes()) {
    EXPECT_TRUE(eventually([&] { return check(each->http, "another-" + each->name).allowed(); }));
  }
}

TEST_F(RelayedRegion, ARelayThatIsToldToStopReturnsWhatItHasNotLent) {
  relays_ = 1;
  ASSERT_NO_FATAL_FAILURE(start(2, 6, kUsualPolicy, quick_disk()));
  const cli::LocalNode relay = *far_nodes()[0];
  std::vector<Endpoint> living = http();
  std::erase(living, relay.http);
  Load load(load_of(living, 200, 2, load_ns()));
  ASSERT_TRUE(load.wait_for_permille(400));
  EXPECT_TRUE(eventually([&] {
    const std::string text = ask(node(0).admin, "GET", "/v1/explain?customer=acme").text;
    return text.find(R"("node":")" + relay.name + R"(","relay":true)") != std::string::npos;
  })) << "the owner tells whom it has lent to lend on";
  ASSERT_TRUE(cluster_->kill(relay.name, SIGTERM));
  ASSERT_TRUE(cluster_->wait_for_exit(relay.name, 12 * kSecond));
  const History history = load.finish();
  expect_bound(history, kUsualLimit, "relay told to stop");
  EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
}

TEST_F(RelayedRegion, ALoweredLimitReachesTheEdgesOfARelay) {
  relays_ = 1;
  constexpr const char* kWide =
      "version: 1\nlimits:\n  - {name: api, scope: global, rate: 1/h, burst: 100000, "
      "on_unreachable: deny}\n";
  constexpr const char* kNarrow =
      "version: 2\nlimits:\n  - {name: api, scope: global, rate: 1/h, burst: 10, "
      "on_unreachable: deny}\n";
  ASSERT_NO_FATAL_FAILURE(start(2, 6, kWide, patient_node()));
  for (const Endpoint& each : far_http()) ASSERT_NO_FATAL_FAILURE(spend(each, "acme", {}, 50));
  ASSERT_NO_FATAL_FAILURE(reload(kNarrow, 2));
  // More is out or spent than the new limit has: nobody is admitted once leases have ended.
  for (const Endpoint& each : far_http()) {
    EXPECT_TRUE(eventually([&] {
      const Answer answer = check(each, "acme");
      return answer.status == 429 && answer.word("source") == "owner" &&
             answer.number("limit") == 10;
    }));
  }
}

}  // namespace
}  // namespace weir::test
