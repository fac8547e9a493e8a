#include "src/policy/supported.h"

#include <algorithm>
#include <array>
#include <string>

namespace weir::policy {
namespace {

constexpr std::array kServed = {Algorithm::token_bucket, Algorithm::fixed_window,
                                Algorithm::sliding_window};

}  // namespace

Status check_limit_supported(const LimitDefinition& limit) {
  if (std::find(kServed.begin(), kServed.end(), limit.algorithm) != kServed.end()) return {};
  return failure(ErrorCode::unsupported, "algorithm",
                 std::string(to_string(limit.algorithm)) +
                     " is not served by this version, write a token bucket with `rate` and "
                     "`burst`");
}

Status check_supported(const PolicyDefinition& definition) {
  for (const auto& limit : definition.limits) {
    const Status status = check_limit_supported(limit);
    if (status) continue;
    return failure(ErrorCode::unsupported, "algorithm",
                   "limit `" + limit.name + "`: " + status.error().message);
  }
  return {};
}

}  // namespace weir::policy
