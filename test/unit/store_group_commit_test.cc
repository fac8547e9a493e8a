// Goal: group commit loses, repeats and reorders nothing, and keeps to its limits.
// Method: submit and begin by hand; a seeded random run against a plain map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "src/store/group_commit.h"
#include "src/store/record_key.h"
#include "test/unit/store_support.h"

namespace weir::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

CommitItem item(std::uint64_t completion, std::vector<RecordWrite> records) {
  CommitItem made;
  made.records = std::move(records);
  made.completion = completion;
  return made;
}

std::vector<std::uint64_t> ids(const std::vector<CommitDone>& done) {
  std::vector<std::uint64_t> result;
  for (const CommitDone& one : done) result.push_back(one.completion);
  return result;
}

TEST(GroupCommit, WhatWaitsGoesTogetherInOrder) {
  GroupCommit group;
  EXPECT_EQ(group.begin(), std::nullopt);
  ASSERT_TRUE(group.submit(item(1, {record_of("a", 1)})));
  ASSERT_TRUE(group.submit(item(2, {record_of("b", 2), record_of("c", 3)})));
  const auto batch = group.begin();
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->records, ElementsAre(record_of("a", 1), record_of("b", 2), record_of("c", 3)));
  EXPECT_THAT(group.finish(Status()), ElementsAre(CommitDone{1, {}}, CommitDone{2, {}}));
  EXPECT_EQ(group.begin(), std::nullopt);
}

TEST(GroupCommit, OneBatchIsUnderWayAndTheRestGathers) {
  GroupCommit group;
  ASSERT_TRUE(group.submit(item(1, {record_of("a", 1)})));
  ASSERT_TRUE(group.begin());
  EXPECT_TRUE(group.batch_under_way());
  ASSERT_TRUE(group.submit(item(2, {record_of("b", 2)})));
  ASSERT_TRUE(group.submit(item(3, {record_of("c", 3)})));
  EXPECT_EQ(group.begin(), std::nullopt);
  EXPECT_EQ(group.waiting(), 2U);
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(1));
  EXPECT_FALSE(group.batch_under_way());
  EXPECT_THAT(group.begin()->records, SizeIs(2));
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(2, 3));
}

TEST(GroupCommit, TheLastRecordOfABucketWinsAndAllAreTold) {
  GroupCommit group;
  ASSERT_TRUE(group.submit(item(1, {record_of("a", 1), record_of("b", 1)})));
  ASSERT_TRUE(group.submit(item(2, {record_of("a", 2)})));
  ASSERT_TRUE(group.submit(item(3, {record_of("a", 3)})));
  EXPECT_THAT(group.begin()->records, ElementsAre(record_of("a", 3), record_of("b", 1)));
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(1, 2, 3));
}

TEST(GroupCommit, TheSameBucketInTwoRegistersIsTwoRecords) {
  GroupCommit group;
  const std::string bucket = bucket_of("a");
  ASSERT_TRUE(group.submit(item(1, {record_in({RegisterId::Kind::global, "", 7}, bucket, 1)})));
  ASSERT_TRUE(group.submit(item(2, {record_in({RegisterId::Kind::region, "eu", 7}, bucket, 2)})));
  EXPECT_THAT(group.begin()->records, SizeIs(2));
}

TEST(GroupCommit, TheLastMetaValueWins) {
  GroupCommit group;
  CommitItem first = item(1, {});
  first.meta = {{"epoch", "1"}, {"other", "x"}};
  CommitItem second = item(2, {});
  second.meta = {{"epoch", "2"}};
  ASSERT_TRUE(group.submit(first));
  ASSERT_TRUE(group.submit(second));
  EXPECT_THAT(group.begin()->meta, ElementsAre(std::pair("epoch", "2"), std::pair("other", "x")));
}

TEST(GroupCommit, AFailureIsToldToEveryItemOfTheBatchAndToNoOther) {
  GroupCommit group({.most_records = 2});
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(group.submit(item(i, {record_of("c" + std::to_string(i), i)})));
  }
  ASSERT_TRUE(group.begin());
  const Status failed = failure(ErrorCode::io, "data", "disk full");
  EXPECT_THAT(group.finish(failed), ElementsAre(CommitDone{1, failed}, CommitDone{2, failed}));
  ASSERT_TRUE(group.begin());
  EXPECT_THAT(group.finish(Status()), ElementsAre(CommitDone{3, {}}));
}

