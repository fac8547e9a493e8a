#include "src/lease/sizing.h"

#include <algorithm>
#include <numeric>

namespace weir::lease {
namespace {

__extension__ using Wide = __int128;

/// Tokens that one request should bring at least, rate permitting.
constexpr std::int64_t kTokensPerRequest = 250;
constexpr Nanos kShortestHorizonNs = 250 * kMillisecond;

}  // namespace

std::vector<std::int64_t> max_min_shares(std::int64_t amount, const std::vector<Claim>& claims) {
  std::vector<std::size_t> order(claims.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The least want for its weight first, compared crosswise.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return static_cast<Wide>(claims[a].want) * claims[b].weight <
           static_cast<Wide>(claims[b].want) * claims[a].weight;
  });
  std::vector<std::int64_t> shares(claims.size(), 0);
  std::int64_t left = std::max<std::int64_t>(0, amount);
  std::int64_t weights = 0;
  for (const Claim& claim : claims) weights += claim.weight;
  for (const std::size_t i : order) {
    const Wide fair = (static_cast<Wide>(left) * claims[i].weight + weights - 1) / weights;
    shares[i] = static_cast<std::int64_t>(
        std::min<Wide>({std::max<std::int64_t>(0, claims[i].want), fair, left}));
    left -= shares[i];
    weights -= claims[i].weight;
  }
  return shares;
}

void DemandMeter::roll(Nanos now_ns) {
  const Nanos passed_ns = now_ns - window_start_ns_;
  if (passed_ns < kDemandWindowNs) return;
  const Nanos windows = passed_ns / kDemandWindowNs;
  const std::int64_t seen = multiply_saturating(in_window_, kSecond / kDemandWindowNs);
  rate_per_s_ = rate_per_s_ / 2 + seen / 2 + (rate_per_s_ % 2 + seen % 2) / 2;
  rate_per_s_ = windows > 62 ? 0 : rate_per_s_ >> (windows - 1);
  if (windows > kForgottenWindows || (rate_per_s_ == 0 && in_window_ == 0)) {
    warm_windows_ = 0;
  } else {
    warm_windows_ =
        static_cast<std::int16_t>(std::min<Nanos>(warm_windows_ + windows, kColdWindows));
  }
  in_window_ = 0;
  window_start_ns_ = windows > 62 ? now_ns : window_start_ns_ + windows * kDemandWindowNs;
}

void DemandMeter::add(std::int64_t tokens, Nanos now_ns) {
  roll(now_ns);
  in_window_ = add_saturating(in_window_, tokens);
}

std::int64_t DemandMeter::rate_per_s(Nanos now_ns) const {
  DemandMeter copy = *this;
  copy.roll(now_ns);
  return copy.warm_windows_ < kColdWindows ? 0 : copy.rate_per_s_;
}

Nanos idle_after_ns(Nanos ttl_ns) {
  constexpr Nanos kMarginNs = 250 * kMillisecond;
  return 2 * std::max<Nanos>(DemandMeter::kDemandWindowNs, ttl_ns / 4) + kMarginNs;
}

std::int64_t tokens_in(std::int64_t rate_per_s, Nanos span_ns) {
  const Wide tokens = static_cast<Wide>(rate_per_s) * span_ns / kSecond;
  return static_cast<std::int64_t>(std::clamp<Wide>(tokens, 0, INT64_MAX));
}

Nanos horizon_ns(std::int64_t rate_per_s, Nanos round_trip_ns, Nanos ttl_ns) {
  const Nanos longest_ns = std::max(kShortestHorizonNs, ttl_ns / 4);
  const Nanos span_ns = rate_per_s <= 0
                            ? longest_ns
                            : kTokensPerRequest * (kSecond / std::max<std::int64_t>(1, rate_per_s));
  const Nanos wanted_ns = std::clamp(span_ns, kShortestHorizonNs, longest_ns);
  return std::max(wanted_ns, std::min(multiply_saturating(3, round_trip_ns), ttl_ns / 2));
}

}  // namespace weir::lease
