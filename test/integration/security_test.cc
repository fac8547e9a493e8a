// Goal: nodes with certificates form a cluster; who has none, or a foreign one, is kept out with a
// line in the log of both; a broken file ends nobody; a port that others reach is guarded; wrong
// tokens cost no quota. Method: real processes, with certificates and tokens of the test's own.
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <fstream>
#include <iterator>

#include "src/net/http_client.h"
#include "test/integration/fixture.h"
#include "test/support/certificates.h"

namespace weir::test {
namespace {

/// More than a node shakes hands with at a time.
constexpr int kSilentPeers = 80;

/// A TCP connection that says nothing.
class SilentPeer {
 public:
  explicit SilentPeer(const Endpoint& endpoint)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  SilentPeer(const SilentPeer&) = delete;
  SilentPeer& operator=(const SilentPeer&) = delete;
  ~SilentPeer() { ::close(socket_); }

  bool connected() const { return connected_; }
  /// Whether the other side has hung up, or does so within our patience.
  bool is_cut_off() const {
    pollfd readable{socket_, POLLIN, 0};
    char byte = 0;
    return ::poll(&readable, 1, static_cast<int>(kPatienceNs / kMillisecond)) == 1 &&
           ::recv(socket_, &byte, 1, 0) <= 0;
  }

 private:
  int socket_;
  bool connected_ = false;
};

class Security : public ClusterTest {
 protected:
  static constexpr const char* kPolicy =
      "version: 1\nlimits:\n  - {name: api, scope: global, rate: 10/h, on_unreachable: deny}\n";
  static constexpr const char* kRefused = "no connection with a peer";

