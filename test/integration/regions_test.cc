// Goal: several regions keep a limit when one of them dies, is far away, or an edge of it is cut
// off, and edges may come and go. Method: real processes, load under failure policies that are
// named, the promise judged over the whole history of what clients saw. What is timed is said, not
// judged.
#include <algorithm>
#include <iostream>

#include "src/cli/cluster_files.h"
#include "test/integration/fixture.h"

namespace weir::test {
namespace {

Nanos load_ns() { return (long_run() ? 40 : 12) * kSecond; }

class Regions : public ClusterTest {
 protected:
  void start_regions(int regions, int nodes, bool spread,
                     const std::string& policy = kUsualPolicy) {
    cli::ClusterShape shape;
    shape.regions = regions;
    shape.nodes = nodes;
    shape.spread = spread;
    shape.policy = policy;
    shape.node_lines = quick_disk();
    start(std::move(shape));
  }

  std::string region_of(const std::string& customer) const {
    return cluster_->find(owner_of(customer))->region;
  }
  /// Some customer whose home is, or is not, `region`.
  std::string customer_of(const std::string& region, bool at_home) const {
    std::string customer;
    EXPECT_TRUE(eventually([&] {
      for (int i = 0; customer.empty() && i < 50; ++i) {
        const std::string name = "customer-" + std::to_string(i);
        const auto* owner = cluster_->find(owner_of(name));
        if (owner != nullptr && (owner->region == region) == at_home) customer = name;
      }
      return !customer.empty();
    }));
    return customer;
  }
  std::vector<std::size_t> nodes_in(const std::string& region, bool inside) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < cluster_->nodes().size(); ++i) {
      if ((node(i).region == region) == inside) found.push_back(i);
    }
    return found;
  }
  void kill_region(const std::string& region) {
    for (const std::size_t i : nodes_in(region, true)) {
      ASSERT_TRUE(cluster_->kill(node(i).name, SIGKILL));
    }
  }
  std::vector<Endpoint> http_of(const std::vector<std::size_t>& nodes) const {
    std::vector<Endpoint> endpoints;
    for (const std::size_t i : nodes) endpoints.push_back(node(i).http);
    return endpoints;
  }
  bool is_admitted(std::size_t at, const std::string& customer) const {
    return check(node(at).http, customer).allowed();
  }
};

TEST_F(Regions, SpreadOverThreeTheLossOfOneIsOutlived) {
  ASSERT_NO_FATAL_FAILURE(start_regions(3, 3, true));
  const std::string home = region_of("acme");
  const auto others = nodes_in(home, false);
  ASSERT_EQ(others.size(), 2U);
  Load load(load_of(http_of(others), 200, 4, load_ns()));
  ASSERT_TRUE(load.wait_for_permille(200));
  const Nanos killed_ns = now_ns();
  ASSERT_NO_FATAL_FAILURE(kill_region(home));
  const std::string fresh = "acme-" + std::to_string(killed_ns);
  EXPECT_TRUE(eventually([&] { return is_admitted(others.front(), fresh); }));
  EXPECT_TRUE(eventually([&] { return is_admitted(others.front(), "acme"); }));
  std::cout << "a region of three killed: admitted again after "
            << (now_ns() - killed_ns) / kMillisecond << " ms\n";
  ASSERT_TRUE(load.wait_for_permille(700));
  for (const std::size_t i : nodes_in(home, true)) ASSERT_TRUE(cluster_->restart(node(i).name));
  const History history = load.finish();
  expect_bound(history, kUsualLimit, "a region killed, records spread");
  EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
}

TEST_F(Regions, NotSpreadOnlyItsOwnCustomersMissARegion) {
  ASSERT_NO_FATAL_FAILURE(start_regions(2, 6, false));
  const std::string dead = node(5).region;
  const std::string lost = customer_of(dead, true);
  const std::string kept = customer_of(dead, false);
  const auto living = nodes_in(dead, false);
  LoadShape shape = load_of(http_of(living), 200, 4, load_ns());
  shape.customer = kept;
  Load load(shape);
  ASSERT_TRUE(load.wait_for_permille(200));
  ASSERT_NO_FATAL_FAILURE(kill_region(dead));
  // What is out on lease may still be spent; then nothing comes.
  EXPECT_TRUE(eventually([&] {
    const Answer answer = check(node(living.front()).http, lost);
    return answer.status == 429 && answer.word("source") == "deny";
  }));
  EXPECT_TRUE(eventually([&] { return is_admitted(living.front(), kept); }));
  ASSERT_TRUE(load.wait_for_permille(700));
  for (const std::size_t i : nodes_in(dead, true)) ASSERT_TRUE(cluster_->restart(node(i).name));
  EXPECT_TRUE(eventually([&] { return is_admitted(living.front(), lost); }));
  const History history = load.finish();
  expect_bound(history, kUsualLimit, "another region killed");
  EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
  // On a busy machine an owner may be silent for half a second all by itself.
  EXPECT_LE(tally(history).degraded * 20,
            long_run() ? 0 : static_cast<std::int64_t>(history.size()))
      << "the living region's customers noticed";
}