TEST(GroupCommit, AnItemIsNeverSplitAndALargeOneGoesAlone) {
  GroupCommit group({.most_records = 3});
  ASSERT_TRUE(group.submit(item(1, {record_of("a", 1), record_of("b", 1)})));
  ASSERT_TRUE(group.submit(item(2, {record_of("c", 1), record_of("d", 1)})));
  ASSERT_TRUE(group.submit(
      item(3, {record_of("e", 1), record_of("f", 1), record_of("g", 1), record_of("h", 1)})));
  ASSERT_TRUE(group.submit(item(4, {record_of("i", 1)})));
  EXPECT_THAT(group.begin()->records, SizeIs(2));
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(1));
  EXPECT_THAT(group.begin()->records, SizeIs(2));
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(2));
  EXPECT_THAT(group.begin()->records, SizeIs(4));
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(3));
  EXPECT_THAT(group.begin()->records, SizeIs(1));
}

TEST(GroupCommit, BytesBoundABatchToo) {
  GroupCommit group({.most_bytes = 4'000});
  for (std::uint64_t i = 1; i <= 8; ++i) {
    const std::string customer = std::string(900, 'x') + std::to_string(i);
    ASSERT_TRUE(group.submit(item(i, {record_of(customer, i)})));
  }
  ASSERT_TRUE(group.begin());
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(1, 2, 3));
}

TEST(GroupCommit, AFullLineRefuses) {
  GroupCommit group({.most_waiting = 2});
  EXPECT_TRUE(group.submit(item(1, {})));
  EXPECT_TRUE(group.submit(item(2, {})));
  EXPECT_FALSE(group.submit(item(3, {})));
  ASSERT_TRUE(group.begin());
  EXPECT_TRUE(group.submit(item(4, {})));
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(1, 2));
}

TEST(GroupCommit, AnItemWithNothingToWriteIsToldInItsTurn) {
  GroupCommit group;
  ASSERT_TRUE(group.submit(item(1, {})));
  const auto batch = group.begin();
  ASSERT_TRUE(batch);
  EXPECT_TRUE(batch->empty());
  EXPECT_THAT(ids(group.finish(Status())), ElementsAre(1));
}

TEST(GroupCommitDeathTest, FinishWithoutABatchIsABug) {
  GroupCommit group;
  EXPECT_DEATH(group.finish(Status()), "under_way_");
}

TEST(GroupCommit, EndsInTheSameStateAsWritingOneByOne) {
  Random random(7);
  GroupCommit group({.most_records = 5});
  std::map<std::string, StoredRecord> one_by_one;
  std::map<std::string, StoredRecord> grouped;
  std::uint64_t submitted = 0;
  std::uint64_t told = 0;
  const auto apply = [](std::map<std::string, StoredRecord>& to, const RecordWrite& write) {
    to[record_key(write.reg, write.record.bucket)] = write.record;
  };
  const auto end_batch = [&] {
    for (const CommitDone& done : group.finish(Status())) EXPECT_EQ(done.completion, ++told);
  };
  for (int step = 0; step < 20'000; ++step) {
    if (random.chance(600)) {
      CommitItem next = item(++submitted, {});
      for (std::uint64_t n = random.below(4); n > 0; --n) {
        next.records.push_back(record_of("c" + std::to_string(random.below(6)), submitted));
        apply(one_by_one, next.records.back());
      }
      ASSERT_TRUE(group.submit(std::move(next)));
    } else if (group.batch_under_way()) {
      end_batch();
    } else if (const auto batch = group.begin()) {
      ASSERT_LE(batch->records.size(), 5U);
      for (const RecordWrite& write : batch->records) apply(grouped, write);
    }
  }
  if (group.batch_under_way()) end_batch();
  while (const auto batch = group.begin()) {
    for (const RecordWrite& write : batch->records) apply(grouped, write);
    end_batch();
  }
  EXPECT_EQ(told, submitted);
  EXPECT_EQ(grouped, one_by_one);
}

}  // namespace
}  // namespace weir::store
