// Goal: what a replica stored is read back as it was, or refused; never read as something else.
// Method: golden bytes, round trips of random valid records, each kind of impossible record, and
// every truncation and single-bit flip.
#include <gtest/gtest.h>

#include "src/base/limits.h"
#include "src/codec/record.h"
#include "src/codec/seal.h"
#include "test/unit/codec_support.h"

namespace weir::codec {
namespace {

StoredRecord sample_record() {
  StoredRecord record;
  record.bucket = "bucket";
  record.version = {{7, "eu-1", 0x1122334455667788}, 42};
  record.ledger.level = 55;
  record.ledger.fraction = 123456789;
  record.ledger.numbers = {100, 600, kMinute};
  record.ledger.policy_version = 12;
  record.ledger.lessees = {{{"us-1", 0xfedcba9876543210}, 9, 30, 400, 2, 5 * kSecond},
                           {{"us-2", 1}, 1, 10, 0, 0, 0}};
  return record;
}

RecordStamp sample_stamp() {
  return {"0d7ba0ec-9d1e-4a6b-9c6e-2f1d8f3f0a11", 987654321, 1796000000000000000};
}

/// A day of Berlin with daylight saving in it, 23 hours long.
StoredRecord window_record() {
  StoredRecord record = sample_record();
  record.ledger.level = 20;
  record.ledger.fraction = 0;
  record.ledger.numbers = {100, 0, 0};
  record.ledger.window_start_ns = 1711839600 * kSecond;
  record.ledger.window_end_ns = record.ledger.window_start_ns + 23 * kHour;
  record.ledger.used = 40;
  return record;
}

StoredRecord empty_record() {
  StoredRecord record;
  record.bucket = "bucket";
  record.ledger.numbers = {1, 1, kMillisecond};
  return record;
}

StoredRecord random_record(Random& random) {
  StoredRecord record;
  record.bucket = std::string(random.below(20), 'b');
  record.version = {{random.next(), "n" + std::to_string(random.below(9)), random.next()},
                    random.next()};
  LedgerRecord& ledger = record.ledger;
  const bool window = random.chance(200);
  ledger.numbers.capacity = random.chance(100) ? INT64_MAX : random.between(1, 1'000'000);
  if (!window) {
    ledger.numbers.rate_count = random.chance(100) ? INT64_MAX : random.between(1, 1'000'000);
    ledger.numbers.rate_period_ns = random.between(kMillisecond, kYear);
    ledger.fraction = random.below(static_cast<std::uint64_t>(ledger.numbers.rate_period_ns));
  }
  ledger.policy_version = random.next();
  if (random.chance(window ? 900 : 100)) {
    ledger.window_start_ns = random.between(-kDay, INT64_MAX - kYear);
    ledger.window_end_ns = ledger.window_start_ns + random.between(1, kYear);
    ledger.used = random.between(0, INT64_MAX);
  }
  std::int64_t out = 0;
  const auto count = random.below(kMaxLesseesPerRecord + 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto outstanding = random.between(0, ledger.numbers.capacity / 64);
    out = add_saturating(out, outstanding);
    ledger.lessees.push_back({{"edge-" + std::to_string(i % 7), i},
                              random.next(),
                              outstanding,
                              random.between(0, INT64_MAX),
                              random.between(0, INT64_MAX),
                              random.between(0, INT64_MAX),
                              random.chance(200)});
  }
  ledger.level = random.between(0, std::max<std::int64_t>(0, ledger.numbers.capacity - out));
  return record;
}

void expect_refused(const StoredRecord& record, const RecordStamp& stamp, const char* field) {
  const auto decoded = decode_record(record.bucket, encode_record(record, stamp));
  ASSERT_FALSE(decoded.has_value()) << field;
  EXPECT_EQ(decoded.error().code, ErrorCode::corrupt);
  EXPECT_EQ(decoded.error().field, field);
}

void expect_refused(const StoredRecord& record, const char* field) {
  expect_refused(record, sample_stamp(), field);
}

TEST(RecordCodec, golden_bytes_are_for_ever) {
  auto vectors = test::read_vectors("records.txt");
  const auto full = encode_record(sample_record(), sample_stamp());
  EXPECT_EQ(test::to_hex(full), test::to_hex(vectors["full"]));
  EXPECT_EQ(test::to_hex(encode_record(empty_record(), {})), test::to_hex(vectors["empty"]));
  EXPECT_EQ(test::to_hex(encode_record(window_record(), sample_stamp())),
            test::to_hex(vectors["window"]));
  EXPECT_EQ(decode_record("bucket", vectors["window"])->record, window_record());
  StoredRecord relay = sample_record();
  relay.ledger.lessees[1].relay = true;
  EXPECT_EQ(test::to_hex(encode_record(relay, sample_stamp())), test::to_hex(vectors["relay"]));
  EXPECT_EQ(decode_record("bucket", vectors["relay"])->record, relay);
  const auto decoded = decode_record("bucket", vectors["full"]);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, (DecodedRecord{sample_record(), sample_stamp()}));
}

TEST(RecordCodec, a_later_build_may_add_fields) {
  std::string bytes = encode_record(sample_record(), sample_stamp());
  bytes.resize(bytes.size() - kSealBytes);
  bytes += std::string("\xa2\x06\x03new", 6);  // field 100, a string
  append_seal(bytes);
  auto vectors = test::read_vectors("records.txt");
  EXPECT_EQ(test::to_hex(bytes), test::to_hex(vectors["later_field"]));
  const auto decoded = decode_record("bucket", bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->record, sample_record());
}

TEST(RecordCodec, random_records_round_trip) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const StoredRecord record = random_record(random);
    const RecordStamp stamp{"boot", random.between(0, INT64_MAX), random.between(0, INT64_MAX)};
    const auto decoded = decode_record(record.bucket, encode_record(record, stamp));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().field << ' ' << decoded.error().message;
    EXPECT_EQ(*decoded, (DecodedRecord{record, stamp}));
  }
}

