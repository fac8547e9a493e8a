// Goal: a cluster frame arrives as it was sent, or is refused as a whole.
// Method: golden bytes, round trips of random envelopes, splitting at both limits, each kind of
// insane value, and every truncation and single-bit flip.
#include <gtest/gtest.h>

#include "src/base/limits.h"
#include "src/codec/envelope.h"
#include "src/codec/seal.h"
#include "test/unit/codec_support.h"

namespace weir::codec {
namespace {

std::string bucket_of(const std::string& customer) {
  return encode(BucketKey{customer, Scope::global, {}, "api", {{"ip", "203.0.113.9"}}});
}

LeaseRequest sample_request() {
  return {register_of(Scope::global, "eu", "acme"),
          bucket_of("acme"),
          {"us-1", 0x0102030405060708},
          5,
          10,
          90,
          3,
          20,
          1,
          100,
          true,
          12};
}

LeaseAnswer sample_answer() {
  return {bucket_of("acme"),
          {"us-1", 0x0102030405060708},
          5,
          LeaseStatus::empty,
          0,
          5 * kSecond,
          72 * kMillisecond,
          41,
          kMillisecond,
          30,
          100,
          12,
          {7, "eu-1", 9},
          "eu-2"};
}

LeaseAnswer window_answer() {
  LeaseAnswer answer = sample_answer();
  answer.window_left_ns = 23 * kHour;
  return answer;
}

Envelope sample_envelope() {
  Envelope envelope;
  envelope.from = "eu-1";
  envelope.to = "us-1";
  envelope.from_incarnation = 0xa1b2c3d4e5f60718;
  envelope.topology_version = 7;
  envelope.hello = Hello{"eu-1", 0xa1b2c3d4e5f60718, "eu", true, true, 7, 0x1234};
  envelope.heartbeat = Heartbeat{3, 1000, 900, 50, 5};
  envelope.lease_requests = {sample_request()};
  envelope.lease_answers = {sample_answer()};
  envelope.owner_queries = {
      {77, {RegisterId::Kind::region, "us", 12}, "acme", OwnerQuery::Kind::kill}};
  envelope.owner_replies = {{77,
                             true,
                             "",
                             "eu-1",
                             {7, "eu-1", 9},
                             {{bucket_of("acme"), 100, 41, 30, 5900, 72, {{"us-1", 30, 4000}}}}}};
  return envelope;
}

RegisterId random_register(Random& random) {
  const auto kind = static_cast<RegisterId::Kind>(random.between(1, 3));
  return {kind, kind == RegisterId::Kind::global ? "" : "us",
          static_cast<Slot>(random.below(kSlotCount))};
}

Envelope random_envelope(Random& random) {
  const auto amount = [&] { return random.between(0, INT64_MAX); };
  const auto bucket = [&] { return bucket_of("c" + std::to_string(random.below(1000))); };
  Envelope envelope;
  envelope.from = "eu-1";
  envelope.to = "eu-2";
  envelope.from_incarnation = random.next();
  if (random.chance(300)) envelope.heartbeat = Heartbeat{random.next(), amount(), amount(), 1, 2};
  for (auto n = random.below(5); n > 0; --n) {
    envelope.lease_requests.push_back({random_register(random),
                                       bucket(),
                                       {"us-1", random.next()},
                                       random.next() | 1,
                                       amount(),
                                       amount(),
                                       amount(),
                                       amount(),
                                       amount(),
                                       amount(),
                                       random.chance(500),
                                       random.next(),
                                       static_cast<LeaseHop>(random.below(3)),
                                       random.next(),
                                       static_cast<std::uint32_t>(random.between(1, 64))});
  }
  for (auto n = random.below(5); n > 0; --n) {
    envelope.lease_answers.push_back({bucket(),
                                      {"us-1", random.next()},
                                      random.next(),
                                      static_cast<LeaseStatus>(random.between(1, 9)),
                                      amount(),
                                      amount(),
                                      random.between(-1, INT64_MAX),
                                      amount(),
                                      amount(),
                                      amount(),
                                      amount(),
                                      random.next(),
                                      {random.next(), "eu-1", random.next()},
                                      random.chance(500) ? "eu-2" : "",
                                      random.chance(500) ? amount() : 0,
                                      static_cast<LeaseHop>(random.below(3)),
                                      random.next(),
                                      amount(),
                                      amount()});
  }
  for (auto n = random.below(3); n > 0; --n) {
    envelope.owner_queries.push_back(
        {random.next(), random_register(random), "acme", OwnerQuery::Kind::describe});
  }
  for (auto n = random.below(3); n > 0; --n) {
    envelope.owner_replies.push_back({random.next(), random.chance(500), "why", "eu-1", {}, {}});
  }
  for (auto n = random.below(3); n > 0; --n) {
    envelope.activity_reports.push_back({{{"acme", amount(), amount()}}});
  }
  return envelope;
}

template <typename Change>
void expect_refused(const char* field, Change change) {
  Envelope envelope = sample_envelope();
  change(envelope);
  const auto decoded = decode_envelope(encode_envelope(envelope));
  ASSERT_FALSE(decoded.has_value()) << field;
  EXPECT_EQ(decoded.error().code, ErrorCode::corrupt);
  EXPECT_EQ(decoded.error().field, field);
}

TEST(EnvelopeCodec, golden_bytes_are_for_ever) {
  auto vectors = test::read_vectors("envelopes.txt");
  EXPECT_EQ(test::to_hex(encode_envelope(sample_envelope())), test::to_hex(vectors["full"]));
  Envelope window;
  window.from = "eu-1";
  window.to = "us-1";
  window.lease_answers = {window_answer()};
  EXPECT_EQ(test::to_hex(encode_envelope(window)), test::to_hex(vectors["window"]));
  EXPECT_EQ(*decode_envelope(vectors["window"]), window);
  Envelope relay;
  relay.from = "us-1";
  relay.to = "eu-1";
  relay.lease_requests = {sample_request()};
  relay.lease_requests[0].hop = LeaseHop::from_relay;
  relay.lease_requests[0].weight = 4;
  relay.lease_answers = {sample_answer()};
  relay.lease_answers[0].hop = LeaseHop::to_relay;
  relay.lease_answers[0].grantor = 0xa1b2c3d4e5f60718;
  relay.lease_answers[0].upstream_round_trip_ns = 80 * kMillisecond;
  relay.lease_answers[0].age_ns = 3 * kMillisecond;
  EXPECT_EQ(test::to_hex(encode_envelope(relay)), test::to_hex(vectors["relay"]));
  EXPECT_EQ(*decode_envelope(vectors["relay"]), relay);
  const auto decoded = decode_envelope(vectors["full"]);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, sample_envelope());
}

TEST(EnvelopeCodec, the_policy_on_its_way_has_golden_bytes) {
  auto vectors = test::read_vectors("envelopes.txt");
  Envelope policy;
  policy.from = "eu-1";
  policy.to = "us-1";
  policy.heartbeat = Heartbeat{3, 1000, 900, 50, 5, 12, 0x0102030405060708};
  policy.policy_messages = {
      {PolicyMessage::Kind::ask, 12, 0x0102030405060708, 262144, 0, {}},
      {PolicyMessage::Kind::piece, 12, 0x0102030405060708, 262144, 262155, "limits: []\n"}};
  EXPECT_EQ(test::to_hex(encode_envelope(policy)), test::to_hex(vectors["policy"]));
  EXPECT_EQ(*decode_envelope(vectors["policy"]), policy);
}

TEST(EnvelopeCodec, refuses_insane_policies) {
  const auto refuse = [](const char* field, auto change) {
    expect_refused(field, [&](Envelope& envelope) {
      envelope.policy_messages = {{PolicyMessage::Kind::piece, 1, 2, 0, 1, "x"}};
      change(envelope.policy_messages[0]);
    });
  };
  refuse("policy_messages[0].kind",
         [](PolicyMessage& p) { p.kind = static_cast<PolicyMessage::Kind>(3); });
  refuse("policy_messages[0].kind",
         [](PolicyMessage& p) { p.kind = static_cast<PolicyMessage::Kind>(0); });
  refuse("policy_messages[0].text",
         [](PolicyMessage& p) { p.text = std::string(kMaxPolicyPieceBytes + 1, 'x'); });
  refuse("policy_messages[0].total", [](PolicyMessage& p) { p.total = kMaxPolicyBytes + 1; });
  refuse("policy_messages[0].offset", [](PolicyMessage& p) { p.offset = kMaxPolicyBytes + 1; });
}

TEST(EnvelopeCodec, the_busiest_customers_have_golden_bytes) {
  auto vectors = test::read_vectors("envelopes.txt");
  Envelope activity;
  activity.from = "us-1";
  activity.to = "eu-1";
  activity.activity_reports = {{{{"acme", 1200, 35}, {"mallory", 7, 7}}}, {}};
  EXPECT_EQ(test::to_hex(encode_envelope(activity)), test::to_hex(vectors["activity"]));
  EXPECT_EQ(*decode_envelope(vectors["activity"]), activity);
}

TEST(EnvelopeCodec, refuses_insane_activity) {
  const auto refuse = [](const char* field, auto change) {
    expect_refused(field, [&](Envelope& envelope) {
      envelope.activity_reports = {{{{"acme", 1200, 35}}}};
      change(envelope.activity_reports[0].customers[0]);
    });
  };
  refuse("activity_reports[0].customers.customer", [](CustomerActivity& c) { c.customer = ""; });
  refuse("activity_reports[0].customers.customer",
         [](CustomerActivity& c) { c.customer = std::string(kMaxKeyBytes + 1, 'x'); });
  refuse("activity_reports[0].customers.checks_per_s",
         [](CustomerActivity& c) { c.checks_per_s = -1; });
  refuse("activity_reports[0].customers.denied_per_s",
         [](CustomerActivity& c) { c.denied_per_s = INT64_MIN; });
}

TEST(EnvelopeCodec, too_many_busy_customers_are_cut_by_their_sender_and_refused_from_others) {
  Envelope envelope;
  envelope.from = "us-1";
  envelope.to = "eu-1";
  envelope.activity_reports.resize(1);
  envelope.activity_reports[0].customers.assign(kMostTold + 1, {"acme", 1, 0});
  std::string bytes = encode_envelope(envelope);
  const auto decoded = decode_envelope(bytes);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->activity_reports[0].customers.size(), kMostTold);
  bytes.resize(bytes.size() - kSealBytes);
  bytes += "\x72";  // field 14 again: a report of nothing but customers without a name
  bytes += static_cast<char>(2 * (kMostTold + 1));
  for (std::size_t i = 0; i <= kMostTold; ++i) bytes += std::string("\x0a\x00", 2);
  append_seal(bytes);
  const auto refused = decode_envelope(bytes);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "activity_reports[1].customers");
}

