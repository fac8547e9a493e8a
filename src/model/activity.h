// How busy customers are at an edge. For people who look, never for a decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// Most customers of a list: of those with most checks, and of those with most denials.
inline constexpr std::size_t kMostListed = 20;
/// Most customers that one edge tells: both lists, when they share nobody. The rest is not told.
inline constexpr std::size_t kMostTold = 2 * kMostListed;

/// Checks decided per second, and how many of them were denied; rounded up, so that whoever is
/// named has at least one.
struct CustomerActivity {
  std::string customer;
  std::int64_t checks_per_s = 0;
  std::int64_t denied_per_s = 0;

  friend bool operator==(const CustomerActivity&, const CustomerActivity&) = default;
};

/// What one edge has decided in about the last second, at most kMostTold customers.
struct ActivityReport {
  std::vector<CustomerActivity> customers;

  friend bool operator==(const ActivityReport&, const ActivityReport&) = default;
};

}  // namespace weir
