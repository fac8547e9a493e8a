#include "src/net/http_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
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

/// The certificates of an https:// client; the error names the file.
Status fill(asio::ssl::context& context, const ClientTls& tls) {
  error_code ec;
  const auto wrong = [&](const std::string& path) {
    return failure(ErrorCode::invalid_argument, "", path + ": cannot be used: " + ec.message());
  };
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer, ec);
  if (tls.ca.empty()) {
    context.set_default_verify_paths(ec);
    if (ec) return wrong("the system's CA certificates");
  } else {
    context.load_verify_file(tls.ca, ec);
    if (ec) return wrong(tls.ca);
  }
  if (tls.certificate.empty()) return {};
  context.use_certificate_chain_file(tls.certificate, ec);
  if (ec) return wrong(tls.certificate);
  context.use_private_key_file(tls.key, asio::ssl::context::pem, ec);
  if (ec) return wrong(tls.key);
  return {};
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

  /// After `connect`, within its timeout.
  Status secure(const ClientTls& tls) {
    usable_ = false;
    tls_context_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
    if (Status filled = fill(*tls_context_, tls); !filled) return filled;
    secure_ = std::make_unique<SecureStream>(stream_, *tls_context_);
    error_code is_name;
    asio::ip::make_address(endpoint_.host, is_name);
    if (is_name) ::SSL_set_tlsext_host_name(secure_->native_handle(), endpoint_.host.c_str());
    error_code ec;
    secure_->set_verify_callback(asio::ssl::host_name_verification(endpoint_.host), ec);
    if (ec) return unavailable("TLS with " + to_string(endpoint_), ec);
    secure_->async_handshake(asio::ssl::stream_base::client,
                             [&](error_code result) { ec = result; });
    run();
    if (ec) return unavailable("no TLS with " + to_string(endpoint_), ec);
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
    const auto exchange = [&](auto& stream) {
      http::async_write(stream, message, [&](error_code written, std::size_t) {
        // A server may answer and close before it has read all: its answer is worth reading.
        const bool cut_off =
            written == asio::error::broken_pipe || written == asio::error::connection_reset;
        ec = written;
        if (written && !cut_off) return;
        read_answer(stream, parser, head, ec);
      });
      run();
    };
    secure_ == nullptr ? exchange(stream_) : exchange(*secure_);
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
  using SecureStream = beast::ssl_stream<beast::tcp_stream&>;

  /// Reads until an answer that is not `100 Continue`.
  template <typename Stream>
  void read_answer(Stream& stream, std::optional<Parser>& parser, bool head, error_code& ec) {
    parser.emplace();
    parser->body_limit(kMaxClientBodyBytes);
    parser->skip(head);
    http::async_read(stream, buffer_, *parser,
                     [this, &stream, &parser, head, &ec](error_code read, std::size_t) {
                       ec = read;
                       if (read || parser->get().result() != http::status::continue_) return;
                       read_answer(stream, parser, head, ec);
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
  std::unique_ptr<asio::ssl::context> tls_context_;
  std::unique_ptr<SecureStream> secure_;  ///< over stream_; null: plain HTTP
  beast::flat_buffer buffer_;
  bool usable_ = false;
};

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::connect(const Endpoint& endpoint, Nanos timeout_ns,
                                       const ClientTls* tls) {
  auto impl = std::make_unique<Impl>(endpoint);
  if (auto status = impl->connect(timeout_ns); !status) return tl::unexpected(status.error());
  if (tls != nullptr) {
    if (auto status = impl->secure(*tls); !status) return tl::unexpected(status.error());
  }
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
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kSecure = "https://";
  const auto bad = [&](const char* what) {
    return failure(ErrorCode::invalid_argument, "url",
                   std::string(url) + ": " + what + "; write http://HOST:PORT/PATH");
  };
  const bool tls = url.starts_with(kSecure);
  if (!tls && !url.starts_with(kPlain)) return bad("must start with http:// or https://");
  std::string_view rest = url.substr(tls ? kSecure.size() : kPlain.size());
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  rest.remove_prefix(authority.size());
  HttpUrl parsed;
  parsed.tls = tls;
  parsed.endpoint.port = tls ? 443 : 80;
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
                                        Nanos timeout_ns, const ClientTls& tls) {
  const auto parsed = parse_url(url);
  if (!parsed) return tl::unexpected(parsed.error());
  const auto deadline = std::chrono::steady_clock::now() + duration_of(timeout_ns);
  auto client = HttpClient::connect(parsed->endpoint, timeout_ns, parsed->tls ? &tls : nullptr);
  if (!client) return tl::unexpected(client.error());
  const auto left = deadline - std::chrono::steady_clock::now();
  HttpHeaders all = headers;
  all.emplace_back("Connection", "close");
  return client->request(method, parsed->target, all, body, std::chrono::nanoseconds(left).count());
}

}  // namespace weir::net