TEST(EnvelopeCodec, a_later_build_may_add_fields) {
  std::string bytes = encode_envelope(sample_envelope());
  bytes.resize(bytes.size() - kSealBytes);
  bytes += std::string("\xa2\x06\x03new", 6);  // field 100, a string
  append_seal(bytes);
  const auto decoded = decode_envelope(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, sample_envelope());
}

TEST(EnvelopeCodec, random_envelopes_round_trip) {
  Random random(3);
  for (int i = 0; i < 500; ++i) {
    const Envelope envelope = random_envelope(random);
    const auto decoded = decode_envelope(encode_envelope(envelope));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().field << ' ' << decoded.error().message;
    EXPECT_EQ(*decoded, envelope);
  }
}

TEST(EnvelopeCodec, a_hello_may_not_know_its_peer_yet) {
  Envelope envelope;
  envelope.from = "eu-1";
  envelope.hello = Hello{"eu-1", 1, "eu", true, false, 0, 0};
  EXPECT_TRUE(decode_envelope(encode_envelope(envelope)).has_value());
  envelope.hello.reset();
  EXPECT_FALSE(decode_envelope(encode_envelope(envelope)).has_value());
}

TEST(EnvelopeCodec, refuses_insane_requests) {
  const auto refuse = [](const char* field, auto change) {
    expect_refused(field, [&](Envelope& e) { change(e.lease_requests[0]); });
  };
  refuse("lease_requests[0].held", [](LeaseRequest& r) { r.held = -1; });
  refuse("lease_requests[0].spent_total", [](LeaseRequest& r) { r.spent_total = -1; });
  refuse("lease_requests[0].given_back", [](LeaseRequest& r) { r.given_back = -1; });
  refuse("lease_requests[0].want", [](LeaseRequest& r) { r.want = INT64_MIN; });
  refuse("lease_requests[0].need", [](LeaseRequest& r) { r.need = -1; });
  refuse("lease_requests[0].rate_per_s", [](LeaseRequest& r) { r.rate_per_s = -1; });
  refuse("lease_requests[0].sequence", [](LeaseRequest& r) { r.sequence = 0; });
  refuse("lease_requests[0].lessee_node", [](LeaseRequest& r) { r.lessee.node.clear(); });
  refuse("lease_requests[0].bucket", [](LeaseRequest& r) { r.bucket = "x"; });
  refuse("lease_requests[0].bucket", [](LeaseRequest& r) { r.bucket = std::string(20000, 'x'); });
  refuse("lease_requests[0].reg.slot", [](LeaseRequest& r) { r.reg.slot = kSlotCount; });
  refuse("lease_requests[0].reg.region", [](LeaseRequest& r) { r.reg.region = "eu"; });
  refuse("lease_requests[0].reg.kind",
         [](LeaseRequest& r) { r.reg.kind = static_cast<RegisterId::Kind>(5); });
  refuse("lease_requests[0].hop", [](LeaseRequest& r) { r.hop = static_cast<LeaseHop>(3); });
}

