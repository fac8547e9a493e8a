// Goal: a peer that stays refused does not fill the log, nor do many. Method: a clock that the test
// moves, and the lines counted.
#include "actors/cluster_tls.h"

#include <gtest/gtest.h>

#include "test/actor/support.h"

namespace weir::actors::test {
namespace {

class Refusals : public testing::Test {
 protected:
  ManualClock clock_;
  int lines_ = 0;
  std::string last_;
  std::unique_ptr<telemetry::Log> log_ = telemetry::make_log(
      telemetry::Level::info, telemetry::Format::text, [this](std::string_view line) {
        ++lines_;
        last_ = line;
      });
  RefusalLog refusals_{clock_, *log_};
};

TEST_F(Refusals, APeerIsNamedOnceAMinuteForEachReason) {
  for (int i = 0; i < 100; ++i) refusals_.say("eu-2", "expired");
  EXPECT_EQ(lines_, 1);
  EXPECT_NE(last_.find("no connection with a peer peer=eu-2 reason=expired"), std::string::npos)
      << last_;
  refusals_.say("eu-2", "foreign");
  refusals_.say("eu-3", "expired");
  EXPECT_EQ(lines_, 3);
  clock_.advance(kRefusalLineNs - 1);
  refusals_.say("eu-2", "expired");
  EXPECT_EQ(lines_, 3);
  clock_.advance(1);
  refusals_.say("eu-2", "expired");
  EXPECT_EQ(lines_, 4);
}

TEST_F(Refusals, ManyStrangersDoNotFillTheLog) {
  const int most = static_cast<int>(kMaxRefusedPeers);
  for (int i = 0; i < 2 * most; ++i) refusals_.say(std::to_string(i), "no TLS");
  EXPECT_EQ(lines_, most);
  clock_.advance(kRefusalLineNs);
  refusals_.say("eu-2", "expired");
  EXPECT_EQ(lines_, most + 1);
}

}  // namespace
}  // namespace weir::actors::test
