// Goal: a check is understood exactly or refused with the member that is wrong; an answer is
// written as API.md shows it. Method: tables of bodies for each fault, the documented answers as
// text, round trips through Protobuf, mutated bodies.
#include <gtest/gtest.h>

#include "src/base/limits.h"
#include "src/codec/check_json.h"
#include "src/codec/check_proto.h"
#include "src/codec/query.h"
#include "test/unit/codec_support.h"

namespace weir::codec {
namespace {

Check sample_check() { return {"acme", {{"route", "GET /v1/items"}, {"ip", "203.0.113.9"}}, 1}; }

Decision sample_decision() {
  Decision decision{true, "api", 100, 41, 0, 5900, Source::lease, {}};
  decision.limits = {{"api", Scope::global, true, false, 100, 41, 0, 5900, 100, 10}};
  return decision;
}

/// The field of the error for a JSON body, or "accepted".
std::string json_error_field(std::string_view body) {
  Check check;
  const auto status = parse_check_json(body, check);
  if (status) return "accepted";
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(status.error().message.empty());
  return status.error().field;
}

TEST(CheckJson, reads_the_documented_body) {
  Check check{"old", {{"old", "old"}}, 9};
  const auto status = parse_check_json(
      R"({"customer":"acme","attributes":{"route":"GET /v1/items","ip":"203.0.113.9"},"cost":1})",
      check);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(check, sample_check());
}

TEST(CheckJson, absent_members_have_defaults) {
  Check check{"old", {{"old", "old"}}, 9};
  ASSERT_TRUE(parse_check_json(" {\"customer\" : \"a\"} \n", check).has_value());
  EXPECT_EQ(check, (Check{"a", {}, 1}));
}

TEST(CheckJson, reads_escapes_and_every_integer) {
  Check check;
  ASSERT_TRUE(
      parse_check_json(R"({"customer":"\u00e9\"\\\ud83d\ude00","attributes":{"k":"","a\nb":"c"}})",
                       check)
          .has_value());
  EXPECT_EQ(check, (Check{"\u00e9\"\\\U0001F600", {{"k", ""}, {"a\nb", "c"}}, 1}));
  for (const std::int64_t cost : {INT64_MIN, INT64_C(-1), INT64_C(0), INT64_C(7), INT64_MAX}) {
    const std::string body = R"({"customer":"a","cost":)" + std::to_string(cost) + "}";
    ASSERT_TRUE(parse_check_json(body, check).has_value()) << cost;
    EXPECT_EQ(check.cost, cost);
  }
}

TEST(CheckJson, a_cost_that_is_no_integer_is_refused) {
  for (const char* cost :
       {"1.0", "1e3", "1E0", "\"1\"", "9223372036854775808", "-9223372036854775809",
        "99999999999999999999999", "null", "true", "[1]", "{}", "0.5"}) {
    EXPECT_EQ(json_error_field(R"({"customer":"a","cost":)" + std::string(cost) + "}"), "cost")
        << cost;
  }
}

TEST(CheckJson, names_the_member_that_is_wrong) {
  EXPECT_EQ(json_error_field(R"({"customer":"a","custommer":1})"), "custommer");
  EXPECT_EQ(json_error_field(R"({"cost":1})"), "customer");
  EXPECT_EQ(json_error_field(R"({"customer":5})"), "customer");
  EXPECT_EQ(json_error_field(R"({"customer":["a"]})"), "customer");
  EXPECT_EQ(json_error_field(R"({"customer":"a","customer":"a"})"), "customer");
  EXPECT_EQ(json_error_field(R"({"customer":"a","cost":1,"cost":1})"), "cost");
  EXPECT_EQ(json_error_field(R"({"customer":"a","attributes":{},"attributes":{}})"), "attributes");
  EXPECT_EQ(json_error_field(R"({"customer":"a","attributes":[]})"), "attributes");
  EXPECT_EQ(json_error_field(R"({"customer":"a","attributes":null})"), "attributes");
  EXPECT_EQ(json_error_field(R"({"customer":"a","attributes":{"x":"1","x":"1"}})"), "attributes.x");
  EXPECT_EQ(json_error_field(R"({"customer":"a","attributes":{"x":1}})"), "attributes.x");
  EXPECT_EQ(json_error_field(R"({"customer":"a","attributes":{"x":{"y":"z"}}})"), "attributes.x");
  EXPECT_EQ(json_error_field("{\"customer\":\"a\",\"" + std::string(65, 'k') + "\":1}"),
            std::string(64, 'k') + "...");
  std::string crowded = R"({"customer":"a","attributes":{)";
  for (std::size_t i = 0; i <= kMaxAttributes; ++i) {
    crowded += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":\"v\"";
  }
  EXPECT_EQ(json_error_field(crowded + "}}"), "attributes");
}