TEST(RecordCodec, refuses_what_no_ledger_writes) {
  auto record = sample_record();
  record.ledger.level = -1;
  expect_refused(record, "level");
  record.ledger.level = 61;  // 100 - 40 out on lease leave 60
  expect_refused(record, "level");
  record = sample_record();
  record.ledger.fraction = static_cast<std::uint64_t>(kMinute);
  expect_refused(record, "fraction");
  record = sample_record();
  record.ledger.numbers.capacity = 0;
  expect_refused(record, "numbers.capacity");
  record = sample_record();
  record.ledger.numbers.rate_count = 0;
  expect_refused(record, "numbers.rate_count");
  record = sample_record();
  record.ledger.numbers.rate_period_ns = kYear + 1;
  expect_refused(record, "numbers.rate_period_ns");
  record = sample_record();
  record.ledger.numbers = {100, 0, 0};
  expect_refused(record, "fraction");
}

TEST(RecordCodec, refuses_impossible_lessees) {
  const auto with = [](auto change) {
    auto record = sample_record();
    change(record.ledger.lessees[1]);
    return record;
  };
  expect_refused(with([](LesseeRecord& l) { l.outstanding = -1; }), "lessees.outstanding");
  expect_refused(with([](LesseeRecord& l) { l.outstanding = INT64_MAX; }), "lessees.outstanding");
  expect_refused(with([](LesseeRecord& l) { l.spent_total = -1; }), "lessees.spent_total");
  expect_refused(with([](LesseeRecord& l) { l.given_back = -1; }), "lessees.given_back");
  expect_refused(with([](LesseeRecord& l) { l.ttl_remaining_ns = -1; }),
                 "lessees.ttl_remaining_ns");
  expect_refused(with([](LesseeRecord& l) { l.lessee.node.clear(); }), "lessees.node");
  expect_refused(with([](LesseeRecord& l) { l.lessee = {"us-1", 0xfedcba9876543210}; }), "lessees");
  auto crowded = empty_record();
  for (std::uint64_t i = 0; i <= kMaxLesseesPerRecord; ++i) {
    crowded.ledger.lessees.push_back({{"e", i}, 1, 0, 0, 0, 0});
  }
  expect_refused(crowded, "lessees");
}

TEST(RecordCodec, refuses_impossible_stamps_and_formats) {
  auto window = window_record();
  window.ledger.window_end_ns = window.ledger.window_start_ns;
  expect_refused(window, "window_end_ns");
  window = window_record();
  window.ledger.used = -1;
  expect_refused(window, "used");
  window = empty_record();
  window.ledger.used = 1;
  expect_refused(window, "used");
  expect_refused(sample_record(), {"boot", 0, -1}, "wall_ns");
  expect_refused(sample_record(), {std::string(65, 'x'), 0, 0}, "boot_id");
  std::string bytes = encode_record(sample_record(), sample_stamp());
  bytes.resize(bytes.size() - kSealBytes);
  ASSERT_EQ(bytes[1], 1);
  bytes[1] = 2;
  append_seal(bytes);
  const auto decoded = decode_record("bucket", bytes);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().field, "format");
}

TEST(RecordCodec, a_lowered_limit_may_leave_more_out_than_the_capacity) {
  auto record = sample_record();
  record.ledger.numbers.capacity = 10;
  record.ledger.level = 0;
  EXPECT_TRUE(decode_record("bucket", encode_record(record, sample_stamp())).has_value());
}

TEST(RecordCodec, no_cut_or_flipped_bit_goes_unnoticed) {
  const std::string bytes = encode_record(sample_record(), sample_stamp());
  const auto refuse = [](const std::string& damaged) {
    EXPECT_FALSE(decode_record("bucket", damaged).has_value()) << test::to_hex(damaged);
  };
  test::for_each_truncation(bytes, refuse);
  test::for_each_bit_flip(bytes, refuse);
}

TEST(RecordCodec, sealed_nonsense_never_yields_an_impossible_record) {
  std::string content = encode_record(sample_record(), sample_stamp());
  content.resize(content.size() - kSealBytes);
  test::for_each_mutation(content, 2, 20000, [](std::string mutated) {
    append_seal(mutated);
    const auto decoded = decode_record("bucket", mutated);
    if (!decoded) return;
    // Whatever was accepted is a value that this build itself could have stored.
    const auto again = decode_record("bucket", encode_record(decoded->record, decoded->stamp));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(*again, *decoded);
  });
}

}  // namespace
}  // namespace weir::codec
