// Goal: what clients read in headers follows API.md and the drafts to the letter.
// Method: decisions in, header text out, parsed back where numbers matter.
#include <gtest/gtest.h>

#include "src/net/check_answer.h"
#include "src/net/http_client.h"

namespace weir::net {
namespace {

LimitDecision limit_of(std::string name, bool allowed) {
  return {std::move(name), Scope::global, allowed, false, 100, allowed ? 41 : 0, 0, 5900, 72, 10};
}

Decision decision_of(std::vector<LimitDecision> limits) {
  Decision decision;
  decision.limits = std::move(limits);
  for (const LimitDecision& limit : decision.limits) {
    decision.allowed = decision.allowed && (limit.allowed || limit.shadow);
  }
  if (!decision.limits.empty()) {
    const LimitDecision& first = decision.limits.front();
    decision.name = first.name;
    decision.limit = first.limit;
    decision.remaining = first.remaining;
    decision.reset_ms = first.reset_ms;
  }
  return decision;
}

std::string headers_of(const Decision& decision, HeaderStyle style) {
  std::string out;
  append_rate_limit_headers(decision, style, out);
  return out;
}

TEST(RateLimitHeaders, draft11_lists_every_limit) {
  EXPECT_EQ(headers_of(decision_of({limit_of("api", true)}), HeaderStyle::draft11),
            "RateLimit-Policy: \"api\";q=100;w=10\r\nRateLimit: \"api\";r=41;t=1\r\n");
  auto login = limit_of("login", false);
  login.limit = 5;
  login.window_s = 60;
  login.next_token_ms = 12'001;
  EXPECT_EQ(headers_of(decision_of({limit_of("api", true), login}), HeaderStyle::draft11),
            "RateLimit-Policy: \"api\";q=100;w=10, \"login\";q=5;w=60\r\n"
            "RateLimit: \"api\";r=41;t=1, \"login\";r=0;t=13\r\n");
}

TEST(RateLimitHeaders, shadow_limits_and_no_limits_say_nothing) {
  auto ghost = limit_of("ghost", false);
  ghost.shadow = true;
  for (const auto style :
       {HeaderStyle::draft11, HeaderStyle::draft03, HeaderStyle::legacy, HeaderStyle::none}) {
    EXPECT_EQ(headers_of(Decision{}, style), "");
    EXPECT_EQ(headers_of(decision_of({ghost}), style), "");
  }
  EXPECT_EQ(headers_of(decision_of({limit_of("api", true)}), HeaderStyle::none), "");
  EXPECT_EQ(headers_of(decision_of({ghost, limit_of("api", true)}), HeaderStyle::draft11),
            headers_of(decision_of({limit_of("api", true)}), HeaderStyle::draft11));
}

TEST(RateLimitHeaders, integers_stay_within_fifteen_digits) {
  auto huge = limit_of("huge", true);
  huge.limit = huge.remaining = huge.next_token_ms = huge.window_s = INT64_MAX;
  EXPECT_EQ(headers_of(decision_of({huge}), HeaderStyle::draft11),
            "RateLimit-Policy: \"huge\";q=999999999999999;w=999999999999999\r\n"
            "RateLimit: \"huge\";r=999999999999999;t=999999999999999\r\n");
  auto blocked = limit_of("blocked", false);
  blocked.limit = blocked.window_s = blocked.next_token_ms = 0;
  EXPECT_EQ(headers_of(decision_of({blocked}), HeaderStyle::draft11),
            "RateLimit-Policy: \"blocked\";q=0\r\nRateLimit: \"blocked\";r=0;t=0\r\n");
}

TEST(RateLimitHeaders, older_styles_show_the_deciding_limit) {
  const Decision decision = decision_of({limit_of("api", true), limit_of("login", true)});
  EXPECT_EQ(headers_of(decision, HeaderStyle::draft03),
            "RateLimit-Limit: 100\r\nRateLimit-Remaining: 41\r\nRateLimit-Reset: 6\r\n");
  EXPECT_EQ(headers_of(decision, HeaderStyle::legacy),
            "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 41\r\nX-RateLimit-Reset: 6\r\n");
}

TEST(RetryAfter, is_rounded_up_and_never_earlier_than_the_next_token) {
  Decision decision = decision_of({limit_of("api", false)});
  const auto wait = [&](std::int64_t retry_ms, std::int64_t token_ms) {
    decision.retry_after_ms = retry_ms;
    decision.limits[0].next_token_ms = token_ms;
    return retry_after_s(decision, 0).value_or(-1);
  };
  EXPECT_EQ(wait(72, 72), 1);
  EXPECT_EQ(wait(0, 0), 1);
  EXPECT_EQ(wait(1000, 0), 1);
  EXPECT_EQ(wait(1001, 0), 2);
  EXPECT_EQ(wait(1000, 4500), 5);
  EXPECT_EQ(wait(-1, 4500), -1) << "a cost that never fits has no Retry-After";
  EXPECT_EQ(wait(INT64_MAX, 0), 999'999'999'999'999);
  decision.limits.push_back(limit_of("daily", true));
  decision.limits[1].next_token_ms = 86'400'000;
  EXPECT_EQ(wait(72, 72), 1) << "a limit that did not deny does not hold the client back";
  decision.allowed = true;
  EXPECT_FALSE(retry_after_s(decision, 0).has_value());
}

TEST(RetryAfter, jitter_goes_up_by_a_tenth_at_most) {
  Decision decision = decision_of({limit_of("api", false)});
  decision.retry_after_ms = 100'000;
  std::int64_t most = 0;
  for (std::uint64_t random = 0; random < 1000; ++random) {
    const auto wait = retry_after_s(decision, random * 0x9e3779b97f4a7c15ULL);
    ASSERT_GE(*wait, 100);
    ASSERT_LE(*wait, 110);
    most = std::max(most, *wait);
  }
  EXPECT_EQ(most, 110);
  decision.retry_after_ms = 9'000;
  EXPECT_EQ(retry_after_s(decision, UINT64_MAX), 9) << "a tenth of 9 s is less than a second";
}

TEST(MediaTypes, content_types) {
  EXPECT_EQ(media_type_of(""), MediaType::json);
  EXPECT_EQ(media_type_of("Application/JSON ; charset=utf-8"), MediaType::json);
  EXPECT_EQ(media_type_of("application/x-protobuf"), MediaType::protobuf);
  EXPECT_EQ(media_type_of("application/protobuf"), MediaType::protobuf);
  EXPECT_EQ(media_type_of("application/x-www-form-urlencoded"), std::nullopt);
  EXPECT_EQ(media_type_of("application/jsonx"), std::nullopt);
}

TEST(MediaTypes, accept) {
  const auto type = [](std::string_view accept, MediaType fallback) {
    return accepted_by(accept, fallback).type;
  };
  for (const auto fallback : {MediaType::json, MediaType::protobuf}) {
    EXPECT_EQ(type("", fallback), fallback);
    EXPECT_EQ(type("*/*", fallback), fallback);
    EXPECT_EQ(type("text/html", fallback), fallback);
    EXPECT_EQ(type("application/json", fallback), MediaType::json);
    EXPECT_EQ(type("application/x-protobuf, */*;q=0.1", fallback), MediaType::protobuf);
    EXPECT_EQ(type("application/x-protobuf;q=0.2, application/json;q=0.9", fallback),
              MediaType::json);
    EXPECT_EQ(type("application/json;q=0", fallback), fallback);
  }
  EXPECT_TRUE(accepted_by("application/problem+json", MediaType::json).problem);
  EXPECT_FALSE(accepted_by("application/problem+json;q=0.000", MediaType::json).problem);
  EXPECT_FALSE(accepted_by("application/json", MediaType::json).problem);
}

TEST(Paths, split_into_decoded_segments) {
  EXPECT_EQ(split_path("/v1/owners/a%2Fb+c"), (std::vector<std::string>{"v1", "owners", "a/b+c"}));
  EXPECT_EQ(split_path("/"), (std::vector<std::string>{""}));
  EXPECT_EQ(split_path("/a/"), (std::vector<std::string>{"a", ""}));
  EXPECT_FALSE(split_path("a").has_value());
  EXPECT_FALSE(split_path("/%x").has_value());
}

TEST(Urls, are_taken_apart) {
  EXPECT_EQ(parse_url("http://h:81/p?q"), (HttpUrl{{"h", 81}, "/p?q"}));
  EXPECT_EQ(parse_url("http://h"), (HttpUrl{{"h", 80}, "/"}));
  EXPECT_EQ(parse_url("https://h/p"), (HttpUrl{{"h", 443}, "/p", true}));
  EXPECT_EQ(parse_url("http://[::1]:8080?q"), (HttpUrl{{"::1", 8080}, "/?q"}));
  EXPECT_EQ(parse_url("http://[::1]"), (HttpUrl{{"::1", 80}, "/"}));
  for (const char* url : {"h:80", "ftp://h", "http://", "http://h:x", "http://h:99999",
                          "http://:80", "http://h:", "http://h/a b"}) {
    EXPECT_FALSE(parse_url(url).has_value()) << url;
  }
}

}  // namespace
}  // namespace weir::net
