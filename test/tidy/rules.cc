#include "test/tidy/rules.h"

#include <array>

namespace weir::tidy {

std::span<const Module> modules() {
  static const std::array kModules = {
      Module{"base", "src/base", true, {}},
      Module{"model", "src/model", true, {"base"}},
      Module{"limit", "src/limit", true, {"model"}},
      Module{"lease", "src/lease", true, {"limit"}},
      Module{"ownership", "src/ownership", true, {"lease"}},
      Module{"regions", "regions", true, {"ownership"}},
      Module{"policy", "src/policy", true, {"model"}},
      Module{"edge", "src/edge", true, {"policy", "lease"}},
      Module{"codec", "src/codec", false, {"model"}},
      Module{"store", "src/store", false, {"model", "codec"}},
      Module{"config", "src/config", false, {"model"}},
      Module{"telemetry", "src/telemetry", false, {"model"}},
      Module{"actors", "actors", false, {"edge", "regions", "store", "telemetry", "codec"}},
      Module{"net", "src/net", false, {"model", "codec", "telemetry"}},
      Module{"server", "src/server", false, {"actors", "net", "config", "cli"}},
      Module{"cli", "src/cli", false, {"actors", "net", "config", "server"}},
  };
  return kModules;
}

std::span<const Narrow> narrow_includes() {
  static const std::array kNarrow = {
      Narrow{"actors", "store", {"src/store/store.h", "src/store/group_commit.h"}},
  };
  return kNarrow;
}

std::span<const Ban> include_bans() {
  static constexpr std::string_view kSimulator = "the simulator links no CAF, Boost or RocksDB";
  static constexpr std::array kBans = {
      Ban{"test/sim", "actors/", kSimulator},     Ban{"test/sim", "src/net/", kSimulator},
      Ban{"test/sim", "src/server/", kSimulator}, Ban{"test/sim", "src/cli/", kSimulator},
      Ban{"test/sim", "caf/", kSimulator},        Ban{"test/sim", "boost/", kSimulator},
      Ban{"test/sim", "rocksdb/", kSimulator},
  };
  return kBans;
}

std::span<const HeavyHeader> heavy_headers() {
  static const std::array kHeavy = {
      HeavyHeader{"spdlog/", "", {"telemetry"}, Place::source_only},
      HeavyHeader{"prometheus/", "", {"telemetry"}, Place::source_only},
      HeavyHeader{"rocksdb/", "", {"store"}, Place::source_only},
      HeavyHeader{"hiredis/", "", {"store"}, Place::source_only},
      HeavyHeader{"yaml-cpp/", "", {"config"}, Place::header_too},
      HeavyHeader{"caf/", "", {"actors"}, Place::header_too},
      HeavyHeader{"caf/", "", {"server"}, Place::source_only},
      HeavyHeader{"boost/beast", "", {"net", "cli"}, Place::header_too},
      HeavyHeader{"boost/",
                  "",
                  {"codec", "config", "store", "net", "telemetry", "actors", "server", "cli"},
                  Place::header_too},
      // Containers only: headers, no clock and nothing to link.
      HeavyHeader{"boost/intrusive/", "", {"edge", "policy"}, Place::header_too},
      HeavyHeader{"boost/unordered/", "", {"edge", "policy"}, Place::header_too},
      HeavyHeader{"google/protobuf/", "", {"codec"}, Place::header_too},
      HeavyHeader{"", ".pb.h", {"codec"}, Place::source_only},
  };
  return kHeavy;
}

std::span<const BannedName> impure_names() {
  static constexpr std::array kNames = {
      BannedName{"steady_clock"},
      BannedName{"system_clock"},
      BannedName{"high_resolution_clock"},
      BannedName{"utc_clock"},
      BannedName{"tai_clock"},
      BannedName{"clock_gettime"},
      BannedName{"gettimeofday"},
      BannedName{"timespec_get"},
      BannedName{"localtime"},
      BannedName{"localtime_r"},
      BannedName{"SystemClock"},
      BannedName{"SystemSeedSource"},
      BannedName{"random_device"},
      BannedName{"getrandom"},
      BannedName{"getentropy"},
      BannedName{"arc4random"},
      BannedName{"srand"},
      BannedName{"rand", Use::call},
      BannedName{"rand_r", Use::call},
      BannedName{"drand48", Use::call},
      BannedName{"clock", Use::time_call},
      BannedName{"time", Use::time_call},
  };
  return kNames;
}

std::span<const BannedName> sleeping_names() {
  static constexpr std::array kNames = {
      BannedName{"sleep_for"},        BannedName{"sleep_until"}, BannedName{"usleep"},
      BannedName{"sleep", Use::call}, BannedName{"nanosleep"},   BannedName{"clock_nanosleep"},
  };
  return kNames;
}

std::span<const std::string_view> sleepless_directories() {
  static constexpr std::array<std::string_view, 7> kDirectories = {
      "src", "actors", "regions", "test/unit", "test/actor", "test/sim", "test/model"};
  return kDirectories;
}

std::span<const std::string_view> forbidden_words() {
  static constexpr std::array<std::string_view, 6> kWords = {
      "TODO", "FIXME", "XXX", "NOLINT", "NOLINTNEXTLINE", "NOLINTBEGIN"};
  return kWords;
}

std::span<const std::string_view> top_level_entries() {
  static constexpr std::array<std::string_view, 11> kEntries = {
      "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "actors", "deploy", "lua",
      "proto",          "regions",           "src",     "test"};
  return kEntries;
}

std::span<const std::string_view> explained_directories() {
  static constexpr std::array<std::string_view, 4> kDirectories = {"deploy", "lua", "proto",
                                                                   "test"};
  return kDirectories;
}

std::span<const Exception> exceptions() {
  static constexpr std::array kExceptions = {
      Exception{"clock", "src/base/system_clock.h",
                "the one door to the system's clocks and seeds"},
      Exception{"clock", "src/base/system_clock.cc",
                "the one door to the system's clocks and seeds"},
      Exception{"words", "test/tidy/", "names the words that it forbids"},
  };
  return kExceptions;
}

}  // namespace weir::tidy
