// The wall clocks of a register's replicas (PROTOCOL H1).

#include <algorithm>
#include <functional>

#include "src/ownership/host.h"

namespace weir::ownership {

Instant Host::instant(const RegisterId& reg, Nanos now_ns) const {
  const Seat* at = seat(reg);
  if (at == nullptr || !wall_ahead_ns_) return {now_ns, 0, 0};
  Nanos trusted_ahead_ns = kForever;
  for (const auto& set : at->quorums().sets) {
    std::vector<Nanos> told;
    for (const std::string& node : set) {
      const auto peer = peers_.find(node);
      if (node == config_.self) {
        told.push_back(*wall_ahead_ns_);
      } else if (peer != peers_.end() && peer->second.wall_ahead_ns) {
        told.push_back(*peer->second.wall_ahead_ns);
      }
    }
    const std::size_t majority = set.size() / 2 + 1;
    if (told.size() < majority) return {now_ns, 0, 0};
    std::sort(told.begin(), told.end(), std::greater<>());
    trusted_ahead_ns = std::min(trusted_ahead_ns, told[majority - 1]);
  }
  return {now_ns, now_ns + *wall_ahead_ns_, now_ns + trusted_ahead_ns};
}

}  // namespace weir::ownership
