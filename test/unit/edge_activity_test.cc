// Goal: what the edges tell of their customers is added up while it is fresh, in bounded space.
// Method: reports and instants by hand.
#include <gtest/gtest.h>

#include "src/edge/activity_table.h"

namespace weir::edge {
namespace {

using Listed = std::vector<CustomerActivity>;

TEST(ActivityTable, SumsOverTheEdgesAndSortsBothLists) {
  ActivityTable table;
  table.hear("us-1", {{{"acme", 10, 1}, {"b", 30, 0}}}, 0);
  table.hear("us-2", {{{"acme", 25, 4}, {"c", 7, 7}}}, 0);
  table.hear("eu-1", {}, 0);
  const auto top = table.top(kSecond);
  EXPECT_EQ(top.edges, 3U);
  EXPECT_EQ(top.busiest, (Listed{{"acme", 35, 5}, {"b", 30, 0}, {"c", 7, 7}}));
  EXPECT_EQ(top.denied, (Listed{{"c", 7, 7}, {"acme", 35, 5}}));
}

TEST(ActivityTable, AReportReplacesTheOneBeforeAndExpires) {
  ActivityTable table;
  table.hear("us-1", {{{"acme", 10, 0}}}, 0);
  table.hear("us-2", {{{"acme", 1, 0}}}, kSecond);
  table.hear("us-1", {{{"acme", 20, 0}}}, kSecond);
  EXPECT_EQ(table.top(kSecond).busiest, (Listed{{"acme", 21, 0}}));
  table.hear("us-2", {{{"acme", 2, 0}}}, 3 * kSecond);
  EXPECT_EQ(table.top(kSecond + kActivityLifeNs - 1).edges, 2U);
  const auto later = table.top(kSecond + kActivityLifeNs);
  EXPECT_EQ(later.edges, 1U);
  EXPECT_EQ(later.busiest, (Listed{{"acme", 2, 0}}));
  EXPECT_EQ(table.top(kMinute).edges, 0U);
}

TEST(ActivityTable, ListsAreBoundedAndTiesGoByName) {
  ActivityTable table;
  ActivityReport report;
  for (char c = 'z'; c >= 'a'; --c) report.customers.push_back({std::string(1, c), 5, 5});
  table.hear("us-1", report, 0);
  const auto top = table.top(0);
  ASSERT_EQ(top.busiest.size(), kMostListed);
  ASSERT_EQ(top.denied.size(), kMostListed);
  EXPECT_EQ(top.busiest.front().customer, "a");
  EXPECT_EQ(top.denied.back().customer, std::string(1, 'a' + kMostListed - 1));
}

TEST(ActivityTable, TooManyEdgesAreLeftOutUntilOthersFallSilent) {
  ActivityTable table;
  for (std::size_t i = 0; i < kMaxEdgesHeard; ++i) table.hear(std::to_string(i), {}, 0);
  table.hear("late", {}, 0);
  EXPECT_EQ(table.top(0).edges, kMaxEdgesHeard);
  table.hear("0", {{{"acme", 1, 0}}}, 0);
  EXPECT_EQ(table.top(0).busiest.size(), 1U) << "whoever is in stays in";
  table.hear("late", {}, kActivityLifeNs);
  EXPECT_EQ(table.top(kActivityLifeNs).edges, 1U);
}

TEST(ActivityTable, HugeRatesDoNotOverflow) {
  ActivityTable table;
  table.hear("us-1", {{{"acme", INT64_MAX, 1}}}, 0);
  table.hear("us-2", {{{"acme", INT64_MAX, 1}}}, 0);
  EXPECT_EQ(table.top(0).busiest, (Listed{{"acme", INT64_MAX, 2}}));
}

TEST(MostActive, NamesWhoeverIsInOneOfTheListsOnce) {
  const Listed all{{"a", 9, 0}, {"b", 8, 8}, {"c", 7, 1}, {"d", 2, 2}, {"e", 0, 0}};
  EXPECT_EQ(most_active(all, 2), (Listed{{"a", 9, 0}, {"b", 8, 8}, {"d", 2, 2}}));
  EXPECT_EQ(most_active(all, 10).size(), 4U) << "whoever has not asked is not named";
}

}  // namespace
}  // namespace weir::edge
