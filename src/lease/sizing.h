// How much to ask for and how much to give (PROTOCOL G1, G2). Pure arithmetic on integers.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/time.h"

namespace weir::lease {

/// Max-min fair shares of `amount` over `wants` (Bertsekas, Gallager: "Data Networks", 6.5.2):
/// nobody gets more than it wants, what one leaves goes to the others, and overstating a want takes
/// nothing from whoever is below the fair share. The sum is min(amount, sum of wants); odd tokens
/// go to the first. A claim of weight n has the share of n.
struct Claim {
  std::int64_t want = 0;
  std::int64_t weight = 1;
};
std::vector<std::int64_t> max_min_shares(std::int64_t amount, const std::vector<Claim>& claims);

/// Demand for one bucket at one edge: tokens asked for per second, admitted or not, over whole
/// windows of kDemandWindowNs. Until demand has lasted kColdWindows it counts as none, so that a
/// cold key is granted need by need: a burst leaves no tokens at an edge that nobody asks for any
/// more.
class DemandMeter {
 public:
  static constexpr Nanos kDemandWindowNs = 250 * kMillisecond;
  static constexpr int kColdWindows = 3;
  /// After so many windows without demand a key is cold again.
  static constexpr int kForgottenWindows = 16;

  void add(std::int64_t tokens, Nanos now_ns);
  /// Tokens per second, a mean that halves its memory with each window.
  std::int64_t rate_per_s(Nanos now_ns) const;

 private:
  void roll(Nanos now_ns);

  std::int64_t rate_per_s_ = 0;
  std::int64_t in_window_ = 0;
  Nanos window_start_ns_ = 0;
  std::int16_t warm_windows_ = 0;  ///< since demand began
};

/// How far ahead a lessee asks (G1): as long as 250 tokens last, within 250 ms and TTL / 4, and at
/// least three round trips.
Nanos horizon_ns(std::int64_t rate_per_s, Nanos round_trip_ns, Nanos ttl_ns);

/// So long after its last use a bucket is idle at a lessee and goes back (E9): the longest horizon
/// twice, and a margin in which a parked request has ended.
Nanos idle_after_ns(Nanos ttl_ns);

/// rate x span, rounded down, saturating.
std::int64_t tokens_in(std::int64_t rate_per_s, Nanos span_ns);

}  // namespace weir::lease