TEST(EnvelopeCodec, refuses_insane_answers) {
  const auto refuse = [](const char* field, auto change) {
    expect_refused(field, [&](Envelope& e) { change(e.lease_answers[0]); });
  };
  refuse("lease_answers[0].granted", [](LeaseAnswer& a) { a.granted = -1; });
  refuse("lease_answers[0].ttl_ns", [](LeaseAnswer& a) { a.ttl_ns = -1; });
  refuse("lease_answers[0].retry_ns", [](LeaseAnswer& a) { a.retry_ns = -2; });
  refuse("lease_answers[0].level", [](LeaseAnswer& a) { a.level = -1; });
  refuse("lease_answers[0].next_token_ns", [](LeaseAnswer& a) { a.next_token_ns = -1; });
  refuse("lease_answers[0].outstanding", [](LeaseAnswer& a) { a.outstanding = -1; });
  refuse("lease_answers[0].capacity", [](LeaseAnswer& a) { a.capacity = -1; });
  refuse("lease_answers[0].hop", [](LeaseAnswer& a) { a.hop = static_cast<LeaseHop>(3); });
  refuse("lease_answers[0].age_ns", [](LeaseAnswer& a) { a.age_ns = -1; });
  refuse("lease_answers[0].upstream_round_trip_ns",
         [](LeaseAnswer& a) { a.upstream_round_trip_ns = -1; });
  refuse("lease_answers[0].status",
         [](LeaseAnswer& a) { a.status = static_cast<LeaseStatus>(10); });
  refuse("lease_answers[0].status", [](LeaseAnswer& a) { a.status = static_cast<LeaseStatus>(0); });
  refuse("lease_answers[0].owner_hint",
         [](LeaseAnswer& a) { a.owner_hint = std::string(65, 'x'); });
}

