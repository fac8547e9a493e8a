// Goal: what replicas say to each other arrives as it was said, or its frame is refused.
// Method: a golden frame with every kind, round trips of random messages of each kind, each kind of
// insane value, and mutations under a valid seal.
#include <gtest/gtest.h>

#include "src/codec/envelope.h"
#include "src/codec/seal.h"
#include "test/unit/codec_support.h"

namespace weir::codec {
namespace {

std::string bucket_of(std::uint64_t number) {
  return encode(BucketKey{"c" + std::to_string(number), Scope::global, {}, "api", {}});
}

RegisterId random_register(Random& random) {
  const auto kind = static_cast<RegisterId::Kind>(random.between(1, 3));
  return {kind, kind == RegisterId::Kind::global ? "" : "us",
          static_cast<Slot>(random.below(kSlotCount))};
}

Epoch random_epoch(Random& random) { return {random.next(), "eu-1", random.next()}; }

StoreMark random_mark(Random& random) {
  return {"eu-" + std::to_string(random.below(9)), static_cast<std::uint32_t>(random.next())};
}

std::vector<StoreMark> random_marks(Random& random) {
  std::vector<StoreMark> marks;
  for (auto n = random.below(4); n > 0; --n) marks.push_back(random_mark(random));
  return marks;
}

StoredRecord random_record(Random& random) {
  StoredRecord record{bucket_of(random.below(1000)), {random_epoch(random), random.next()}, {}};
  if (random.chance(100)) {
    record.ledger.document = "version: 7";
    return record;
  }
  record.ledger.numbers = {random.between(1000, INT64_MAX / 2), random.between(1, 1000), kSecond};
  record.ledger.level = random.between(0, 100);
  record.ledger.fraction = random.below(kSecond);
  record.ledger.policy_version = random.next();
  for (auto n = random.below(3); n > 0; --n) {
    record.ledger.lessees.push_back({{"us-" + std::to_string(n), random.next()},
                                     random.next(),
                                     random.between(0, 100),
                                     random.between(0, INT64_MAX),
                                     random.between(0, INT64_MAX),
                                     random.between(0, INT64_MAX)});
  }
  return record;
}

std::vector<AgedRecord> random_records(Random& random) {
  std::vector<AgedRecord> records;
  for (auto n = random.below(4); n > 0; --n) {
    records.push_back({random_record(random), random.between(0, INT64_MAX)});
  }
  return records;
}

/// One message of each kind, in the order of the variant.
std::vector<RegisterMessage> one_of_each(Random& random) {
  const auto reg = [&] { return random_register(random); };
  const auto epoch = [&] { return random_epoch(random); };
  const auto mark = [&] { return random_mark(random); };
  const auto marks = [&] { return random_marks(random); };
  const auto number = [&] { return random.next(); };
  const auto yes = [&] { return random.chance(500); };
  std::optional<AgedRecord> found;
  if (yes()) found = AgedRecord{random_record(random), random.between(0, kMinute)};
  Accept accept{reg(), epoch(), number(), {}};
  for (auto n = random.below(4); n > 0; --n) accept.records.push_back(random_record(random));
  Claims claims{number(), {}, number()};
  for (auto n = random.below(4); n > 0; --n) claims.owned.emplace_back(reg(), number());
  accept.stage = number();
  const TopologyState topology{{7, "version: 7", marks()},
                               TopologyVersion{8, "version: 8", marks()}};
  Unmarked unmarked{number(), number(), {}, {"acme"}};
  for (auto n = random.below(4); n > 0; --n) unmarked.registers.push_back(reg());
  return {
      Prepare{reg(), epoch(), marks(), yes(), yes(), marks(), number()},
      Promise{reg(), epoch(), yes(), epoch(), mark(), yes(), number(), marks(), marks(), number()},
      Read{reg(), epoch(), number(), bucket_of(1), number()},
      ReadReply{reg(), epoch(), number(), yes(), epoch(), mark(), yes(), found, number()},
      accept,
      Accepted{
          reg(), epoch(), number(), yes(), epoch(), mark(), {bucket_of(1), bucket_of(2)}, number()},
      Poll{reg(), number()},
      PollReply{reg(), number(), yes(), epoch(), yes() ? "eu-2" : ""},
      Scan{reg(), epoch(), number(), yes() ? bucket_of(5) : "", number()},
      ScanReply{reg(), epoch(), number(), yes(), epoch(), mark(), yes(), random_records(random),
                yes(), number()},
      Install{reg(), epoch(), number(), mark(), random_records(random), yes(), number()},
      Installed{reg(), epoch(), number(), yes(), epoch(), mark(), number()},
      HandOver{reg()},
      Release{reg(), epoch()},
      claims,
      Beat{number(), static_cast<std::uint32_t>(number()), number(), number(), marks(), number()},
      TopologyNews{topology},
      unmarked,
      MoveOver{reg(), number(), "acme", number(), random_records(random)},
      MovedOver{reg(), number(), "acme", number()}};
}

Envelope envelope_with(std::vector<RegisterMessage> messages) {
  Envelope envelope;
  envelope.from = "eu-1";
  envelope.to = "eu-2";
  envelope.from_incarnation = 7;
  envelope.register_messages = std::move(messages);
  return envelope;
}

template <typename Message>
void expect_refused(const char* field, Message message) {
  const auto decoded = decode_envelope(encode_envelope(envelope_with({std::move(message)})));
  ASSERT_FALSE(decoded.has_value()) << field;
  EXPECT_EQ(decoded.error().code, ErrorCode::corrupt);
  EXPECT_EQ(decoded.error().field, std::string("register_messages[0].") + field);
}

TEST(RegisterCodec, golden_bytes_are_for_ever) {
  Random random(1);
  const Envelope envelope = envelope_with(one_of_each(random));
  auto vectors = test::read_vectors("envelopes.txt");
  EXPECT_EQ(test::to_hex(encode_envelope(envelope)), test::to_hex(vectors["registers"]));
  const auto decoded = decode_envelope(vectors["registers"]);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().field;
  EXPECT_EQ(*decoded, envelope);
}

TEST(RegisterCodec, every_kind_round_trips) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const auto messages = one_of_each(random);
    ASSERT_EQ(messages.size(), std::variant_size_v<RegisterMessage>);
    for (std::size_t kind = 0; kind < messages.size(); ++kind) {
      ASSERT_EQ(messages[kind].index(), kind);
    }
    const Envelope envelope = envelope_with(messages);
    const auto decoded = decode_envelope(encode_envelope(envelope));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().field << ' ' << decoded.error().message;
    EXPECT_EQ(*decoded, envelope);
  }
}

