#include "src/net/http_server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "src/base/assert.h"
#include "src/net/admin_routes.h"
#include "src/net/http_worker.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Connections that the kernel may hold for us before they are accepted.
constexpr int kBacklog = 4096;
/// Pause after a failed accept (out of file descriptors, usually) before the next one.
constexpr auto kAcceptPause = std::chrono::milliseconds(50);

/// Failed handshakes are logged at most this often: anybody can cause them.
constexpr Nanos kRefusalLineNs = 10 * kSecond;

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    "Connection: close\r\n\r\n";

}  // namespace

class HttpServer::Impl {
 public:
  using HandlerFactory = std::function<std::unique_ptr<RequestHandler>(unsigned thread)>;

  Impl(HttpServerOptions options, HandlerFactory make_handler, const Clock& clock,
       telemetry::Log& log)
      : options_(std::move(options)),
        make_handler_(std::move(make_handler)),
        clock_(clock),
        log_(log) {
    WEIR_ASSERT(options_.threads >= 1);
  }
  ~Impl() { stop(); }

  Result<Endpoint> start();
  bool drain(Nanos patience_ns);
  void stop();
  std::size_t connections() const { return connections_.load(); }
  std::uint64_t refused_handshakes() const { return refused_handshakes_.load(); }

 private:
  Result<tcp::endpoint> resolve();
  Status listen(const tcp::endpoint& endpoint);
  void accept();
  void accepted(error_code ec, tcp::socket socket, std::size_t worker);
  /// Takes in what the kernel has accepted for us, then stops listening.
  void close_acceptor();
  void refuse(tcp::socket socket);
  void connection_closed();
  void handshake_refused(const std::string& peer, const std::string& reason);

  const HttpServerOptions options_;
  const HandlerFactory make_handler_;
  const Clock& clock_;
  telemetry::Log& log_;
  std::atomic<std::size_t> connections_ = 0;
  std::atomic<std::uint64_t> refused_handshakes_ = 0;
  std::atomic<Nanos> next_refusal_line_ns_ = 0;
  std::atomic<bool> draining_ = false;
  // Guards nothing but the wait for connections_ to reach 0 in `drain`.
  std::mutex mutex_;
  std::condition_variable all_closed_;
  std::vector<std::unique_ptr<HttpWorker>> workers_;
  // The rest belongs to the first worker's thread while it runs.
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::unique_ptr<asio::steady_timer> accept_pause_;
  std::size_t next_worker_ = 0;
  bool accept_failing_ = false;
  std::vector<std::thread> threads_;
};

Result<tcp::endpoint> HttpServer::Impl::resolve() {
  error_code ec;
  tcp::resolver resolver(workers_[0]->context());
  const auto found = resolver.resolve(options_.listen.host, std::to_string(options_.listen.port),
                                      tcp::resolver::passive, ec);
  if (ec || found.empty()) {
    return failure(ErrorCode::invalid_argument, "listen",
                   "cannot resolve " + options_.listen.host + ": " + ec.message());
  }
  return found.begin()->endpoint();
}

Status HttpServer::Impl::listen(const tcp::endpoint& endpoint) {
  acceptor_ = std::make_unique<tcp::acceptor>(workers_[0]->context());
  error_code ec;
  acceptor_->open(endpoint.protocol(), ec);
  if (!ec) acceptor_->set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor_->bind(endpoint, ec);
  if (!ec) acceptor_->listen(kBacklog, ec);
  if (!ec) acceptor_->non_blocking(true, ec);
  if (!ec) return {};
  return failure(ErrorCode::io, "listen",
                 "cannot listen on " + to_string(options_.listen) + ": " + ec.message());
}

Result<Endpoint> HttpServer::Impl::start() {
  WEIR_ASSERT(workers_.empty());
  for (unsigned i = 0; i < options_.threads; ++i) {
    workers_.push_back(std::make_unique<HttpWorker>(
        make_handler_(i), options_.deadlines, clock_,
        HttpWorker::Events{[this] { connection_closed(); },
                           [this](const std::string& peer, const std::string& reason) {
                             handshake_refused(peer, reason);
                           }}));
  }
  accept_pause_ = std::make_unique<asio::steady_timer>(workers_[0]->context());
  const auto endpoint = resolve();
  if (!endpoint) return tl::unexpected(endpoint.error());
  if (auto listening = listen(*endpoint); !listening) return tl::unexpected(listening.error());
  error_code ec;
  const auto bound = acceptor_->local_endpoint(ec);
  if (ec) return failure(ErrorCode::io, "listen", ec.message());
  accept();
  for (auto& worker : workers_) {
    threads_.emplace_back([&worker = *worker] { worker.run(); });
  }
  return Endpoint{bound.address().to_string(), bound.port()};
}

void HttpServer::Impl::accept() {
  const std::size_t worker = next_worker_;
  next_worker_ = (next_worker_ + 1) % workers_.size();
  acceptor_->async_accept(workers_[worker]->context(),
                          [this, worker](error_code ec, tcp::socket socket) {
                            if (!acceptor_->is_open()) return;
                            accepted(ec, std::move(socket), worker);
                            if (!ec) return accept();
                            accept_pause_->expires_after(kAcceptPause);
                            accept_pause_->async_wait([this](error_code stopped) {
                              if (!stopped && acceptor_->is_open()) accept();
                            });
                          });
}

