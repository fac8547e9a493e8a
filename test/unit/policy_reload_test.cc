// Goal: PROTOCOL J4's decision, one row each, with a message that says what to write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/policy/reload.h"

namespace weir::policy {
namespace {

using testing::HasSubstr;

TEST(PolicyReload, AHigherVersionReplaces) {
  EXPECT_EQ(decide_reload({0, 0}, {1, 5}), Reload::replace);
  EXPECT_EQ(decide_reload({12, 5}, {13, 6}), Reload::replace);
  EXPECT_EQ(decide_reload({12, 5}, {13, 5}), Reload::replace);
  EXPECT_EQ(decide_reload({12, 5}, {UINT64_MAX, 6}), Reload::replace);
}

TEST(PolicyReload, TheSameIsUnchanged) {
  EXPECT_EQ(decide_reload({12, 5}, {12, 5}), Reload::unchanged);
}

TEST(PolicyReload, TheSameVersionWithOtherContentIsRefused) {
  const auto decision = decide_reload({12, 5}, {12, 6});
  ASSERT_FALSE(decision);
  EXPECT_EQ(decision.error().field, "version");
  EXPECT_THAT(decision.error().message, HasSubstr("version 12 is in force with other content"));
  EXPECT_THAT(decision.error().message, HasSubstr("at least 13"));
}

TEST(PolicyReload, ALowerVersionIsRefused) {
  const auto decision = decide_reload({12, 5}, {11, 5});
  ASSERT_FALSE(decision);
  EXPECT_THAT(decision.error().message, HasSubstr("version 11 is older than version 12"));
  EXPECT_THAT(decision.error().message, HasSubstr("at least version 13"));
}

TEST(PolicyReload, ZeroIsNoVersion) {
  EXPECT_FALSE(decide_reload({0, 0}, {0, 0}));
  EXPECT_FALSE(decide_reload({3, 1}, {0, 1}));
}

TEST(PolicyReload, StampsAreOfTheDefinition) {
  PolicyDefinition definition;
  definition.version = 4;
  definition.content_hash = 9;
  EXPECT_EQ(stamp_of(definition), (PolicyStamp{4, 9}));
}

}  // namespace
}  // namespace weir::policy