  static std::string cluster_tls(const TestCa::Files& files) {
    return "tls: {cluster: {certificate: \"" + files.certificate + "\", key: \"" + files.key +
           "\", ca: \"" + files.ca + "\"}}";
  }
  static std::string contents(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// How many lines of a node's log hold both.
  static int lines_with(const cli::LocalNode& node, const std::string& one,
                        const std::string& other) {
    std::ifstream in(node.log);
    int count = 0;
    for (std::string text; std::getline(in, text);) {
      if (text.find(one) != std::string::npos && text.find(other) != std::string::npos) ++count;
    }
    return count;
  }
  /// Puts `line` at the end of a node's file, in place of those that begin with `prefix`; empty:
  /// none.
  static void set_line(const cli::LocalNode& node, const std::string& prefix,
                       const std::string& line) {
    std::ifstream in(node.config);
    std::string text;
    for (std::string each; std::getline(in, each);) {
      if (!each.starts_with(prefix)) text += each + "\n";
    }
    in.close();
    std::ofstream(node.config) << text << line << "\n";
  }
  /// Kills a node and starts it with another line for `tls` in its file.
  void restart_with(const cli::LocalNode& node, const std::string& tls) {
    ASSERT_TRUE(cluster_->kill(node.name, SIGKILL));
    set_line(node, "tls:", tls);
    const Status restarted = cluster_->restart(node.name);
    ASSERT_TRUE(restarted) << restarted.error().message;
  }
  bool sees(const cli::LocalNode& node, const std::string& other) const {
    const boost::json::object now = status(node);
    const auto* members = now.if_contains("members");
    if (members == nullptr) return false;
    for (const auto& member : members->as_array()) {
      if (member.at("node").as_string() == other) return member.at("alive").as_bool();
    }
    return false;
  }
  boost::json::value last_error(const cli::LocalNode& node) const {
    const boost::json::object now = status(node);
    const auto* security = now.if_contains("security");
    return security == nullptr ? nullptr : security->at("tls.cluster").at("last_error");
  }
  static int check_with(const cli::LocalNode& node, const std::string& token) {
    net::HttpHeaders headers{{"Content-Type", "application/json"}};
    if (!token.empty()) headers.emplace_back("Authorization", "Bearer " + token);
    const auto response = net::http_request("POST", "http://" + to_string(node.http) + "/v1/check",
                                            headers, check_body("acme"), kPatienceNs);
    return response ? response->status : 0;
  }
};

TEST_F(Security, OnlyNodesOfTheClustersCaAreLetIn) {
  const TestCa ca(folder_, "own");
  const auto own = ca.issue("node");
  ASSERT_NO_FATAL_FAILURE(start(1, 3, kPolicy, {cluster_tls(own)}));
  const cli::LocalNode& third = node(2);
  ASSERT_NO_FATAL_FAILURE(spend(node(0).http, "acme", {}, 1));

  const TestCa foreign(folder_, "foreign");
  ASSERT_NO_FATAL_FAILURE(restart_with(third, cluster_tls(foreign.issue("stranger"))));
  for (const std::size_t i : {0U, 1U, 2U}) {
    EXPECT_TRUE(eventually([&] { return lines_with(node(i), kRefused, "certificate") > 0; }))
        << node(i).name << "\n"
        << contents(node(i).log);
  }
  EXPECT_TRUE(eventually([&] { return !sees(node(0), third.name); }));
  EXPECT_FALSE(sees(third, node(0).name));

  ASSERT_NO_FATAL_FAILURE(restart_with(third, ""));
  EXPECT_TRUE(eventually([&] { return lines_with(third, kRefused, "as a node with TLS") > 0; }));
  for (const std::string& peer : {std::string("127.0.0.1"), third.name}) {
    const std::string line = "peer=" + peer + " reason=\"it speaks no TLS\"";
    EXPECT_TRUE(eventually([&] { return lines_with(node(0), kRefused, line) > 0; }))
        << line << "\n"
        << contents(node(0).log);
  }
  EXPECT_FALSE(sees(node(0), third.name));
  EXPECT_FALSE(sees(third, node(0).name));

  ASSERT_NO_FATAL_FAILURE(restart_with(third, cluster_tls(ca.issue("third"))));
  EXPECT_TRUE(eventually([&] { return sees(node(0), third.name) && sees(third, node(0).name); }));
}

TEST_F(Security, AFrozenPeerIsNotTakenForOneWithTls) {
  ASSERT_NO_FATAL_FAILURE(start(1, 2, kPolicy));
  ASSERT_TRUE(cluster_->kill(node(1).name, SIGSTOP));
  EXPECT_TRUE(eventually([&] { return lines_with(node(0), kRefused, "said nothing") > 0; }))
      << contents(node(0).log);
  EXPECT_EQ(lines_with(node(0), kRefused, "TLS"), 0);
  ASSERT_TRUE(cluster_->kill(node(1).name, SIGCONT));
  EXPECT_TRUE(eventually([&] { return sees(node(0), node(1).name); }));
}

TEST_F(Security, ABrokenCertificateEndsNobody) {
  const TestCa ca(folder_, "own");
  const auto own = ca.issue("node");
  ASSERT_NO_FATAL_FAILURE(start(1, 2, kPolicy, {cluster_tls(own)}));
  EXPECT_TRUE(last_error(node(0)).is_null());
  const std::string good = contents(own.certificate);
  std::ofstream(own.certificate) << "-----BEGIN CERTIFICATE-----\nnonsense\n";
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGHUP));
  ASSERT_TRUE(eventually([&] { return last_error(node(0)).is_string(); }));

  // A new peer, whose connection makes node 0 read its certificates.
  ASSERT_NO_FATAL_FAILURE(restart_with(node(1), cluster_tls(ca.issue("second"))));
  EXPECT_TRUE(eventually([&] { return sees(node(1), node(0).name); }));
  ASSERT_NO_FATAL_FAILURE(spend(node(0).http, "acme", {}, 1));
  expect_no_deaths();

  std::ofstream(own.certificate) << good;
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGHUP));
  EXPECT_TRUE(eventually([&] { return last_error(node(0)).is_null(); }));
}

