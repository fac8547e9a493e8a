// Counts what becomes of lease requests, one count for each bucket asked for: the first answer to
// a request is its result; pushes and repeated answers are none. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "src/base/time.h"
#include "src/model/lease.h"

namespace weir::actors {

/// A request without an answer for this long, or with a later one by the same lessee, counts as
/// unanswered.
inline constexpr Nanos kUnansweredNs = 10 * kSecond;

class RequestTally {
 public:
  void sent(const LeaseRequest& request, Nanos now_ns);
  /// The result of a request, or nothing: the answer is to none that waits.
  std::optional<LeaseStatus> answered(const LeaseAnswer& answer);
  /// Requests found unanswered since the last call.
  std::uint64_t take_unanswered(Nanos now_ns);

 private:
  /// By the holder's incarnation, which is random: the sequence that has no answer yet.
  using Waiting = std::unordered_map<std::uint64_t, std::uint64_t>;

  void forget_older(Nanos now_ns);

  // Two generations, so that forgetting needs no list in order of time.
  Waiting recent_;
  Waiting older_;
  Nanos turned_ns_ = 0;
  std::uint64_t unanswered_ = 0;
};

}  // namespace weir::actors
