#include "test/sim/scenario.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "src/config/parse.h"

namespace weir::sim {
namespace {

/// Leases end by boot clocks that drift from the wall clocks of their windows.
constexpr Nanos kDriftAllowanceNs = 50 * kMillisecond;

tl::unexpected<Error> wrong(const std::string& path, const YAML::Mark& mark,
                            const std::string& what) {
  return failure(ErrorCode::invalid_argument, path,
                 path + ":" + std::to_string(mark.line + 1) + ": " + what);
}

Result<Fault> parse_fault(const std::string& word) {
  for (const Fault fault : kFaults) {
    if (word == to_string(fault)) return fault;
  }
  return failure(ErrorCode::invalid_argument, "faults", "unknown fault `" + word + "`");
}

Status read_load(const YAML::Node& node, Load& load) {
  for (const auto& item : node) {
    const auto key = item.first.as<std::string>();
    if (key == "kind") {
      load.kind = item.second.as<std::string>();
    } else if (key == "customers") {
      load.customers = item.second.as<int>();
    } else if (key == "checks_per_s") {
      load.checks_per_s = item.second.as<std::int64_t>();
    } else if (key == "cost_by_edge") {
      load.cost_by_edge = item.second.as<bool>();
    } else if (key == "costs") {
      load.costs = item.second.as<std::vector<std::int64_t>>();
    } else {
      return failure(ErrorCode::invalid_argument, "load", "unknown key `" + key + "`");
    }
  }
  return {};
}

Status read_weather(const YAML::Node& node, Weather& weather) {
  const std::map<std::string, std::function<void(std::int64_t)>> keys = {
      {"loss_permille", [&](std::int64_t v) { weather.loss_permille = static_cast<unsigned>(v); }},
      {"duplicate_permille",
       [&](std::int64_t v) { weather.duplicate_permille = static_cast<unsigned>(v); }},
      {"straggler_permille",
       [&](std::int64_t v) { weather.straggler_permille = static_cast<unsigned>(v); }},
      {"straggler_ms", [&](std::int64_t v) { weather.straggler_ns = v * kMillisecond; }},
      {"delay_us", [&](std::int64_t v) { weather.delay_ns = v * kMicrosecond; }},
      {"jitter_us", [&](std::int64_t v) { weather.jitter_ns = v * kMicrosecond; }},
      {"between_regions_ms",
       [&](std::int64_t v) { weather.between_regions_ns = v * kMillisecond; }},
  };
  for (const auto& item : node) {
    const auto key = keys.find(item.first.as<std::string>());
    if (key == keys.end()) {
      return failure(ErrorCode::invalid_argument, "weather",
                     "unknown key `" + item.first.as<std::string>() + "`");
    }
    key->second(item.second.as<std::int64_t>());
  }
  return {};
}

Status read_key(const std::string& key, const YAML::Node& value, Scenario& scenario) {
  const std::map<std::string, std::function<void()>> keys = {
      {"regions", [&] { scenario.regions = value.as<int>(); }},
      {"relay_nodes", [&] { scenario.relay_nodes = value.as<int>(); }},
      {"owner_nodes", [&] { scenario.owner_nodes = value.as<int>(); }},
      {"spares", [&] { scenario.spares = value.as<int>(); }},
      {"replicas", [&] { scenario.replicas = value.as<int>(); }},
      {"edges", [&] { scenario.edges = value.as<int>(); }},
      {"ttl_ms", [&] { scenario.ttl_ns = value.as<Nanos>() * kMillisecond; }},
      {"wait_ms", [&] { scenario.wait_ns = value.as<Nanos>() * kMillisecond; }},
      {"seconds", [&] { scenario.seconds_ns = value.as<Nanos>() * kSecond; }},
      {"fault_span_ms", [&] { scenario.fault_span_ns = value.as<Nanos>() * kMillisecond; }},
      {"faults_from_start", [&] { scenario.faults_from_start = value.as<bool>(); }},
      {"aim_at_owners", [&] { scenario.aim_at_owners = value.as<bool>(); }},
      {"pins", [&] { scenario.pins = value.as<bool>(); }},
      {"edges_apart", [&] { scenario.edges_apart = value.as<bool>(); }},
      {"wall_offset_ms", [&] { scenario.wall_offset_ns = value.as<Nanos>() * kMillisecond; }},
      {"wall_start_s", [&] { scenario.wall_start_ns = value.as<Nanos>() * kSecond; }},
      {"far_clock", [&] { scenario.far_clock = value.as<bool>(); }},
      {"max_buckets", [&] { scenario.max_buckets = value.as<std::size_t>(); }},
      {"fair_permille", [&] { scenario.fair_permille = value.as<std::int64_t>(); }},
      {"drift_ppm", [&] { scenario.drift_ppm = value.as<std::int64_t>(); }},
      {"fault_every_ms", [&] { scenario.fault_every_ns = value.as<Nanos>() * kMillisecond; }},
      {"sample_every_ms", [&] { scenario.sample_every_ns = value.as<Nanos>() * kMillisecond; }},
      {"use_permille", [&] { scenario.use_permille = value.as<std::int64_t>(); }},
  };
  if (key == "load") return read_load(value, scenario.load);
  if (key == "weather") return read_weather(value, scenario.weather);
  if (key == "faults") {
    for (const auto& word : value) {
      const auto fault = parse_fault(word.as<std::string>());
      if (!fault) return tl::unexpected(fault.error());
      scenario.faults.push_back(*fault);
    }
    return {};
  }
  if (key == "policy") {
    auto parsed = config::parse_policy(value.as<std::string>(), "policy");
    if (!parsed.value) {
      return failure(ErrorCode::invalid_argument, "policy", to_string(parsed.errors.front()));
    }
    scenario.limits = parsed.value->limits;
    return {};
  }
  const auto found = keys.find(key);
  if (found == keys.end()) {
    return failure(ErrorCode::invalid_argument, key, "unknown key `" + key + "`");
  }
  found->second();
  return {};
}

}  // namespace

const char* to_string(Fault fault) {
  switch (fault) {
    case Fault::kill_owner:
      return "kill-owner";
    case Fault::kill_node:
      return "kill-node";
    case Fault::power_loss:
      return "power-loss";
    case Fault::retire:
      return "retire";
    case Fault::stall:
      return "stall";
    case Fault::cut_pair:
      return "cut-pair";
    case Fault::disk_full:
      return "disk-full";
    case Fault::destroy_majority:
      return "destroy-majority";
    case Fault::change_topology:
      return "change-topology";
    case Fault::change_policy:
      return "change-policy";
    case Fault::pause:
      return "pause";
    case Fault::cut_one_way:
      return "cut-one-way";
    case Fault::cut_off:
      return "cut-off";
    case Fault::split:
      return "split";
    case Fault::wipe:
      return "wipe";
    case Fault::disk_error:
      return "disk-error";
    case Fault::slew:
      return "slew";
    case Fault::step_wall:
      return "step-wall";
    case Fault::storm:
      return "storm";
  }
  return "unknown";
}

bool Scenario::reboots() const {
  return std::any_of(faults.begin(), faults.end(), [](Fault fault) {
    return fault == Fault::power_loss || fault == Fault::wipe;
  });
}

bool Scenario::windowed() const {
  return std::any_of(limits.begin(), limits.end(), [](const LimitDefinition& limit) {
    return limit.algorithm == Algorithm::fixed_window;
  });
}

Nanos Scenario::window_error_ns() const {
  const bool stepped = std::find(faults.begin(), faults.end(), Fault::step_wall) != faults.end();
  const Nanos each_ns = stepped ? std::max(max_clock_error_ns, wall_offset_ns) : wall_offset_ns;
  return each_ns + (far_clock ? max_clock_error_ns : 0) + kDriftAllowanceNs;
}

Result<Scenario> read_scenario(const std::string& path) {
  Scenario scenario;
  scenario.name = std::filesystem::path(path).stem().string();
  try {
    const YAML::Node root = YAML::LoadFile(path);
    for (const auto& item : root) {
      const auto read = read_key(item.first.as<std::string>(), item.second, scenario);
      if (!read) return wrong(path, item.first.Mark(), read.error().message);
    }
  } catch (const YAML::Exception& error) {
    return wrong(path, error.mark, error.msg);
  }
  if (scenario.limits.empty()) {
    return failure(ErrorCode::invalid_argument, path, path + ": has no policy");
  }
  return scenario;
}

Result<std::vector<Scenario>> read_scenarios(const std::string& folder, const std::string& only) {
  std::map<std::string, Scenario> found;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".yaml") continue;
    auto scenario = read_scenario(file.path().string());
    if (!scenario) return tl::unexpected(scenario.error());
    if (only.empty() || only == scenario->name) found.emplace(scenario->name, *scenario);
  }
  std::vector<Scenario> result;
  for (auto& [name, scenario] : found) result.push_back(std::move(scenario));
  return result;
}

}  // namespace weir::sim
