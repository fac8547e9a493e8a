// One I/O thread: an event loop, the connections that were given to it, and the handler that
// answers for them. Internal to src/net.
//
// Sockets are non-blocking and asked directly; Asio only says when they are ready. A connection
// that waits for its next request therefore holds no buffer: all share the thread's.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/time.h"
#include "src/net/http_session.h"
#include "src/net/tls.h"

namespace weir::net {

class HttpConnection;

/// The way back into a worker for late answers, from any thread and after the worker is gone.
class HttpMailbox;

class HttpWorker {
 public:
  struct Events {
    /// Called once for each connection that was added.
    std::function<void()> closed;
    /// A TLS handshake did not succeed: who, and why.
    std::function<void(const std::string& peer, const std::string& reason)> refused;
  };
  /// `events` are called by the worker's thread.
  HttpWorker(std::unique_ptr<RequestHandler> handler, const HttpDeadlines& deadlines,
             const Clock& clock, Events events);
  /// The thread must have ended.
  ~HttpWorker();

  boost::asio::io_context& context() { return context_; }
  /// The thread: returns after `stop`.
  void run();

  // From any thread.

  void post(std::function<void()> work);
  /// `tls`: the certificates to show, or null for plain HTTP.
  void add(boost::asio::ip::tcp::socket socket, std::shared_ptr<const TlsContext> tls);
  /// Connections close after their answers, idle ones at once.
  void drain();
  /// Closes all connections and ends `run`.
  void stop();

  // By its connections, on its thread.

  RequestHandler& handler() { return *handler_; }
  const HttpDeadlines& deadlines() const { return deadlines_; }
  const Events& events() const { return events_; }
  const std::string& date() const { return date_; }
  const std::shared_ptr<HttpMailbox>& mailbox() const { return mailbox_; }
  std::vector<char>& read_buffer() { return read_buffer_; }
  Nanos now_ns() const { return clock_.boot_ns(); }
  void remove(HttpConnection& connection);

 private:
  void tick();
  void refresh_date();

  const std::unique_ptr<RequestHandler> handler_;
  const HttpDeadlines deadlines_;
  const Clock& clock_;
  const Events events_;
  std::vector<char> read_buffer_;
  std::string date_;
  std::vector<std::shared_ptr<HttpConnection>> connections_;
  bool draining_ = false;
  bool stopping_ = false;
  std::shared_ptr<HttpMailbox> mailbox_;
  // Last, so that it goes first: handlers left in it hold connections, which look at the rest.
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;
};

}  // namespace weir::net
