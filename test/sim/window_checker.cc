#include "test/sim/window_checker.h"

#include <algorithm>

namespace weir::sim {

WindowChecker::Count& WindowChecker::move(const std::string& bucket, std::int64_t quota,
                                          Nanos wall_ns) {
  const Nanos into_ns = wall_ns % kMinute;
  std::int64_t position = 2 * (wall_ns / kMinute);
  if (into_ns >= error_ns_) ++position;
  if (into_ns >= kMinute - error_ns_) ++position;
  Count& count = counts_[bucket];
  if (position > count.position + 2) count = {position, 0, quota, 0};
  for (; count.position < position; ++count.position) {
    if (count.position % 2 != 0) {
      count.ending = count.quota;
      count.quota = quota;
    } else {
      // A quota raised near the end of a minute was the ended one's, too.
      const std::int64_t gave = std::max(count.ending, count.quota);
      count.counted = std::max<std::int64_t>(0, count.counted - gave);
    }
  }
  count.quota = std::max(count.quota, quota);
  return count;
}

void WindowChecker::admitted(const std::string& bucket, std::int64_t quota, std::int64_t cost,
                             Nanos wall_ns, Nanos true_ns) {
  totals_[bucket] += cost;
  Count& count = move(bucket, quota, wall_ns);
  count.counted += cost;
  if (count.position % 2 == 0 || count.counted <= count.quota) return;
  const auto key = decode_bucket_key(bucket);
  violated(true_ns, "limit " + (key ? key->limit + " of " + key->customer : bucket) + ": " +
                        std::to_string(count.counted) + " admitted in a window of " +
                        std::to_string(count.quota));
}

void WindowChecker::given_back(const std::string& bucket, std::int64_t quota, std::int64_t tokens,
                               Nanos wall_ns) {
  Count& count = move(bucket, quota, wall_ns);
  count.counted = std::max<std::int64_t>(0, count.counted - tokens);
}

void WindowChecker::slid(const std::string& where, std::int64_t size, std::int64_t cost,
                         std::int64_t period, Nanos true_ns) {
  auto& [current, count] = slid_[where];
  if (current != period) count = 0;
  current = period;
  count += cost;
  if (count <= size) return;
  violated(true_ns, where + ": " + std::to_string(count) +
                        " admitted in one period of a sliding window of " + std::to_string(size));
}

std::int64_t WindowChecker::admitted_tokens(const std::string& bucket) const {
  const auto found = totals_.find(bucket);
  return found == totals_.end() ? 0 : found->second;
}

}  // namespace weir::sim
