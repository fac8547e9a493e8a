#include "actors/cluster_tls.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <caf/all.hpp>
#include <caf/io/all.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/doorman_impl.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/openssl/session.hpp>
#include <exception>
#include <utility>

namespace weir::actors {
namespace {

namespace network = caf::io::network;

constexpr const char* kCutOff = "it closed the connection during the handshake";

/// The first reason in this thread's queue of OpenSSL, which is emptied, or `otherwise`.
std::string take_reason(const char* otherwise) {
  std::string reason;
  while (const unsigned long code = ERR_get_error()) {
    const bool plain =
        ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER;
    if (plain) reason = "it speaks no TLS";
    const char* text = reason.empty() ? ERR_reason_error_string(code) : nullptr;
    if (text != nullptr) reason = text;
  }
  return reason.empty() ? otherwise : reason;
}

/// caf_openssl leaves errors in the thread's queue, where the next connection would take them for
/// its own: each step begins with an empty one.
class Secured {
 public:
  Secured(caf::openssl::session_ptr session, std::string peer, SharedRefusals refusals)
      : session_(std::move(session)), peer_(std::move(peer)), refusals_(std::move(refusals)) {}

  network::rw_state read_some(std::size_t& result, int socket, void* buffer, std::size_t size) {
    ERR_clear_error();
    const auto state = session_->read_some(result, socket, buffer, size);
    // With TLS 1.3 the accepting side's verdict comes after our own handshake is done.
    if (state == network::rw_state::failure && !heard_) {
      refusals_->say(peer_, take_reason("it closed the connection before it said anything"));
    }
    heard_ = heard_ || result > 0;
    return state;
  }
  network::rw_state write_some(std::size_t& result, int socket, const void* buffer,
                               std::size_t size) {
    ERR_clear_error();
    return session_->write_some(result, socket, buffer, size);
  }
  bool must_read_more(int socket, std::size_t threshold) {
    return session_->must_read_more(socket, threshold);
  }

 private:
  caf::openssl::session_ptr session_;
  std::string peer_;
  SharedRefusals refusals_;
  bool heard_ = false;
};

/// CAF's own scribe over TLS is not in its headers; this one gets what has shaken hands.
class SecuredScribe final : public caf::io::scribe {
 public:
  SecuredScribe(network::default_multiplexer& multiplexer, int socket, Secured secured)
      : scribe(network::conn_hdl_from_socket(socket)),
        stream_(multiplexer, socket, std::move(secured)) {}

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (std::exchange(launched_, true)) return;
    stream_.start(this);
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override { stream_.flush(this); }
  std::string addr() const override {
    auto address = network::remote_addr_of_fd(stream_.fd());
    return address ? *address : std::string();
  }
  std::uint16_t port() const override {
    auto port = network::remote_port_of_fd(stream_.fd());
    return port ? *port : std::uint16_t{0};
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

 private:
  bool launched_ = false;
  network::stream_impl<Secured> stream_;
};

std::string address_of(int socket) {
  const auto address = network::remote_addr_of_fd(socket);
  return address ? *address : "unknown";
}

network::default_multiplexer& multiplexer_of(caf::actor_system& system) {
  return static_cast<network::default_multiplexer&>(system.middleman().backend());
}

/// Reads the certificates; null and why when they or the handshake's first step are bad.
caf::openssl::session_ptr begin_session(caf::actor_system& system, int socket, bool accepted,
                                        std::string& why) {
  // CAF reads three files one by one: those of two editions when a reload comes between. Again,
  // then.
  for (int attempt = 0; attempt < 2; ++attempt) {
    ERR_clear_error();
    try {
      auto session = caf::openssl::make_session(system, socket, accepted);
      why = session == nullptr ? take_reason(kCutOff) : "";
      return session;
    } catch (const std::exception& problem) {
      why = std::string("this node's certificates cannot be used: ") + problem.what();
    }
  }
  return nullptr;
}

/// Blocks until the session on `socket` is secured; else null and why.
caf::openssl::session_ptr shake_hands(caf::actor_system& system, int socket, bool accepted,
                                      const Clock& clock, std::string& why) {
  const Nanos deadline_ns = clock.boot_ns() + kTlsHandshakeNs;
  auto session = begin_session(system, socket, accepted, why);
  bool silent = true;
  while (session != nullptr) {
    // Goes on with the handshake, and reads nothing: `indeterminate` once there is no more to do.
    std::size_t none = 0;
    ERR_clear_error();
    const auto state = session->read_some(none, socket, nullptr, 0);
    if (state == network::rw_state::indeterminate) return session;
    if (state == network::rw_state::failure) break;
    const Nanos left_ns = deadline_ns - clock.boot_ns();
    pollfd readable{socket, POLLIN, 0};
    if (left_ns <= 0 || poll(&readable, 1, static_cast<int>(left_ns / kMillisecond) + 1) == 0) {
      why = accepted && silent ? "it said nothing within 2 s" : "no TLS handshake within 2 s";
      return nullptr;
    }
    silent = false;
  }
  if (why.empty()) why = take_reason(kCutOff);
  return nullptr;
}

caf::io::scribe_ptr secure(caf::actor_system& system, int socket, bool accepted,
                           const std::string& peer, const SharedRefusals& refusals) {
  std::string why;
  auto session = shake_hands(system, socket, accepted, refusals->clock(), why);
  if (session == nullptr) {
    close(socket);
    refusals->say(peer, why);
    return nullptr;
  }
  return caf::make_counted<SecuredScribe>(multiplexer_of(system), socket,
                                          Secured(std::move(session), peer, refusals));
}

/// Lets handshakes end elsewhere before CAF hears of a connection.
class SecuredDoorman final : public network::doorman_impl {
 public:
  SecuredDoorman(caf::actor_system& system, int socket, SharedRefusals refusals)
      : network::doorman_impl(multiplexer_of(system), socket),
        system_(system),
        refusals_(std::move(refusals)) {}

