// Goal: a port with certificates speaks TLS and nothing else, new certificates serve new
// connections, and a client that does not finish its handshake is cut off. Method: certificates of
// the test's own, a real server with a fake service, a clock that the test moves.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "src/net/tls.h"
#include "test/support/certificates.h"
#include "test/support/temporary_folder.h"
#include "test/unit/net_support.h"

namespace weir::net::test {
namespace {

using weir::test::TestCa;

class Tls : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as run_node does
    ca_ = std::make_unique<TestCa>(folder_, "own");
  }

  static TlsPaths paths(const TestCa::Files& files, bool with_ca = false) {
    return {files.certificate, files.key, with_ca ? files.ca : std::string()};
  }
  void put_in_force(const TlsPaths& files) {
    auto context = TlsContext::load(files);
    ASSERT_TRUE(context) << context.error().message;
    book_.replace(*context);
  }
  HttpServerOptions options() const {
    HttpServerOptions with;
    with.tls = &book_;
    return with;
  }
  /// The status of one check over https, or 0 and why in `complaint_`.
  int check(const Served& served, const ClientTls& tls) {
    const auto response =
        http_request("POST", "https://" + to_string(served.endpoint) + "/v1/check", {},
                     R"({"customer":"acme"})", kPatience, tls);
    complaint_ = response ? "" : response.error().message;
    return response ? response->status : 0;
  }
  std::string why(const TlsPaths& files, bool signed_by_ca = false) {
    const auto context = TlsContext::load(files, signed_by_ca);
    return context ? "" : context.error().message;
  }

  const weir::test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.string();
  std::unique_ptr<TestCa> ca_;
  TlsBook book_;
  std::string complaint_;
};

TEST_F(Tls, ServesChecksOverHttpsAndKeepsTheConnection) {
  put_in_force(paths(ca_->issue("server")));
  Served served(options());
  const ClientTls tls{ca_->file(), "", ""};
  auto client = HttpClient::connect(served.endpoint, kPatience, &tls);
  ASSERT_TRUE(client) << client.error().message;
  for (const char* customer : {"acme", "denied"}) {
    const auto response = client->request(
        "POST", "/v1/check", {}, R"({"customer":")" + std::string(customer) + "\"}", kPatience);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, std::string_view(customer) == "acme" ? 200 : 429);
  }
  EXPECT_EQ(served.server->connections(), 1U);
}

TEST_F(Tls, CarriesBatchesOfManyRecordsBothWays) {
  put_in_force(paths(ca_->issue("server")));
  Served served(options());
  std::string body = R"({"checks":[)";
  for (int i = 0; i < 1000; ++i) {
    body += std::string(i == 0 ? "" : ",") + R"({"customer":")" + std::string(500, 'x') + "\"}";
  }
  body += "]}";
  const auto response = http_request("POST", "https://" + to_string(served.endpoint) + "/v1/checks",
                                     {}, body, kPatience, {ca_->file(), "", ""});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(served.service.decided, 1000);
}

TEST_F(Tls, ALateAnswerFindsItsWay) {
  put_in_force(paths(ca_->issue("server")));
  Served served(options());
  std::thread completer([&] { served.service.wait_for("later")(decision_of("late", true)); });
  const auto response =
      http_request("POST", "https://" + to_string(served.endpoint) + "/v1/check", {},
                   R"({"customer":"later"})", kPatience, {ca_->file(), "", ""});
  completer.join();
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_NE(response->body.find("late"), std::string::npos);
}

TEST_F(Tls, AClientTrustsOnlyItsCaAndItsHost) {
  put_in_force(paths(ca_->issue("server")));
  Served served(options());
  const TestCa foreign(folder_, "foreign");
  EXPECT_EQ(check(served, {foreign.file(), "", ""}), 0);
  EXPECT_NE(complaint_.find("certificate verify failed"), std::string::npos) << complaint_;
  EXPECT_EQ(check(served, {folder_ + "/absent.pem", "", ""}), 0);
  EXPECT_NE(complaint_.find("absent.pem"), std::string::npos) << complaint_;
  put_in_force(paths(ca_->issue("elsewhere", 2, "serverAuth", "DNS:elsewhere.example")));
  EXPECT_EQ(check(served, {ca_->file(), "", ""}), 0);
  EXPECT_NE(complaint_.find("certificate verify failed"), std::string::npos) << complaint_;
  EXPECT_EQ(served.service.decided, 0);
}

