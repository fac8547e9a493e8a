// Free TCP ports on loopback that stay ours while processes on them come and go. Linux.
#pragma once

#include <cstdint>

#include "src/base/random.h"
#include "src/base/result.h"

namespace weir::cli {

/// Holds a port on 127.0.0.1: bound, never listening. Whoever listens with SO_REUSEADDR (as servers
/// do) can; other reservations cannot have it, and the kernel gives it to no outgoing connection.
class PortReservation {
 public:
  /// A free port below the range that the kernel uses for outgoing connections.
  static Result<PortReservation> any(Random& random);
  /// This very port; fails when it is taken.
  static Result<PortReservation> exactly(std::uint16_t port);
  /// A port of an earlier run, whose closed connections the kernel may still remember; fails when
  /// somebody listens on it.
  static Result<PortReservation> again(std::uint16_t port);

  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&& other) noexcept;
  ~PortReservation();

  std::uint16_t port() const { return port_; }

 private:
  static Result<PortReservation> reserve(std::uint16_t port, bool shared);
  PortReservation(int fd, std::uint16_t port) : fd_(fd), port_(port) {}
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace weir::cli
