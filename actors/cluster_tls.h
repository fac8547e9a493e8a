// Mutual TLS on the cluster port, by caf_openssl, which knows certificates only as files that it
// reads at every connection. Handshakes are finished, with a deadline, on threads of their own
// before CAF gets a connection: CAF itself would wait for a silent peer for ever and spin
// meanwhile.
#pragma once

#include <caf/actor_system.hpp>
#include <caf/io/scribe.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/topology.h"
#include "src/telemetry/log.h"

namespace weir::actors {

/// How long a peer may take for TLS once the connection stands.
inline constexpr Nanos kTlsHandshakeNs = 2 * kSecond;
/// Peers that shake hands at a time; a further one is closed, with a line in the log, and comes
/// again.
inline constexpr int kMaxTlsHandshakes = 64;
/// A peer that stays refused is logged once in so long.
inline constexpr Nanos kRefusalLineNs = kMinute;
/// Lines that are remembered for so long; with more, further ones are left out: anybody can cause
/// them.
inline constexpr std::size_t kMaxRefusedPeers = 1024;

/// Log lines on peers with which no connection comes about. Thread-safe.
class RefusalLog {
 public:
  /// Both outlive it.
  RefusalLog(const Clock& clock, telemetry::Log& log) : clock_(clock), log_(log) {}
  void say(const std::string& peer, const std::string& reason);
  const Clock& clock() const { return clock_; }

 private:
  const Clock& clock_;
  telemetry::Log& log_;
  // Handshakes run on threads of their own.
  std::mutex mutex_;
  std::map<std::string, Nanos> quiet_until_ns_;
};
using SharedRefusals = std::shared_ptr<RefusalLog>;

/// A connected socket as CAF takes it, after TLS with the node behind it; blocks for at most
/// kTlsHandshakeNs. Null, with a line in the log, when that fails. The socket is consumed.
caf::io::scribe_ptr shake_hands_with(caf::actor_system& system, int socket, const std::string& peer,
                                     const SharedRefusals& refusals);

/// Publishes `gateway` on `listen` as CAF does, but behind TLS; gives the port.
Result<std::uint16_t> publish_with_tls(caf::actor_system& system, const caf::actor& basp,
                                       const caf::strong_actor_ptr& gateway,
                                       std::set<std::string> signatures, const Endpoint& listen,
                                       const SharedRefusals& refusals);

}  // namespace weir::actors
