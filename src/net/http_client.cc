#include "src/net/http_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <chrono>
#include <exception>
#include <optional>

#include "src/net/http_message.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

std::chrono::nanoseconds duration_of(Nanos timeout_ns) {
  return std::chrono::nanoseconds(std::max<Nanos>(timeout_ns, 1));
}

tl::unexpected<Error> unavailable(const std::string& what, const error_code& ec) {
  const bool late = ec == beast::error::timeout;
  return failure(ErrorCode::unavailable, "",
                 what + ": " + (late ? std::string("no answer in time") : ec.message()));
}

}  // namespace

const std::string* HttpClientResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return &value;
  }
  return nullptr;
}

class HttpClient::Impl {
 public:
  explicit Impl(Endpoint endpoint) : endpoint_(std::move(endpoint)), stream_(context_) {}

  Status connect(Nanos timeout_ns) {
    asio::ip::tcp::resolver resolver(context_);
    error_code ec;
    const auto found = resolver.resolve(endpoint_.host, std::to_string(endpoint_.port), ec);
    if (ec) return unavailable("cannot resolve " + endpoint_.host, ec);
    stream_.expires_after(duration_of(timeout_ns));
    stream_.async_connect(found, [&](error_code result, const auto&) { ec = result; });
    run();
    if (ec) return unavailable("cannot reach " + to_string(endpoint_), ec);
    error_code ignored;
    stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    usable_ = true;
    return {};
  }

  Result<HttpClientResponse> request(std::string_view method, std::string_view target,
                                     const HttpHeaders& headers, std::string_view body,
                                     Nanos timeout_ns) {
    if (!usable_) {
      return failure(ErrorCode::unavailable, "",
                     "the connection to " + to_string(endpoint_) + " is closed");
    }
    usable_ = false;
    http::request<http::string_body> message;
    message.version(11);
    message.method_string({method.data(), method.size()});
    message.target({target.data(), target.size()});
    message.set(http::field::host, to_string(endpoint_));
    for (const auto& [name, value] : headers) message.insert(name, value);
    message.body() = body;
    if (!body.empty() || method == "POST" || method == "PUT") message.prepare_payload();

    const bool head = method == "HEAD";
    std::optional<Parser> parser;
    error_code ec;
    stream_.expires_after(duration_of(timeout_ns));
    http::async_write(stream_, message, [&](error_code written, std::size_t) {
      // A server may answer and close before it has read all: its answer is worth reading.
      const bool cut_off =
          written == asio::error::broken_pipe || written == asio::error::connection_reset;
      ec = written;
      if (written && !cut_off) return;
      read_answer(parser, head, ec);
    });
    run();
    if (ec) return broken(ec);
    HttpClientResponse response;
    response.status = static_cast<int>(parser->get().result_int());
    for (const auto& field : parser->get()) {
      response.headers.emplace_back(field.name_string(), field.value());
    }
    usable_ = parser->get().keep_alive();
    response.body = std::move(parser->get().body());
    return response;
  }

  bool usable() const { return usable_; }

 private:
  using Parser = http::response_parser<http::string_body>;

  /// Reads until an answer that is not `100 Continue`.
  void read_answer(std::optional<Parser>& parser, bool head, error_code& ec) {
    parser.emplace();
    parser->body_limit(kMaxClientBodyBytes);
    parser->skip(head);
    http::async_read(stream_, buffer_, *parser,
                     [this, &parser, head, &ec](error_code read, std::size_t) {
                       ec = read;
                       if (read || parser->get().result() != http::status::continue_) return;
                       read_answer(parser, head, ec);
                     });
  }

  Result<HttpClientResponse> broken(const error_code& ec) {
    const bool not_http = ec.category() == http::make_error_code(http::error::bad_value).category();
    if (not_http && ec != http::error::end_of_stream && ec != http::error::partial_message) {
      return failure(ErrorCode::io, "",
                     to_string(endpoint_) + " does not speak HTTP: " + ec.message());
    }
    return unavailable("no answer from " + to_string(endpoint_), ec);
  }

  void run() {
    context_.restart();
    context_.run();
  }

  Endpoint endpoint_;
  asio::io_context context_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  bool usable_ = false;
};

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::connect(const Endpoint& endpoint, Nanos timeout_ns) {
  auto impl = std::make_unique<Impl>(endpoint);
  if (auto status = impl->connect(timeout_ns); !status) return tl::unexpected(status.error());
  return HttpClient(std::move(impl));
}

Result<HttpClientResponse> HttpClient::request(std::string_view method, std::string_view target,
                                               const HttpHeaders& headers, std::string_view body,
                                               Nanos timeout_ns) {
  try {
    return impl_->request(method, target, headers, body, timeout_ns);
  } catch (const std::exception& problem) {  // Beast's, for a method that is no token and the like
    return failure(ErrorCode::invalid_argument, "", problem.what());
  }
}

bool HttpClient::usable() const { return impl_->usable(); }

Result<HttpUrl> parse_url(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const auto bad = [&](const char* what) {
    return failure(ErrorCode::invalid_argument, "url",
                   std::string(url) + ": " + what + "; write http://HOST:PORT/PATH");
  };
  if (!url.starts_with(kScheme)) return bad("must start with http://");
  std::string_view rest = url.substr(kScheme.size());
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  rest.remove_prefix(authority.size());
  HttpUrl parsed;
  parsed.endpoint.port = 80;
  parsed.target = rest;
  if (!rest.starts_with('/')) parsed.target = "/" + parsed.target;
  for (const char c : parsed.target) {
    if (c <= ' ' || c == 0x7F) return bad("has a blank or control character");
  }
  std::string_view host = authority;
  std::string_view port;
  const auto bracket = authority.find(']');
  const auto colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
    const auto end = port.data() + port.size();
    const auto result = std::from_chars(port.data(), end, parsed.endpoint.port);
    if (result.ec != std::errc() || result.ptr != end) return bad("has no valid port");
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return bad("has no host");
  parsed.endpoint.host = host;
  return parsed;
}

Result<HttpClientResponse> http_request(std::string_view method, std::string_view url,
                                        const HttpHeaders& headers, std::string_view body,
                                        Nanos timeout_ns) {
  const auto parsed = parse_url(url);
  if (!parsed) return tl::unexpected(parsed.error());
  const auto deadline = std::chrono::steady_clock::now() + duration_of(timeout_ns);
  auto client = HttpClient::connect(parsed->endpoint, timeout_ns);
  if (!client) return tl::unexpected(client.error());
  const auto left = deadline - std::chrono::steady_clock::now();
  HttpHeaders all = headers;
  all.emplace_back("Connection", "close");
  return client->request(method, parsed->target, all, body, std::chrono::nanoseconds(left).count());
}

}  // namespace weir::net