TEST(RegisterCodec, a_beat_tells_the_wall_clock) {
  Beat beat;
  beat.wall_ns = 1'774'656'000 * kSecond;
  const auto decoded = decode_envelope(encode_envelope(envelope_with({beat})));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->register_messages, std::vector<RegisterMessage>{beat});
}

TEST(RegisterCodec, refuses_insane_values) {
  Random random(3);
  const RegisterId reg{RegisterId::Kind::global, {}, 1};
  const std::string long_name(65, 'x');
  expect_refused("reg.slot", HandOver{{RegisterId::Kind::global, {}, kSlotCount}});
  expect_refused("reg.region", HandOver{{RegisterId::Kind::region, {}, 1}});
  expect_refused("epoch.node", Release{reg, {1, long_name, 1}});
  expect_refused("bucket", Read{reg, {1, "n", 1}, 1, "x"});
  expect_refused("owner", PollReply{reg, 1, true, {}, long_name});
  expect_refused("known", Prepare{reg, {}, {}, false, false, {{long_name, 1}}});
  expect_refused(
      "known",
      Prepare{reg, {}, {}, false, false, std::vector<StoreMark>(kMaxStoreMarks + 1, {"n", 1})});
  expect_refused(
      "first_start",
      Prepare{reg, {}, std::vector<StoreMark>(kMaxStoreMarks + 1, {"n", 1}), false, false, {}});
  Accept accept{reg, {1, "n", 1}, 1, {random_record(random)}};
  accept.records[0].ledger.level = -1;
  expect_refused("level", accept);
  accept.records[0] = random_record(random);
  accept.records[0].bucket.clear();
  expect_refused("bucket", accept);
  accept.records.assign(kMaxRecordsPerMessage + 1, random_record(random));
  expect_refused("records", accept);
  Install install{reg, {1, "n", 1}, 1, {"n", 1}, {{random_record(random), -1}}, false};
  expect_refused("records.age_ns", install);
  Accepted accepted{reg, {1, "n", 1}, 1, true, {}, {"n", 1}, {"x"}};
  expect_refused("bucket", accepted);
  Claims claims{1, {{reg, 1}}};
  claims.owned[0].first.slot = kSlotCount;
  expect_refused("reg.slot", claims);
  claims.owned.assign(kMaxRegistersPerNode + 1, {reg, 1});
  expect_refused("claims", claims);
}

