// Goal: one connection speaks HTTP/1 correctly whatever the client does, with time and bytes alone.
// Method: the session without a socket, a handler that echoes or waits, a clock of integers.
#include <gtest/gtest.h>

#include <stdexcept>

#include "src/base/random.h"
#include "src/net/http_session.h"

namespace weir::net {
namespace {

/// Echoes method, path, query and body. `/later` waits for `complete`, `/throw` throws.
class EchoHandler final : public RequestHandler {
 public:
  std::size_t max_body_bytes(std::string_view target) const override {
    return target.starts_with("/large") ? 100'000 : 100;
  }
  bool handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) override {
    ++handled;
    if (request.path == "/later") {
      deferral.defer();
      return false;
    }
    if (request.path == "/throw") throw std::runtime_error("out of luck");
    response.content_type = "text/plain";
    response.body = std::string(request.method_name) + " " + std::string(request.path) + " " +
                    std::string(request.query) + " " + std::string(request.header("x-test")) + " " +
                    std::string(request.body);
    return true;
  }
  void refuse(const HttpRequest& request, int status, const Error& error,
              HttpResponse& response) override {
    response.status = status;
    response.body = std::string(request.path) + ": " + error.field + " " + error.message;
  }
  int handled = 0;
};

class SessionTest : public testing::Test, public HttpSession::Late {
 protected:
  RequestHandler::Later make_later(std::uint64_t ticket) override {
    tickets.push_back(ticket);
    return {};
  }

  std::string talk(HttpSession& session, std::string_view bytes) {
    session.receive(bytes, now);
    return take(session);
  }
  /// What the server would have written by now, going on after each write.
  std::string take(HttpSession& session) {
    std::string all;
    while (!session.output().empty()) {
      all += session.output();
      session.output().clear();
      session.resume(now);
    }
    return all;
  }
  std::string talk(std::string_view bytes) {
    HttpSession session(handler, *this, deadlines, date, now);
    return talk(session, bytes);
  }
  int status(std::string_view bytes) {
    const std::string answer = talk(bytes);
    return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
  }

  EchoHandler handler;
  HttpDeadlines deadlines;
  const std::string date = "Sun, 06 Nov 1994 08:49:37 GMT";
  Nanos now = kHour;
  std::vector<std::uint64_t> tickets;
};

constexpr std::string_view kGet = "GET /a?b=c HTTP/1.1\r\nHost: h\r\nX-Test: t\r\n\r\n";

TEST_F(SessionTest, answers_and_keeps_the_connection) {
  HttpSession session(handler, *this, deadlines, date, now);
  const std::string expected =
      "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n"
      "Content-Length: 13\r\n\r\nGET /a b=c t ";
  EXPECT_EQ(talk(session, kGet), expected.substr(0, expected.size()));
  EXPECT_FALSE(session.finished());
  EXPECT_EQ(talk(session, kGet), expected);
  EXPECT_TRUE(session.wants_input());
}

TEST_F(SessionTest, any_cut_of_the_bytes_gives_the_same_answers) {
  const std::string bytes = std::string(kGet) +
                            "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" +
                            "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n" +
                            std::string(kGet);
  const std::string whole = talk(bytes);
  EXPECT_NE(whole.find("POST /p   hello"), std::string::npos) << whole;
  EXPECT_NE(whole.find("POST /c   abcde"), std::string::npos) << whole;
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    HttpSession session(handler, *this, deadlines, date, now);
    std::string answers;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = round == 0 ? 1 : 1 + random.below(40);
      answers += talk(session, std::string_view(bytes).substr(at, size));
      at += size;
    }
    ASSERT_EQ(answers, whole);
  }
}

