// Helpers of the net tests: a CheckService whose every answer the test decides, a clock that the
// test moves, and a client that sends raw bytes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/net/http_client.h"
#include "src/net/http_server.h"
#include "src/net/service.h"

namespace weir::net::test {

/// Nothing in these tests takes this long unless it hangs.
inline constexpr Nanos kPatience = 20 * kSecond;

class ManualClock final : public Clock {
 public:
  Nanos boot_ns() const override { return boot_ns_.load(); }
  Nanos wall_ns() const override { return 784'111'777 * kSecond; }  // RFC 9110's example date
  void advance(Nanos by_ns) { boot_ns_.fetch_add(by_ns); }

 private:
  std::atomic<Nanos> boot_ns_{kHour};
};

inline Decision decision_of(std::string name, bool allowed) {
  Decision decision{allowed,          name, 100,           allowed ? 41 : 0,
                    allowed ? 0 : 72, 5900, Source::lease, {}};
  decision.limits = {{std::move(name), Scope::global, allowed, false, 100, decision.remaining,
                      decision.retry_after_ms, 5900, 72, 10}};
  return decision;
}

/// Decides at once by customer: `denied...` is denied, `later...` waits for the test, `crowded...`
/// is an error, anything else is allowed.
class FakeService final : public CheckService {
 public:
  Result<bool> decide(const Check& check, Decision& decision) override {
    if (check.customer.starts_with("crowded")) {
      return failure(ErrorCode::too_large, "attributes", "too many limits match");
    }
    if (check.customer.starts_with("later")) return false;
    ++decided;
    {
      const std::lock_guard lock(mutex_);
      last_check_ = check;
    }
    if (decide_with) {
      decision = decide_with(check);
    } else {
      decision = decision_of("api", !check.customer.starts_with("denied"));
    }
    return true;
  }

  void decide_later(const Check& check, Completion done) override {
    const std::lock_guard lock(mutex_);
    waiting_.emplace_back(check.customer, std::move(done));
    arrived_.notify_all();
  }

  void usage(const std::string& customer, UsageCompletion done) override {
    if (customer == "nobody") {
      return done(failure(ErrorCode::not_found, "customer", "is not known"));
    }
    done(std::vector<BucketUsage>{{"api", Scope::global, {}, 100, 59, 41, 5900}});
  }

  Readiness readiness() const override { return readiness_state.load(); }

  /// Blocks until the check of `customer` waits, then takes its completion out.
  Completion wait_for(const std::string& customer) {
    std::unique_lock lock(mutex_);
    Completion found;
    arrived_.wait(lock, [&] {
      for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
        if (it->first != customer) continue;
        found = std::move(it->second);
        waiting_.erase(it);
        return true;
      }
      return false;
    });
    return found;
  }

  Check last_check() {
    const std::lock_guard lock(mutex_);
    return last_check_;
  }

  std::atomic<int> decided = 0;
  std::atomic<Readiness> readiness_state = Readiness::serving;
  std::function<Decision(const Check&)> decide_with;

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::pair<std::string, Completion>> waiting_;
  Check last_check_;
};

/// A TCP connection that sends what it is told. Reads give up after kPatience.
class RawClient {
 public:
  explicit RawClient(const Endpoint& endpoint) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    ::inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr);
    const timeval patience{kPatience / kSecond, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server may have closed: the test looks at what it reads
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void end() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  /// Makes the next `close` a reset.
  void reset_on_close() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }

  /// Head and body of the next answer; empty at the end of the connection.
  std::string read_answer(bool head_only = false) {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!fill()) return {};
    }
    std::size_t size = end + 4;
    const auto length = buffer_.find("Content-Length: ");
    if (!head_only && length < end) size += std::stoul(buffer_.substr(length + 16));
    while (buffer_.size() < size) {
      if (!fill()) return {};
    }
    std::string answer = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return answer;
  }

  /// True when the server has closed and everything was read.
  bool at_end() { return buffer_.empty() && !fill(); }

 private:
  bool fill() {
    char bytes[4096];
    const auto size = ::recv(fd_, bytes, sizeof bytes, 0);
    if (size <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(size));
    return true;
  }

  int fd_;
  std::string buffer_;
};

inline int status_in(const std::string& answer) {
  return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3));
}

inline std::string post(std::string_view target, std::string_view body,
                        std::string_view headers = "") {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: weir\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(headers) + "\r\n" + std::string(body);
}

inline std::string post_check(std::string_view customer) {
  return post("/v1/check", "{\"customer\":\"" + std::string(customer) + "\"}");
}

/// A server on a free port of the loopback with a fake behind it.
struct Served {
  explicit Served(HttpServerOptions options = {}, CheckApiOptions api = {}) {
    options.listen = {"127.0.0.1", 0};
    server = std::make_unique<HttpServer>(options, api, service, clock, *log);
    auto started = server->start();
    EXPECT_TRUE(started.has_value());
    if (started) endpoint = *started;
  }

  /// One request on a fresh connection.
  HttpClientResponse request(std::string_view method, std::string_view target,
                             std::string_view body = "", const HttpHeaders& headers = {}) const {
    auto response = http_request(method, "http://" + to_string(endpoint) + std::string(target),
                                 headers, body, kPatience);
    EXPECT_TRUE(response.has_value()) << response.error().message;
    return response.value_or(HttpClientResponse{});
  }

  FakeService service;
  ManualClock clock;
  std::unique_ptr<telemetry::Log> log = telemetry::make_null_log();
  std::unique_ptr<HttpServer> server;
  Endpoint endpoint;
};

}  // namespace weir::net::test