TEST(RegisterCodec, the_longest_list_of_claims_fits_a_frame) {
  Claims claims{1, {}};
  const RegisterId reg{RegisterId::Kind::region, std::string(16, 'r'), kSlotCount - 1};
  claims.owned.assign(kMaxRegistersPerNode, {reg, UINT32_MAX});
  EXPECT_LE(encode_envelope(envelope_with({claims})).size(), kMaxFrameBytes);
}

TEST(RegisterCodec, a_full_commit_fits_a_frame_by_its_estimate) {
  Random random(4);
  Accept accept{{RegisterId::Kind::global, {}, 1}, {1, "n", 1}, 1, {}};
  std::size_t bytes = 0;
  while (bytes < kMaxRecordBytesPerMessage) {
    accept.records.push_back(random_record(random));
    bytes += record_bytes(accept.records.back().bucket, accept.records.back().ledger);
  }
  EXPECT_LE(encode_envelope(envelope_with({accept})).size(), bytes);
}

TEST(RegisterCodec, many_messages_are_split_over_frames_in_their_order) {
  Random random(5);
  std::vector<RegisterMessage> messages;
  for (std::uint64_t i = 0; i < kMaxItemsPerFrame + 100; ++i) {
    messages.push_back(Poll{{RegisterId::Kind::global, {}, 1}, i});
  }
  std::vector<RegisterMessage> joined;
  const auto frames = encode_frames(envelope_with(messages));
  EXPECT_EQ(frames.size(), 2U);
  for (const std::string& frame : frames) {
    auto decoded = decode_envelope(frame);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    for (auto& message : decoded->register_messages) joined.push_back(std::move(message));
  }
  EXPECT_EQ(joined, messages);
}

TEST(RegisterCodec, no_cut_or_flipped_bit_goes_unnoticed) {
  Random random(6);
  const std::string bytes = encode_envelope(envelope_with(one_of_each(random)));
  const auto refuse = [](const std::string& damaged) {
    EXPECT_FALSE(decode_envelope(damaged).has_value()) << test::to_hex(damaged);
  };
  test::for_each_truncation(bytes, refuse);
  test::for_each_bit_flip(bytes, refuse);
}

TEST(RegisterCodec, sealed_nonsense_never_yields_an_insane_value) {
  Random random(7);
  std::string content = encode_envelope(envelope_with(one_of_each(random)));
  content.resize(content.size() - kSealBytes);
  test::for_each_mutation(content, 8, 20000, [](std::string mutated) {
    append_seal(mutated);
    const auto decoded = decode_envelope(mutated);
    if (!decoded) return;
    const auto again = decode_envelope(encode_envelope(*decoded));
    ASSERT_TRUE(again.has_value()) << again.error().field;
    EXPECT_EQ(*again, *decoded);
  });
}

}  // namespace
}  // namespace weir::codec