TEST(CheckJson, text_that_is_no_json_object_is_refused) {
  for (const char* body :
       {"", " ", "{", "}", "null", "[]", "\"a\"", "1", "{\"customer\":\"a\"}x",
        "{\"customer\":\"a\"}{}", "{\"customer\":\"a\",}", "{customer:\"a\"}",
        "{\"customer\":\"a\"} // comment", "{\"customer\":\"\xff\"}", "{\"customer\":\"\\ud800\"}",
        "{\"customer\":\"a\nb\"}", "{\"customer\":\"a\",\"cost\":01}", "\xef\xbb\xbf{}"}) {
    EXPECT_EQ(json_error_field(body), "") << body;
  }
  EXPECT_EQ(json_error_field(std::string(60000, '[')), "");
}

TEST(CheckJson, mutated_bodies_never_crash) {
  const std::string body =
      R"({"customer":"acme","attributes":{"route":"GET","i\u0070":"2"},"cost":-12})";
  int accepted = 0;
  const auto consume = [&](const std::string& mutated) {
    Check check;
    accepted += parse_check_json(mutated, check).has_value() ? 1 : 0;
    (void)parse_batch_json("{\"checks\":[" + mutated + "]}");
  };
  test::for_each_truncation(body, consume);
  EXPECT_EQ(accepted, 0);
  test::for_each_bit_flip(body, consume);
  test::for_each_mutation(body, 5, 5000, consume);
  EXPECT_GT(accepted, 0);
}

TEST(BatchJson, one_bad_check_fails_alone) {
  const auto batch = parse_batch_json(
      R"({"checks":[{"customer":"a"},{"customer":1,"x":[{}]},5,{"customer":"b","cost":0},)"
      R"({"customer":"c","cost":1.5},[],{"customer":"d","attributes":{"k":"v"}}]})");
  ASSERT_TRUE(batch.has_value()) << batch.error().message;
  ASSERT_EQ(batch->size(), 7U);
  EXPECT_EQ(*(*batch)[0], (Check{"a", {}, 1}));
  EXPECT_EQ((*batch)[1].error().field, "customer");
  EXPECT_EQ((*batch)[2].error().field, "");
  EXPECT_EQ(*(*batch)[3], (Check{"b", {}, 0}));
  EXPECT_EQ((*batch)[4].error().field, "cost");
  EXPECT_FALSE((*batch)[5].has_value());
  EXPECT_EQ(*(*batch)[6], (Check{"d", {{"k", "v"}}, 1}));
}

TEST(BatchJson, refuses_what_is_no_batch) {
  const auto field = [](std::string_view body) {
    const auto batch = parse_batch_json(body);
    return batch ? "accepted" : batch.error().field;
  };
  EXPECT_EQ(field(R"({"checks":[]})"), "accepted");
  EXPECT_EQ(field("{}"), "checks");
  EXPECT_EQ(field("[]"), "");
  EXPECT_EQ(field("7"), "");
  EXPECT_EQ(field(R"({"checks":{}})"), "checks");
  EXPECT_EQ(field(R"({"checks":"a"})"), "checks");
  EXPECT_EQ(field(R"({"checks":[],"checks":[]})"), "checks");
  EXPECT_EQ(field(R"({"checks":[],"x":1})"), "x");
  EXPECT_EQ(field(R"({"checks":[{"customer":"a"})"), "");
}

TEST(BatchJson, counts_its_checks) {
  const auto batch_of = [](std::size_t count) {
    std::string body = "{\"checks\":[";
    for (std::size_t i = 0; i < count; ++i) body += i > 0 ? ",{\"customer\":\"a\"}" : "0";
    return parse_batch_json(body + "]}");
  };
  ASSERT_TRUE(batch_of(kMaxChecksPerBatch).has_value());
  EXPECT_EQ(batch_of(kMaxChecksPerBatch)->size(), kMaxChecksPerBatch);
  const auto crowded = batch_of(kMaxChecksPerBatch + 1);
  ASSERT_FALSE(crowded.has_value());
  EXPECT_EQ(crowded.error().code, ErrorCode::too_large);
}

