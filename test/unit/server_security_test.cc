// Goal: a whole node lets in who has the right token, over TLS, costs the others' customers
// nothing, and takes over changed files at a reload; a bad file changes nothing and is shown.
// Method: a Server in this process on port 0, with certificates and tokens of the test's own.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <fstream>
#include <mutex>

#include "src/base/system_clock.h"
#include "src/net/http_client.h"
#include "src/server/server.h"
#include "src/server/token_keeper.h"
#include "src/store/memory_store.h"
#include "test/support/certificates.h"
#include "test/support/temporary_folder.h"

namespace weir::server {
namespace {

namespace json = boost::json;
using weir::test::TestCa;

constexpr Nanos kPatienceNs = 20 * kSecond;
/// Of `c`.
constexpr const char* kDigestOfC =
    "sha256:2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6";

class SecurityTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as run_node does
    config_.node = "one";
    config_.policy = path("policy.yaml");
    config_.listen.http = Endpoint{"127.0.0.1", 0};
    config_.listen.admin = Endpoint{"127.0.0.1", 0};
    config_.listen.probe = Endpoint{"127.0.0.1", 0};
    config_.wait_ns = 5 * kSecond;
    write("policy.yaml", "version: 1\nlimits:\n  - {name: api, scope: global, rate: 2/h}\n");
    write("read.token", "r\n");
    write("admin.token", "  a  \n");
    config_.tokens.check = {kDigestOfC};
    config_.tokens.read = {"file:" + path("read.token")};
    config_.tokens.admin = {"file:" + path("admin.token")};
  }
  void TearDown() override { server_.reset(); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  Status start() {
    auto started = Server::start(config_, {&clock_, &seeds_, &store_, log_.get(), &metrics_});
    if (!started) return tl::unexpected(std::move(started).error());
    server_ = *std::move(started);
    return {};
  }
  net::HttpClientResponse ask(const char* method, const Endpoint& at, const std::string& target,
                              const std::string& token, const std::string& body = "") {
    net::HttpHeaders headers{{"Content-Type", "application/json"}};
    if (!token.empty()) headers.emplace_back("Authorization", "Bearer " + token);
    const std::string scheme =
        config_.tls.http && at != *server_->addresses().probe ? "https://" : "http://";
    auto response = net::http_request(method, scheme + to_string(at) + target, headers, body,
                                      kPatienceNs, {ca_file_, "", ""});
    return response ? *response : net::HttpClientResponse{0, {}, response.error().message};
  }
  int check(const std::string& token) {
    return ask("POST", *server_->addresses().http, "/v1/check", token, R"({"customer":"acme"})")
        .status;
  }
  int admin(const std::string& target, const std::string& token, const char* method = "GET") {
    return ask(method, *server_->addresses().admin, target, token).status;
  }
  json::object security() {
    const auto status = ask("GET", *server_->addresses().admin, "/v1/status", "r");
    EXPECT_EQ(status.status, 200) << status.body;
    return json::parse(status.body).at("security").as_object();
  }
  std::string logged() {
    const std::lock_guard lock(log_mutex_);
    return log_text_;
  }
  void use(const TestCa& ca, const std::string& name) {
    const auto files = ca.issue(name);
    ca_file_ = files.ca;
    config_.tls.http = config::TlsFiles{files.certificate, files.key, ""};
  }

  const weir::test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.string();
  std::string ca_file_;
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

TEST_F(SecurityTest, WrongAndMissingTokensCostNoQuota) {
  ASSERT_TRUE(start());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(check(""), 401);
    EXPECT_EQ(check("hunter2"), 401);
    EXPECT_EQ(check("r"), 403);
  }
  EXPECT_EQ(check("c"), 200);
  EXPECT_EQ(check("c"), 200);
  EXPECT_EQ(check("c"), 429);
  EXPECT_EQ(check(""), 401);

  server_->housekeep();
  const std::string log = logged();
  EXPECT_NE(log.find("requests refused for their token missing=6 unknown=5 insufficient=5"),
            std::string::npos)
      << log;
  EXPECT_EQ(log.find("hunter2"), std::string::npos);
  const auto metrics = ask("GET", *server_->addresses().probe, "/metrics", "");
  EXPECT_NE(metrics.body.find(R"(weir_token_refusals_total{reason="missing"} 6)"),
            std::string::npos);
}

TEST_F(SecurityTest, TheAdminPortAsksForReadAndForAdmin) {
  config_.chaos = true;
  ASSERT_TRUE(start());
  for (const char* target : {"/v1/status", "/v1/explain?customer=acme", "/metrics", "/healthz"}) {
    EXPECT_EQ(admin(target, ""), 401) << target;
    EXPECT_EQ(admin(target, "c"), 403) << target;
    EXPECT_EQ(admin(target, "r"), 200) << target;
    EXPECT_EQ(admin(target, "a"), 200) << target;
  }
  const std::string change = "/v1/chaos/kill-owner?customer=acme";
  EXPECT_EQ(admin(change, "", "POST"), 401);
  EXPECT_EQ(admin(change, "r", "POST"), 403);
  EXPECT_NE(admin(change, "a", "POST"), 401);
  EXPECT_NE(admin(change, "a", "POST"), 403);
  for (const char* target : {"/healthz", "/readyz", "/metrics"}) {
    EXPECT_EQ(ask("GET", *server_->addresses().probe, target, "").status, 200) << target;
  }
  EXPECT_EQ(ask("GET", *server_->addresses().probe, "/v1/status", "a").status, 404);
}

TEST_F(SecurityTest, ReloadTakesNewTokensAndKeepsTheOldOnesWhenAFileIsBad) {
  ASSERT_TRUE(start());
  EXPECT_TRUE(security().at("tokens").at("last_error").is_null());
  write("admin.token", "a2\n");
  EXPECT_TRUE(server_->reload());
  EXPECT_EQ(admin("/v1/status", "a"), 401);
  EXPECT_EQ(admin("/v1/status", "a2"), 200);
  write("admin.token", "\n");
  EXPECT_FALSE(server_->reload());
  EXPECT_EQ(admin("/v1/status", "a2"), 200);
  const auto error = security().at("tokens").at("last_error");
  ASSERT_TRUE(error.is_string());
  EXPECT_NE(error.as_string().find("admin.token: holds no token"), std::string::npos);
  EXPECT_NE(logged().find("not read again; what was good stays"), std::string::npos);
  const auto metrics = ask("GET", *server_->addresses().probe, "/metrics", "").body;
  for (const char* result : {"replaced", "failed"}) {
    const std::string one =
        std::string("weir_security_reload_total{result=\"") + result + "\",what=\"tokens\"} 1";
    EXPECT_NE(metrics.find(one), std::string::npos) << metrics;
  }
}

TEST_F(SecurityTest, ReloadTakesNewCertificatesAndKeepsTheOldOnesWhenAFileIsBad) {
  const TestCa ca(folder_, "own");
  use(ca, "server");
  ASSERT_TRUE(start());
  EXPECT_EQ(check("c"), 200);
  EXPECT_TRUE(security().at("tls.http").at("not_after").is_string());

  std::ofstream(config_.tls.http->certificate) << "-----BEGIN CERTIFICATE-----\nnonsense\n";
  EXPECT_FALSE(server_->reload());
  EXPECT_EQ(check("c"), 200);
  const auto error = security().at("tls.http").at("last_error");
  ASSERT_TRUE(error.is_string());
  EXPECT_NE(error.as_string().find("server.pem: no certificate in PEM"), std::string::npos);

  const TestCa next(folder_, "next");
  use(next, "server");  // the same paths
  EXPECT_TRUE(server_->reload());
  EXPECT_EQ(check("c"), 429) << "the new CA's certificate, the same quota";
  EXPECT_TRUE(security().at("tls.http").at("last_error").is_null());
}

TEST_F(SecurityTest, ABadFileEndsTheStart) {
  write("read.token", "two words");
  Status started = start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().field, "tokens.read");
  write("read.token", "r");
  config_.tls.http = config::TlsFiles{path("none.pem"), path("none.key"), ""};
  started = start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().field, "tls.http");
  EXPECT_NE(started.error().message.find("none.pem: not found"), std::string::npos);
}

TEST_F(SecurityTest, TokenFilesAreOneWordAndNotLarge) {
  config::TokenConfig tokens;
  tokens.check = {"file:" + path("t")};
  EXPECT_FALSE(read_tokens(tokens)) << "absent";
  write("t", std::string(kMaxTokenFileBytes, 'x'));
  EXPECT_TRUE(read_tokens(tokens));
  write("t", std::string(kMaxTokenFileBytes + 1, 'x'));
  EXPECT_FALSE(read_tokens(tokens));
  tokens.check = {kDigestOfC, kDigestOfC};
  const auto digests = read_tokens(tokens);
  ASSERT_TRUE(digests);
  EXPECT_EQ(digests->check, (std::vector{net::digest_of("c"), net::digest_of("c")}));
}

}  // namespace
}  // namespace weir::server
