#include "test/support/node_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>

#include "src/base/system_clock.h"
#include "src/net/http_message.h"

namespace weir::test {
namespace {

namespace json = boost::json;

constexpr int kPollMs = 10;
/// A node that has said nothing for this long after hostile bytes waits for more of them.
constexpr int kSilenceMs = 1000;

json::object parse_object(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return {};
  return std::move(value.get_object());
}

std::int64_t number_in(const json::object& object, std::string_view member) {
  const json::value* value = object.if_contains(member);
  if (value == nullptr || !value->is_number()) return INT64_MIN;
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  return error ? INT64_MIN : number;
}

std::string word_in(const json::object& object, std::string_view member) {
  const json::value* value = object.if_contains(member);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace

Nanos now_ns() { return SystemClock().boot_ns(); }

bool eventually(const std::function<bool()>& happened, Nanos patience_ns) {
  const Nanos deadline_ns = now_ns() + patience_ns;
  while (!happened()) {
    if (now_ns() >= deadline_ns) return false;
    ::poll(nullptr, 0, kPollMs);
  }
  return true;
}

std::string check_body(std::string_view customer, std::int64_t cost, const Attributes& attributes) {
  json::object members;
  for (const auto& [name, value] : attributes) members[name] = value;
  json::object body{{"customer", customer}, {"cost", cost}};
  if (!members.empty()) body["attributes"] = std::move(members);
  return json::serialize(body);
}

std::int64_t Answer::number(std::string_view member) const { return number_in(json, member); }
std::string Answer::word(std::string_view member) const { return word_in(json, member); }

const std::string* Answer::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (net::equal_ignoring_case(key, name)) return &value;
  }
  return nullptr;
}

Answer ask(const Endpoint& node, const char* method, const std::string& target,
           const std::string& body) {
  const net::HttpHeaders headers =
      body.empty() ? net::HttpHeaders{} : net::HttpHeaders{{"Content-Type", "application/json"}};
  auto response =
      net::http_request(method, "http://" + to_string(node) + target, headers, body, kPatienceNs);
  if (!response) return {0, response.error().message, {}, {}};
  return {response->status, response->body, parse_object(response->body), response->headers};
}

Answer check(const Endpoint& node, std::string_view customer, std::int64_t cost,
             const Attributes& attributes) {
  return ask(node, "POST", "/v1/check", check_body(customer, cost, attributes));
}

CheckRecord record_of(const Result<net::HttpClientResponse>& response, std::string& complaint) {
  CheckRecord record;
  if (!response) {
    record.source = "unreachable";
    complaint = response.error().message;
    return record;
  }
  const json::object body = parse_object(response->body);
  const json::value* allowed = body.if_contains("allowed");
  const bool verdict = (response->status == 200 || response->status == 429) && allowed != nullptr &&
                       allowed->is_bool() && allowed->get_bool() == (response->status == 200);
  if (!verdict) {
    record.source = std::to_string(response->status);
    complaint = record.source + " " + response->body;
    return record;
  }
  record.verdict = response->status == 200 ? Verdict::allowed : Verdict::denied;
  record.source = word_in(body, "source");
  record.remaining = number_in(body, "remaining");
  record.retry_after_ms = number_in(body, "retry_after_ms");
  return record;
}

double metric(const Endpoint& admin, std::string_view name, std::string_view label) {
  const Answer answer = ask(admin, "GET", "/metrics");
  std::istringstream lines(answer.text);
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find_first_of("{ ");
    if (end == std::string::npos || std::string_view(line).substr(0, end) != name) continue;
    if (line.find(label) == std::string::npos) continue;
    sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

std::string exchange_raw(const Endpoint& node, std::string_view bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(node.port);
  ::inet_pton(AF_INET, node.host.c_str(), &address.sin_addr);
  std::string answer;
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;  // it may answer and close before it has read all
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    pollfd readable{fd, POLLIN, 0};
    while (::poll(&readable, 1, kSilenceMs) > 0) {
      std::array<char, 4096> buffer{};
      const ssize_t size = ::recv(fd, buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      answer.append(buffer.data(), static_cast<std::size_t>(size));
    }
  }
  ::close(fd);
  return answer;
}

}  // namespace weir::test
