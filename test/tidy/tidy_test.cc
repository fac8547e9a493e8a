// Goal: each rule finds what breaks it, at its line, and lets pass what does not.
// Method: one small file for each kind of breach beside one for each near miss.
#include "test/tidy/tidy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/tidy/rules.h"

namespace weir::tidy {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Findings in one file as `line rule`, those about the tree around it left out.
std::vector<std::string> check(const std::string& path, const std::string& text) {
  std::vector<std::string> found;
  for (const Finding& finding : check_tree({{path, text}})) {
    if (finding.rule == "layout" || finding.rule == "exception") continue;
    found.push_back(std::to_string(finding.line) + " " + finding.rule);
  }
  return found;
}

std::vector<std::string> check_paths(const std::vector<std::string>& paths) {
  std::vector<File> files;
  files.reserve(paths.size());
  for (const std::string& path : paths) files.push_back({path, ""});
  std::vector<std::string> found;
  for (const Finding& finding : check_tree(files)) found.push_back(to_string(finding));
  return found;
}

std::string include(const std::string& path) { return "#include \"" + path + "\"\n"; }

std::string include_system(const std::string& path) { return "#include <" + path + ">\n"; }

TEST(IncludeDirection, GoesDownOnly) {
  EXPECT_THAT(check("src/lease/ledger.cc", include("src/limit/token_bucket.h")), IsEmpty());
  EXPECT_THAT(check("src/lease/ledger.cc", include("src/lease/ledger.h")), IsEmpty());
  EXPECT_THAT(check("src/limit/x.h", include("src/lease/ledger.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("src/base/x.h", include("src/model/ids.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("src/net/x.cc", include("actors/broker.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("src/policy/x.cc", include("src/lease/ledger.h")), ElementsAre("1 include"));
}

TEST(IncludeDirection, IsTransitive) {
  EXPECT_THAT(check("src/edge/x.cc", include("src/limit/token_bucket.h")), IsEmpty());
  EXPECT_THAT(check("regions/x.cc", include("src/base/time.h")), IsEmpty());
  EXPECT_THAT(check("src/edge/x.cc", include("src/ownership/slots.h")), ElementsAre("1 include"));
}

TEST(IncludeDirection, LetsTheProgramIncludeEverything) {
  for (const Module& module : modules()) {
    const std::string header = std::string(module.directory) + "/x.h";
    EXPECT_THAT(check("src/server/main.cc", include(header)), IsEmpty()) << header;
    EXPECT_THAT(check("src/cli/main.cc", include(header)), IsEmpty()) << header;
  }
}

TEST(IncludeDirection, GivesActorsTheStoreInterfaceOnly) {
  EXPECT_THAT(check("actors/owner.cc", include("src/store/store.h")), IsEmpty());
  EXPECT_THAT(check("actors/owner.cc", include("src/store/rocks.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("src/server/main.cc", include("src/store/rocks.h")), IsEmpty());
  EXPECT_THAT(check("actors/owner.cc", include("src/config/config.h")), ElementsAre("1 include"));
}

TEST(IncludeDirection, WantsPathsFromTheRoot) {
  EXPECT_THAT(check("src/lease/x.cc", include("ledger.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("src/lease/x.cc", include("../limit/x.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("test/unit/x.cc", include("support.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("src/lease/x.cc", include_system("vector")), IsEmpty());
}

TEST(IncludeDirection, KeepsTestsOutOfTheProduct) {
  EXPECT_THAT(check("src/lease/x.cc", include("test/support/x.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("test/unit/x.cc", include("test/support/x.h")), IsEmpty());
  EXPECT_THAT(check("test/unit/x.cc", include("actors/broker.h")), IsEmpty());
}

TEST(IncludeDirection, KeepsTheSimulatorPure) {
  for (const char* header : {"caf/all.hpp", "boost/asio.hpp", "rocksdb/db.h"}) {
    EXPECT_THAT(check("test/sim/x.cc", include_system(header)), ElementsAre("1 include"));
    EXPECT_THAT(check("test/simple/x.cc", include_system(header)), IsEmpty());
  }
  EXPECT_THAT(check("test/sim/x.cc", include("actors/transport.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("test/sim/x.cc", include("src/net/service.h")), ElementsAre("1 include"));
  EXPECT_THAT(check("test/sim/x.cc", include("src/lease/ledger.h")), IsEmpty());
}

TEST(Links, ObeyTheSameTable) {
  const std::string path = "src/limit/CMakeLists.txt";
  EXPECT_THAT(check(path, "weir_module(NAME limit SOURCES a.cc DEPS model base LIBS xx)\n"),
              IsEmpty());
  EXPECT_THAT(check(path, "weir_module(NAME limit\n  DEPS model\n  lease\n  SOURCES a.cc)\n"),
              ElementsAre("3 link"));
  EXPECT_THAT(check(path, "weir_module(NAME limit DEPS nonsense)\n"), ElementsAre("1 link"));
  EXPECT_THAT(check(path, ""), IsEmpty());
}

TEST(HeavyHeaders, StayWithTheirOwners) {
  EXPECT_THAT(check("src/telemetry/log.cc", include_system("spdlog/spdlog.h")), IsEmpty());
  EXPECT_THAT(check("src/net/x.cc", include_system("spdlog/spdlog.h")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("actors/x.cc", include_system("rocksdb/db.h")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/store/x.cc", include_system("caf/all.hpp")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/server/x.cc", include_system("yaml-cpp/yaml.h")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/store/x.cc", include("weir/v1/record.pb.h")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/lease/x.cc", include_system("boost/json.hpp")), ElementsAre("1 heavy"));
}

TEST(HeavyHeaders, StayOutOfHeaders) {
  EXPECT_THAT(check("src/telemetry/log.h", include_system("spdlog/spdlog.h")),
              ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/store/rocks.h", include_system("rocksdb/db.h")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/codec/x.h", include("weir/v1/check.pb.h")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/codec/x.cc", include("weir/v1/check.pb.h")), IsEmpty());
}

TEST(HeavyHeaders, MayBeInHeadersWhereTheyAreTheSubject) {
  EXPECT_THAT(check("actors/owner.h", include_system("caf/all.hpp")), IsEmpty());
  EXPECT_THAT(check("src/server/server.cc", include_system("caf/all.hpp")), IsEmpty());
  EXPECT_THAT(check("src/server/server.h", include_system("caf/all.hpp")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/net/session.h", include_system("boost/beast/core.hpp")), IsEmpty());
}

TEST(HeavyHeaders, AreJudgedByTheLongestPrefix) {
  EXPECT_THAT(check("src/codec/x.cc", include_system("boost/json.hpp")), IsEmpty());
  EXPECT_THAT(check("src/codec/x.cc", include_system("boost/beast.hpp")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("src/edge/x.h", include_system("boost/unordered/unordered_flat_map.hpp")),
              IsEmpty());
  EXPECT_THAT(check("src/edge/x.h", include_system("boost/asio.hpp")), ElementsAre("1 heavy"));
  EXPECT_THAT(check("test/unit/x.cc", include_system("boost/beast.hpp")), IsEmpty());
}

TEST(Clock, IsBannedFromPureModules) {
  for (const char* code : {
           "auto now = std::chrono::steady_clock::now();",
           "clock_gettime(CLOCK_BOOTTIME, &spec);",
           "std::random_device device;",
           "int dice = rand();",
           "int dice = std::rand ();",
           "auto now = time(nullptr);",
           "auto now = ::time( 0 );",
           "std::time(&now);",
           "auto ticks = std::clock();",
           "SystemClock clock;",
       }) {
    EXPECT_THAT(check("src/lease/x.cc", code + std::string("\n")), ElementsAre("1 clock")) << code;
    EXPECT_THAT(check("src/net/x.cc", code + std::string("\n")), IsEmpty()) << code;
  }
}

TEST(Clock, IsNotSeenInNearMisses) {
  for (const char* code : {
           "// steady_clock would do here",
           "log(\"rand() and time(nullptr)\");",
           "dice.rand();",
           "dice->rand();",
           "auto at = entry.time(0);",
           "Nanos time() const;",
           "operand();",
           "world.clock().boot_ns();",
           "std::chrono::nanoseconds x{1'000};",
       }) {
    EXPECT_THAT(check("src/lease/x.cc", code + std::string("\n")), IsEmpty()) << code;
  }
}

TEST(Clock, OfTheSystemIsBuiltInTheProgramAndInTestsOnly) {
  const std::string text = include("src/base/system_clock.h");
  EXPECT_THAT(check("src/base/time.cc", text), ElementsAre("1 clock"));
  EXPECT_THAT(check("src/lease/x.cc", text), ElementsAre("1 clock"));
  EXPECT_THAT(check("actors/x.cc", text), ElementsAre("1 clock"));
  EXPECT_THAT(check("src/server/main.cc", text), IsEmpty());
  EXPECT_THAT(check("src/cli/main.cc", text), IsEmpty());
  EXPECT_THAT(check("test/integration/x.cc", text), IsEmpty());
  EXPECT_THAT(check("src/base/system_clock.cc", text + "clock_gettime(0, 0);\n"), IsEmpty());
}

TEST(Sleep, IsBannedWhereTimeIsDriven) {
  const std::string text = "std::this_thread::sleep_for(x);\n";
  EXPECT_THAT(check("src/net/x.cc", text), ElementsAre("1 sleep"));
  EXPECT_THAT(check("actors/x.cc", text), ElementsAre("1 sleep"));
  EXPECT_THAT(check("test/unit/x.cc", text), ElementsAre("1 sleep"));
  EXPECT_THAT(check("test/chaos/x.cc", text), IsEmpty());
  EXPECT_THAT(check("src/net/x.cc", "::usleep(1);\n"), ElementsAre("1 sleep"));
  EXPECT_THAT(check("src/net/x.cc", "sleep(1);\n"), ElementsAre("1 sleep"));
  EXPECT_THAT(check("src/net/x.cc", "worker.sleep(1);  // no sleep_for\n"), IsEmpty());
}

TEST(Lengths, OfLinesCountColumnsNotBytes) {
  EXPECT_THAT(check("src/net/x.h", std::string(100, 'x') + "\n"), IsEmpty());
  EXPECT_THAT(check("src/net/x.h", "\n" + std::string(101, 'x') + "\n"),
              ElementsAre("2 line-length"));
  std::string wide = "// ";
  for (int i = 0; i < 97; ++i) wide += "\xc3\xa4";
  EXPECT_THAT(check("src/net/x.h", wide + "\n"), IsEmpty());
  EXPECT_THAT(check("src/net/x.h", wide + "\xc3\xa4\n"), ElementsAre("1 line-length"));
}

TEST(Lengths, OfFilesAreLimited) {
  EXPECT_THAT(check("src/net/x.cc", std::string(kMaxFileLines, '\n')), IsEmpty());
  EXPECT_THAT(check("src/net/x.cc", std::string(kMaxFileLines + 1, '\n')),
              ElementsAre("601 file-length"));
  EXPECT_THAT(check("README.md", std::string(kMaxFileLines + 1, '\n')), IsEmpty());
}

TEST(Lengths, OfFunctionsAreLimited) {
  const auto function = [](int lines) {
    std::string text = "\nvoid f() {\n";
    for (int i = 2; i < lines; ++i) text += "  g();\n";
    return text + "}\n";
  };
  EXPECT_THAT(check("src/net/x.cc", function(kMaxFunctionLines)), IsEmpty());
  EXPECT_THAT(check("src/net/x.cc", function(kMaxFunctionLines + 1)),
              ElementsAre("2 function-length"));
}

TEST(Words, ThatPutWorkOffAreForbiddenEverywhere) {
  EXPECT_THAT(check("src/net/x.cc", "// TODO: more\n"), ElementsAre("1 words"));
  EXPECT_THAT(check("test/unit/x.cc", "\nf();  // NOLINT(rule)\n"), ElementsAre("2 words"));
  EXPECT_THAT(check("deploy/up.sh", "# FIXME\n"), ElementsAre("1 words"));
  EXPECT_THAT(check(".ci/run", "#!/bin/sh\n# XXX\n"), ElementsAre("2 words"));
  EXPECT_THAT(check("src/net/x.cc", "mktemp(\"weir-XXXXXX\");\n"), IsEmpty());
  EXPECT_THAT(check("test/tidy/x.cc", "// TODO\n"), IsEmpty());
}

TEST(Space, IsNeitherTabNorAtAnEnd) {
  EXPECT_THAT(check("src/net/x.cc", "a\n\tb\n"), ElementsAre("2 space"));
  EXPECT_THAT(check("deploy/up.sh", "a \nb\n"), ElementsAre("1 space"));
  EXPECT_THAT(check("src/net/x.cc", "a\r\n"), ElementsAre("1 space"));
  EXPECT_THAT(check("src/net/x.cc", "a\nb"), ElementsAre("2 space"));
  EXPECT_THAT(check("test/vectors/x.bin", "a\t \n"), IsEmpty());
}

TEST(Layout, WantsAReadmeInEachModule) {
  EXPECT_THAT(check_paths({"src/lease/ledger.cc", "src/lease/README.md"}), IsEmpty());
  EXPECT_THAT(check_paths({"src/lease/ledger.cc"}),
              ElementsAre(HasSubstr("src/lease/README.md:0: layout: missing")));
  EXPECT_THAT(check_paths({"lua/lease.lua"}), ElementsAre(HasSubstr("lua/README.md")));
}

TEST(Layout, KnowsTheRootAndTheModules) {
  EXPECT_THAT(check_paths({"README.md", ".gitignore", ".ci/run", "LICENSE"}), IsEmpty());
  EXPECT_THAT(check_paths({"notes.txt"}), ElementsAre(HasSubstr("notes.txt:0: layout:")));
  EXPECT_THAT(check_paths({"tools/x.cc"}), ElementsAre(HasSubstr("tools:0: layout:")));
  EXPECT_THAT(check_paths({"src/new/x.cc"}), ElementsAre(HasSubstr("src/new/x.cc:0: layout:")));
}

TEST(Exceptions, ThatExcuseNothingAreFindings) {
  EXPECT_THAT(check_paths({"src/base/system_clock.cc", "src/base/README.md"}),
              ElementsAre(AllOf(HasSubstr("src/base/system_clock.cc:0: exception:"),
                                HasSubstr("drop it"))));
}

TEST(Findings, AreOrderedAndSayWhere) {
  const std::vector<Finding> found = check_tree({
      {"src/net/b.cc", "\t\n// TODO\n"},
      {"src/net/README.md", ""},
      {"src/net/a.cc", "x \n"},
  });
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(to_string(found[0]), "src/net/a.cc:1: space: space at the end of the line");
  EXPECT_EQ(found[1].line, 1);
  EXPECT_EQ(to_string(found[2]), "src/net/b.cc:2: words: TODO: finish it, or open an issue");
}

/// The table itself: only names that exist, and no way round in a circle below the program.
TEST(Table, IsAWayDown) {
  std::vector<std::string_view> seen;
  for (const Module& module : modules()) {
    if (module.name == "server" || module.name == "cli") continue;
    for (const std::string_view included : module.includes) {
      EXPECT_THAT(seen, ::testing::Contains(included)) << module.name;
    }
    seen.push_back(module.name);
  }
}

}  // namespace
}  // namespace weir::tidy
