// Goal: connections live and die as they should: order, deadlines, limits, drain, and completions
// that come when nobody waits for them any more.
// Method: raw sockets against a real server whose clock only the test moves; waits are on gates of
// the fake service or on reads, never on time.
#include <gtest/gtest.h>

#include <thread>

#include "test/unit/net_support.h"

namespace weir::net::test {
namespace {

/// Blocks until the server has let go of every connection.
void wait_for_no_connections(const HttpServer& server) {
  while (server.connections() != 0) std::this_thread::yield();
}

TEST(HttpServer, keeps_connections_alive) {
  Served served;
  auto client = HttpClient::connect(served.endpoint, kPatience);
  ASSERT_TRUE(client.has_value());
  for (int i = 0; i < 5; ++i) {
    const auto response =
        client->request("POST", "/v1/check", {}, R"({"customer":"acme"})", kPatience);
    ASSERT_TRUE(response.has_value());
    EXPECT_EQ(response->status, 200);
    EXPECT_TRUE(client->usable());
  }
  EXPECT_EQ(served.server->connections(), 1U);
}

TEST(HttpServer, pipelined_answers_keep_their_order_while_some_wait) {
  Served served;
  RawClient client(served.endpoint);
  client.send(post_check("later1") + post_check("acme") + post_check("later2") +
              post_check("denied"));
  served.service.wait_for("later1")(decision_of("one", true));
  EXPECT_NE(client.read_answer().find("\"name\":\"one\""), std::string::npos);
  EXPECT_NE(client.read_answer().find("\"name\":\"api\""), std::string::npos);
  served.service.wait_for("later2")(decision_of("two", false));
  EXPECT_EQ(status_in(client.read_answer()), 429);
  EXPECT_NE(client.read_answer().find("\"allowed\":false"), std::string::npos);
}

TEST(HttpServer, a_waiting_check_holds_nobody_else_back) {
  Served served;  // one thread
  RawClient waiting(served.endpoint);
  waiting.send(post_check("later"));
  auto done = served.service.wait_for("later");
  EXPECT_EQ(served.request("POST", "/v1/check", R"({"customer":"acme"})").status, 200);
  done(decision_of("api", true));
  EXPECT_EQ(status_in(waiting.read_answer()), 200);
}

TEST(HttpServer, a_client_that_only_closed_its_sending_side_gets_its_answer) {
  Served served;
  RawClient client(served.endpoint);
  client.send(post_check("later") + post_check("acme"));
  client.end();
  served.service.wait_for("later")(decision_of("late", true));
  EXPECT_NE(client.read_answer().find("late"), std::string::npos);
  EXPECT_EQ(status_in(client.read_answer()), 200);
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, completions_after_the_client_is_gone_do_nothing) {
  Served served;
  FakeService::Completion done;
  {
    RawClient client(served.endpoint);
    client.send(post_check("later"));
    done = served.service.wait_for("later");
    client.reset_on_close();
  }
  done(decision_of("api", true));
  wait_for_no_connections(*served.server);
  EXPECT_EQ(served.request("POST", "/v1/check", R"({"customer":"acme"})").status, 200);
}

TEST(HttpServer, completions_after_the_server_is_gone_do_nothing) {
  Served served;
  RawClient client(served.endpoint);
  client.send(post_check("later"));
  auto done = served.service.wait_for("later");
  RawClient other(served.endpoint);
  other.send(post("/v1/checks", R"({"checks":[{"customer":"later2"},{"customer":"later3"}]})"));
  auto batch_first = served.service.wait_for("later2");
  auto batch_second = served.service.wait_for("later3");
  served.server.reset();
  done(decision_of("api", true));
  batch_first(decision_of("api", true));
  batch_second(decision_of("api", true));
  EXPECT_TRUE(client.at_end());
}

TEST(HttpServer, completions_race_with_stop) {
  for (int round = 0; round < 50; ++round) {
    Served served;
    RawClient client(served.endpoint);
    client.send(post_check("later"));
    std::thread completer(
        [done = served.service.wait_for("later")] { done(decision_of("api", true)); });
    served.server->stop();
    completer.join();
  }
}

TEST(HttpServer, slow_clients_are_cut_off) {
  Served served;
  RawClient idle(served.endpoint);
  RawClient slow_head(served.endpoint);
  slow_head.send("POST /v1/check HTTP/1.1\r\nHo");
  RawClient slow_body(served.endpoint);
  slow_body.send(
      "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue"
      "\r\n\r\n");
  // Its `100 Continue` says that the server has seen the head; the other one's head has no such
  // mark, so its deadline is passed as often as it takes.
  EXPECT_EQ(slow_body.read_answer(true), "HTTP/1.1 100 Continue\r\n\r\n");
  std::atomic<bool> over = false;
  std::thread time([&] {
    while (!over) {
      served.clock.advance(kSecond);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(status_in(slow_head.read_answer()), 408);
  EXPECT_TRUE(slow_head.at_end());
  EXPECT_EQ(status_in(slow_body.read_answer()), 408);
  EXPECT_TRUE(slow_body.at_end());
  EXPECT_TRUE(idle.at_end());
  // Clients that never close their side do not keep the connection either.
  wait_for_no_connections(*served.server);
  over = true;
  time.join();
  EXPECT_EQ(served.service.decided, 0);
}

TEST(HttpServer, a_client_that_does_not_read_is_cut_off) {
  Served served;
  RawClient client(served.endpoint);
  std::atomic<bool> over = false;
  std::thread sender([&] {
    // Ends when the server closes: it stops reading once its answers are not taken.
    const std::string requests = post_check("acme") + post_check("acme") + post_check("acme");
    while (!over) client.send(requests);
  });
  while (served.service.decided == 0) std::this_thread::yield();
  while (served.server->connections() != 0) {
    served.clock.advance(kSecond);
    std::this_thread::yield();
  }
  over = true;
  sender.join();
}

TEST(HttpServer, oversized_requests_are_answered_though_they_are_not_read) {
  Served served;
  RawClient body(served.endpoint);
  body.send("POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 1073741824\r\n\r\n");
  body.send(std::string(256 * 1024, 'x'));
  EXPECT_EQ(status_in(body.read_answer()), 413);
  RawClient head(served.endpoint);
  head.send("GET / HTTP/1.1\r\nX: " + std::string(64 * 1024, 'x'));
  EXPECT_EQ(status_in(head.read_answer()), 431);
}

TEST(HttpServer, too_many_connections_are_told_so) {
  HttpServerOptions options;
  options.max_connections = 2;
  Served served(options);
  RawClient first(served.endpoint);
  RawClient second(served.endpoint);
  first.send(post_check("acme"));
  second.send(post_check("acme"));
  EXPECT_EQ(status_in(first.read_answer()), 200);
  EXPECT_EQ(status_in(second.read_answer()), 200);
  RawClient third(served.endpoint);
  EXPECT_EQ(status_in(third.read_answer()), 503);
  EXPECT_TRUE(third.at_end());
  first.close();
  while (served.server->connections() == 2) std::this_thread::yield();
  EXPECT_EQ(served.request("POST", "/v1/check", R"({"customer":"acme"})").status, 200);
}

TEST(HttpServer, drain_closes_the_idle_and_waits_for_the_rest) {
  Served served;
  RawClient idle(served.endpoint);
  idle.send(post_check("acme"));
  EXPECT_EQ(status_in(idle.read_answer()), 200);
  RawClient waiting(served.endpoint);
  waiting.send(post_check("later"));
  auto done = served.service.wait_for("later");
  served.service.readiness_state = Readiness::draining;
  EXPECT_FALSE(served.server->drain(0));
  EXPECT_TRUE(idle.at_end());
  EXPECT_FALSE(HttpClient::connect(served.endpoint, kPatience).has_value());
  done(decision_of("api", true));
  const std::string answer = waiting.read_answer();
  EXPECT_EQ(status_in(answer), 200) << "what was accepted is finished";
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  waiting.close();
  EXPECT_TRUE(served.server->drain(kPatience));
}

TEST(HttpServer, a_half_sent_request_is_refused_while_draining) {
  Served served;
  RawClient client(served.endpoint);
  const std::string request =
      post("/v1/check", R"({"customer":"acme"})", "Expect: 100-continue\r\n");
  client.send(request.substr(0, request.size() - 5));
  served.service.readiness_state = Readiness::draining;
  EXPECT_FALSE(served.server->drain(0));
  client.send(request.substr(request.size() - 5));
  std::string answer = client.read_answer(true);
  if (status_in(answer) == 100) answer = client.read_answer();
  EXPECT_EQ(status_in(answer), 503);
  EXPECT_NE(answer.find("Retry-After: 1"), std::string::npos);
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
}

TEST(HttpServer, threads_share_the_connections) {
  HttpServerOptions options;
  options.threads = 3;
  Served served(options);
  std::vector<std::thread> clients;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([&] {
      RawClient client(served.endpoint);
      for (int j = 0; j < 50; ++j) {
        client.send(post_check("acme"));
        if (status_in(client.read_answer()) == 200) ++answered;
      }
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(answered, 300);
  EXPECT_EQ(served.service.decided, 300);
}

TEST(HttpServer, a_port_in_use_is_an_error) {
  Served served;
  HttpServerOptions options;
  options.listen = served.endpoint;
  HttpServer second(options, {}, served.service, served.clock, *served.log);
  const auto started = second.start();
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code, ErrorCode::io);
  EXPECT_EQ(started.error().field, "listen");
}

class EchoAdmin final : public AdminService {
 public:
  void handle(const AdminRequest& request, Completion done) override {
    AdminResponse response;
    if (request.path == "/readyz") {
      response.status = 503;
    } else if (request.path == "/get-only" && request.method != "GET") {
      response.status = 405;
      response.allow = "GET";
    } else {
      response.content_type = "text/plain";
      response.body = request.method + " " + request.path + " " + request.body;
      for (const auto& [name, value] : request.query) response.body += " " + name + "=" + value;
    }
    done(std::move(response));
  }
};

TEST(AdminServer, hands_requests_to_its_service) {
  EchoAdmin admin;
  ManualClock clock;
  const auto log = telemetry::make_null_log();
  HttpServerOptions options;
  options.listen = {"127.0.0.1", 0};
  HttpServer server(options, admin, clock, *log);
  const auto endpoint = server.start();
  ASSERT_TRUE(endpoint.has_value());
  const auto request = [&](std::string_view method, std::string_view target,
                           std::string_view body = "") {
    return http_request(method, "http://" + to_string(*endpoint) + std::string(target), {}, body,
                        kPatience)
        .value();
  };
  auto response = request("PUT", "/v1/customers/a%2Fb?x=1%202", "body");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "PUT /v1/customers/a%2Fb body x=1 2");
  EXPECT_EQ(*response.header("Content-Type"), "text/plain");
  response = request("HEAD", "/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(*response.header("Content-Length"), std::to_string(sizeof "GET /metrics " - 1));
  EXPECT_EQ(response.body, "");
  response = request("DELETE", "/get-only");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(*response.header("Allow"), "GET");
  EXPECT_EQ(request("PATCH", "/x").status, 405);
  EXPECT_EQ(request("GET", "/readyz").status, 503);
  EXPECT_EQ(request("GET", "/x?a=%").status, 400);
  EXPECT_EQ(request("PUT", "/x", std::string(300 * 1024, 'x')).status, 413);
}

TEST(HttpClient, says_what_went_wrong) {
  Served served;
  const std::string url = "http://" + to_string(served.endpoint);
  served.server->stop();
  const auto refused = http_request("GET", url, {}, "", kPatience);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_EQ(http_request("GET", "nonsense", {}, "", kPatience).error().code,
            ErrorCode::invalid_argument);
}

TEST(HttpClient, gives_up_after_its_timeout) {
  Served served;
  auto client = HttpClient::connect(served.endpoint, kPatience);
  ASSERT_TRUE(client.has_value());
  const auto response = client->request("POST", "/v1/check", {}, R"({"customer":"later"})", 1);
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(client->usable());
}

}  // namespace
}  // namespace weir::net::test
