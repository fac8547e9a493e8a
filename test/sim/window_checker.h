// The judge of windows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "test/sim/checkers.h"

namespace weir::sim {

/// bound, for windows: in every span of true time that lies within n calendar minutes and further
/// than the clocks' error from their outer ends, at most n quotas are admitted; and a sliding
/// window of one edge never counts more than its size in one of its own periods.
class WindowChecker final : public Checker {
 public:
  /// `error_ns`: how far from the end of a window what it gave may still be spent, or what the next
  /// one gives already.
  explicit WindowChecker(Nanos error_ns) : Checker("bound"), error_ns_(error_ns) {}

  /// `wall_ns` is the true time of day. The minute holds under the definition of an hour, too.
  void admitted(const std::string& bucket, std::int64_t quota, std::int64_t cost, Nanos wall_ns,
                Nanos true_ns);
  void given_back(const std::string& bucket, std::int64_t quota, std::int64_t tokens,
                  Nanos wall_ns);
  /// At the edge's own process and clock `where`.
  void slid(const std::string& where, std::int64_t size, std::int64_t cost, std::int64_t period,
            Nanos true_ns);
  std::int64_t admitted_tokens(const std::string& bucket) const;

 private:
  /// Positions in order: 2k is the time around the start of minute k, 2k + 1 its middle.
  struct Count {
    std::int64_t position = 0;
    std::int64_t counted = 0;  ///< beyond what the minutes before the ending one may have given
    std::int64_t quota = 0;    ///< the largest in force in this minute
    std::int64_t ending = 0;   ///< and in the one that ends, around its end
  };
  Count& move(const std::string& bucket, std::int64_t quota, Nanos wall_ns);

  Nanos error_ns_;
  std::map<std::string, Count> counts_;
  std::map<std::string, std::int64_t> totals_;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> slid_;  ///< period, count
};

}  // namespace weir::sim