TEST_F(Security, NewCertificatesAreForNewPeers) {
  const TestCa ca(folder_, "own");
  const auto own = ca.issue("node");
  ASSERT_NO_FATAL_FAILURE(start(1, 2, kPolicy, {cluster_tls(own)}));
  // The same paths, another CA: node 1 has what it began with, and stays connected.
  const TestCa next(folder_, "own");
  next.issue("node");
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGHUP));
  ASSERT_TRUE(eventually([&] { return lines_with(node(0), "read again", "tls.cluster") > 0; }));
  EXPECT_TRUE(sees(node(0), node(1).name));
  ASSERT_NO_FATAL_FAILURE(restart_with(node(1), cluster_tls(own)));
  EXPECT_TRUE(eventually([&] { return sees(node(0), node(1).name); }));
  EXPECT_TRUE(eventually([&] { return sees(node(1), node(0).name); }));
}

TEST_F(Security, SilentConnectionsAreCutOffAndHoldNobodyUp) {
  const TestCa ca(folder_, "own");
  const auto own = ca.issue("node");
  ASSERT_NO_FATAL_FAILURE(start(1, 2, kPolicy, {cluster_tls(own)}));
  std::vector<std::unique_ptr<SilentPeer>> silent;
  for (int i = 0; i < kSilentPeers; ++i) {
    silent.push_back(std::make_unique<SilentPeer>(node(0).cluster));
    ASSERT_TRUE(silent.back()->connected());
  }
  ASSERT_NO_FATAL_FAILURE(restart_with(node(1), cluster_tls(own)));
  EXPECT_TRUE(
      eventually([&] { return sees(node(0), node(1).name) && sees(node(1), node(0).name); }));
  for (const auto& peer : silent) EXPECT_TRUE(peer->is_cut_off());
  EXPECT_GT(lines_with(node(0), kRefused, "it said nothing within 2 s"), 0);
  EXPECT_GT(lines_with(node(0), kRefused, "too many peers"), 0);

  const SilentPeer late(node(0).cluster);
  ASSERT_TRUE(cluster_->kill(node(0).name, SIGTERM));
  EXPECT_TRUE(cluster_->wait_for_exit(node(0).name, 10 * kSecond));
}

