#include "test/sim/network.h"

namespace weir::sim {

void Network::cut_off(const std::string& node) { off_.insert(node); }

bool Network::is_cut(const std::string& from, const std::string& to) const {
  return off_.contains(from) || off_.contains(to) || cuts_.contains({from, to});
}

Nanos Network::delay(const std::string& from, const std::string& to) {
  Nanos delay_ns = weather.delay_ns + world_.random.between(0, weather.jitter_ns);
  if (regions_[from] != regions_[to]) delay_ns += weather.between_regions_ns;
  if (world_.random.chance(weather.straggler_permille)) {
    delay_ns += world_.random.between(0, weather.straggler_ns);
  }
  return delay_ns;
}

void Network::send(const std::string& from, const std::string& to, std::function<void()> deliver) {
  const int copies = world_.random.chance(weather.duplicate_permille) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (is_cut(from, to) || world_.random.chance(weather.loss_permille)) continue;
    world_.after(delay(from, to), deliver);
  }
}

}  // namespace weir::sim
