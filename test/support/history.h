// What a client saw of its checks, as values: the only thing that the promise is judged by.
// Instants are CLOCK_BOOTTIME of one machine, so histories of several processes can be put
// together. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"

namespace weir::test {

enum class Verdict : std::uint8_t {
  allowed = 1,
  denied = 2,
  failed = 3,  ///< no answer, or one that is neither 200 nor 429: it may have been admitted or not
};

/// One check. It was decided at some instant within [invoked_ns, returned_ns].
struct CheckRecord {
  Nanos invoked_ns = 0;
  Nanos returned_ns = 0;
  int node = 0;  ///< index of the node that was asked
  std::int64_t cost = 1;
  Verdict verdict = Verdict::failed;
  std::string source;  ///< as in the answer; of a failed check: what went wrong, in one word
  std::int64_t remaining = 0;
  std::int64_t retry_after_ms = 0;
  int customer = 0;  ///< index, when a load has several

  friend bool operator==(const CheckRecord&, const CheckRecord&) = default;
};

using History = std::vector<CheckRecord>;

/// What one customer of several asked for: the bound is each customer's own.
History of_customer(const History& history, int customer);

/// How many checks ended in which way.
struct Tally {
  std::int64_t allowed = 0;
  std::int64_t denied = 0;
  std::int64_t failed = 0;
  std::int64_t timed_out = 0;  ///< of the denied: no owner answered in time
  std::int64_t degraded = 0;   ///< of all: decided by a failure policy
};
Tally tally(const History& history);
/// `allowed 10, denied 2 (timed out 0), failed 0, degraded 0`.
std::string to_string(const Tally& tally);

/// First invocation to last return; 0 for an empty history.
Nanos span_ns(const History& history);

/// One record a line, for histories that cross a process border. The folder must exist.
Status write_history(const std::string& path, const History& history);
Result<History> read_history(const std::string& path);

}  // namespace weir::test
