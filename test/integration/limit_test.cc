// Goal: the limit holds over five nodes and is used up, and one edge alone counts exactly.
// Method: real processes on loopback, real HTTP clients, judged from what the clients saw.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

#include "src/cli/process.h"
#include "test/integration/fixture.h"

namespace weir::test {
namespace {

using LimitOverNodes = ClusterTest;
using OneEdge = ClusterTest;
using CalendarWindow = ClusterTest;

constexpr const char* kProofPolicy =
    "version: 1\n"
    "limits:\n"
    "  - {name: local, match: {route: local}, scope: node, rate: 100/h, burst: 100}\n"
    "  - {name: weir, match: {route: weir}, scope: global, rate: 100/h, burst: 100,\n"
    "     on_unreachable: deny}\n";

LoadShape burst_of(const std::vector<Endpoint>& nodes, const std::string& route) {
  LoadShape shape;
  shape.nodes = nodes;
  shape.connections_per_node = 4;
  shape.attributes = {{"route", route}};
  shape.checks = 500;
  shape.checks_per_s = 1'000'000;  // as fast as answers come
  return shape;
}

TEST_F(LimitOverNodes, FiveHundredAgainstAHundredGiveExactlyAHundred) {
  ASSERT_NO_FATAL_FAILURE(start(2, 5, kProofPolicy, patient_node()));
  const Tally local = tally(Load(burst_of(http(), "local")).finish());
  EXPECT_EQ(local.allowed, 500) << to_string(local);

  const History history = Load(burst_of(http(), "weir")).finish();
  const Tally counts = tally(history);
  expect_bound(history, {100, 100, kHour}, "burst");
  // A machine too busy to hear from the owner for half a second denies by failure policy, and the
  // quota is not used up yet: go on until every node has the owner's word for it.
  std::int64_t later = 0;
  for (const Endpoint& node : http()) {
    EXPECT_TRUE(eventually([&] {
      const Answer answer = check(node, "acme", 1, {{"route", "weir"}});
      if (answer.allowed()) ++later;
      return answer.status == 429 && answer.word("source") == "owner";
    }));
  }
  EXPECT_EQ(counts.allowed + later, 100) << to_string(counts);
  EXPECT_EQ(counts.denied, 500 - counts.allowed) << to_string(counts);
  EXPECT_TRUE(later == 0 || counts.degraded + counts.timed_out > 0) << later;
}

/// One of the two client processes: 8 connections, 4 to each node.
cli::SpawnedProcess start_client(const std::string& history, const std::vector<Endpoint>& nodes,
                                 const LoadShape& load) {
  cli::SpawnRequest request;
  request.executable = WEIR_LOAD_CLIENT;
  request.arguments = {history, "4", std::to_string(load.checks_per_s), std::to_string(load.checks),
                       load.customer};
  for (const Endpoint& node : nodes) request.arguments.push_back("http://" + to_string(node));
  request.log = history + ".log";
  const auto spawned = cli::spawn_process(request);
  return spawned ? *spawned : cli::SpawnedProcess{};
}

TEST_F(LimitOverNodes, TwoClientProcessesGetTheQuotaAndNoMore) {
  constexpr LimitNumbers kLimit{200, 400, kSecond};
  ASSERT_NO_FATAL_FAILURE(start(2, 5,
                                "version: 1\nlimits:\n  - {name: api, scope: global, rate: 400/s, "
                                "burst: 200, on_unreachable: deny}\n",
                                quick_disk()));
  // One node in each region. Both clients together ask for four times the rate.
  const std::vector<Endpoint> nodes{node(0).http, node(4).http};
  const LoadShape load = load_of(nodes, 400, 2, (long_run() ? 30 : 6) * kSecond);
  History history;
  std::vector<cli::SpawnedProcess> clients;
  for (const char* name : {"one", "two"}) clients.push_back(start_client(path(name), nodes, load));
  for (const cli::SpawnedProcess& client : clients) {
    ASSERT_GT(client.pid, 0);
    ::close(client.ready_fd);
    int wait_status = 0;
    ASSERT_EQ(::waitpid(client.pid, &wait_status, 0), client.pid);
    EXPECT_EQ(wait_status, 0) << cli::describe_wait_status(wait_status);
  }
  for (const char* name : {"one", "two"}) {
    const auto part = read_history(path(name));
    ASSERT_TRUE(part) << part.error().message;
    history.insert(history.end(), part->begin(), part->end());
  }
  expect_bound(history, kLimit, "two clients");
  EXPECT_EQ(tally(history).failed, 0);
  // What is on lease when the load ends was not asked for any more: two portions of a tenth of a
  // second, which weigh more in a short run.
  expect_use(history, kLimit, 990);
  const double requests = metric_of_all("weir_lease_requests_total");
  std::cout << "lease requests: " << requests << " for " << history.size() << " checks, "
            << requests * 1000 / static_cast<double>(history.size()) << " permille\n";
  EXPECT_GT(requests, 0);
}

/// What is left of this minute, UTC.
std::int64_t left_of_minute_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return 60'000 - std::chrono::duration_cast<std::chrono::milliseconds>(now).count() % 60'000;
}

TEST_F(CalendarWindow, AQuotaPerMinuteIsAdmittedOncePerMinuteOverFiveNodes) {
  constexpr std::int64_t kQuota = 30;
  ASSERT_NO_FATAL_FAILURE(start(2, 5,
                                "version: 1\nlimits:\n  - {name: minutely, scope: global, quota: "
                                "30, window: minute, on_unreachable: deny}\n",
                                patient_node()));
  ASSERT_TRUE(eventually([] { return left_of_minute_ms() > 20'000; }));
  for (int window = 0; window < (long_run() ? 2 : 1); ++window) {
    std::int64_t allowed = 0;
    Answer denied;
    const std::int64_t left_ms = left_of_minute_ms();
    for (const Endpoint& node : http()) {
      EXPECT_TRUE(eventually([&] {
        denied = check(node, "acme");
        if (denied.allowed()) ++allowed;
        return denied.status == 429 && denied.word("source") == "owner";
      }));
    }
    ASSERT_LT(left_of_minute_ms(), left_ms) << "the machine is too slow to see this";
    EXPECT_EQ(allowed, kQuota);
    EXPECT_EQ(denied.number("limit"), kQuota);
    EXPECT_EQ(denied.number("remaining"), 0);
    EXPECT_GE(denied.number("retry_after_ms"), left_of_minute_ms());
    EXPECT_LE(denied.number("retry_after_ms"), left_ms);
    EXPECT_LE(denied.number("reset_ms"), left_ms);
    ASSERT_NE(denied.header("RateLimit-Policy"), nullptr);
    EXPECT_EQ(*denied.header("RateLimit-Policy"), "\"minutely\";q=30;w=60");
    ASSERT_NE(denied.header("Retry-After"), nullptr);
    EXPECT_GE(std::stoll(*denied.header("Retry-After")) * 1000, left_of_minute_ms());
    if (!long_run()) break;
    ASSERT_TRUE(eventually([] { return left_of_minute_ms() > 59'000; }, kMinute));
  }
}

TEST_F(OneEdge, CountsDownExactlyAndAdmitsAgainAfterRetryAfter) {
  ASSERT_NO_FATAL_FAILURE(
      start(1, 1, "version: 1\nlimits:\n  - {name: slow, scope: global, rate: 1/5s, burst: 10}\n",
            patient_node()));
  const Nanos began_ns = now_ns();
  // Ten at once, each on a connection of its own; which of them is first is not known.
  LoadShape shape = burst_of({node(0).http}, "any");
  shape.connections_per_node = 10;
  shape.checks = 10;
  History history = Load(shape).finish();
  ASSERT_LT(now_ns() - began_ns, 5 * kSecond) << "the machine is too slow to see this";
  std::vector<std::int64_t> remaining;
  for (const CheckRecord& record : history) {
    EXPECT_EQ(record.verdict, Verdict::allowed) << record.source;
    remaining.push_back(record.remaining);
  }
  std::sort(remaining.begin(), remaining.end());
  EXPECT_EQ(remaining, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));

  const Answer denied = check(node(0).http, "acme");
  const Nanos denied_ns = now_ns();
  EXPECT_EQ(denied.status, 429) << denied.text;
  EXPECT_EQ(denied.number("remaining"), 0);
  const std::string* retry_after = denied.header("Retry-After");
  ASSERT_NE(retry_after, nullptr);
  const std::int64_t retry_s = std::stoll(*retry_after);
  EXPECT_GE(retry_s * 1000, denied.number("retry_after_ms"));
  EXPECT_GE(retry_s, 1);
  EXPECT_LE(retry_s, 6) << "5 s, upward by at most a tenth";
  ASSERT_TRUE(eventually([&] { return now_ns() >= denied_ns + retry_s * kSecond; }));
  // The first answer that is the owner's, and not that of a machine too busy to ask it.
  Answer after;
  EXPECT_TRUE(eventually([&] {
    after = check(node(0).http, "acme");
    return after.word("source") == "lease" || after.word("source") == "owner";
  }));
  EXPECT_EQ(after.status, 200) << after.text;
}

TEST_F(OneEdge, ADenialLeavesTwentyLimitsUntouched) {
  std::string policy = "version: 1\nlimits:\n";
  for (int i = 1; i <= 20; ++i) {
    policy += "  - {name: l" + std::to_string(i) + ", scope: " + (i % 4 == 0 ? "node" : "global") +
              ", rate: 1/h, burst: " + std::to_string(i == 13 ? 3 : 10 + i) + "}\n";
  }
  ASSERT_NO_FATAL_FAILURE(start(1, 1, policy, patient_node()));
  const auto remaining = [this] {
    std::map<std::string, std::int64_t> by_name;
    const Answer look = check(node(0).http, "acme", 0);
    for (const auto& limit : look.json.at("limits").as_array()) {
      by_name[std::string(limit.at("name").as_string())] = limit.at("remaining").as_int64();
    }
    return by_name;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(check(node(0).http, "acme").status, 200);
  const auto before = remaining();
  ASSERT_EQ(before.size(), 20U);
  for (int i = 0; i < 50; ++i) {
    const Answer denied = check(node(0).http, "acme");
    EXPECT_EQ(denied.status, 429);
    EXPECT_EQ(denied.word("name"), "l13");
  }
  EXPECT_EQ(remaining(), before);
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(before.at("l" + std::to_string(i)), i == 13 ? 0 : 10 + i - 3) << "l" << i;
  }
}

}  // namespace
}  // namespace weir::test