/// Each limit has its own customer, so that each bucket is one.
TEST_F(Regions, AnEdgeThatIsCutOffDecidesByPolicyLoudlyAndRecovers) {
  const auto limit = [](const std::string& name) {
    return "  - {name: " + name + ", match: {route: " + name +
           "}, scope: global, rate: 20/s, burst: 20, on_unreachable: " + name + "}\n";
  };
  ASSERT_NO_FATAL_FAILURE(start_regions(
      2, 5, false,
      "version: 1\nlimits:\n" + limit("static_share") + limit("allow") + limit("deny")));
  const cli::LocalNode& edge = node(4);
  const std::vector<std::string> policies{"static_share", "allow", "deny"};
  const auto source = [&](const std::string& policy) {
    return check(edge.http, policy, 1, {{"route", policy}}).word("source");
  };
  for (const std::string& policy : policies) {
    ASSERT_TRUE(eventually([&] { return source(policy) == "lease"; })) << policy;
  }
  ASSERT_EQ(ask(edge.admin, "POST", "/v1/chaos/cut?nodes=eu-1,eu-2,eu-3").status, 200);
  for (const std::string& policy : policies) {
    ASSERT_TRUE(eventually([&] { return source(policy) == policy; })) << policy;
    EXPECT_EQ(metric(edge.admin, "weir_degraded", "limit=\"" + policy + "\""), 1) << policy;
  }
  EXPECT_FALSE(status(edge).at("degraded").as_array().empty());
  // What was admitted meanwhile was never more than what is said that it may be.
  std::map<std::string, std::int64_t> admitted;
  for (const std::string& policy : policies) {
    for (int i = 0; i < 60; ++i) {
      const Answer answer = check(edge.http, policy, 1, {{"route", policy}});
      EXPECT_EQ(answer.word("source"), policy);
      admitted[policy] += answer.allowed() ? 1 : 0;
    }
    EXPECT_LE(static_cast<double>(admitted[policy]),
              metric(edge.admin, "weir_overshoot_bound_tokens", "limit=\"" + policy + "\""))
        << policy;
  }
  EXPECT_EQ(admitted["allow"], 60);
  EXPECT_EQ(admitted["deny"], 0);
  EXPECT_GT(admitted["static_share"], 0);
  EXPECT_LT(admitted["static_share"], 60);
  ASSERT_EQ(ask(edge.admin, "POST", "/v1/chaos/cut").status, 200);
  for (const std::string& policy : policies) {
    EXPECT_TRUE(eventually([&] {
      const std::string now = source(policy);
      return now == "lease" || now == "owner";
    })) << policy;
    EXPECT_TRUE(eventually([&] {
      return metric(edge.admin, "weir_degraded", "limit=\"" + policy + "\"") == 0;
    })) << policy;
  }
}

