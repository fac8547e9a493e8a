// Goal: a reserved port is ours: no second reservation gets it, and a server can still listen.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "src/cli/ports.h"

namespace weir::cli {
namespace {

/// Listens as servers do; false when the port is refused.
bool can_listen(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool listens =
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(fd, 1) == 0;
  ::close(fd);
  return listens;
}

TEST(Ports, AReservedPortIsNotGivenTwiceAndCanBeListenedOn) {
  Random random(7);
  std::optional<PortReservation> first(*PortReservation::any(random));
  const std::uint16_t port = first->port();
  EXPECT_FALSE(PortReservation::exactly(port));
  EXPECT_TRUE(can_listen(port));
  EXPECT_TRUE(can_listen(port)) << "a server that comes back finds its port";
  first.reset();
  EXPECT_TRUE(PortReservation::exactly(port));
}

TEST(Ports, TheSameSeedGoesOnToFreePorts) {
  Random one(3);
  Random same(3);
  const auto first = PortReservation::any(one);
  const auto second = PortReservation::any(same);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->port(), second->port());
}

TEST(Ports, AMovedReservationHoldsItsPort) {
  Random random(11);
  auto first = *PortReservation::any(random);
  const std::uint16_t port = first.port();
  auto moved = std::move(first);
  EXPECT_EQ(moved.port(), port);
  EXPECT_FALSE(PortReservation::exactly(port));
}

}  // namespace
}  // namespace weir::cli