TEST(AnswerJson, is_written_as_documented) {
  std::string out;
  append_decision_json(sample_decision(), out);
  EXPECT_EQ(out, R"({"allowed":true,"name":"api","limit":100,"remaining":41,"retry_after_ms":0,)"
                 R"("reset_ms":5900,"source":"lease","limits":[{"name":"api","scope":"global",)"
                 R"("allowed":true,"limit":100,"remaining":41,"retry_after_ms":0,"reset_ms":5900,)"
                 R"("shadow":false}]})");
  out = "x";
  append_decision_json(Decision{}, out);
  EXPECT_EQ(out, R"(x{"allowed":true,"name":"","limit":0,"remaining":0,"retry_after_ms":0,)"
                 R"("reset_ms":0,"source":"policy","limits":[]})");
}

TEST(AnswerJson, errors_batches_usage_and_problems) {
  std::string out;
  const Error error{ErrorCode::invalid_argument, "customer", "must not be empty"};
  append_error_json(error, out);
  const std::string error_text =
      R"({"error":{"code":"invalid_argument","field":"customer","message":"must not be empty"}})";
  EXPECT_EQ(out, error_text);
  out.clear();
  append_error_json({ErrorCode::unavailable, "", "draining"}, out);
  EXPECT_EQ(out, R"({"error":{"code":"unavailable","message":"draining"}})");
  out.clear();
  append_batch_json({Decision{}, tl::unexpected(error)}, out);
  std::string decision_text;
  append_decision_json(Decision{}, decision_text);
  EXPECT_EQ(out, "{\"results\":[" + decision_text + "," + error_text + "]}");
  out.clear();
  append_usage_json("acme", {{"login", Scope::region, {{"ip", "::1"}}, 5, 2, 3, 24000}}, out);
  EXPECT_EQ(out,
            R"({"customer":"acme","buckets":[{"name":"login","scope":"region",)"
            R"("attributes":{"ip":"::1"},"limit":5,"used":2,"remaining":3,"reset_ms":24000}]})");
  Decision denied = sample_decision();
  denied.limits[0].allowed = false;
  denied.limits.push_back(denied.limits[0]);
  denied.limits.push_back({"ghost", Scope::global, false, true, 1, 0, 1, 1, 1, 1});
  denied.limits[1].name = "login";
  out.clear();
  append_problem_json(denied, 429, out);
  EXPECT_NE(out.find(R"("status":429,"violated-policies":["api","login"]})"), std::string::npos)
      << out;
}

TEST(AnswerJson, strings_are_always_json) {
  std::string out;
  append_json_string("a\"b\\c\n\x01\u00e9\xff\xc3", out);
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\u000a\\u0001\u00e9\uFFFD\uFFFD\"");
}

TEST(CheckProto, round_trips) {
  Check check{"old", {{"x", "y"}}, 9};
  ASSERT_TRUE(parse_check_proto(encode_check_proto(sample_check()), check).has_value());
  EXPECT_EQ(check.customer, "acme");
  EXPECT_EQ(*check.attribute("ip"), "203.0.113.9");
  EXPECT_EQ(check.attributes.size(), 2U);
  EXPECT_EQ(check.cost, 1);
  ASSERT_TRUE(parse_check_proto(std::string("\x0a\x01"
                                            "a",
                                            3),
                                check)
                  .has_value());
  EXPECT_EQ(check, (Check{"a", {}, 1})) << "an absent cost is 1";
  ASSERT_TRUE(parse_check_proto(std::string("\x18\x00", 2), check).has_value());
  EXPECT_EQ(check.cost, 0) << "a cost of 0 is not an absent one";
}

TEST(CheckProto, ignores_unknown_fields_and_refuses_broken_bytes) {
  Check check;
  const std::string bytes = encode_check_proto(sample_check());
  EXPECT_TRUE(parse_check_proto(bytes + std::string("\xa2\x06\x03new", 6), check).has_value());
  for (const std::string& broken : {std::string("\x0a\x05"
                                                "ab"),
                                    std::string("\x0a\x01\xff"), std::string("\xff"),
                                    std::string("\x0b"), std::string("{\"customer\":\"a\"}")}) {
    const auto status = parse_check_proto(broken, check);
    ASSERT_FALSE(status.has_value()) << test::to_hex(broken);
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  }
  const auto consume = [](const std::string& damaged) {
    Check parsed;
    (void)parse_check_proto(damaged, parsed);
    (void)parse_batch_proto(damaged);
    (void)parse_decision_proto(damaged);
    (void)parse_decisions_proto(damaged);
    (void)parse_error_proto(damaged);
  };
  test::for_each_truncation(bytes, consume);
  test::for_each_bit_flip(bytes, consume);
  test::for_each_mutation(bytes, 6, 5000, consume);
}

