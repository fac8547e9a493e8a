#include "src/net/request_parser.h"

#include <boost/beast/http/basic_parser.hpp>
#include <optional>

namespace weir::net {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

/// Memory for a body that a connection keeps between requests.
constexpr std::size_t kKeptBodyBytes = 16 * 1024;

std::string_view view_of(string_view text) { return {text.data(), text.size()}; }

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Method::get;
    case http::verb::head:
      return Method::head;
    case http::verb::post:
      return Method::post;
    case http::verb::put:
      return Method::put;
    case http::verb::delete_:
      return Method::remove;
    default:
      return Method::other;
  }
}

/// A refusal that Beast has no word for.
struct Refusal {
  int status = 0;
  const char* field = "";
  const char* message = "";
};

/// A request's parts in memory that is reused from one to the next. Texts lie one behind the other
/// in `text`, known by offset because it may move while it grows.
struct Parts {
  struct Piece {
    std::size_t at = 0;
    std::size_t size = 0;
  };
  Piece keep(std::string_view piece) {
    text += piece;
    return {text.size() - piece.size(), piece.size()};
  }
  std::string_view view(Piece piece) const {
    return std::string_view(text).substr(piece.at, piece.size);
  }
  void clear() {
    text.clear();
    headers.clear();
    body.clear();
    if (body.capacity() > kKeptBodyBytes) body.shrink_to_fit();
    method = Method::other;
    method_name = target = {};
    has_host = expects_continue = header_done = http_1_0 = false;
    refusal.reset();
  }

  std::string text;
  std::vector<std::pair<Piece, Piece>> headers;
  std::string body;
  Method method = Method::other;
  Piece method_name;
  Piece target;
  bool has_host = false;
  bool expects_continue = false;
  bool header_done = false;
  bool http_1_0 = false;
  std::optional<Refusal> refusal;
};

class BeastParser final : public http::basic_parser<true> {
 public:
  BeastParser(Parts& parts, const RequestHandler& handler) : parts_(parts), handler_(handler) {
    eager(true);
    header_limit(kMaxHeadBytes);
  }

 private:
  void on_request_impl(http::verb method, string_view method_name, string_view target, int version,
                       error_code& ec) override {
    parts_.method = method_of(method);
    parts_.method_name = parts_.keep(view_of(method_name));
    parts_.target = parts_.keep(view_of(target));
    parts_.http_1_0 = version == 10;
    body_limit(handler_.max_body_bytes(view_of(target)));
    limit_head(ec);
  }

  void on_field_impl(http::field name, string_view name_text, string_view value,
                     error_code& ec) override {
    if (parts_.header_done) return;  // a trailer: nothing of ours is in one
    const auto kept_name = parts_.keep(view_of(name_text));
    parts_.headers.emplace_back(kept_name, parts_.keep(view_of(value)));
    limit_head(ec);
    if (name == http::field::host) {
      if (parts_.has_host) refuse({400, "Host", "is given twice"}, ec);
      parts_.has_host = true;
    } else if (name == http::field::transfer_encoding) {
      // Beast skips over codings that it does not know, and then would take the body for the next
      // request.
      if (!equal_ignoring_case(view_of(value), "chunked")) {
        refuse({501, "Transfer-Encoding", "must be chunked"}, ec);
      } else if (parts_.http_1_0) {
        refuse({400, "Transfer-Encoding", "is not part of HTTP/1.0"}, ec);
      }
    } else if (name == http::field::expect && !parts_.http_1_0) {
      parts_.expects_continue = equal_ignoring_case(view_of(value), "100-continue");
      if (!parts_.expects_continue) refuse({417, "Expect", "must be 100-continue"}, ec);
    }
  }

  void on_header_impl(error_code& ec) override {
    parts_.header_done = true;
    if (!parts_.has_host && !parts_.http_1_0) refuse({400, "Host", "is missing"}, ec);
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code&) override {
    parts_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code&) override {
    parts_.body.append(body.data(), body.size());
    return body.size();
  }
  void on_finish_impl(error_code&) override {}
  void on_response_impl(int, string_view, int, error_code&) override {}

