#include "actors/dial.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace weir::actors {
namespace {

bool connected_in_time(int socket, const addrinfo& address) {
  if (connect(socket, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd waiting{socket, POLLOUT, 0};
  if (poll(&waiting, 1, static_cast<int>(kConnectTimeNs / kMillisecond)) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

/// A TCP connection may meet itself when it dials a free port of its own host.
bool is_own_end(int socket) {
  sockaddr_storage here{};
  sockaddr_storage there{};
  socklen_t here_size = sizeof here;
  socklen_t there_size = sizeof there;
  auto* here_address = reinterpret_cast<sockaddr*>(&here);
  auto* there_address = reinterpret_cast<sockaddr*>(&there);
  if (getsockname(socket, here_address, &here_size) != 0) return true;
  if (getpeername(socket, there_address, &there_size) != 0) return true;
  return std::string_view(reinterpret_cast<char*>(&here), here_size) ==
         std::string_view(reinterpret_cast<char*>(&there), there_size);
}

int dial_address(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  if (!connected_in_time(socket, address) || is_own_end(socket)) {
    close(socket);
    return -1;
  }
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

}  // namespace

int dial_endpoint(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* addresses = nullptr;
  const std::string port = std::to_string(endpoint.port);
  if (getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &addresses) != 0) return -1;
  int socket = -1;
  for (const addrinfo* next = addresses; next != nullptr && socket < 0; next = next->ai_next) {
    socket = dial_address(*next);
  }
  freeaddrinfo(addresses);
  return socket;
}

}  // namespace weir::actors