  bool new_connection() override {
    if (detached()) return false;
    const int socket = acceptor_.accepted_socket();
    if (under_way_.load() >= kMaxTlsHandshakes) {
      refusals_->say(address_of(socket), "too many peers shake hands at a time");
      close(socket);
      return true;
    }
    network::nonblocking(socket, true);
    under_way_.fetch_add(1);
    const caf::intrusive_ptr<SecuredDoorman> self(this);
    system_.spawn<caf::detached>(
        [](caf::event_based_actor*, const caf::intrusive_ptr<SecuredDoorman>& self_pointer,
           int accepted) { self_pointer->shake_hands_on(accepted); },
        self, socket);
    return true;
  }

 private:
  /// On a thread of its own.
  void shake_hands_on(int socket) {
    const auto scribe = secure(system_, socket, true, address_of(socket), refusals_);
    under_way_.fetch_sub(1);
    if (scribe == nullptr) return;
    const caf::intrusive_ptr<SecuredDoorman> self(this);
    system_.middleman().run_later([self, scribe] { self->hand_over(scribe); });
  }
  void hand_over(const caf::io::scribe_ptr& scribe) {
    if (detached()) return;
    auto& multiplexer = acceptor_.backend();
    const auto handle = scribe->hdl();
    parent()->add_scribe(scribe);
    doorman::new_connection(&multiplexer, handle);
  }

  caf::actor_system& system_;
  const SharedRefusals refusals_;
  std::atomic<int> under_way_{0};
};

}  // namespace

void RefusalLog::say(const std::string& peer, const std::string& reason) {
  const Nanos now_ns = clock_.boot_ns();
  {
    const std::lock_guard lock(mutex_);
    const std::string key = peer + ": " + reason;
    const auto found = quiet_until_ns_.find(key);
    if (found != quiet_until_ns_.end() && now_ns < found->second) return;
    if (quiet_until_ns_.size() >= kMaxRefusedPeers) {
      std::erase_if(quiet_until_ns_, [&](const auto& each) { return each.second <= now_ns; });
      if (quiet_until_ns_.size() >= kMaxRefusedPeers) return;
    }
    quiet_until_ns_[key] = now_ns + kRefusalLineNs;
  }
  log_.warn("no connection with a peer", {{"peer", peer}, {"reason", reason}});
}

caf::io::scribe_ptr shake_hands_with(caf::actor_system& system, int socket, const std::string& peer,
                                     const SharedRefusals& refusals) {
  return secure(system, socket, false, peer, refusals);
}

Result<std::uint16_t> publish_with_tls(caf::actor_system& system, const caf::actor& basp,
                                       const caf::strong_actor_ptr& gateway,
                                       std::set<std::string> signatures, const Endpoint& listen,
                                       const SharedRefusals& refusals) {
  const auto socket = network::new_tcp_acceptor_impl(listen.port, listen.host.c_str(), true);
  if (!socket) return failure(ErrorCode::io, "", system.render(socket.error()));
  caf::io::doorman_ptr doorman = caf::make_counted<SecuredDoorman>(system, *socket, refusals);
  const std::uint16_t port = doorman->port();
  caf::anon_send(basp, caf::publish_atom::value, std::move(doorman), port, gateway,
                 std::move(signatures));
  return port;
}

}  // namespace weir::actors