  void limit_head(error_code& ec) const {
    if (parts_.text.size() > kMaxHeadBytes) ec = http::error::header_limit;
  }
  void refuse(const Refusal& refusal, error_code& ec) {
    if (!parts_.refusal) parts_.refusal = refusal;
    ec = http::error::bad_value;
  }

  Parts& parts_;
  const RequestHandler& handler_;
};

}  // namespace

class RequestParser::Impl {
 public:
  explicit Impl(const RequestHandler& handler) : handler_(handler) { reset(); }

  void reset() {
    parts.clear();
    ec.clear();
    parser.emplace(parts, handler_);
  }

  std::size_t feed(std::string_view bytes) {
    const std::size_t taken = parser->put({bytes.data(), bytes.size()}, ec);
    if (ec == http::error::need_more) ec.clear();
    return taken;
  }

  std::size_t max_body_bytes() const { return handler_.max_body_bytes(parts.view(parts.target)); }

  void build_request() {
    request.method = parts.method;
    request.method_name = parts.view(parts.method_name);
    std::string_view target = parts.view(parts.target);
    if (!target.starts_with('/')) {  // absolute-form, as sent to proxies
      const auto authority = target.find("://");
      const auto path = authority == std::string_view::npos ? std::string_view::npos
                                                            : target.find('/', authority + 3);
      if (path != std::string_view::npos) target.remove_prefix(path);
    }
    const auto question = target.find('?');
    request.path = target.substr(0, question);
    request.query =
        question == std::string_view::npos ? std::string_view() : target.substr(question + 1);
    request.headers.clear();
    for (const auto& [name, value] : parts.headers) {
      request.headers.emplace_back(parts.view(name), parts.view(value));
    }
    request.body = parts.body;
  }

  Parts parts;
  error_code ec;
  std::optional<BeastParser> parser;
  HttpRequest request;

 private:
  const RequestHandler& handler_;
};

RequestParser::RequestParser(const RequestHandler& handler)
    : impl_(std::make_unique<Impl>(handler)) {}
RequestParser::~RequestParser() = default;

void RequestParser::reset() { impl_->reset(); }

std::size_t RequestParser::feed(std::string_view bytes) { return impl_->feed(bytes); }

RequestParser::State RequestParser::state() const {
  if (impl_->ec) return State::failed;
  if (impl_->parser->is_done()) return State::done;
  return impl_->parser->is_header_done() ? State::body : State::head;
}

const HttpRequest& RequestParser::request() {
  impl_->build_request();
  return impl_->request;
}

Method RequestParser::method() const { return impl_->parts.method; }
bool RequestParser::keep_alive() const { return impl_->parser->keep_alive(); }
bool RequestParser::http_1_0() const { return impl_->parts.http_1_0; }
bool RequestParser::expects_continue() const { return impl_->parts.expects_continue; }

int RequestParser::error_status() const {
  if (impl_->parts.refusal) return impl_->parts.refusal->status;
  if (impl_->ec == http::error::body_limit) return 413;
  if (impl_->ec == http::error::header_limit) return 431;
  if (impl_->ec == http::error::bad_version) return 505;
  return 400;
}

Error RequestParser::error() const {
  if (const auto& refusal = impl_->parts.refusal) {
    return {ErrorCode::invalid_argument, refusal->field, refusal->message};
  }
  if (impl_->ec == http::error::body_limit) {
    return {ErrorCode::too_large, "",
            "the body is larger than " + std::to_string(impl_->max_body_bytes()) + " bytes"};
  }
  if (impl_->ec == http::error::header_limit) {
    return {
        ErrorCode::too_large, "",
        "the request line and headers are larger than " + std::to_string(kMaxHeadBytes) + " bytes"};
  }
  return {ErrorCode::invalid_argument, "", "not an HTTP/1 request: " + impl_->ec.message()};
}

}  // namespace weir::net
