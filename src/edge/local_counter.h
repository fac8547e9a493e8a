// What an edge counts by itself: a bucket of scope node, and the static share of a leased one
// (PROTOCOL I3), by whichever algorithm the limit has. Internal to src/edge; its holder's lock
// guards it.
#pragma once

#include <memory>
#include <variant>

#include "src/base/time.h"
#include "src/edge/estimate.h"
#include "src/limit/calendar.h"
#include "src/limit/fixed_window.h"
#include "src/limit/sliding_window.h"
#include "src/limit/token_bucket.h"
#include "src/model/limit.h"

namespace weir::edge {

class LocalCounter {
 public:
  /// `wall_ns` is read by calendar windows alone.
  struct Now {
    Nanos boot_ns = 0;
    Nanos wall_ns = 0;
  };
  using Outcome = limit::TokenBucket::Outcome;

  /// A new token bucket, full; `keep` makes it what the limit says.
  LocalCounter(const LimitNumbers& numbers, Nanos now_ns)
      : state_(limit::TokenBucket(numbers, now_ns)) {}

  /// Follows the policy and the calendar: call it before the others. What has been spent stays
  /// spent when the limit changes its algorithm, and a calendar window once begun counts until its
  /// end (PROTOCOL H1). `calendar` may be null for the algorithms that have none; a fixed window
  /// without one (a zone that this machine does not know) never begins and admits its quota once.
  void keep(Algorithm algorithm, const LimitNumbers& numbers, const limit::Calendar* calendar,
            Now now);

  Outcome take(std::int64_t cost, Now now);
  Outcome peek(std::int64_t cost, Now now) const;
  void give_back(std::int64_t tokens, Now now);
  Estimate about(Now now) const;
  /// Until forgetting it loses nothing; 0: now.
  Nanos time_to_idle(Now now) const;

 private:
  using State = std::variant<limit::TokenBucket, limit::FixedWindow, limit::SlidingWindow>;

  void change(Algorithm algorithm, const LimitNumbers& numbers, Now now);

  State state_;
  std::unique_ptr<limit::FixedWindow> left_;  ///< the window that another algorithm took over from;
                                              ///< it counts on
};

}  // namespace weir::edge
