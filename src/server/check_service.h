// The check API's way to the limiter, and usage as edge and owner know it together. Thread-safe.
#pragma once

#include <atomic>
#include <string>

#include "actors/node.h"
#include "src/edge/limiter.h"
#include "src/net/service.h"
#include "src/server/policy_keeper.h"

namespace weir::server {

class LimiterCheckService final : public net::CheckService {
 public:
  /// All outlive the service.
  struct Parts {
    edge::Limiter& limiter;
    actors::Node& node;
    const PolicyKeeper& policy;
    std::string region;
  };
  explicit LimiterCheckService(Parts parts) : parts_(std::move(parts)) {}

  Result<bool> decide(const Check& check, Decision& decision) override;
  void decide_later(const Check& check, Completion done) override;
  void usage(const std::string& customer, UsageCompletion done) override;
  net::Readiness readiness() const override;

  /// From now on new requests are told to go elsewhere.
  void begin_drain() { draining_.store(true, std::memory_order_release); }

 private:
  Parts parts_;
  std::atomic<bool> draining_{false};
};

}  // namespace weir::server
