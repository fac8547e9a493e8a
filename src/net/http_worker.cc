#include "src/net/http_worker.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

namespace weir::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Most bytes of one read; shared by a thread's connections. More than a TLS record holds (16 KiB):
/// one read empties it, so that what is left to read is in the socket and wakes us.
constexpr std::size_t kReadBytes = 64 * 1024;
/// Deadlines are looked at this often, or four times within the shortest of them.
constexpr Nanos kLongestTick = 250 * kMillisecond;
constexpr Nanos kShortestTick = kMillisecond;
/// Output memory that a connection keeps between answers.
constexpr std::size_t kKeptOutputBytes = 4 * 1024;

bool would_block(const error_code& ec) {
  return ec == asio::error::would_block || ec == asio::error::try_again;
}

Nanos tick_of(const HttpDeadlines& deadlines) {
  const Nanos shortest = std::min({deadlines.idle_ns, deadlines.head_ns, deadlines.body_ns,
                                   deadlines.write_ns, deadlines.linger_ns});
  return std::clamp(shortest / 4, kShortestTick, kLongestTick);
}

}  // namespace

class HttpMailbox {
 public:
  explicit HttpMailbox(asio::io_context& context) : context_(&context) {}

  template <typename Work>
  void post(Work&& work) {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) asio::post(*context_, std::forward<Work>(work));
  }
  void close() {
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
  }

 private:
  // Keeps the loop alive while someone posts to it.
  std::mutex mutex_;
  asio::io_context* context_;
};

