// Goal: a customer that is gone costs disk only: a million of them, checked once each on one node,
// leave at most 400 MiB resident a minute after the last check, and nothing is forgotten.
// Method: batches of distinct customers; the quick form has fewer and waits for the node to say
// that no owner and no bucket is left, instead of for a minute.
#include <algorithm>
#include <fstream>
#include <iostream>

#include "test/integration/fixture.h"

namespace weir::test {
namespace {

using Memory = ClusterTest;

constexpr std::int64_t kMebibyte = 1024 * 1024;
constexpr int kBatch = 1000;

/// VmRSS.
std::int64_t resident_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

/// One batch of customers that nobody has seen before. Adds up the verdicts.
void check_batch(net::HttpClient& client, int first, Tally& counts) {
  std::string body = R"({"checks":[)";
  for (int i = first; i < first + kBatch; ++i) {
    body += (i == first ? "" : ",") + (R"({"customer":"customer-)" + std::to_string(i)) + "\"}";
  }
  const auto response = client.request("POST", "/v1/checks", {{"Content-Type", "application/json"}},
                                       body + "]}", kPatienceNs);
  ASSERT_TRUE(response) << response.error().message;
  ASSERT_EQ(response->status, 200) << response->body;
  const auto document = boost::json::parse(response->body);
  for (const auto& result : document.at("results").as_array()) {
    const auto* allowed = result.as_object().if_contains("allowed");
    ASSERT_NE(allowed, nullptr) << boost::json::serialize(result);
    ++(allowed->as_bool() ? counts.allowed : counts.denied);
    const auto& source = result.at("source").as_string();
    if (source == "timeout") ++counts.timed_out;
    if (source == "static_share") ++counts.degraded;
  }
}

TEST_F(Memory, CustomersThatAreGoneCostDiskOnly) {
  const int customers = long_run() ? 1'000'000 : 20'000;
  ASSERT_NO_FATAL_FAILURE(start(1, 1,
                                "version: 1\nlimits:\n"
                                "  - {name: api, scope: global, rate: 600/min, burst: 100}\n"
                                "  - {name: few, match: {route: few}, scope: global, rate: 1/h, "
                                "burst: 5, on_unreachable: deny}\n",
                                patient_node()));
  const Attributes few{{"route", "few"}};
  ASSERT_NO_FATAL_FAILURE(spend(node(0).http, "drained", few, 5));
  ASSERT_EQ(check(node(0).http, "drained", 1, few).status, 429);
  const std::int64_t before_bytes = resident_bytes(node(0).pid);

  auto client = net::HttpClient::connect(node(0).http, kPatienceNs);
  ASSERT_TRUE(client) << client.error().message;
  const Nanos began_ns = now_ns();
  Tally counts;
  std::int64_t most_bytes = before_bytes;
  for (int first = 0; first < customers; first += kBatch) {
    ASSERT_NO_FATAL_FAILURE(check_batch(*client, first, counts));
    most_bytes = std::max(most_bytes, resident_bytes(node(0).pid));
  }
  const Nanos last_ns = now_ns();
  const bool quiet = eventually(
      [&] {
        const auto now = status(node(0));
        return !now.empty() && now.at("owners_active").to_number<std::int64_t>() == 0 &&
               now.at("buckets").to_number<std::int64_t>() == 0;
      },
      kMinute);
  EXPECT_TRUE(quiet) << boost::json::serialize(status(node(0)));
  const Nanos quiet_ns = now_ns();
  if (long_run()) {
    ASSERT_TRUE(eventually([&] { return now_ns() >= last_ns + kMinute; }, 2 * kMinute));
  }
  const std::int64_t after_bytes = resident_bytes(node(0).pid);
  // A busy machine may be late with a first lease; nobody is denied for another reason.
  EXPECT_EQ(counts.denied, counts.timed_out) << to_string(counts);
  std::cout << customers << " customers (" << to_string(counts) << ") in "
            << (last_ns - began_ns) / kMillisecond << " ms, no owner left after "
            << (quiet_ns - last_ns) / kMillisecond
            << " ms; MiB resident: " << before_bytes / kMebibyte << " before, "
            << most_bytes / kMebibyte << " at most, " << after_bytes / kMebibyte << " after\n";
  EXPECT_TRUE(instrumented() || after_bytes <= 400 * kMebibyte);
  const auto dormant = status(node(0)).at("owners_dormant").to_number<std::int64_t>();
  EXPECT_GT(dormant, customers / 2) << "an estimate, but not that far off";
  const Answer denied = check(node(0).http, "drained", 1, few);
  EXPECT_EQ(denied.status, 429) << denied.text;
  EXPECT_EQ(denied.word("name"), "few");
}

}  // namespace
}  // namespace weir::test