TEST_F(Tls, AsksForClientCertificatesWhenThereIsACa) {
  put_in_force(paths(ca_->issue("server"), true));
  Served served(options());
  const TestCa foreign(folder_, "foreign");
  const auto good = ca_->issue("client");
  const auto bad = foreign.issue("stranger");
  EXPECT_EQ(check(served, {ca_->file(), "", ""}), 0);
  EXPECT_EQ(check(served, {ca_->file(), bad.certificate, bad.key}), 0);
  EXPECT_EQ(served.service.decided, 0);
  while (served.server->refused_handshakes() < 2) std::this_thread::yield();
  EXPECT_EQ(check(served, {ca_->file(), good.certificate, good.key}), 200);
}

TEST_F(Tls, PlainHttpIsCutOff) {
  put_in_force(paths(ca_->issue("server")));
  Served served(options());
  RawClient client(served.endpoint);
  client.send(post_check("acme"));
  EXPECT_EQ(client.read_answer(), "");
  EXPECT_EQ(served.service.decided, 0);
}

TEST_F(Tls, AHandshakeThatDoesNotEndIsCutOffAtTheHeadsDeadline) {
  put_in_force(paths(ca_->issue("server")));
  HttpServerOptions with = options();
  with.deadlines.idle_ns = kHour;  // so that only the head's deadline can end it
  Served served(with);
  RawClient silent(served.endpoint);
  RawClient begun(served.endpoint);
  begun.send("\x16\x03\x01\x02");
  std::atomic<bool> over = false;
  std::thread time([&] {
    while (!over) {
      served.clock.advance(kSecond);
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(silent.at_end());
  EXPECT_TRUE(begun.at_end());
  over = true;
  time.join();
  EXPECT_EQ(served.server->refused_handshakes(), 2U);
}

TEST_F(Tls, NewCertificatesServeNewConnections) {
  put_in_force(paths(ca_->issue("server")));
  Served served(options());
  const ClientTls old{ca_->file(), "", ""};
  auto open = HttpClient::connect(served.endpoint, kPatience, &old);
  ASSERT_TRUE(open);
  const TestCa next(folder_, "next");
  put_in_force(paths(next.issue("successor")));
  EXPECT_EQ(check(served, old), 0);
  EXPECT_EQ(check(served, {next.file(), "", ""}), 200);
  const auto response = open->request("POST", "/v1/check", {}, R"({"customer":"acme"})", kPatience);
  ASSERT_TRUE(response) << "a connection keeps what it began with";
  EXPECT_EQ(response->status, 200);
}

TEST_F(Tls, DrainEndsConnectionsThatShakeHands) {
  put_in_force(paths(ca_->issue("server")));
  Served served(options());
  RawClient silent(served.endpoint);
  while (served.server->connections() == 0) std::this_thread::yield();
  EXPECT_TRUE(served.server->drain(kPatience));
  EXPECT_TRUE(silent.at_end());
}

TEST_F(Tls, BadFilesAreNamed) {
  const auto good = ca_->issue("good");
  const auto other = ca_->issue("other");
  const auto ended = ca_->issue("ended", -1);
  const TestCa foreign(folder_, "foreign");
  const std::string broken = folder_ + "/broken.pem";
  std::ofstream(broken) << "-----BEGIN CERTIFICATE-----\nMIIB";
  EXPECT_EQ(why(paths(good)), "");
  EXPECT_EQ(why(paths(good, true), true), "");
  EXPECT_EQ(why({folder_ + "/none.pem", good.key, ""}), folder_ + "/none.pem: not found");
  EXPECT_TRUE(why({broken, good.key, ""}).starts_with(broken + ": no certificate in PEM"));
  EXPECT_TRUE(why({good.certificate, broken, ""}).starts_with(broken + ": no unencrypted key"));
  EXPECT_TRUE(why({good.certificate, other.key, ""}).starts_with(other.key));
  EXPECT_TRUE(why({good.certificate, good.key, broken}).starts_with(broken + ": no CA"));
  EXPECT_EQ(why(paths(ended)), ended.certificate + ": the certificate has expired");
  EXPECT_EQ(why({good.certificate, good.key, foreign.file()}), "") << "clients may have another CA";
  EXPECT_EQ(why({good.certificate, good.key, foreign.file()}, true),
            good.certificate + ": not signed by the CA in " + foreign.file());
  for (const char* usage : {"serverAuth", "clientAuth"}) {
    const auto half = ca_->issue("half", 2, usage);
    EXPECT_TRUE(why(paths(half, true), true).starts_with(half.certificate + ": its extended key"));
  }
  EXPECT_EQ(why(paths(ca_->issue("half", 2, "serverAuth"))), "") << "enough for HTTP";
}

}  // namespace
}  // namespace weir::net::test
