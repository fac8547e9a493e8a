// Every metric that Weir exports, once: its name, help text, kind and label names (API.md). The
// code that counts, the scrape and the dashboards all take them from here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::telemetry {

enum class MetricKind : std::uint8_t { counter, gauge, histogram };

struct MetricName {
  std::string_view name;
  std::string_view help;
  MetricKind kind = MetricKind::counter;
  std::string_view labels;  ///< names, with commas between them; empty: none
};

namespace metric {

inline constexpr MetricName kChecks{"weir_checks_total", "Checks decided, one per matching limit.",
                                    MetricKind::counter, "limit,result,source"};
inline constexpr MetricName kCheckDuration{"weir_check_duration_seconds",
                                           "Time from a complete request to its decision.",
                                           MetricKind::histogram, ""};
inline constexpr MetricName kLeaseRequests{"weir_lease_requests_total",
                                           "Requests to owners and their relays, one per bucket.",
                                           MetricKind::counter, "result"};
inline constexpr MetricName kLeaseTokens{"weir_lease_tokens",
                                         "Tokens on lease and not yet spent at this edge.",
                                         MetricKind::gauge, "limit"};
inline constexpr MetricName kOvershootBoundTokens{
    "weir_overshoot_bound_tokens",
    "Tokens that failure policies could at worst have admitted above the limit.", MetricKind::gauge,
    "limit"};
inline constexpr MetricName kDegraded{"weir_degraded",
                                      "Buckets for which a failure policy decides now.",
                                      MetricKind::gauge, "limit,policy"};
inline constexpr MetricName kDegradedTransitions{"weir_degraded_transitions_total",
                                                 "Times a failure policy began or ended.",
                                                 MetricKind::counter, ""};
inline constexpr MetricName kTakeovers{
    "weir_takeovers_total", "Registers taken over from another owner.", MetricKind::counter, ""};
inline constexpr MetricName kCommitDuration{
    "weir_commit_duration_seconds", "Time from a commit's start until a majority has stored it.",
    MetricKind::histogram, ""};
inline constexpr MetricName kRedisCalls{
    "weir_redis_calls_total", "Calls to Redis (authority: redis).", MetricKind::counter, "result"};
inline constexpr MetricName kShadowDenied{"weir_shadow_denied_total",
                                          "Checks that a shadow limit would have denied.",
                                          MetricKind::counter, "limit"};
inline constexpr MetricName kPolicyReload{"weir_policy_reload_total", "Policy reloads.",
                                          MetricKind::counter, "result"};
inline constexpr MetricName kTokenRefusals{"weir_token_refusals_total",
                                           "Requests answered 401 or 403 for their token.",
                                           MetricKind::counter, "reason"};
inline constexpr MetricName kSecurityReload{"weir_security_reload_total",
                                            "Reloads of tokens and certificates.",
                                            MetricKind::counter, "what,result"};
inline constexpr MetricName kFramesDropped{
    "weir_cluster_frames_dropped_total",
    "Frames between nodes that could not be sent or made no sense. What they asked is asked again.",
    MetricKind::counter, "reason"};
inline constexpr MetricName kRelayRequests{
    "weir_relay_requests_total",
    "Requests of this node's relay to owners, one per bucket asked for.", MetricKind::counter,
    "result"};
inline constexpr MetricName kRelayBuckets{
    "weir_relay_buckets", "Buckets that this node's relay leases for the edges near it.",
    MetricKind::gauge, ""};
inline constexpr MetricName kOwnersActive{
    "weir_owners_active", "Customers whose owner actor runs on this node.", MetricKind::gauge, ""};
inline constexpr MetricName kOwnersDormant{
    "weir_owners_dormant", "Records on this node's disk without a running owner (an estimate).",
    MetricKind::gauge, ""};

}  // namespace metric

inline constexpr std::array kAllMetrics = {metric::kChecks,
                                           metric::kCheckDuration,
                                           metric::kLeaseRequests,
                                           metric::kLeaseTokens,
                                           metric::kOvershootBoundTokens,
                                           metric::kDegraded,
                                           metric::kDegradedTransitions,
                                           metric::kTakeovers,
                                           metric::kCommitDuration,
                                           metric::kRedisCalls,
                                           metric::kShadowDenied,
                                           metric::kPolicyReload,
                                           metric::kTokenRefusals,
                                           metric::kSecurityReload,
                                           metric::kFramesDropped,
                                           metric::kRelayRequests,
                                           metric::kRelayBuckets,
                                           metric::kOwnersActive,
                                           metric::kOwnersDormant};

}  // namespace weir::telemetry
