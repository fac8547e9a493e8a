// The simulated network: frames between named nodes, with loss, delay, duplication, reordering and
// cuts for each direction.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "test/sim/world.h"

namespace weir::sim {

struct Weather {
  unsigned loss_permille = 0;
  unsigned duplicate_permille = 0;
  Nanos delay_ns = 300 * kMicrosecond;  ///< one way, within a region
  Nanos jitter_ns = 200 * kMicrosecond;
  unsigned straggler_permille = 0;  ///< frames that take much longer
  Nanos straggler_ns = 300 * kMillisecond;
  Nanos between_regions_ns = 0;  ///< added one way between regions
};

class Network {
 public:
  explicit Network(World& world) : world_(world) {}

  Weather weather;
  /// Names the region of a node.
  void place(const std::string& node, const std::string& region) { regions_[node] = region; }
  /// Stops frames in one direction.
  void cut(const std::string& from, const std::string& to) { cuts_.emplace(from, to); }
  void cut_off(const std::string& node);
  void heal() { cuts_.clear(); }
  void join_again(const std::string& node) { off_.erase(node); }
  bool is_cut(const std::string& from, const std::string& to) const;

  /// `deliver` runs zero, one or more times, later.
  void send(const std::string& from, const std::string& to, std::function<void()> deliver);

 private:
  Nanos delay(const std::string& from, const std::string& to);

  World& world_;
  std::map<std::string, std::string> regions_;
  std::set<std::pair<std::string, std::string>> cuts_;
  std::set<std::string> off_;
};

}  // namespace weir::sim
