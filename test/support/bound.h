// The promise (PROTOCOL, first lines), judged from a history alone: in every interval of length T
// at most `capacity + rate x T` tokens are admitted. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/model/limit.h"
#include "test/support/history.h"

namespace weir::test {

/// An interval in which more was admitted than the limit permits.
struct Breach {
  Nanos from_ns = 0;
  Nanos to_ns = 0;
  std::int64_t admitted = 0;   ///< tokens of checks that lie inside as a whole
  std::int64_t permitted = 0;  ///< floor(capacity + rate x (to - from))
};
std::string to_string(const Breach& breach);

/// The interval with the greatest excess, if any has one. All pairs of instants are judged, in
/// O(n log n). A check counts for an interval only if it was invoked and had returned inside: it
/// was then surely decided inside, so what is found is never the fault of a slow client. All checks
/// must be of one bucket. Costs of 0 and below count as nothing.
std::optional<Breach> find_breach(const History& history, const LimitNumbers& limit);

/// The tokens that one ideal bucket, full at first, would have admitted of the same checks, each
/// decided when it was invoked: what `use of the quota` is measured by. It follows the demand that
/// there was, so that a slow machine is not mistaken for a wasteful limiter.
std::int64_t ideal_admissions(const History& history, const LimitNumbers& limit);

/// Tokens admitted, in permille of ideal_admissions; 1000 when there was no demand.
std::int64_t use_of_quota_permille(const History& history, const LimitNumbers& limit);

}  // namespace weir::test