TEST_F(SessionTest, pipelined_requests_wait_for_the_one_before_them) {
  HttpSession session(handler, *this, deadlines, date, now);
  EXPECT_EQ(talk(session, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n" + std::string(kGet)), "");
  EXPECT_FALSE(session.wants_input());
  EXPECT_EQ(handler.handled, 1);
  ASSERT_EQ(tickets.size(), 1U);
  HttpResponse late;
  late.body = "late";
  session.complete(tickets[0] + 1, late, now);
  EXPECT_TRUE(session.output().empty()) << "an unknown ticket is ignored";
  session.complete(tickets[0], late, now);
  session.complete(tickets[0], late, now);
  const std::string answers = take(session);
  EXPECT_LT(answers.find("late"), answers.find("GET /a b=c"));
  EXPECT_EQ(handler.handled, 2);
  EXPECT_TRUE(session.wants_input());
}

TEST_F(SessionTest, a_pipelining_flood_is_held_back) {
  HttpSession session(handler, *this, deadlines, date, now);
  std::string flood;
  for (int i = 0; i < 2000; ++i) flood += kGet;
  session.receive(flood, now);
  EXPECT_FALSE(session.wants_input());
  EXPECT_LT(session.output().size(), kMaxOutputBytes + 1000);
  EXPECT_LT(handler.handled, 2000);
  take(session);
  EXPECT_EQ(handler.handled, 2000);
  EXPECT_TRUE(session.wants_input());
}

TEST_F(SessionTest, head_has_no_body_and_old_clients_are_told_apart) {
  const std::string head = talk("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 10\r\n"), std::string::npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  HttpSession old(handler, *this, deadlines, date, now);
  EXPECT_NE(talk(old, "GET / HTTP/1.0\r\n\r\n").find("Connection: close"), std::string::npos);
  EXPECT_TRUE(old.finished());
  HttpSession kept(handler, *this, deadlines, date, now);
  EXPECT_NE(talk(kept, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").find("keep-alive"),
            std::string::npos);
  EXPECT_FALSE(kept.finished());
  HttpSession asked(handler, *this, deadlines, date, now);
  talk(asked, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(asked.finished());
}

TEST_F(SessionTest, expectations) {
  HttpSession session(handler, *this, deadlines, date, now);
  EXPECT_EQ(
      talk(session,
           "POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"),
      "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_NE(talk(session, "ok").find("POST /p   ok"), std::string::npos);
  EXPECT_EQ(
      talk("POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok")
          .find("100 Continue"),
      std::string::npos)
      << "the body is here already";
  EXPECT_EQ(status("POST /p HTTP/1.1\r\nHost: h\r\nExpect: x\r\nContent-Length: 2\r\n\r\nok"), 417);
  EXPECT_EQ(status("POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                   "Content-Length: 101\r\n\r\n"),
            413)
      << "refused before the body is sent";
}

TEST_F(SessionTest, limits_on_size) {
  const std::string large = std::string(200, 'x');
  EXPECT_EQ(status("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n"), 413);
  EXPECT_EQ(status("POST /large HTTP/1.1\r\nHost: h\r\nContent-Length: 200\r\n\r\n" + large), 200);
  EXPECT_EQ(status("POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" +
                   std::string(64, 'x') + "\r\n40\r\n" + std::string(64, 'x')),
            413);
  EXPECT_EQ(status("GET /" + std::string(kMaxHeadBytes, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n"),
            431);
  std::string headers = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 100; ++i) headers += "X-" + std::string(90, 'n') + ": v\r\n";
  EXPECT_EQ(status(headers + "\r\n"), 431);
  EXPECT_EQ(status(headers), 431) << "an endless head is cut before its end";
  EXPECT_EQ(status("POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                   std::string(kMaxUnparsedBytes + 10, 'x')),
            400);
}

TEST_F(SessionTest, what_is_not_http_is_refused_and_closed) {
  for (const char* bytes :
       {"hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "G@T / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
        "GET / HTTP/1.1\r\nHost h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"}) {
    HttpSession session(handler, *this, deadlines, date, now);
    const std::string answer = talk(session, bytes);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << bytes << "\n" << answer;
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
    EXPECT_TRUE(session.finished());
    EXPECT_FALSE(session.wants_input());
  }
  EXPECT_EQ(status("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 501);
  EXPECT_EQ(handler.handled, 0);
}

TEST_F(SessionTest, random_bytes_never_crash) {
  Random random(11);
  const std::string valid = std::string(kGet) +
                            "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "3\r\nabc\r\n0\r\n\r\n";
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = valid;
    for (auto edits = random.between(1, 5); edits > 0; --edits) {
      const std::size_t at = random.below(bytes.size());
      if (random.chance(300)) {
        bytes.erase(at, 1 + random.below(5));
      } else {
        bytes[at] = static_cast<char>(random.below(256));
      }
    }
    HttpSession session(handler, *this, deadlines, date, now);
    for (std::size_t at = 0; at < bytes.size() && session.wants_input(); at += 17) {
      talk(session, std::string_view(bytes).substr(at, 17));
    }
    session.receive_end();
    EXPECT_TRUE(session.finished());
  }
}

TEST_F(SessionTest, absolute_targets_are_understood) {
  EXPECT_NE(talk("GET http://weir:80/a?b HTTP/1.1\r\nHost: h\r\n\r\n").find("GET /a b "),
            std::string::npos);
}

TEST_F(SessionTest, a_handler_that_throws_is_a_500) {
  HttpSession session(handler, *this, deadlines, date, now);
  EXPECT_TRUE(talk(session, "GET /throw HTTP/1.1\r\nHost: h\r\n\r\n").starts_with("HTTP/1.1 500 "));
  EXPECT_TRUE(session.finished());
}

TEST_F(SessionTest, slow_clients_run_into_their_deadlines) {
  HttpSession idle(handler, *this, deadlines, date, now);
  idle.expire(now + deadlines.idle_ns - 1);
  EXPECT_FALSE(idle.finished());
  idle.expire(now + deadlines.idle_ns);
  EXPECT_TRUE(idle.finished());
  EXPECT_EQ(take(idle), "") << "nothing was asked, nothing is answered";

  HttpSession head(handler, *this, deadlines, date, now);
  talk(head, "GET / HT");
  now += deadlines.head_ns - 1;
  talk(head, "TP");  // progress does not renew the deadline
  head.expire(now);
  EXPECT_FALSE(head.finished());
  head.expire(now + 1);
  EXPECT_TRUE(take(head).starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(head.finished());

  HttpSession body(handler, *this, deadlines, date, now);
  talk(body, "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na");
  body.expire(now + deadlines.body_ns - 1);
  EXPECT_FALSE(body.finished());
  body.expire(now + deadlines.body_ns);
  EXPECT_TRUE(take(body).starts_with("HTTP/1.1 408 "));
}

TEST_F(SessionTest, a_waiting_answer_has_no_deadline_of_ours) {
  HttpSession session(handler, *this, deadlines, date, now);
  talk(session, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
  session.expire(now + kDay);
  EXPECT_FALSE(session.finished());
  session.complete(tickets.at(0), {}, now + kDay);
  EXPECT_TRUE(take(session).starts_with("HTTP/1.1 200 "));
  session.expire(now + kDay);
  EXPECT_FALSE(session.finished()) << "the idle time starts with the answer";
}

TEST_F(SessionTest, draining_closes_after_the_answer) {
  HttpSession session(handler, *this, deadlines, date, now);
  talk(session, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
  session.begin_drain();
  session.complete(tickets.at(0), {}, now);
  EXPECT_NE(take(session).find("Connection: close"), std::string::npos);
  EXPECT_TRUE(session.finished());
}

}  // namespace
}  // namespace weir::net
