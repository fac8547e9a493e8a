// One seed of one scenario: builds the cluster, drives load and faults, lets it rest, and asks the
// checkers.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "test/sim/checkers.h"
#include "test/sim/scenario.h"

namespace weir::sim {

struct Outcome {
  std::uint64_t seed = 0;
  std::string scenario;
  std::uint64_t trace_hash = 0;
  std::vector<Violation> violations;
  std::deque<std::string> trace;

  std::uint64_t checks = 0;
  std::uint64_t admitted = 0;
  std::uint64_t denied = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t lease_requests = 0;
  std::uint64_t faults = 0;
  std::uint64_t takeovers = 0;
  std::uint64_t leases_seen = 0;   ///< held leases whose backing was checked
  std::uint64_t retries_kept = 0;  ///< clients that came back as told and were admitted
  std::vector<Nanos> failover_ns;  ///< from an owner's end to the next commit
  std::int64_t use_permille = -1;  ///< of the quota, by the worst bucket; -1: not measured
  Nanos simulated_ns = 0;
};

Outcome run(const Scenario& scenario, std::uint64_t seed, bool keep_trace);

}  // namespace weir::sim
