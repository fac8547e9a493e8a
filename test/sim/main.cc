// weir_sim: seeds, scenarios and traces by hand. See test/sim/README.md.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "src/base/mutants.h"
#include "test/sim/figures.h"
#include "test/sim/run.h"

namespace {

using weir::sim::Outcome;
using weir::sim::Scenario;

/// Lines of a trace that are shown of what led to a violation.
constexpr std::size_t kTailLines = 60;

struct Arguments {
  std::string seeds = "1-20";
  std::string scenario;
  std::string scenarios = WEIR_SCENARIOS;
  std::string mutant;
  bool list_mutants = false;
  bool figures = false;
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

/// The commit of the source tree, as git says it now.
std::string commit() {
  std::string text;
  if (FILE* git = ::popen("git -C '" WEIR_SOURCE "' rev-parse --short HEAD 2>/dev/null", "r")) {
    char buffer[64];
    while (std::fgets(buffer, sizeof buffer, git) != nullptr) text += buffer;
    ::pclose(git);
  }
  text.erase(std::find(text.begin(), text.end(), '\n'), text.end());
  return text.empty() ? "unknown" : text;
}

/// Runs it again with all messages, and shows what came right before the first violation.
void show_tail(const Scenario& scenario, const Outcome& outcome) {
  const auto& first =
      *std::min_element(outcome.violations.begin(), outcome.violations.end(),
                        [](const auto& a, const auto& b) { return a.true_ns < b.true_ns; });
  const Outcome again = weir::sim::run(scenario, outcome.seed, true);
  std::deque<std::string> tail;
  for (const std::string& line : again.trace) {
    if (std::atoll(line.c_str()) > first.true_ns / weir::kMicrosecond) break;
    tail.push_back(line);
    if (tail.size() > kTailLines) tail.pop_front();
  }
  std::printf("  %s\n  ...\n", again.trace.front().c_str());
  for (const std::string& line : tail) std::printf("  %s\n", line.c_str());
}

void report(const Scenario& scenario, const Outcome& outcome, bool trace) {
  if (trace) {
    for (const std::string& line : outcome.trace) std::printf("  %s\n", line.c_str());
  } else if (!outcome.violations.empty()) {
    show_tail(scenario, outcome);
  }
  for (const auto& violation : outcome.violations) {
    std::printf(
        "VIOLATED %s at %lld us: %s\n  seed %llu scenario %s commit %s; again with: weir_sim "
        "--seeds %llu --scenario %s --trace\n",
        violation.checker.c_str(), static_cast<long long>(violation.true_ns / 1000),
        violation.what.c_str(), static_cast<unsigned long long>(outcome.seed),
        outcome.scenario.c_str(), commit().c_str(), static_cast<unsigned long long>(outcome.seed),
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
  double shortest_s = 1e9;
  std::int64_t least_use_ppm = INT64_MAX;
  std::uint64_t fewest_faults = UINT64_MAX;  ///< of a scenario that has any
  std::map<std::string, std::uint64_t> judged;

  void add(const Scenario& scenario, const Outcome& outcome, bool bad) {
    failed += bad ? 1 : 0;
    faults += outcome.faults;
    checks += outcome.checks;
    timeouts += outcome.timeouts;
    calls += outcome.lease_requests;
    takeovers += outcome.takeovers;
    const double span_s = static_cast<double>(outcome.simulated_ns) / 1e9;
    simulated_s += span_s;
    shortest_s = std::min(shortest_s, span_s);
    least_use_ppm = std::min(least_use_ppm, outcome.use_ppm);
    if (!scenario.faults.empty()) fewest_faults = std::min(fewest_faults, outcome.faults);
    for (const auto& [checker, count] : outcome.judged) judged[checker] += count;
  }
};

void print_totals(const Totals& totals, std::uint64_t seeds, double seconds) {
  for (const auto& [checker, count] : totals.judged) {
    std::printf("  %-22s judged %llu\n", checker.c_str(), static_cast<unsigned long long>(count));
  }
  std::printf(
      "%llu seeds, %llu violated; %.0f simulated s in %.1f s (%.1f seeds/s); %llu faults, %llu "
      "checks, %llu timeouts, %llu lease requests, %llu owners; at least %.0f s",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(totals.failed),
      totals.simulated_s, seconds, static_cast<double>(seeds) / seconds,
      static_cast<unsigned long long>(totals.faults),
      static_cast<unsigned long long>(totals.checks),
      static_cast<unsigned long long>(totals.timeouts),
      static_cast<unsigned long long>(totals.calls),
      static_cast<unsigned long long>(totals.takeovers), totals.shortest_s);
  if (totals.fewest_faults != UINT64_MAX) {
    std::printf(" and %llu faults each", static_cast<unsigned long long>(totals.fewest_faults));
  }
  std::printf("; least use of a quota %.2f %%\n", static_cast<double>(totals.least_use_ppm) / 1e4);
}

/// True when nothing was violated. Without a scenario about half of the seeds are a swarm.
bool run_seeds(const Arguments& arguments, const std::vector<Scenario>& scenarios, bool swarms,
               std::uint64_t from, std::uint64_t to) {
  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  std::uint64_t seeds = 0;
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
    report(scenario, outcome, arguments.trace);
    totals.add(scenario, outcome, bad);
    ++seeds;
    if (bad && arguments.first) break;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print_totals(totals, seeds, seconds);
  return totals.failed == 0;
}

int list_mutants() {
  for (const auto& info : weir::kMutants) {
    std::printf("%-26s %s\n", std::string(info.name).c_str(), std::string(info.rule).c_str());
  }
  return 0;
}

bool read_arguments(int argc, char** argv, Arguments& arguments, int& status) {
  CLI::App app{"Runs simulated clusters of Weir through seeded faults."};
  app.add_option("--seeds", arguments.seeds, "one seed or A-B")->capture_default_str();
  app.add_option("--scenario", arguments.scenario,
                 "only this one; `swarm` draws all from the seed");
  app.add_option("--scenarios", arguments.scenarios, "the folder that they are read from")
      ->capture_default_str();
  app.add_option("--mutant", arguments.mutant, "break this rule of PROTOCOL.md");
  app.add_flag("--list-mutants", arguments.list_mutants, "print the rules that can be broken");
  app.add_flag("--figures", arguments.figures, "measure what test/sim/README.md states");
  app.add_flag("--trace", arguments.trace, "print the trace of each run");
  app.add_flag("--twice", arguments.twice, "run each seed twice and compare the traces");
  app.add_flag("--first", arguments.first, "stop at the first seed that fails");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    status = app.exit(error);
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  int status = 0;
  if (!read_arguments(argc, argv, arguments, status)) return status;
  if (arguments.list_mutants) return list_mutants();
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
  if (arguments.figures) return weir::sim::print_figures(from, to) ? 0 : 1;
  const auto scenarios = weir::sim::read_scenarios(arguments.scenarios, arguments.scenario);
  if (!scenarios) {
    std::fprintf(stderr, "%s\n", scenarios.error().message.c_str());
    return 2;
  }
  const bool swarms = arguments.scenario.empty() || arguments.scenario == "swarm";
  if (scenarios->empty() && !swarms) {
    std::fprintf(stderr, "--scenario: there is no `%s`\n", arguments.scenario.c_str());
    return 2;
  }
  return run_seeds(arguments, *scenarios, swarms, from, to) ? 0 : 1;
}