TEST_F(Security, BeyondLoopbackTheClusterPortTakesCertificatesOrInsecure) {
  const TestCa ca(folder_, "own");
  ASSERT_NO_FATAL_FAILURE(start(1, 2, kPolicy));
  const cli::LocalNode& open = node(1);
  ASSERT_TRUE(cluster_->kill(open.name, SIGKILL));
  expect_no_deaths();
  set_line(open, "  cluster:", "");
  set_line(open, "  http:", "");
  set_line(open, "  admin:", "");
  // listen.http beyond loopback takes neither tokens nor TLS.
  set_line(open, "listen:",
           "listen: {http: \"0.0.0.0:" + std::to_string(open.http.port) + "\", admin: \"" +
               to_string(open.admin) +
               "\", cluster: \"0.0.0.0:" + std::to_string(open.cluster.port) + "\"}");
  const Status refused = cluster_->restart(open.name);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("without `tls.cluster`"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(refused.error().message.find("listen.http"), std::string::npos);
  EXPECT_EQ(cluster_->wait_for_exit(open.name, kPatienceNs).has_value(), true);
  cluster_->take_deaths();  // of the one that refused

  set_line(open, "insecure:", "insecure: true");
  Status restarted = cluster_->restart(open.name);
  ASSERT_TRUE(restarted) << restarted.error().message;
  EXPECT_TRUE(eventually([&] { return sees(node(0), open.name); }));
  set_line(open, "insecure:", "");
  ASSERT_NO_FATAL_FAILURE(restart_with(open, cluster_tls(ca.issue("open"))));
}

TEST_F(Security, WrongAndMissingTokensCostNoQuota) {
  std::ofstream(path("check.token")) << "from-a-file\n";
  // Two tokens; the digest is that of `c`.
  ASSERT_NO_FATAL_FAILURE(start(
      1, 2, kPolicy,
      {"tokens: {check: [\"file:" + path("check.token") +
           "\", \"sha256:2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6\"]}",
       "wait: 2s"}));
  for (int i = 0; i < 20; ++i) {
    for (const std::size_t at : {0U, 1U}) {
      EXPECT_EQ(check_with(node(at), ""), 401);
      EXPECT_EQ(check_with(node(at), "hunter2"), 401);
    }
  }
  int allowed = 0;
  EXPECT_TRUE(eventually([&] {
    const bool even = allowed % 2 == 0;
    if (check_with(node(even ? 0 : 1), even ? "c" : "from-a-file") == 200) ++allowed;
    return allowed == 10;
  })) << allowed;
  for (const std::size_t at : {0U, 1U}) {
    EXPECT_EQ(check_with(node(at), "c"), 429);
    EXPECT_EQ(check_with(node(at), "hunter2"), 401);
    EXPECT_EQ(lines_with(node(at), "hunter2", ""), 0);
  }
  EXPECT_EQ(metric_of_all("weir_token_refusals_total", "reason=\"unknown\""), 42);
}

TEST_F(Security, ScopesAreKeptApartOverTls) {
  const TestCa ca(folder_, "own");
  const auto files = ca.issue("http");
  for (const char* name : {"check", "read", "admin"}) {
    std::ofstream(path(std::string(name) + ".token")) << name;
  }
  ASSERT_NO_FATAL_FAILURE(start(1, 2, kPolicy));
  const cli::LocalNode& guarded = node(1);
  const auto file = [&](const char* name) { return "[\"file:" + path(name) + "\"]"; };
  set_line(guarded, "tokens:",
           "tokens: {check: " + file("check.token") + ", read: " + file("read.token") +
               ", admin: " + file("admin.token") + "}");
  ASSERT_NO_FATAL_FAILURE(restart_with(guarded, "tls: {http: {certificate: \"" + files.certificate +
                                                    "\", key: \"" + files.key + "\"}}"));
  const auto ask_with = [&](const char* method, const Endpoint& port, const std::string& target,
                            const std::string& token) {
    net::HttpHeaders headers;
    if (!token.empty()) headers.emplace_back("Authorization", "Bearer " + token);
    const auto response = net::http_request(method, "https://" + to_string(port) + target, headers,
                                            "", kPatienceNs, {files.ca, "", ""});
    const int status = response ? response->status : 0;
    return status == 404 ? 200 : status;  // acme may have no owner to kill
  };
  const std::string look = "/v1/check?customer=acme&cost=0";
  const std::string change = "/v1/chaos/kill-owner?customer=acme";
  const auto statuses = [&](const std::string& token) {
    return std::vector{ask_with("GET", guarded.http, look, token),
                       ask_with("GET", guarded.admin, "/v1/status", token),
                       ask_with("POST", guarded.admin, change, token)};
  };
  EXPECT_EQ(statuses(""), (std::vector{401, 401, 401}));
  EXPECT_EQ(statuses("stranger"), (std::vector{401, 401, 401}));
  EXPECT_EQ(statuses("read"), (std::vector{403, 200, 403}));
  EXPECT_TRUE(eventually([&] { return statuses("check") == std::vector{200, 403, 403}; }));
  EXPECT_TRUE(eventually([&] { return statuses("admin") == std::vector{403, 200, 200}; }));
  const auto plain =
      net::http_request("GET", "http://" + to_string(guarded.http) + look, {}, "", kPatienceNs);
  EXPECT_FALSE(plain);

  std::ofstream(path("read.token")) << "read-anew";
  ASSERT_TRUE(cluster_->kill(guarded.name, SIGHUP));
  EXPECT_TRUE(
      eventually([&] { return ask_with("GET", guarded.admin, "/v1/status", "read-anew") == 200; }));
  EXPECT_EQ(ask_with("GET", guarded.admin, "/v1/status", "read"), 401);
}

}  // namespace
}  // namespace weir::test
