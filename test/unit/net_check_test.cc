// Goal: the check API of API.md, as a client sees it: every route, every refusal, none of which
// costs quota.
// Method: a real server on a free port, a service whose decisions the test makes.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "src/base/limits.h"
#include "src/codec/check_proto.h"
#include "test/unit/net_support.h"

namespace weir::net::test {
namespace {

const HttpHeaders kJson = {{"Content-Type", "application/json"}};
const HttpHeaders kProtobuf = {{"Content-Type", "application/x-protobuf"}};
constexpr std::string_view kAcme = R"({"customer":"acme"})";
constexpr std::string_view kDenied = R"({"customer":"denied"})";

std::string header_of(const HttpClientResponse& response, std::string_view name) {
  const std::string* value = response.header(name);
  return value == nullptr ? "absent" : *value;
}

/// The code and field of an error body, `code/field`.
std::string error_of(const HttpClientResponse& response) {
  boost::json::error_code ec;
  const auto body = boost::json::parse(response.body, ec);
  if (ec) return "not JSON: " + response.body;
  const auto& error = body.as_object().at("error").as_object();
  const auto* field = error.if_contains("field");
  return std::string(error.at("code").as_string()) + "/" +
         (field == nullptr ? "" : std::string(field->as_string()));
}

TEST(CheckApi, a_post_is_decided) {
  Served served;
  const auto response = served.request(
      "POST", "/v1/check", R"({"customer":"acme","attributes":{"route":"GET /"},"cost":3})", kJson);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(header_of(response, "Content-Type"), "application/json");
  EXPECT_EQ(header_of(response, "RateLimit-Policy"), R"("api";q=100;w=10)");
  EXPECT_EQ(header_of(response, "RateLimit"), R"("api";r=41;t=1)");
  EXPECT_EQ(header_of(response, "Retry-After"), "absent");
  EXPECT_EQ(header_of(response, "Date"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_TRUE(response.body.starts_with(R"({"allowed":true,"name":"api","limit":100,)"));
  EXPECT_EQ(served.service.last_check(), (Check{"acme", {{"route", "GET /"}}, 3}));
}

TEST(CheckApi, a_denial_is_a_429_that_no_cache_keeps) {
  Served served;
  const auto response = served.request("POST", "/v1/check", kDenied, kJson);
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(header_of(response, "Retry-After"), "1");
  EXPECT_EQ(header_of(response, "Cache-Control"), "no-store");
  EXPECT_EQ(header_of(response, "RateLimit"), R"("api";r=0;t=1)");
  EXPECT_TRUE(response.body.starts_with(R"({"allowed":false,"name":"api")")) << response.body;
}

TEST(CheckApi, the_query_form_is_the_same) {
  Served served;
  auto response = served.request("GET", "/v1/check?customer=acme&route=GET%20/v1/items&cost=2");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(served.service.last_check(), (Check{"acme", {{"route", "GET /v1/items"}}, 2}));
  response = served.request("HEAD", "/v1/check?customer=denied");
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(header_of(response, "Retry-After"), "1");
}

TEST(CheckApi, options_choose_the_status) {
  Served served;
  auto response = served.request("POST", "/v1/check?status=always", kDenied, kJson);
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body.starts_with(R"({"allowed":false)"));
  EXPECT_EQ(header_of(response, "Retry-After"), "absent");
  EXPECT_EQ(served.request("GET", "/v1/check?customer=denied&deny_status=403").status, 403);
  EXPECT_EQ(served.request("GET", "/v1/check?customer=acme&deny_status=403").status, 200);
  response = served.request("GET", "/v1/check?customer=denied&deny_status=200");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(error_of(response), "invalid_argument/deny_status");
  EXPECT_EQ(error_of(served.request("POST", "/v1/check?customer=a", kAcme)),
            "invalid_argument/customer");
}

TEST(CheckApi, protobuf_in_and_out) {
  Served served;
  auto response = served.request("POST", "/v1/check",
                                 codec::encode_check_proto({"acme", {{"a", "b"}}, 2}), kProtobuf);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(header_of(response, "Content-Type"), "application/x-protobuf");
  auto decision = codec::parse_decision_proto(response.body);
  ASSERT_TRUE(decision.has_value());
  EXPECT_EQ(decision->remaining, 41);
  EXPECT_EQ(served.service.last_check(), (Check{"acme", {{"a", "b"}}, 2}));
  response = served.request("POST", "/v1/check", kDenied, {{"Accept", "application/x-protobuf"}});
  EXPECT_EQ(response.status, 429);
  EXPECT_FALSE(codec::parse_decision_proto(response.body)->allowed);
  response = served.request("POST", "/v1/check", "\xff\xff", kProtobuf);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(codec::parse_error_proto(response.body)->code, ErrorCode::invalid_argument);
  response =
      served.request("POST", "/v1/check", codec::encode_check_proto({"", {}, 1}),
                     {{"Content-Type", "application/x-protobuf"}, {"Accept", "application/json"}});
  EXPECT_EQ(error_of(response), "invalid_argument/customer");
}

TEST(CheckApi, problems_for_those_who_ask) {
  Served served;
  const HttpHeaders accept = {{"Accept", "application/json, application/problem+json"}};
  const auto response = served.request("POST", "/v1/check?deny_status=403", kDenied, accept);
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(header_of(response, "Content-Type"), "application/problem+json");
  const auto problem = boost::json::parse(response.body).as_object();
  EXPECT_EQ(problem.at("type").as_string(),
            "https://iana.org/assignments/http-problem-types#quota-exceeded");
  EXPECT_EQ(problem.at("status").as_int64(), 403);
  EXPECT_EQ(problem.at("violated-policies").as_array().at(0).as_string(), "api");
  EXPECT_EQ(header_of(served.request("POST", "/v1/check", kAcme, accept), "Content-Type"),
            "application/json");
}

TEST(CheckApi, malformed_requests_are_told_why_and_cost_nothing) {
  Served served;
  const auto expect = [&](int status, std::string_view error, const HttpClientResponse& response) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(error_of(response), error);
  };
  const auto post_json = [&](std::string_view body) {
    return served.request("POST", "/v1/check", body, kJson);
  };
  expect(400, "invalid_argument/customer", post_json(R"({"customer":""})"));
  expect(400, "invalid_argument/customer",
         post_json("{\"customer\":\"" + std::string(kMaxKeyBytes + 1, 'x') + "\"}"));
  expect(400, "invalid_argument/customer", post_json(R"({"customer":"a","customer":"b"})"));
  expect(400, "invalid_argument/colour", post_json(R"({"customer":"a","colour":1})"));
  expect(400, "invalid_argument/cost", post_json(R"({"customer":"a","cost":1.0})"));
  expect(400, "invalid_argument/attributes.customer",
         post_json(R"({"customer":"a","attributes":{"customer":"b"}})"));
  expect(400, "invalid_argument/customer", post_json(R"({"customer":"a\u0000b"})"));
  expect(400, "invalid_argument/", post_json(R"({"customer":)"));
  expect(400, "invalid_argument/", post_json(""));
  expect(400, "invalid_argument/customer", served.request("GET", "/v1/check?customer=%ff"));
  expect(400, "invalid_argument/customer", served.request("GET", "/v1/check"));
  expect(400, "invalid_argument/x", served.request("GET", "/v1/check?customer=a&x=1&x=2"));
  expect(400, "too_large/attributes", post_json(R"({"customer":"crowded"})"));
  expect(415, "unsupported/Content-Type",
         served.request("POST", "/v1/check", "customer=a",
                        {{"Content-Type", "application/x-www-form-urlencoded"}}));
  expect(413, "too_large/", post_json(std::string(kMaxCheckBodyBytes + 1, ' ')));
  expect(404, "not_found/path", served.request("GET", "/v1/chekc?customer=a"));
  expect(405, "unsupported/", served.request("PUT", "/v1/check", kAcme));
  EXPECT_EQ(header_of(served.request("DELETE", "/v1/check"), "Allow"), "GET, HEAD, POST");
  EXPECT_EQ(header_of(served.request("GET", "/v1/checks"), "Allow"), "POST");
  EXPECT_EQ(header_of(served.request("POST", "/v1/usage", "x"), "Allow"), "GET, HEAD");
  EXPECT_EQ(served.service.decided, 0);
}

TEST(CheckApi, the_largest_body_is_taken) {
  Served served;
  std::string body(kAcme);
  body.resize(kMaxCheckBodyBytes, ' ');
  EXPECT_EQ(served.request("POST", "/v1/check", body, kJson).status, 200);
  body.resize(kMaxBatchBodyBytes + 1, ' ');
  EXPECT_EQ(served.request("POST", "/v1/checks", body, kJson).status, 413);
  EXPECT_EQ(served.service.decided, 1);
}

TEST(CheckApi, a_batch_answers_in_order_with_its_errors) {
  Served served;
  const auto response = served.request(
      "POST", "/v1/checks",
      R"({"checks":[{"customer":"acme"},{"customer":""},{"customer":"denied"},{"cost":1},)"
      R"({"customer":"crowded"},{"customer":"zeta","cost":2}]})",
      kJson);
  EXPECT_EQ(response.status, 200);
  const auto results = boost::json::parse(response.body).at("results").as_array();
  ASSERT_EQ(results.size(), 6U);
  EXPECT_TRUE(results[0].at("allowed").as_bool());
  EXPECT_EQ(results[1].at("error").at("field").as_string(), "customer");
  EXPECT_FALSE(results[2].at("allowed").as_bool());
  EXPECT_EQ(results[3].at("error").at("message").as_string(), "is missing");
  EXPECT_EQ(results[4].at("error").at("code").as_string(), "too_large");
  EXPECT_TRUE(results[5].at("allowed").as_bool());
  EXPECT_EQ(served.service.decided, 3);
}

TEST(CheckApi, batches_that_are_none) {
  Served served;
  EXPECT_EQ(error_of(served.request("POST", "/v1/checks", "[]", kJson)), "invalid_argument/");
  std::string crowded = "{\"checks\":[0";
  for (std::size_t i = 0; i < kMaxChecksPerBatch; ++i) crowded += ",0";
  const auto response = served.request("POST", "/v1/checks", crowded + "]}", kJson);
  EXPECT_EQ(response.status, 413);
  EXPECT_EQ(error_of(response), "too_large/checks");
  EXPECT_EQ(served.request("POST", "/v1/checks", R"({"checks":[]})", kJson).body,
            R"({"results":[]})");
  EXPECT_EQ(served.service.decided, 0);
}

TEST(CheckApi, a_protobuf_batch) {
  Served served;
  const auto response = served.request(
      "POST", "/v1/checks", codec::encode_batch_proto({{"acme", {}, 1}, {"", {}, 1}}), kProtobuf);
  const auto results = codec::parse_decisions_proto(response.body);
  ASSERT_TRUE(results.has_value());
  ASSERT_EQ(results->size(), 2U);
  EXPECT_TRUE((*results)[0]->allowed);
  EXPECT_EQ((*results)[1].error().field, "customer");
}

TEST(CheckApi, a_batch_waits_for_its_last_check) {
  Served served;
  RawClient client(served.endpoint);
  client.send(
      post("/v1/checks",
           R"({"checks":[{"customer":"later1"},{"customer":"acme"},{"customer":"later2"}]})"));
  auto first = served.service.wait_for("later1");
  auto second = served.service.wait_for("later2");
  second(decision_of("second", false));
  first(decision_of("first", true));
  const std::string answer = client.read_answer();
  EXPECT_EQ(status_in(answer), 200);
  const auto at = [&](const char* name) { return answer.find("\"name\":\"" + std::string(name)); };
  EXPECT_LT(at("first"), at("api"));
  EXPECT_LT(at("api"), at("second"));
  EXPECT_NE(at("second"), std::string::npos);
}

TEST(CheckApi, usage) {
  Served served;
  auto response = served.request("GET", "/v1/usage?customer=acme");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"({"customer":"acme","buckets":[{"name":"api","scope":"global","attributes":{},)"
            R"("limit":100,"used":59,"remaining":41,"reset_ms":5900}]})");
  response = served.request("GET", "/v1/usage?customer=nobody");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(error_of(response), "not_found/customer");
  EXPECT_EQ(error_of(served.request("GET", "/v1/usage")), "invalid_argument/customer");
  EXPECT_EQ(error_of(served.request("GET", "/v1/usage?customer=a&x=1")), "invalid_argument/x");
  EXPECT_EQ(served.service.decided, 0);
}

TEST(CheckApi, nothing_is_decided_before_a_policy_or_while_draining) {
  Served served;
  for (const auto state : {Readiness::no_policy, Readiness::draining}) {
    served.service.readiness_state = state;
    for (const auto& response :
         {served.request("POST", "/v1/check", kAcme), served.request("GET", "/v1/usage?customer=a"),
          served.request("POST", "/v1/checks", R"({"checks":[{"customer":"a"}]})")}) {
      EXPECT_EQ(response.status, 503);
      EXPECT_EQ(header_of(response, "Retry-After"), "1");
      EXPECT_EQ(error_of(response), "unavailable/");
    }
  }
  EXPECT_EQ(served.service.decided, 0);
}

TEST(CheckApi, header_styles) {
  CheckApiOptions api;
  api.headers = HeaderStyle::legacy;
  Served served({}, api);
  const auto response = served.request("POST", "/v1/check", kAcme);
  EXPECT_EQ(header_of(response, "X-RateLimit-Remaining"), "41");
  EXPECT_EQ(header_of(response, "RateLimit"), "absent");
}

TEST(CheckApi, durations_are_observed_once_per_check) {
  telemetry::DurationHistogram histogram;
  CheckApiOptions api;
  api.check_duration = &histogram;
  Served served({}, api);
  served.request("POST", "/v1/check", kAcme);
  served.request("POST", "/v1/check", "nonsense");
  served.request("POST", "/v1/checks", R"({"checks":[{"customer":"a"},{"customer":"b"},{}]})");
  RawClient client(served.endpoint);
  client.send(post_check("later"));
  auto done = served.service.wait_for("later");
  served.clock.advance(20 * kMillisecond);
  done(decision_of("api", true));
  client.read_answer();
  std::uint64_t count = 0;
  for (const auto bucket : histogram.snapshot().counts) count += bucket;
  EXPECT_EQ(count, 4U);
  EXPECT_DOUBLE_EQ(histogram.snapshot().sum_s, 0.02);
}

}  // namespace
}  // namespace weir::net::test
