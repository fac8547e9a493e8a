#include "src/cli/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace weir::cli {
namespace {

/// Linux gives 32768 and above to outgoing connections by default.
constexpr std::uint16_t kLowestPort = 15'000;
constexpr std::uint16_t kHighestPort = 32'000;
constexpr int kMostTries = 1000;

}  // namespace

Result<PortReservation> PortReservation::exactly(std::uint16_t port) {
  return reserve(port, false);
}

Result<PortReservation> PortReservation::again(std::uint16_t port) { return reserve(port, true); }

Result<PortReservation> PortReservation::reserve(std::uint16_t port, bool shared) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return failure(ErrorCode::io, "", "cannot make a socket");
  PortReservation reservation(fd, port);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Bound without SO_REUSEADDR it fails when anyone has the port, be it a connection that ended a
  // minute ago; with it, only when somebody listens. Shared from then on.
  const int before = shared ? 1 : 0;
  const int yes = 1;
  if (::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &before, sizeof before) != 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0) {
    return failure(ErrorCode::unavailable, "", "port " + std::to_string(port) + " is taken");
  }
  return reservation;
}

Result<PortReservation> PortReservation::any(Random& random) {
  for (int i = 0; i < kMostTries; ++i) {
    auto tried = exactly(static_cast<std::uint16_t>(random.between(kLowestPort, kHighestPort)));
    if (tried) return tried;
  }
  return failure(ErrorCode::unavailable, "", "no free port on 127.0.0.1");
}

PortReservation::PortReservation(PortReservation&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

PortReservation& PortReservation::operator=(PortReservation&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(port_, other.port_);
  return *this;
}

PortReservation::~PortReservation() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace weir::cli