TEST(EnvelopeCodec, refuses_insane_headers_queries_and_replies) {
  expect_refused("from", [](Envelope& e) { e.from.clear(); });
  expect_refused("hello.node", [](Envelope& e) { e.hello->node.clear(); });
  expect_refused("hello.region", [](Envelope& e) { e.hello->region = std::string(65, 'x'); });
  expect_refused("heartbeat.sent_ns", [](Envelope& e) { e.heartbeat->sent_ns = -1; });
  expect_refused("heartbeat.echo_delay_ns", [](Envelope& e) { e.heartbeat->echo_delay_ns = -1; });
  expect_refused("owner_queries[0].customer",
                 [](Envelope& e) { e.owner_queries[0].customer = ""; });
  expect_refused("owner_queries[0].kind",
                 [](Envelope& e) { e.owner_queries[0].kind = static_cast<OwnerQuery::Kind>(4); });
  expect_refused("owner_queries[0].reg.region",
                 [](Envelope& e) { e.owner_queries[0].reg.region.clear(); });
  expect_refused("owner_replies[0].buckets.level",
                 [](Envelope& e) { e.owner_replies[0].buckets[0].level = -1; });
  expect_refused("owner_replies[0].buckets.lessees.outstanding",
                 [](Envelope& e) { e.owner_replies[0].buckets[0].lessees[0].outstanding = -1; });
  expect_refused("owner_replies[0].buckets.lessees", [](Envelope& e) {
    e.owner_replies[0].buckets[0].lessees.resize(kMaxLesseesPerRecord + 1, {"n", 1, 1, false});
  });
}

