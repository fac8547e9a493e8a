// Goal: the parts of a node are wired to each other: a check over HTTP is decided and booked at the
// owner, what operators ask is answered, a reload reaches edge and owner, a drain gives leases
// back. Method: a whole Server in this process, on port 0, with a store in memory and the real
// clock (the times in the policy are so long that it does not matter).
#include "src/server/server.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <fstream>
#include <mutex>
#include <vector>

#include "src/base/system_clock.h"
#include "src/net/http_client.h"
#include "src/store/memory_store.h"
#include "test/support/temporary_folder.h"

namespace weir::server {
namespace {

namespace json = boost::json;

constexpr Nanos kPatienceNs = 20 * kSecond;

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    config_.node = "one";
    config_.policy = folder_ + "/policy.yaml";
    config_.listen.http = Endpoint{"127.0.0.1", 0};
    config_.listen.admin = Endpoint{"127.0.0.1", 0};
    config_.wait_ns = 5 * kSecond;  // a slow machine must not turn into denials
    write_policy("version: 1\nlimits:\n  - {name: api, scope: global, rate: 5/h, burst: 5}\n");
  }
  void TearDown() override { server_.reset(); }

  void write_policy(const std::string& text) const { std::ofstream(config_.policy) << text; }

  Status start() {
    auto started = Server::start(config_, {&clock_, &seeds_, &store_, log_.get(), &metrics_});
    if (!started) return tl::unexpected(std::move(started).error());
    server_ = *std::move(started);
    return {};
  }

  net::HttpClientResponse ask(const char* method, const Endpoint& at, const std::string& target,
                              const std::string& body = "") {
    auto response = net::http_request(method, "http://" + to_string(at) + target,
                                      {{"Content-Type", "application/json"}}, body, kPatienceNs);
    EXPECT_TRUE(response) << target << ": " << (response ? "" : response.error().message);
    return response ? *response : net::HttpClientResponse{};
  }
  net::HttpClientResponse check(const std::string& customer, int cost = 1) {
    return ask("POST", *server_->addresses().http, "/v1/check",
               R"({"customer":")" + customer + R"(","cost":)" + std::to_string(cost) + "}");
  }
  net::HttpClientResponse admin(const std::string& target, const char* method = "GET") {
    return ask(method, *server_->addresses().admin, target);
  }
  json::object status() { return json::parse(admin("/v1/status").body).as_object(); }
  std::string logged() {
    const std::lock_guard lock(log_mutex_);
    return log_text_;
  }

