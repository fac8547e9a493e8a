// One seed of one scenario: builds the cluster, drives load and faults, lets it rest, and asks the
// checkers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
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
  std::uint64_t relay_requests = 0;  ///< of these, by relays to owners
  std::uint64_t faults = 0;
  std::uint64_t takeovers = 0;
  std::map<std::string, std::uint64_t> judged;  ///< by checker: what it had to judge
  std::vector<Nanos> failover_ns;               ///< from an owner's end to the next commit
  std::int64_t use_ppm = -1;        ///< of the quota, by the worst bucket; -1: not measured
  std::uint64_t fair_permille = 0;  ///< of an even part, by the worst edge; 0: not asked for
  Nanos simulated_ns = 0;
};

Outcome run(const Scenario& scenario, std::uint64_t seed, bool keep_trace);

}  // namespace weir::sim
