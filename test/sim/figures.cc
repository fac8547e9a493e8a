#include "test/sim/figures.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "test/sim/run.h"

namespace weir::sim {
namespace {

struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t violated = 0;
  std::uint64_t checks = 0;
  std::uint64_t admitted = 0;
  std::uint64_t calls = 0;
  std::int64_t least_use_ppm = INT64_MAX;
  std::uint64_t least_fair_permille = UINT64_MAX;
  std::vector<Nanos> failover_ns;

  void add(const Outcome& outcome) {
    ++seeds;
    violated += outcome.violations.empty() ? 0 : 1;
    checks += outcome.checks;
    admitted += outcome.admitted;
    calls += outcome.lease_requests;
    least_use_ppm = std::min(least_use_ppm, outcome.use_ppm);
    least_fair_permille = std::min(least_fair_permille, outcome.fair_permille);
    failover_ns.insert(failover_ns.end(), outcome.failover_ns.begin(), outcome.failover_ns.end());
  }
};

Sum measure(const Scenario& scenario, std::uint64_t from, std::uint64_t to) {
  Sum sum;
  for (std::uint64_t seed = from; seed <= to; ++seed) sum.add(run(scenario, seed, false));
  return sum;
}

double percentile_ms(std::vector<Nanos> values, double part) {
  std::sort(values.begin(), values.end());
  if (values.empty()) return 0;
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  return static_cast<double>(values[at]) / 1e6;
}

void print(const Scenario& scenario, const Sum& sum) {
  std::printf("%-12s %llu seeds, %llu violated: use of the quota %.2f %% (worst seed)",
              scenario.name.c_str(), static_cast<unsigned long long>(sum.seeds),
              static_cast<unsigned long long>(sum.violated),
              static_cast<double>(sum.least_use_ppm) / 1e4);
  std::printf(", %.4f owner calls per check, %.4f per admitted one",
              static_cast<double>(sum.calls) / static_cast<double>(sum.checks),
              static_cast<double>(sum.calls) / static_cast<double>(sum.admitted));
  if (scenario.fair_permille > 0) {
    std::printf(", the worst edge got %.0f %% of an even part",
                static_cast<double>(sum.least_fair_permille) / 10);
  }
  std::printf("\n");
  if (sum.failover_ns.empty()) return;
  std::printf(
      "%-12s owner's end to the next grant, %zu times: p50 %.0f ms, p99 %.0f ms, longest "
      "%.0f ms\n",
      scenario.name.c_str(), sum.failover_ns.size(), percentile_ms(sum.failover_ns, 0.5),
      percentile_ms(sum.failover_ns, 0.99), percentile_ms(sum.failover_ns, 1));
}

/// A changed limit and destroyed majorities have another measure than the share of one quota.
bool is_comparable(Fault fault) {
  return fault != Fault::change_policy && fault != Fault::destroy_majority;
}

/// One kind of fault at a time, over the same load.
bool print_losses(const Scenario& base, std::uint64_t from, std::uint64_t to) {
  bool good = true;
  for (const Fault fault : kFaults) {
    if (!is_comparable(fault)) continue;
    Scenario scenario = base;
    scenario.faults = {fault};
    scenario.name = to_string(fault);
    const Sum sum = measure(scenario, from, to);
    std::printf("%-16s %llu seeds: over 0 in %llu of them, use of the quota %.1f %% (worst seed)\n",
                to_string(fault), static_cast<unsigned long long>(sum.seeds),
                static_cast<unsigned long long>(sum.seeds - sum.violated),
                static_cast<double>(sum.least_use_ppm) / 1e4);
    good = good && sum.violated == 0;
  }
  return good;
}

}  // namespace

bool print_figures(std::uint64_t from, std::uint64_t to) {
  bool good = true;
  for (const char* file : {"figures/moving-near", "figures/moving-far", "tiny", "threes",
                           "figures/failover", "figures/losses"}) {
    const auto scenario = read_scenario(std::string(WEIR_SCENARIOS) + "/" + file + ".yaml");
    if (!scenario) {
      std::fprintf(stderr, "%s\n", scenario.error().message.c_str());
      return false;
    }
    if (scenario->name == "losses") {
      good = print_losses(*scenario, from, to) && good;
      continue;
    }
    const Sum sum = measure(*scenario, from, to);
    print(*scenario, sum);
    good = good && sum.violated == 0;
  }
  return good;
}

}  // namespace weir::sim
