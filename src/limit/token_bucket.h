// Token bucket arithmetic, exact: whole tokens and a fraction in units of 1 / rate_period_ns, so
// that one nanosecond adds exactly rate_count units and no call rate makes it drift. Products are
// taken in 128 bits and held at the ends of the range; nothing wraps for any capacity up to 2^63 -
// 1, any period from 1 ms to 1 year, and any idle time.
//
// All of it is total: numbers that do not refill (a rate of 0), a level out of its range or a
// negative amount give an answer that never adds a token. Values: whoever holds one guards it.
#pragma once

#include <cstdint>

#include "src/base/time.h"
#include "src/model/limit.h"

namespace weir::limit {

/// An amount of tokens, >= 0. `fraction` < the rate_period_ns that it is counted in. Out of range
/// it counts as the nearest amount within.
struct Level {
  std::int64_t tokens = 0;
  std::uint64_t fraction = 0;

  friend auto operator<=>(const Level&, const Level&) = default;
};

/// What `level` becomes after `elapsed_ns` (negative counts as 0), held at `ceiling` whole tokens
/// (negative counts as 0). A level above the ceiling is cut to it; one that reaches it keeps no
/// fraction. Refilling in two steps or in one is the same, bit for bit.
Level refill(Level level, const LimitNumbers& numbers, Nanos elapsed_ns, std::int64_t ceiling);

/// The shortest time after which refill() from `level` gives at least `tokens`; 0 when it has them
/// already, kForever when that is longer than an int64 of nanoseconds or the numbers do not refill.
/// Knows no ceiling.
Nanos time_until(Level level, const LimitNumbers& numbers, std::int64_t tokens);

/// The same amount in units of another period, rounded down: a changed policy never adds a token.
Level rescale(Level level, Nanos from_period_ns, Nanos to_period_ns);

/// A whole bucket: a level as of an instant. Scope `node` uses it alone; time never runs backwards
/// in it (an earlier `now` changes nothing).
class TokenBucket {
 public:
  /// A new bucket is full.
  TokenBucket(const LimitNumbers& numbers, Nanos now_ns);

  struct Outcome {
    bool allowed = false;
    /// From the caller's `now` until this cost fits if nobody else takes: admitted then, refused a
    /// nanosecond before. 0 when allowed, -1 when cost > capacity, kForever as in time_until().
    Nanos retry_after_ns = 0;
  };
  /// Takes `cost` (negative counts as 0) if it fits. Refused: nothing changes.
  Outcome take(std::int64_t cost, Nanos now_ns);
  /// The same answer without taking.
  Outcome peek(std::int64_t cost, Nanos now_ns) const;
  /// Puts `tokens` (negative counts as 0) in, never above capacity.
  void give_back(std::int64_t tokens, Nanos now_ns);

  Level level_at(Nanos now_ns) const;
  /// Until full / until one more whole token than now, from the caller's `now`; 0 when full.
  Nanos time_to_full(Nanos now_ns) const;
  Nanos time_to_next_token(Nanos now_ns) const;

  /// A changed policy: what is there stays, cut to the new capacity; time so far counts at the old
  /// rate.
  void set_numbers(const LimitNumbers& numbers, Nanos now_ns);
  const LimitNumbers& numbers() const { return numbers_; }

 private:
  Outcome outcome_of(Level level, std::int64_t cost, Nanos now_ns) const;
  /// From `now` until `tokens` are there. A caller whose `now` is older than the bucket's waits for
  /// the difference, too: its answer names the same instant as everybody else's.
  Nanos wait_for(Level level, std::int64_t tokens, Nanos now_ns) const;
  void settle(Level level, Nanos now_ns);

  LimitNumbers numbers_;
  Level level_;
  Nanos as_of_ns_;
};

}  // namespace weir::limit
