// Goal: a bad, missing or older file never changes the policy in force, and is reported until a
// good one comes (FIELD 6).
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/server/policy_keeper.h"
#include "test/support/temporary_folder.h"

namespace weir::server {
namespace {

namespace fs = std::filesystem;

class FixedClock final : public Clock {
 public:
  Nanos boot_ns() const override { return 0; }
  Nanos wall_ns() const override { return wall_ns_; }
  Nanos wall_ns_ = 1'000 * kSecond;
};

class PolicyKeeperTest : public testing::Test {
 protected:
  std::string path() const { return folder_ + "/policy.yaml"; }
  void write(int version, const std::string& rate) const {
    std::ofstream(path()) << "version: " << version
                          << "\nlimits:\n  - {name: api, scope: global, rate: " << rate << "}\n";
  }

  const weir::test::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.string();
  FixedClock clock_;
};

TEST_F(PolicyKeeperTest, HasNoPolicyBeforeTheFirstGoodFile) {
  PolicyKeeper keeper(path(), clock_);
  EXPECT_EQ(keeper.policy(), nullptr);
  EXPECT_FALSE(keeper.reload());
  EXPECT_EQ(keeper.policy(), nullptr);
  EXPECT_TRUE(keeper.state().last_error);
}

TEST_F(PolicyKeeperTest, TakesAHigherVersion) {
  PolicyKeeper keeper(path(), clock_);
  write(1, "5/min");
  EXPECT_EQ(*keeper.reload(), PolicyKeeper::Outcome::replaced);
  EXPECT_EQ(keeper.state().loaded_wall_ns, clock_.wall_ns_);
  const auto first = keeper.policy();
  EXPECT_EQ(*keeper.reload(), PolicyKeeper::Outcome::unchanged);
  EXPECT_EQ(keeper.policy(), first);
  write(2, "6/min");
  EXPECT_EQ(*keeper.reload(), PolicyKeeper::Outcome::replaced);
  EXPECT_EQ(keeper.policy()->version(), 2U);
}

std::string text_of(int version) {
  return "version: " + std::to_string(version) +
         "\nlimits:\n  - {name: api, scope: global, rate: 7/min}\n";
}

TEST_F(PolicyKeeperTest, WhatIsStoredBeatsAnOlderFile) {
  write(3, "5/min");
  PolicyKeeper older(path(), clock_);
  ASSERT_TRUE(older.start(text_of(4), false));
  EXPECT_EQ(older.policy()->version(), 4U);
  EXPECT_EQ(older.state().origin, "store");
  EXPECT_TRUE(older.state().last_error) << "the file is shown to be too old";
  PolicyKeeper younger(path(), clock_);
  ASSERT_TRUE(younger.start(text_of(2), false));
  EXPECT_EQ(younger.policy()->version(), 3U);
  EXPECT_EQ(younger.state().origin, "file");
}

TEST_F(PolicyKeeperTest, TheSameVersionWithOtherContentIsRefusedAtTheStart) {
  write(4, "5/min");
  PolicyKeeper keeper(path(), clock_);
  ASSERT_TRUE(keeper.start(text_of(4), false));
  EXPECT_EQ(keeper.state().origin, "store");
  EXPECT_TRUE(keeper.state().last_error);
}

TEST_F(PolicyKeeperTest, AMissingFileIsWaitedForOnlyByWhoeverHasPeersToTellIt) {
  EXPECT_FALSE(PolicyKeeper(path(), clock_).start({}, false));
  PolicyKeeper waits(path(), clock_);
  EXPECT_TRUE(waits.start({}, true));
  EXPECT_EQ(waits.policy(), nullptr);
  EXPECT_TRUE(PolicyKeeper(path(), clock_).start(text_of(1), false));
  std::ofstream(path()) << "limits: [";
  EXPECT_FALSE(PolicyKeeper(path(), clock_).start({}, true)) << "broken is not missing";
  EXPECT_TRUE(PolicyKeeper(path(), clock_).start(text_of(1), false));
}

TEST_F(PolicyKeeperTest, AStoredOneThatCannotBeReadGivesWayToTheFile) {
  write(3, "5/min");
  PolicyKeeper keeper(path(), clock_);
  ASSERT_TRUE(keeper.start("of a later build", false));
  EXPECT_EQ(keeper.policy()->version(), 3U);
}

TEST_F(PolicyKeeperTest, TakesFromAPeerOnlyWhatIsHigherAndCanBeRead) {
  write(3, "5/min");
  PolicyKeeper keeper(path(), clock_);
  ASSERT_TRUE(keeper.start({}, false));
  EXPECT_FALSE(keeper.take("limits: [", "eu-2"));
  for (const int version : {2, 3}) {
    const auto taken = keeper.take(text_of(version), "eu-2");
    ASSERT_TRUE(taken);
    EXPECT_EQ(taken->outcome, PolicyKeeper::Outcome::unchanged);
    EXPECT_EQ(taken->stamp.version, static_cast<std::uint64_t>(version));
  }
  EXPECT_EQ(keeper.state().origin, "file");
  const auto taken = keeper.take(text_of(4), "eu-2");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->outcome, PolicyKeeper::Outcome::replaced);
  EXPECT_EQ(keeper.policy()->version(), 4U);
  EXPECT_EQ(keeper.state().origin, "eu-2");
  EXPECT_EQ(keeper.state().text->text, text_of(4));
  EXPECT_FALSE(keeper.reload()) << "the file is the older one now";
  EXPECT_EQ(keeper.policy()->version(), 4U);
}

TEST_F(PolicyKeeperTest, KeepsTheLastGoodOneAndSaysWhy) {
  PolicyKeeper keeper(path(), clock_);
  write(5, "5/min");
  ASSERT_TRUE(keeper.reload());
  const auto good = keeper.policy();
  const auto refused = [&](const char* what) {
    clock_.wall_ns_ += kSecond;
    EXPECT_FALSE(keeper.reload()) << what;
    EXPECT_EQ(keeper.policy(), good) << what;
    const auto state = keeper.state();
    ASSERT_TRUE(state.last_error) << what;
    EXPECT_NE(state.last_error->find(path()), std::string::npos) << *state.last_error;
    EXPECT_EQ(state.last_error_wall_ns, clock_.wall_ns_);
  };
  write(6, "much");
  refused("a broken file");
  write(4, "5/min");
  refused("a lower version");
  write(5, "9/min");
  refused("the same version with other content");
  std::ofstream(path()) << "";
  refused("an empty file");
  fs::remove(path());
  refused("no file");
  write(6, "9/min");
  EXPECT_TRUE(keeper.reload());
  EXPECT_FALSE(keeper.state().last_error) << "a good file ends the report";
}

TEST_F(PolicyKeeperTest, ReportsEveryMistakeWithItsPlace) {
  PolicyKeeper keeper(path(), clock_);
  std::ofstream(path()) << "version: x\nlimits:\n  - {name: api, scope: globl, rate: 2}\n";
  EXPECT_FALSE(keeper.reload());
  const std::string error = *keeper.state().last_error;
  EXPECT_NE(error.find(path() + ":1:"), std::string::npos) << error;
  EXPECT_NE(error.find(path() + ":3:"), std::string::npos) << error;
  EXPECT_NE(error.back(), '\n');
}

TEST_F(PolicyKeeperTest, TakesEveryAlgorithm) {
  PolicyKeeper keeper(path(), clock_);
  std::ofstream(path()) << "version: 1\nlimits:\n"
                           "  - {name: m, scope: global, quota: 9, window: month}\n"
                           "  - {name: b, scope: global, rate: 9/s}\n"
                           "  - {name: s, scope: node, algorithm: sliding_window, rate: 9/s}\n";
  EXPECT_TRUE(keeper.reload());
}

}  // namespace
}  // namespace weir::server
