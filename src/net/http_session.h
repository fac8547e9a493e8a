// One connection's side of HTTP/1, without the connection: bytes go in, bytes come out, time is an
// argument. Requests are answered one after the other in their order; while one waits for its
// answer, nothing more is read, so a client that pipelines without end is held back by TCP. Owned
// and called by one I/O thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/time.h"
#include "src/net/http_message.h"
#include "src/net/request_parser.h"

namespace weir::net {

/// How long a client may take. Past each, the connection is closed, with 408 when a request had
/// begun.
struct HttpDeadlines {
  Nanos idle_ns = 75 * kSecond;   ///< between two requests, and before the first
  Nanos head_ns = 10 * kSecond;   ///< from a request's first byte to the end of its headers
  Nanos body_ns = 30 * kSecond;   ///< from there to the end of its body
  Nanos write_ns = 30 * kSecond;  ///< for an answer to be taken
  Nanos linger_ns = 2 * kSecond;  ///< for the client to close after the last answer
};

/// Answers of pipelined requests that are collected before they are written out.
inline constexpr std::size_t kMaxOutputBytes = 64 * 1024;
/// A chunk's header line or a trailer may be this long. Longer is refused with 400.
inline constexpr std::size_t kMaxUnparsedBytes = kMaxHeadBytes;

class HttpSession final : private RequestHandler::Deferral {
 public:
  /// Where late answers come from: makes the Later that ends in `complete(ticket, ...)`.
  class Late {
   public:
    virtual ~Late() = default;
    virtual RequestHandler::Later make_later(std::uint64_t ticket) = 0;
  };

  /// All must outlive the session. `date` is the current HTTP date.
  HttpSession(RequestHandler& handler, Late& late, const HttpDeadlines& deadlines,
              const std::string& date, Nanos now_ns);

  /// Takes bytes from the client; may be called while `wants_input`.
  void receive(std::string_view bytes, Nanos now_ns);
  /// The client has closed its sending side.
  void receive_end();
  /// Goes on with requests that have been received, after `output` was written out.
  void resume(Nanos now_ns);
  /// The answer that was deferred under `ticket`; an unknown ticket is ignored.
  void complete(std::uint64_t ticket, const HttpResponse& response, Nanos now_ns);
  /// Acts on the deadline when it has passed.
  void expire(Nanos now_ns);
  /// From now on answers close the connection.
  void begin_drain() { draining_ = true; }

  /// Bytes for the client; the caller writes them out and clears them.
  std::string& output() { return output_; }
  bool wants_input() const;
  /// Nothing more comes after `output`.
  bool finished() const { return phase_ == Phase::finished; }
  /// No request has begun.
  bool idle() const { return phase_ == Phase::idle; }

 private:
  enum class Phase { idle, head, body, deciding, finished };

  RequestHandler::Later defer() override;
  /// Takes requests from the front of `bytes` and says how much it took.
  std::size_t process(std::string_view bytes, Nanos now_ns);
  /// Looks at what the parser has got; false when it needs more bytes or is not to go on.
  bool advance(std::size_t unparsed, Nanos now_ns);
  void dispatch(Nanos now_ns);
  void answer(const HttpResponse& response, Nanos now_ns);
  void refuse(int status, const Error& error);

  RequestHandler& handler_;
  Late& late_;
  const HttpDeadlines& deadlines_;
  const std::string& date_;
  RequestParser parser_;
  HttpResponse response_;
  std::string pending_;  ///< received, not parsed
  std::string output_;
  Phase phase_ = Phase::idle;
  Nanos deadline_ns_ = kForever;
  std::uint64_t ticket_ = 0;
  bool draining_ = false;
};

}  // namespace weir::net