/// A socket and its session. Owned by its worker until it closes; waits in the event loop hold it
/// only until they return.
class HttpConnection final : public std::enable_shared_from_this<HttpConnection>,
                             private HttpSession::Late {
 public:
  HttpConnection(HttpWorker& worker, tcp::socket socket, std::shared_ptr<const TlsContext> tls)
      : worker_(worker),
        socket_(std::move(socket)),
        tls_context_(std::move(tls)),
        session_(worker.handler(), *this, worker.deadlines(), worker.date(), worker.now_ns()) {}

  void start() {
    error_code ec;
    socket_.non_blocking(true, ec);
    if (!ec) socket_.native_non_blocking(true, ec);  // OpenSSL asks it without Asio
    if (!ec) socket_.set_option(tcp::no_delay(true), ec);
    if (ec) return close();
    if (tls_context_ == nullptr) return wait_readable();
    tls_.emplace(*tls_context_, socket_.native_handle());
    handshaking_ = true;
    forced_deadline_ns_ = add_saturating(worker_.now_ns(), worker_.deadlines().head_ns);
    wait_readable();
  }

  /// Idle: closes, unless a request is on its way in already or an answer still on its way out.
  void drain() {
    draining_ = true;
    session_.begin_drain();
    if (handshaking_) return close();
    if (!session_.idle() || lingering_ || writing_) return;
    if (!read_once()) close();
  }

  void expire(Nanos now_ns) {
    if (now_ns >= forced_deadline_ns_) {
      if (handshaking_) refused("the handshake took too long");
      return close();
    }
    if (handshaking_ || lingering_ || writing_) return;
    session_.expire(now_ns);
    pump();
  }

  void complete(std::uint64_t ticket, const HttpResponse& response) {
    if (closed_) return;
    session_.complete(ticket, response, worker_.now_ns());
    pump();
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    error_code ignored;
    socket_.close(ignored);
    worker_.remove(*this);
  }

  std::size_t index = 0;  ///< in the worker's list

 private:
  RequestHandler::Later make_later(std::uint64_t ticket) override {
    return [mailbox = worker_.mailbox(), self = weak_from_this(), ticket](HttpResponse response) {
      mailbox->post([self, ticket, response = std::move(response)] {
        if (const auto connection = self.lock()) connection->complete(ticket, response);
      });
    };
  }

  void wait_readable() {
    if (reading_) return;
    reading_ = true;
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code ec) {
      self->reading_ = false;
      if (self->closed_) return;
      if (ec) return self->close();
      if (self->handshaking_) return self->shake_hands();
      if (!self->lingering_ && !self->session_.wants_input()) return;
      if (!self->read_once()) self->wait_readable();
    });
  }

  void shake_hands() {
    switch (tls_->handshake().outcome) {
      case TlsStream::Outcome::done:
        handshaking_ = false;
        forced_deadline_ns_ = kForever;
        // The first request may have come with the last message.
        if (!read_once()) wait_readable();
        return;
      case TlsStream::Outcome::wants_read:
        return wait_readable();
      case TlsStream::Outcome::wants_write:
        return wait_writable();
      case TlsStream::Outcome::ended:
      case TlsStream::Outcome::failed:
        refused(tls_->reason());
        return close();
    }
  }

  void refused(const std::string& reason) {
    error_code ec;
    const auto peer = socket_.remote_endpoint(ec);
    worker_.events().refused(ec ? std::string("unknown") : peer.address().to_string(), reason);
  }

  /// Of the socket or of the TLS stream in it, with Asio's errors.
  std::size_t read_some(error_code& ec) {
    auto& buffer = worker_.read_buffer();
    if (!tls_ || lingering_) return socket_.read_some(asio::buffer(buffer), ec);
    return taken(tls_->read(buffer.data(), buffer.size()), ec);
  }

  std::size_t write_some(std::string_view bytes, error_code& ec) {
    if (!tls_) return socket_.write_some(asio::buffer(bytes.data(), bytes.size()), ec);
    return taken(tls_->write(bytes), ec);
  }

  static std::size_t taken(const TlsStream::Step& step, error_code& ec) {
    switch (step.outcome) {
      case TlsStream::Outcome::done:
        ec.clear();
        break;
      // Without renegotiation a read waits for bytes and a write for room.
      case TlsStream::Outcome::wants_read:
      case TlsStream::Outcome::wants_write:
        ec = asio::error::would_block;
        break;
      case TlsStream::Outcome::ended:
        ec = asio::error::eof;
        break;
      case TlsStream::Outcome::failed:
        ec = asio::error::connection_aborted;
        break;
    }
    return step.size;
  }

  /// False when there is nothing to read now.
  bool read_once() {
    error_code ec;
    const std::size_t size = read_some(ec);
    if (would_block(ec)) return false;
    if (lingering_) {
      if (ec) {
        close();
      } else {
        wait_readable();
      }
      return true;
    }
    if (ec == asio::error::eof) {
      session_.receive_end();
    } else if (ec) {
      close();
      return true;
    } else {
      session_.receive({worker_.read_buffer().data(), size}, worker_.now_ns());
    }
    pump();
    return true;
  }

  /// Writes what the session has to say, then does what it waits for.
  void pump() {
    while (!closed_ && !writing_ && !lingering_) {
      if (!flush()) return;
      if (session_.finished()) return linger();
      if (!session_.wants_input()) return;  // a decision is on its way
      session_.resume(worker_.now_ns());
      if (!session_.output().empty()) continue;
      if (session_.finished() || (draining_ && session_.idle())) return linger();
      if (session_.wants_input()) wait_readable();
      return;
    }
  }

  /// True when all is written.
  bool flush() {
    std::string& output = session_.output();
    while (written_ < output.size()) {
      error_code ec;
      written_ += write_some(std::string_view(output).substr(written_), ec);
      if (would_block(ec)) {
        wait_writable();
        return false;
      }
      if (ec) {
        close();
        return false;
      }
    }
    written_ = 0;
    forced_deadline_ns_ = kForever;
    output.clear();
    if (output.capacity() > kKeptOutputBytes) output.shrink_to_fit();
    return true;
  }

  void wait_writable() {
    writing_ = true;
    // Not renewed by progress: who takes one byte at a time is too slow as well.
    if (forced_deadline_ns_ == kForever) {
      forced_deadline_ns_ = add_saturating(worker_.now_ns(), worker_.deadlines().write_ns);
    }
    socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code ec) {
      self->writing_ = false;
      if (self->closed_) return;
      if (ec) return self->close();
      if (self->handshaking_) return self->shake_hands();
      self->pump();
    });
  }

  /// Closes our side and waits for the client's: closing at once while it still sends would make
  /// the kernel reset the connection and take the last answer with it.
  void linger() {
    lingering_ = true;
    if (tls_) tls_->shutdown();
    error_code ec;
    socket_.shutdown(tcp::socket::shutdown_send, ec);
    if (ec) return close();
    forced_deadline_ns_ = add_saturating(worker_.now_ns(), worker_.deadlines().linger_ns);
    wait_readable();
  }

  HttpWorker& worker_;
  tcp::socket socket_;
  const std::shared_ptr<const TlsContext> tls_context_;
  std::optional<TlsStream> tls_;
  HttpSession session_;
  std::size_t written_ = 0;  ///< of the session's output
  Nanos forced_deadline_ns_ = kForever;
  bool handshaking_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool lingering_ = false;
  bool draining_ = false;
  bool closed_ = false;
};