TEST_F(Regions, EdgesComeAndGoWithoutAnybodysConfiguration) {
  ASSERT_NO_FATAL_FAILURE(start_regions(1, 3, false));
  const int most = long_run() ? 12 : 4;
  std::vector<std::unique_ptr<OneMore>> edges;
  const auto add_edge = [&] {
    const cli::LocalNode edge = further("eu-edge-" + std::to_string(edges.size()), "eu", false);
    edges.push_back(std::make_unique<OneMore>(
        edge, "node: " + edge.name + "\nregion: eu\nrole: [edge]\njoin: [\"" +
                  to_string(node(0).cluster) + "\"]\nlisten: {http: " + to_string(edge.http) +
                  ", admin: " + to_string(edge.admin) + "}\npolicy: " + path("nowhere.yaml") +
                  "\n"));
    // Until its peers have told it the policy it says 503.
    ASSERT_TRUE(eventually([&] {
      const int status = check(edge.http, "acme").status;
      return status == 200 || status == 429;
    }));
  };
  ASSERT_NO_FATAL_FAILURE(add_edge());
  ASSERT_TRUE(eventually([&] { return check(edges[0]->node().http, "acme").allowed(); }));
  History history;
  const auto join = [&history](Load& load) {
    const History part = load.finish();
    EXPECT_EQ(tally(part).failed, 0) << testing::PrintToString(load.complaints());
    history.insert(history.end(), part.begin(), part.end());
  };
  Load throughout(load_of({edges[0]->node().http}, 200, 3, 2 * load_ns()));
  for (int i = 1; i < most; ++i) ASSERT_NO_FATAL_FAILURE(add_edge());
  std::vector<Endpoint> more;
  for (std::size_t i = 1; i < edges.size(); ++i) more.push_back(edges[i]->node().http);
  Load crowd(load_of(more, 200, 3, load_ns() / 2));
  join(crowd);
  while (edges.size() > 2) {
    edges.back()->stop();
    edges.pop_back();
  }
  join(throughout);
  expect_bound(history, kUsualLimit, "edges 1, " + std::to_string(most) + ", 2");
  expect_use(history, kUsualLimit, 980);
}

TEST_F(Regions, FarAwayAColdEdgeIsExactAndAWarmOneQuick) {
  cli::ClusterShape shape;
  shape.regions = 2;
  shape.nodes = 5;
  shape.latencies = {{"eu", "us", 80 * kMillisecond}};
  shape.policy =
      "version: 1\nlimits:\n"
      "  - {name: api, match: {route: load}, scope: global, rate: 2000/s, burst: 2000, "
      "on_unreachable: deny}\n"
      "  - {name: few, match: {route: few}, scope: global, rate: 1/h, burst: 10, "
      "on_unreachable: deny}\n";
  shape.node_lines = quick_disk();
  ASSERT_NO_FATAL_FAILURE(start(std::move(shape)));
  const cli::LocalNode& far = node(4);
  ASSERT_TRUE(eventually([&] {
    const auto members = status(far).at("members").as_array();
    return std::all_of(members.begin(), members.end(), [](const boost::json::value& member) {
      const auto trip_us = member.at("round_trip_us").to_number<std::int64_t>();
      return member.at("node").as_string().starts_with("us") || trip_us >= 80'000;
    });
  })) << "the owners are 80 ms away";
  LoadShape cold = load_of({far.http}, 50, 1, kSecond);
  cold.checks = 50;
  cold.attributes = {{"route", "few"}};
  Load few(cold);
  const History first = few.finish();
  EXPECT_EQ(tally(first).failed, 0) << testing::PrintToString(few.complaints());
  EXPECT_LE(tally(first).allowed, 10);
  EXPECT_GT(tally(first).allowed, 0) << to_string(tally(first));

  LoadShape warm = load_of({far.http}, 500, 1, load_ns());
  warm.attributes = {{"route", "load"}};
  const double calls_before = metric(far.admin, "weir_lease_requests_total");
  Load load(warm);
  History history = load.finish();
  const double calls = metric(far.admin, "weir_lease_requests_total") - calls_before;
  EXPECT_EQ(tally(history).failed, 0) << testing::PrintToString(load.complaints());
  std::sort(history.begin(), history.end(),
            [](const CheckRecord& a, const CheckRecord& b) { return a.invoked_ns < b.invoked_ns; });
  std::vector<Nanos> took_ns;
  for (std::size_t i = history.size() / 4; i < history.size(); ++i) {
    took_ns.push_back(history[i].returned_ns - history[i].invoked_ns);
  }
  std::sort(took_ns.begin(), took_ns.end());
  std::cout << "80 ms away and warm: p50 " << took_ns[took_ns.size() / 2] / kMicrosecond
            << " us, p99 " << took_ns[took_ns.size() * 99 / 100] / kMicrosecond << " us, "
            << calls / static_cast<double>(history.size()) << " calls per check, "
            << to_string(tally(history)) << "\n";
  // Five hundred a second of two thousand: whoever is warm never waits for the ocean.
  const auto waited = std::count_if(took_ns.begin(), took_ns.end(),
                                    [](Nanos took) { return took >= 75 * kMillisecond; });
  EXPECT_LE(waited * 100, static_cast<std::ptrdiff_t>(took_ns.size()));
}

}  // namespace
}  // namespace weir::test
