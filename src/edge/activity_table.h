// The busiest customers of the cluster, out of what each edge tells of itself once a second.
//
// An estimate: a customer that is not among the first of some edge lacks that edge's share. Thread
// rule: any thread; the mutex is there because peers are heard on an actor's thread while people
// ask on another, and is held for a look through at most kMaxEdgesHeard short lists.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/time.h"
#include "src/model/activity.h"

namespace weir::edge {

/// An edge that has told nothing for this long no longer counts.
inline constexpr Nanos kActivityLifeNs = 3 * kSecond;
/// Most edges that are added up. What a further one tells is left out.
inline constexpr std::size_t kMaxEdgesHeard = 1000;

/// The `most` first by checks, or by denials, those without any left out; ties by name.
std::vector<CustomerActivity> most_checked(std::vector<CustomerActivity> all, std::size_t most);
std::vector<CustomerActivity> most_denied(std::vector<CustomerActivity> all, std::size_t most);
/// Whoever is in one of the two lists.
std::vector<CustomerActivity> most_active(const std::vector<CustomerActivity>& all,
                                          std::size_t most);

class ActivityTable {
 public:
  /// In place of what that node told before.
  void hear(const std::string& node, ActivityReport report, Nanos now_ns);

  struct Top {
    std::size_t edges = 0;                  ///< heard lately
    std::vector<CustomerActivity> busiest;  ///< at most kMostListed, summed over the edges
    std::vector<CustomerActivity> denied;
  };
  Top top(Nanos now_ns) const;

 private:
  struct Heard {
    Nanos at_ns = 0;
    ActivityReport report;
  };
  static bool lives(const Heard& heard, Nanos now_ns) {
    return now_ns - heard.at_ns < kActivityLifeNs;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Heard> heard_;  ///< by node
};

}  // namespace weir::edge