HttpWorker::HttpWorker(std::unique_ptr<RequestHandler> handler, const HttpDeadlines& deadlines,
                       const Clock& clock, Events events)
    : handler_(std::move(handler)),
      deadlines_(deadlines),
      clock_(clock),
      events_(std::move(events)),
      read_buffer_(kReadBytes),
      context_(1),
      work_(context_.get_executor()),
      timer_(context_) {
  mailbox_ = std::make_shared<HttpMailbox>(context_);
  refresh_date();
}

HttpWorker::~HttpWorker() { mailbox_->close(); }

void HttpWorker::run() {
  tick();
  context_.run();
}

void HttpWorker::post(std::function<void()> work) { asio::post(context_, std::move(work)); }

void HttpWorker::add(tcp::socket socket, std::shared_ptr<const TlsContext> tls) {
  // shared_ptr: std::function and Asio's handlers are copied, a socket is not.
  auto connection = std::make_shared<tcp::socket>(std::move(socket));
  asio::post(context_, [this, connection, tls = std::move(tls)] {
    if (stopping_) return events_.closed();
    auto& added = connections_.emplace_back(
        std::make_shared<HttpConnection>(*this, std::move(*connection), tls));
    added->index = connections_.size() - 1;
    const auto started = added;  // `start` may close it and move the list
    started->start();
    if (draining_) started->drain();
  });
}

void HttpWorker::drain() {
  asio::post(context_, [this] {
    draining_ = true;
    for (const auto& connection : std::vector(connections_)) connection->drain();
  });
}

void HttpWorker::stop() {
  // From here on late answers are dropped.
  mailbox_->close();
  asio::post(context_, [this] {
    stopping_ = true;
    for (const auto& connection : std::vector(connections_)) connection->close();
    timer_.cancel();
    work_.reset();
  });
}

void HttpWorker::remove(HttpConnection& connection) {
  const std::size_t index = connection.index;
  const auto removed = std::move(connections_[index]);
  if (index + 1 != connections_.size()) {
    connections_[index] = std::move(connections_.back());
    connections_[index]->index = index;
  }
  connections_.pop_back();
  events_.closed();
}

void HttpWorker::tick() {
  if (stopping_) return;
  refresh_date();
  const Nanos now = now_ns();
  // From the back: what closes is replaced by one that has been looked at.
  for (std::size_t i = connections_.size(); i > 0; --i) {
    const auto connection = connections_[i - 1];
    connection->expire(now);
  }
  timer_.expires_after(std::chrono::nanoseconds(tick_of(deadlines_)));
  timer_.async_wait([this](error_code ec) {
    if (!ec) tick();
  });
}

void HttpWorker::refresh_date() {
  const auto seconds = static_cast<std::time_t>(clock_.wall_ns() / kSecond);
  std::tm utc{};
  char text[40];
  gmtime_r(&seconds, &utc);
  date_.assign(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc));
}

}  // namespace weir::net