TEST(CheckProto, batches_and_answers_round_trip) {
  const auto batch = parse_batch_proto(encode_batch_proto({sample_check(), {"b", {}, -3}}));
  ASSERT_TRUE(batch.has_value());
  ASSERT_EQ(batch->size(), 2U);
  EXPECT_EQ((*batch)[1]->cost, -3);
  const auto crowded = parse_batch_proto(
      encode_batch_proto(std::vector<Check>(kMaxChecksPerBatch + 1, Check{"a", {}, 1})));
  ASSERT_FALSE(crowded.has_value());
  EXPECT_EQ(crowded.error().code, ErrorCode::too_large);

  Decision decision = sample_decision();
  decision.limits[0].next_token_ms = decision.limits[0].window_s = 0;
  std::string bytes;
  append_decision_proto(decision, bytes);
  EXPECT_EQ(parse_decision_proto(bytes), decision);
  const Error error{ErrorCode::too_large, "checks", "too many"};
  bytes.clear();
  append_batch_proto({decision, tl::unexpected(error)}, bytes);
  const auto results = parse_decisions_proto(bytes);
  ASSERT_TRUE(results.has_value());
  EXPECT_EQ(*results, (std::vector<Result<Decision>>{decision, tl::unexpected(error)}));
  bytes.clear();
  append_error_proto({ErrorCode::invalid_argument, "a\xff", "m"}, bytes);
  EXPECT_EQ(parse_error_proto(bytes)->field, "a?");
}

std::string query_error_field(std::string_view query) {
  Check check;
  const auto options = parse_check_query(query, check);
  return options ? "accepted" : options.error().field;
}

TEST(CheckQuery, reads_the_documented_form) {
  Check check{"old", {{"x", "y"}}, 9};
  auto options =
      parse_check_query("customer=acme&route=GET%20/v1/items&ip=203.0.113.9&cost=1", check);
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(check, sample_check());
  EXPECT_EQ(*options, AnswerOptions{});
  options =
      parse_check_query("customer=a+b%2B%c3%a9&deny_status=403&&flag&status=always&e=&n==", check);
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(check, (Check{"a b+\u00e9", {{"flag", ""}, {"e", ""}, {"n", "="}}, 1}));
  EXPECT_EQ(*options, (AnswerOptions{true, 403}));
}

TEST(CheckQuery, names_what_is_wrong) {
  EXPECT_EQ(query_error_field(""), "customer");
  EXPECT_EQ(query_error_field("customer=a&customer=a"), "customer");
  EXPECT_EQ(query_error_field("customer=a&x=1&x=2"), "x");
  EXPECT_EQ(query_error_field("customer=%zz"), "customer");
  EXPECT_EQ(query_error_field("customer=a%2"), "customer");
  EXPECT_EQ(query_error_field("customer=a&%=1"), "query");
  EXPECT_EQ(query_error_field("customer=a&=1"), "query");
  for (const char* cost :
       {"", "1.0", "1e3", "+1", "%201", "01", "-", "9223372036854775808", "0x1"}) {
    EXPECT_EQ(query_error_field("customer=a&cost=" + std::string(cost)), "cost") << cost;
  }
  for (const char* status : {"399", "600", "", "abc"}) {
    EXPECT_EQ(query_error_field("customer=a&deny_status=" + std::string(status)), "deny_status");
  }
  EXPECT_EQ(query_error_field("customer=a&status=sometimes"), "status");
  std::string crowded = "customer=a";
  for (std::size_t i = 0; i < kMaxQueryNames; ++i) crowded += "&k" + std::to_string(i) + "=v";
  EXPECT_EQ(query_error_field(crowded), "query");
}

TEST(CheckQuery, a_post_takes_answer_options_only) {
  EXPECT_EQ(*parse_answer_options(""), AnswerOptions{});
  EXPECT_EQ(*parse_answer_options("deny_status=503"), (AnswerOptions{false, 503}));
  EXPECT_EQ(parse_answer_options("customer=a").error().field, "customer");
}

TEST(CheckQuery, path_segments_keep_their_plus) {
  EXPECT_EQ(*decode_path_segment("a+b%2Fc%20d"), "a+b/c d");
  EXPECT_FALSE(decode_path_segment("%f").has_value());
}

}  // namespace
}  // namespace weir::codec
