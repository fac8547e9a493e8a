// Goal: enum values that are stored or sent are for ever, and each has the word that API.md uses.
// Method: all values by number and word; a value that does not exist is "unknown", never a crash.
#include <gtest/gtest.h>

#include "src/model/check.h"
#include "src/model/lease.h"
#include "src/model/limit.h"

namespace weir {
namespace {

template <typename Enum>
void expect_words(int first, std::initializer_list<const char*> words) {
  int value = first;
  for (const char* word : words) EXPECT_STREQ(to_string(static_cast<Enum>(value++)), word);
  EXPECT_STREQ(to_string(static_cast<Enum>(value)), "unknown");
  EXPECT_STREQ(to_string(static_cast<Enum>(255)), "unknown");
  EXPECT_STREQ(to_string(static_cast<Enum>(first - 1)), "unknown");
}

TEST(Words, AreThoseOfTheApi) {
  expect_words<Scope>(1, {"node", "region", "global"});
  expect_words<Algorithm>(1, {"token_bucket", "fixed_window", "sliding_window"});
  expect_words<Window>(0, {"none", "minute", "hour", "day", "week", "month"});
  expect_words<FailurePolicy>(1, {"static_share", "allow", "deny"});
  expect_words<Source>(
      1, {"lease", "owner", "node", "policy", "timeout", "static_share", "allow", "deny"});
  expect_words<LeaseStatus>(1, {"granted", "empty", "unknown", "pending", "not_owner", "no_limit",
                                "crowded", "ask_again", "recall"});
}

}  // namespace
}  // namespace weir