TEST(EnvelopeCodec, an_overlong_reply_is_cut_by_its_sender) {
  Envelope envelope = sample_envelope();
  OwnerReply& reply = envelope.owner_replies[0];
  reply.buckets.resize(kMaxBucketsPerReply + 5, reply.buckets[0]);
  reply.error = std::string(kMaxReplyErrorBytes - 1, 'e') + "\u00e9";
  const auto decoded = decode_envelope(encode_envelope(envelope));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
  EXPECT_EQ(decoded->owner_replies[0].buckets.size(), kMaxBucketsPerReply);
  EXPECT_EQ(decoded->owner_replies[0].error, std::string(kMaxReplyErrorBytes - 1, 'e'));
}

TEST(EnvelopeCodec, large_envelopes_are_split_in_order) {
  Envelope envelope = sample_envelope();
  envelope.lease_requests.assign(2 * kMaxItemsPerFrame + 10, sample_request());
  for (std::size_t i = 0; i < envelope.lease_requests.size(); ++i) {
    envelope.lease_requests[i].sequence = i + 1;
  }
  envelope.lease_answers[0].bucket = bucket_of(std::string(kMaxKeyBytes, 'c'));
  envelope.lease_answers.assign(5000, envelope.lease_answers[0]);
  const auto frames = encode_frames(envelope);
  EXPECT_GE(frames.size(), 4U);
  Envelope joined;
  for (const std::string& frame : frames) {
    EXPECT_LE(frame.size(), kMaxFrameBytes);
    auto decoded = decode_envelope(frame);
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(decoded->from, envelope.from);
    EXPECT_EQ(decoded->hello.has_value(), &frame == &frames[0]);
    for (auto& item : decoded->lease_requests) joined.lease_requests.push_back(item);
    for (auto& item : decoded->lease_answers) joined.lease_answers.push_back(item);
    for (auto& item : decoded->owner_queries) joined.owner_queries.push_back(item);
    for (auto& item : decoded->owner_replies) joined.owner_replies.push_back(item);
  }
  EXPECT_EQ(joined.lease_requests, envelope.lease_requests);
  EXPECT_EQ(joined.lease_answers, envelope.lease_answers);
  EXPECT_EQ(joined.owner_queries, envelope.owner_queries);
  EXPECT_EQ(joined.owner_replies, envelope.owner_replies);
}

TEST(EnvelopeCodec, refuses_frames_above_the_limits) {
  Envelope envelope = sample_envelope();
  envelope.lease_requests.assign(kMaxItemsPerFrame + 1, sample_request());
  const auto crowded = decode_envelope(encode_envelope(envelope));
  ASSERT_FALSE(crowded.has_value());
  EXPECT_EQ(crowded.error().code, ErrorCode::too_large);
  const auto large = decode_envelope(std::string(kMaxFrameBytes + 1, 'x'));
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, ErrorCode::too_large);
}

TEST(EnvelopeCodec, no_cut_or_flipped_bit_goes_unnoticed) {
  const std::string bytes = encode_envelope(sample_envelope());
  const auto refuse = [](const std::string& damaged) {
    EXPECT_FALSE(decode_envelope(damaged).has_value()) << test::to_hex(damaged);
  };
  test::for_each_truncation(bytes, refuse);
  test::for_each_bit_flip(bytes, refuse);
}

TEST(EnvelopeCodec, sealed_nonsense_never_yields_an_insane_value) {
  std::string content = encode_envelope(sample_envelope());
  content.resize(content.size() - kSealBytes);
  test::for_each_mutation(content, 4, 20000, [](std::string mutated) {
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
