// Goal: what people read is right: columns line up, waits are never shown shorter than they are,
// and nothing a server sends can drive the terminal.
#include <gtest/gtest.h>

#include "src/cli/table.h"

namespace weir::cli {
namespace {

TEST(Table, LinesUpColumnsByCodePoints) {
  EXPECT_EQ(format_table({{"NAME", "N"}, {"zürich", "1"}, {"x", "22"}}),
            "NAME    N\nzürich  1\nx       22\n");
}

TEST(Table, TakesRowsOfDifferentLengths) {
  EXPECT_EQ(format_table({{"a"}, {"b", "c"}}), "a\nb  c\n");
  EXPECT_EQ(format_table({}), "");
}

TEST(Table, ShowsControlCharactersAsQuestionMarks) {
  EXPECT_EQ(format_table({{"a\x1b[2J", "b\nc"}}), "a?[2J  b?c\n");
  EXPECT_EQ(printable("\x7f\tz"), "??z");
}

TEST(Milliseconds, AreRoundedUp) {
  EXPECT_EQ(format_milliseconds(-1), "never");
  EXPECT_EQ(format_milliseconds(0), "0 ms");
  EXPECT_EQ(format_milliseconds(999), "999 ms");
  EXPECT_EQ(format_milliseconds(1000), "1 s");
  EXPECT_EQ(format_milliseconds(1001), "1.1 s");
  EXPECT_EQ(format_milliseconds(5900), "5.9 s");
  EXPECT_EQ(format_milliseconds(60'000), "1 min");
  EXPECT_EQ(format_milliseconds(5'400'000), "1.5 h");
  EXPECT_EQ(format_milliseconds(86'400'000), "1 d");
}

TEST(Milliseconds, DoNotOverflow) { EXPECT_EQ(format_milliseconds(INT64_MAX), "106751991167.4 d"); }

TEST(Count, GroupsByThousands) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-1000), "-1,000");
  EXPECT_EQ(format_count(-100), "-100");
}

}  // namespace
}  // namespace weir::cli