  const weir::test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.string();
  config::NodeConfig config_;
  SystemClock clock_;
  SystemSeedSource seeds_;
  store::MemoryStore store_{clock_, "boot", 0, 7};
  std::mutex log_mutex_;
  std::string log_text_;
  std::unique_ptr<telemetry::Log> log_ = telemetry::make_log(
      telemetry::Level::info, telemetry::Format::text, [this](std::string_view line) {
        const std::lock_guard lock(log_mutex_);
        log_text_ += std::string(line) + "\n";
      });
  telemetry::Metrics metrics_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, SpendsTheQuotaAndNoMore) {
  ASSERT_TRUE(start());
  for (int left = 4; left >= 0; --left) {
    const auto response = check("acme");
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(json::parse(response.body).at("remaining").as_int64(), left);
  }
  const auto denied = check("acme");
  EXPECT_EQ(denied.status, 429);
  EXPECT_NE(denied.header("Retry-After"), nullptr);
  EXPECT_EQ(check("other").status, 200);

  const auto metrics = admin("/metrics").body;
  EXPECT_NE(metrics.find(R"(weir_checks_total{limit="api",result="denied")"), std::string::npos);
  EXPECT_NE(metrics.find("weir_check_duration_seconds_count 7"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("weir_lease_requests_total"), std::string::npos);
}

TEST_F(ServerTest, UsageAndExplainTakeNothing) {
  ASSERT_TRUE(start());
  check("acme", 2);
  for (int i = 0; i < 3; ++i) {
    const auto usage = ask("GET", *server_->addresses().http, "/v1/usage?customer=acme");
    ASSERT_EQ(usage.status, 200) << usage.body;
    const auto bucket = json::parse(usage.body).at("buckets").at(0);
    EXPECT_EQ(bucket.at("name").as_string(), "api");
    EXPECT_EQ(bucket.at("used").as_int64(), 2);
    EXPECT_EQ(bucket.at("remaining").as_int64(), 3);

    const auto explained = json::parse(admin("/v1/explain?customer=acme&route=x").body);
    EXPECT_TRUE(explained.at("allowed").as_bool());
    const auto& limit = explained.at("limits").at(0);
    EXPECT_EQ(limit.at("remaining").as_int64(), 3);
    EXPECT_EQ(limit.at("owner").at("node").as_string(), "one");
    EXPECT_EQ(limit.at("owner").at("replicas").at(0).as_string(), "one");
    const auto too_much = json::parse(admin("/v1/explain?customer=acme&cost=4").body);
    EXPECT_FALSE(too_much.at("allowed").as_bool());
    EXPECT_GT(too_much.at("retry_after_ms").as_int64(), 0);
  }
  EXPECT_EQ(check("acme", 3).status, 200);
  EXPECT_EQ(check("acme").status, 429);
}

TEST_F(ServerTest, SaysHowItIs) {
  ASSERT_TRUE(start());
  EXPECT_EQ(admin("/healthz").status, 200);
  EXPECT_EQ(admin("/readyz").status, 200);
  const json::object document = status();
  EXPECT_EQ(document.at("node").as_string(), "one");
  EXPECT_EQ(document.at("region").as_string(), "local");
  EXPECT_EQ(document.at("state").as_string(), "serving");
  EXPECT_EQ(document.at("policy").at("version").to_number<int>(), 1);
  EXPECT_TRUE(document.at("policy").at("last_error").is_null());
  EXPECT_EQ(document.at("slots_owned").to_number<std::uint32_t>(), kSlotCount);
  EXPECT_EQ(document.at("members").as_array().size(), 1U);
  EXPECT_TRUE(document.at("members").at(0).at("alive").as_bool());
}

TEST_F(ServerTest, RefusesWhatAdminDoesNotHave) {
  ASSERT_TRUE(start());
  EXPECT_EQ(admin("/").status, 404);
  EXPECT_EQ(admin("/v1/nothing").status, 404);
  EXPECT_EQ(admin("/v1/owners/").status, 400);
  EXPECT_EQ(admin("/v1/owners/a/b").status, 404);
  EXPECT_EQ(admin("/v1/explain").status, 400);
  EXPECT_EQ(admin("/v1/explain?customer=a&cost=-1").status, 400);
  EXPECT_EQ(admin("/v1/explain?customer=a&cost=1x").status, 400);
  const auto post = admin("/v1/status", "POST");
  EXPECT_EQ(post.status, 405);
  ASSERT_NE(post.header("Allow"), nullptr);
  EXPECT_EQ(*post.header("Allow"), "GET");
  const auto chaos = admin("/v1/chaos/kill-owner?customer=acme", "POST");
  EXPECT_EQ(chaos.status, 403);
  EXPECT_EQ(json::parse(chaos.body).at("error").at("field").as_string(), "chaos");
  EXPECT_EQ(admin("/v1/chaos/kill-owner?customer=acme").status, 405);
}

TEST_F(ServerTest, AKilledOwnerComesBackWithItsBooks) {
  config_.chaos = true;
  ASSERT_TRUE(start());
  EXPECT_EQ(check("acme", 3).status, 200);
  EXPECT_EQ(admin("/v1/chaos/kill-owner?customer=acme", "POST").status, 200);
  EXPECT_EQ(check("acme", 2).status, 200);
  EXPECT_EQ(check("acme").status, 429);
  const auto owner = json::parse(admin("/v1/owners/acme").body);
  EXPECT_EQ(owner.at("customer").as_string(), "acme");
  EXPECT_EQ(owner.at("node").as_string(), "one");
}

TEST_F(ServerTest, AReloadReachesLiveBucketsAndABadFileChangesNothing) {
  ASSERT_TRUE(start());
  check("acme", 5);
  EXPECT_EQ(check("acme").status, 429);

  write_policy("version: 2\nlimits:\n  - {name: api, scope: globl, rate: 5/h}\n");
  EXPECT_FALSE(server_->reload());
  const json::object bad = status();
  EXPECT_EQ(bad.at("policy").at("version").to_number<int>(), 1);
  const std::string error(bad.at("policy").at("last_error").at("message").as_string());
  EXPECT_NE(error.find(config_.policy + ":3:"), std::string::npos) << error;
  EXPECT_EQ(check("acme").status, 429) << "no counter was reset";
  EXPECT_EQ(check("fresh").status, 200);

  write_policy("version: 2\nlimits:\n  - {name: other, scope: global, rate: 5/h}\n");
  EXPECT_TRUE(server_->reload());
  EXPECT_EQ(status().at("policy").at("version").to_number<int>(), 2);
  EXPECT_TRUE(status().at("policy").at("last_error").is_null());
  EXPECT_EQ(check("acme").status, 200) << "the limit that was full is gone";

  write_policy("version: 3\nlimits:\n  - {name: api, scope: global, rate: 5/h, burst: 5}\n");
  EXPECT_TRUE(server_->reload());
  EXPECT_EQ(check("acme").status, 429) << "its bucket was kept";
  const auto metrics = admin("/metrics").body;
  EXPECT_NE(metrics.find(R"(weir_policy_reload_total{result="failed"} 1)"), std::string::npos);
  EXPECT_NE(metrics.find(R"(weir_policy_reload_total{result="replaced"} 2)"), std::string::npos);
  EXPECT_NE(logged().find("policy not reloaded"), std::string::npos);
}

TEST_F(ServerTest, ADrainGivesLeasesBackForTheNextProcess) {
  ASSERT_TRUE(start());
  EXPECT_EQ(check("acme", 2).status, 200);
  server_->drain();
  EXPECT_EQ(admin("/readyz").status, 503);
  EXPECT_EQ(status().at("state").as_string(), "draining");
  EXPECT_FALSE(net::http_request("GET", "http://" + to_string(*server_->addresses().http) + "/", {},
                                 "", kPatienceNs))
      << "nobody listens any more";
  server_.reset();
  EXPECT_EQ(logged().find("leases not returned"), std::string::npos) << logged();

  ASSERT_TRUE(start());
  EXPECT_EQ(json::parse(check("acme").body).at("remaining").as_int64(), 2);
  EXPECT_EQ(check("acme", 2).status, 200);
  EXPECT_EQ(check("acme").status, 429);
}

TEST_F(ServerTest, AProbePortShowsNothingMore) {
  config_.listen.probe = Endpoint{"127.0.0.1", 0};
  ASSERT_TRUE(start());
  const Endpoint probe = *server_->addresses().probe;
  EXPECT_EQ(ask("GET", probe, "/readyz").status, 200);
  EXPECT_EQ(ask("GET", probe, "/healthz").status, 200);
  EXPECT_EQ(ask("GET", probe, "/metrics").status, 200);
  EXPECT_EQ(ask("GET", probe, "/v1/status").status, 404);
}

TEST_F(ServerTest, AnOwnerAloneAnswersNoChecks) {
  config_.roles = {false, true};
  ASSERT_TRUE(start());
  EXPECT_FALSE(server_->addresses().http);
  const auto explained = json::parse(admin("/v1/explain?customer=acme").body);
  EXPECT_EQ(explained.at("limits").at(0).at("owner").at("node").as_string(), "one");
}

TEST_F(ServerTest, DoesNotStartWithoutAGoodPolicy) {
  write_policy("version: 1\nlimits: 7\n");
  const Status bad = start();
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find(config_.policy + ":2:"), std::string::npos);
  config_.policy = folder_ + "/absent.yaml";
  EXPECT_FALSE(start());
}

TEST_F(ServerTest, DoesNotStartOnATakenPortOrInAForeignTopology) {
  ASSERT_TRUE(start());
  config_.listen.http = server_->addresses().http;
  const std::unique_ptr<Server> first = std::move(server_);
  const Status taken = start();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().field, "listen.http");

  config_.topology = folder_ + "/topology.yaml";
  std::ofstream(config_.topology) << "version: 1\nreplicas: {count: 1}\nregions:\n  eu: {nodes: "
                                     "[{name: eu-1, cluster: \"127.0.0.1:7070\"}]}\n";
  EXPECT_FALSE(start()) << "an owner that the topology does not know";
}

}  // namespace
}  // namespace weir::server
