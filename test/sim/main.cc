// weir_sim: seeds, scenarios and traces by hand. See test/sim/README.md.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "src/base/mutants.h"
#include "test/sim/run.h"

namespace {

using weir::sim::Outcome;
using weir::sim::Scenario;

struct Arguments {
  std::string seeds = "1-20";
  std::string scenario;
  std::string scenarios = WEIR_SCENARIOS;
  std::string mutant;
  bool list_mutants = false;
  bool trace = false;
  bool twice = false;
  bool first = false;
};

bool parse_range(const std::string& text, std::uint64_t& from, std::uint64_t& to) {
  const auto dash = text.find('-');
  try {
    from = std::stoull(text.substr(0, dash));
    to = dash == std::string::npos ? from : std::stoull(text.substr(dash + 1));
  } catch (const std::exception&) {
    return false;
  }
  return from <= to;
}

std::vector<Scenario> load_scenarios(const std::string& folder, const std::string& only) {
  std::map<std::string, Scenario> found;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    auto scenario = weir::sim::read_scenario(file.path().string());
    if (!scenario) {
      std::fprintf(stderr, "%s\n", scenario.error().message.c_str());
      std::exit(2);
    }
    if (only.empty() || only == scenario->name) found.emplace(scenario->name, *scenario);
  }
  std::vector<Scenario> result;
  for (auto& [name, scenario] : found) result.push_back(std::move(scenario));
  return result;
}

void report(const Outcome& outcome, bool trace) {
  if (trace || !outcome.violations.empty()) {
    for (const std::string& line : outcome.trace) std::printf("  %s\n", line.c_str());
  }
  for (const auto& violation : outcome.violations) {
    std::printf(
        "VIOLATED %s at %lld us: %s\n  seed %llu scenario %s; again with: weir_sim --seeds %llu "
        "--scenario %s --trace\n",
        violation.checker.c_str(), static_cast<long long>(violation.true_ns / 1000),
        violation.what.c_str(), static_cast<unsigned long long>(outcome.seed),
        outcome.scenario.c_str(), static_cast<unsigned long long>(outcome.seed),
        outcome.scenario.c_str());
  }
}

/// What all seeds together came to.
struct Totals {
  std::uint64_t failed = 0;
  std::uint64_t faults = 0;
  std::uint64_t checks = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t calls = 0;
  std::uint64_t takeovers = 0;
  double simulated_s = 0;

  void add(const Outcome& outcome, bool bad) {
    failed += bad ? 1 : 0;
    faults += outcome.faults;
    checks += outcome.checks;
    timeouts += outcome.timeouts;
    calls += outcome.lease_requests;
    takeovers += outcome.takeovers;
    simulated_s += static_cast<double>(outcome.simulated_ns) / 1e9;
  }
};

void print_figures(const Outcome& outcome) {
  std::printf(
      "seed %llu %s: %llu checks, %llu admitted, %llu timeouts, %llu lease requests, use "
      "%lld/1000\n",
      static_cast<unsigned long long>(outcome.seed), outcome.scenario.c_str(),
      static_cast<unsigned long long>(outcome.checks),
      static_cast<unsigned long long>(outcome.admitted),
      static_cast<unsigned long long>(outcome.timeouts),
      static_cast<unsigned long long>(outcome.lease_requests),
      static_cast<long long>(outcome.use_permille));
}

/// True when nothing was violated. Without a scenario every other seed or so is a swarm.
bool run_seeds(const Arguments& arguments, const std::vector<Scenario>& scenarios, bool swarms,
               std::uint64_t from, std::uint64_t to) {
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  for (std::uint64_t seed = from; seed <= to; ++seed) {
    const std::size_t kinds = scenarios.size() + (swarms ? scenarios.size() + 1 : 0);
    const std::size_t pick = seed % kinds;
    weir::Random draw(seed * 7919);
    const Scenario scenario = pick < scenarios.size() ? scenarios[pick] : weir::sim::swarm(draw);
    const Outcome outcome = weir::sim::run(scenario, seed, arguments.trace);
    bool bad = !outcome.violations.empty();
    if (arguments.twice && weir::sim::run(scenario, seed, false).trace_hash != outcome.trace_hash) {
      std::printf("seed %llu: two runs, two traces\n", static_cast<unsigned long long>(seed));
      bad = true;
    }
    report(outcome, arguments.trace);
    totals.add(outcome, bad);
    if (arguments.trace || !arguments.scenario.empty()) print_figures(outcome);
    if (bad && arguments.first) {
      to = seed;
      break;
    }
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "%llu seeds, %llu violated; %.0f simulated s in %.1f s (%.1f seeds/s); %llu faults, %llu "
      "checks, %llu timeouts, %llu lease requests, %llu owners\n",
      static_cast<unsigned long long>(to - from + 1),
      static_cast<unsigned long long>(totals.failed), totals.simulated_s, seconds,
      static_cast<double>(to - from + 1) / seconds, static_cast<unsigned long long>(totals.faults),
      static_cast<unsigned long long>(totals.checks),
      static_cast<unsigned long long>(totals.timeouts),
      static_cast<unsigned long long>(totals.calls),
      static_cast<unsigned long long>(totals.takeovers));
  return totals.failed == 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs simulated clusters of Weir through seeded faults."};
  Arguments arguments;
  app.add_option("--seeds", arguments.seeds, "one seed or A-B")->capture_default_str();
  app.add_option("--scenario", arguments.scenario,
                 "only this one; `swarm` draws all from the seed");
  app.add_option("--scenarios", arguments.scenarios, "the folder that they are read from")
      ->capture_default_str();
  app.add_option("--mutant", arguments.mutant, "break this rule of PROTOCOL.md");
  app.add_flag("--list-mutants", arguments.list_mutants, "print the rules that can be broken");
  app.add_flag("--trace", arguments.trace, "print the trace of each run");
  app.add_flag("--twice", arguments.twice, "run each seed twice and compare the traces");
  app.add_flag("--first", arguments.first, "stop at the first seed that fails");
  CLI11_PARSE(app, argc, argv);
  if (arguments.list_mutants) {
    for (const auto& info : weir::kMutants) {
      std::printf("%-26s %s\n", std::string(info.name).c_str(), std::string(info.rule).c_str());
    }
    return 0;
  }
  if (!arguments.mutant.empty()) {
    const auto mutant = weir::mutant_named(arguments.mutant);
    if (!mutant) {
      std::fprintf(stderr, "--mutant: there is no `%s`; see --list-mutants\n",
                   arguments.mutant.c_str());
      return 2;
    }
    weir::broken_rules = std::uint64_t{1} << static_cast<unsigned>(*mutant);
  }
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  if (!parse_range(arguments.seeds, from, to)) {
    std::fprintf(stderr, "--seeds: `%s` is neither a number nor A-B\n", arguments.seeds.c_str());
    return 2;
  }
  const auto scenarios = load_scenarios(arguments.scenarios, arguments.scenario);
  const bool swarms = arguments.scenario.empty() || arguments.scenario == "swarm";
  if (scenarios.empty() && !swarms) {
    std::fprintf(stderr, "--scenario: there is no `%s`\n", arguments.scenario.c_str());
    return 2;
  }
  return run_seeds(arguments, scenarios, swarms, from, to) ? 0 : 1;
}
