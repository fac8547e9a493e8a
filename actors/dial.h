// Opens a TCP connection within a bound, which neither CAF nor a plain connect(2) has: a peer
// behind a partition would otherwise hold its thread for minutes.
#pragma once

#include "src/base/time.h"
#include "src/model/topology.h"

namespace weir::actors {

/// How long one address may take to answer.
inline constexpr Nanos kConnectTimeNs = 500 * kMillisecond;

/// Blocks until connected or given up, one `kConnectTimeNs` per address of the host. The descriptor
/// of a connected, non-blocking socket, which the caller owns, or -1.
int dial_endpoint(const Endpoint& endpoint);

}  // namespace weir::actors