void HttpServer::Impl::accepted(error_code ec, tcp::socket socket, std::size_t worker) {
  if (ec) {
    if (!accept_failing_) {
      log_.error("cannot accept connections", {{"error", ec.message()}});
    }
    accept_failing_ = true;
    return;
  }
  if (accept_failing_) log_.info("accepting connections again");
  accept_failing_ = false;
  if (connections_.load(std::memory_order_relaxed) >= options_.max_connections) {
    return refuse(std::move(socket));
  }
  connections_.fetch_add(1, std::memory_order_relaxed);
  workers_[worker]->add(std::move(socket),
                        options_.tls == nullptr ? nullptr : options_.tls->current());
}

void HttpServer::Impl::refuse(tcp::socket socket) {
  if (options_.tls != nullptr) return;  // closed: it would not understand
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kFull), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void HttpServer::Impl::close_acceptor() {
  if (!acceptor_->is_open()) return;
  while (true) {
    const std::size_t worker = next_worker_;
    next_worker_ = (next_worker_ + 1) % workers_.size();
    error_code ec;
    tcp::socket socket(workers_[worker]->context());
    acceptor_->accept(socket, ec);
    if (ec) break;
    accepted(ec, std::move(socket), worker);
  }
  error_code ignored;
  acceptor_->close(ignored);
  accept_pause_->cancel();
}

void HttpServer::Impl::connection_closed() {
  // Sequentially consistent, as in `drain`: either this sees draining_, or `drain` sees the 0.
  if (connections_.fetch_sub(1) != 1 || !draining_.load()) return;
  const std::lock_guard lock(mutex_);
  all_closed_.notify_all();
}

void HttpServer::Impl::handshake_refused(const std::string& peer, const std::string& reason) {
  refused_handshakes_.fetch_add(1);
  const Nanos now_ns = clock_.boot_ns();
  Nanos next_ns = next_refusal_line_ns_.load();
  if (now_ns < next_ns) return;
  if (!next_refusal_line_ns_.compare_exchange_strong(next_ns, now_ns + kRefusalLineNs)) return;
  log_.warn("TLS handshake failed", {{"listen", to_string(options_.listen)},
                                     {"peer", peer},
                                     {"reason", reason},
                                     {"so_far", refused_handshakes_.load()}});
}

bool HttpServer::Impl::drain(Nanos patience_ns) {
  if (threads_.empty()) return true;
  draining_.store(true);
  std::mutex mutex;
  std::condition_variable condition;
  bool closed = false;
  workers_[0]->post([&] {
    close_acceptor();
    const std::lock_guard lock(mutex);
    closed = true;
    condition.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    condition.wait(lock, [&] { return closed; });
  }
  for (auto& worker : workers_) worker->drain();
  std::unique_lock lock(mutex_);
  return all_closed_.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                              [&] { return connections() == 0; });
}

void HttpServer::Impl::stop() {
  if (workers_.empty()) return;
  if (threads_.empty()) {  // start failed half-way
    acceptor_.reset();
    accept_pause_.reset();
    workers_.clear();
    return;
  }
  workers_[0]->post([this] {
    error_code ignored;
    acceptor_->close(ignored);
    accept_pause_->cancel();
  });
  for (auto& worker : workers_) worker->stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  acceptor_.reset();
  accept_pause_.reset();
  workers_.clear();
}

namespace {

std::unique_ptr<RequestHandler> guarded(Port port, TokenBook* book,
                                        std::unique_ptr<RequestHandler> routes) {
  if (book == nullptr) return routes;
  return std::make_unique<GuardedRoutes>(port, *book, std::move(routes));
}

}  // namespace

HttpServer::HttpServer(const HttpServerOptions& options, const CheckApiOptions& api,
                       CheckService& service, const Clock& clock, telemetry::Log& log)
    : impl_(std::make_unique<Impl>(
          options,
          [api, &service, &clock, book = options.tokens](unsigned thread) {
            CheckApiOptions mine = api;
            mine.jitter_seed += thread;
            return guarded(Port::check, book, std::make_unique<CheckRoutes>(mine, service, clock));
          },
          clock, log)) {}

HttpServer::HttpServer(const HttpServerOptions& options, AdminService& service, const Clock& clock,
                       telemetry::Log& log)
    : impl_(std::make_unique<Impl>(
          options,
          [&service, book = options.tokens](unsigned) {
            return guarded(Port::admin, book, std::make_unique<AdminRoutes>(service));
          },
          clock, log)) {}

HttpServer::~HttpServer() = default;

Result<Endpoint> HttpServer::start() { return impl_->start(); }
bool HttpServer::drain(Nanos patience_ns) { return impl_->drain(patience_ns); }
void HttpServer::stop() { impl_->stop(); }
std::size_t HttpServer::connections() const { return impl_->connections(); }
std::uint64_t HttpServer::refused_handshakes() const { return impl_->refused_handshakes(); }

}  // namespace weir::net
