#include "src/net/http_session.h"

#include <exception>

namespace weir::net {

HttpSession::HttpSession(RequestHandler& handler, Late& late, const HttpDeadlines& deadlines,
                         const std::string& date, Nanos now_ns)
    : handler_(handler),
      late_(late),
      deadlines_(deadlines),
      date_(date),
      parser_(handler),
      deadline_ns_(add_saturating(now_ns, deadlines.idle_ns)) {}

bool HttpSession::wants_input() const {
  return phase_ != Phase::deciding && phase_ != Phase::finished && output_.size() < kMaxOutputBytes;
}

void HttpSession::receive(std::string_view bytes, Nanos now_ns) {
  if (phase_ == Phase::finished) return;
  if (pending_.empty()) {
    bytes.remove_prefix(process(bytes, now_ns));
    if (phase_ != Phase::finished) pending_ = bytes;
    return;
  }
  pending_ += bytes;
  resume(now_ns);
}

void HttpSession::resume(Nanos now_ns) {
  pending_.erase(0, process(pending_, now_ns));
  if (pending_.empty() || phase_ == Phase::finished) pending_ = std::string();
}

void HttpSession::receive_end() {
  // While an answer is owed nothing is read, so this is the end between requests or inside one.
  if (phase_ != Phase::deciding) phase_ = Phase::finished;
}

void HttpSession::complete(std::uint64_t ticket, const HttpResponse& response, Nanos now_ns) {
  if (phase_ != Phase::deciding || ticket != ticket_) return;
  answer(response, now_ns);
  resume(now_ns);
}

void HttpSession::expire(Nanos now_ns) {
  if (now_ns < deadline_ns_) return;
  if (phase_ == Phase::head || phase_ == Phase::body) {
    refuse(408, {ErrorCode::unavailable, "", "the request took too long to arrive"});
  } else if (phase_ == Phase::idle) {
    phase_ = Phase::finished;
  }
}

std::size_t HttpSession::process(std::string_view bytes, Nanos now_ns) {
  std::size_t taken = 0;
  while (taken < bytes.size() && wants_input()) {
    if (phase_ == Phase::idle) {
      phase_ = Phase::head;
      deadline_ns_ = add_saturating(now_ns, deadlines_.head_ns);
      parser_.reset();
    }
    taken += parser_.feed(bytes.substr(taken));
    if (!advance(bytes.size() - taken, now_ns)) break;
  }
  return taken;
}

bool HttpSession::advance(std::size_t unparsed, Nanos now_ns) {
  switch (parser_.state()) {
    case RequestParser::State::failed:
      refuse(parser_.error_status(), parser_.error());
      return false;
    case RequestParser::State::done:
      dispatch(now_ns);
      return true;
    case RequestParser::State::body:
      if (phase_ == Phase::head) {
        phase_ = Phase::body;
        deadline_ns_ = add_saturating(now_ns, deadlines_.body_ns);
        if (parser_.expects_continue()) output_ += "HTTP/1.1 100 Continue\r\n\r\n";
      }
      break;
    case RequestParser::State::head:
      break;
  }
  if (unparsed > kMaxUnparsedBytes) {
    refuse(400, {ErrorCode::too_large, "", "a chunk's header or a trailer is too long"});
  }
  return false;
}

void HttpSession::dispatch(Nanos now_ns) {
  response_.clear();
  ++ticket_;
  phase_ = Phase::deciding;
  deadline_ns_ = kForever;
  try {
    if (handler_.handle(parser_.request(), response_, *this)) answer(response_, now_ns);
  } catch (const std::exception& problem) {
    refuse(500, {ErrorCode::io, "", std::string("internal error: ") + problem.what()});
  }
}

RequestHandler::Later HttpSession::defer() { return late_.make_later(ticket_); }

void HttpSession::answer(const HttpResponse& response, Nanos now_ns) {
  const bool keep_alive = parser_.keep_alive() && !draining_;
  const bool with_body = parser_.method() != Method::head;
  append_response(response, with_body, keep_alive, parser_.http_1_0(), date_, output_);
  phase_ = keep_alive ? Phase::idle : Phase::finished;
  deadline_ns_ = add_saturating(now_ns, deadlines_.idle_ns);
}

void HttpSession::refuse(int status, const Error& error) {
  response_.clear();
  handler_.refuse(parser_.request(), status, error, response_);
  append_response(response_, parser_.method() != Method::head, false, false, date_, output_);
  phase_ = Phase::finished;
}

}  // namespace weir::net
