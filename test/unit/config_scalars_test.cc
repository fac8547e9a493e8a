// Goal: each notation of API.md reads to exactly its value, and everything near it is refused with
// a word on what is right. Method: tables, and round trips of random values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/random.h"
#include "src/config/scalars.h"

namespace weir::config {
namespace {

using testing::HasSubstr;

TEST(ConfigScalars, IntegersAreDecimalDigitsAlone) {
  EXPECT_EQ(parse_integer("0", 0, 10), 0);
  EXPECT_EQ(parse_integer("10", 0, 10), 10);
  EXPECT_EQ(parse_integer("9223372036854775807", 1, INT64_MAX), INT64_MAX);
  EXPECT_EQ(parse_integer("-5", -5, 5), -5);
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {{"010", "write 10"},
                        {"00", "write 0"},
                        {"0x10", "plain digits"},
                        {"0o17", "plain digits"},
                        {"1_000", "separators"},
                        {"1,000", "separators"},
                        {"1e3", "whole number"},
                        {"1.5", "whole number"},
                        {"1.0", "whole number"},
                        {"+5", "sign"},
                        {"-1", "negative"},
                        {"9223372036854775808", "too large"},
                        {"99999999999999999999999999", "too large"},
                        {"", "missing"},
                        {" 1", "not a number"},
                        {"1 ", "not a number"},
                        {"ten", "not a number"},
                        {"\xD9\xA1", "not a number"}};
  for (const auto& [text, message] : cases) {
    const auto value = parse_integer(text, 0, INT64_MAX);
    ASSERT_FALSE(value) << text;
    EXPECT_THAT(value.error().message, HasSubstr(message)) << text;
  }
  EXPECT_THAT(parse_integer("11", 0, 10).error().message, HasSubstr("from 0 to 10"));
  EXPECT_THAT(parse_integer("0", 1, 10).error().message, HasSubstr("from 1 to 10"));
}

TEST(ConfigScalars, Durations) {
  EXPECT_EQ(parse_duration("250ms"), 250 * kMillisecond);
  EXPECT_EQ(parse_duration("10s"), 10 * kSecond);
  EXPECT_EQ(parse_duration("5m"), 5 * kMinute);
  EXPECT_EQ(parse_duration("5min"), 5 * kMinute);
  EXPECT_EQ(parse_duration("1h"), kHour);
  EXPECT_EQ(parse_duration("2d"), 2 * kDay);
  EXPECT_EQ(parse_duration("0s"), 0);
  EXPECT_EQ(parse_duration("36500d"), 100 * kYear);
  for (const char* bad : {"", "s", "10", "10 s", "-1s", "1.5s", "010s", "1h30m", "10sec", "1w",
                          "36501d", "9223372036854775807d", "9999999999999999999ms"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
  EXPECT_THAT(parse_duration("10").error().message, HasSubstr("has no unit"));
}

TEST(ConfigScalars, RatesAreACountPerTime) {
  EXPECT_EQ(parse_rate("100/s"), (Rate{100, kSecond}));
  EXPECT_EQ(parse_rate("600/min"), (Rate{600, kMinute}));
  EXPECT_EQ(parse_rate("5000/h"), (Rate{5000, kHour}));
  EXPECT_EQ(parse_rate("10/5m"), (Rate{10, 5 * kMinute}));
  EXPECT_EQ(parse_rate("1/5s"), (Rate{1, 5 * kSecond}));
  EXPECT_EQ(parse_rate("7/ms"), (Rate{7, kMillisecond}));
  EXPECT_EQ(parse_rate("1/365d"), (Rate{1, kYear}));
  EXPECT_EQ(parse_rate("9223372036854775807/d"), (Rate{INT64_MAX, kDay}));
  for (const char* bad : {"", "/", "600", "600/", "/min", "600/minute", "0/s", "-1/s", "1.5/s",
                          "010/s", "1e3/s", "600 / min", "600/min/min", "1/0s", "1/366d", "1/0ms",
                          "9223372036854775808/s", "unlimited"}) {
    EXPECT_FALSE(parse_rate(bad)) << bad;
  }
  EXPECT_THAT(parse_rate("0/s").error().message, HasSubstr("blocked"));
  EXPECT_THAT(parse_rate("600").error().message, HasSubstr("600/min"));
}

TEST(ConfigScalars, RandomDurationsAndRatesComeBack) {
  Random random(7);
  const std::pair<const char*, Nanos> units[] = {
      {"ms", kMillisecond}, {"s", kSecond}, {"m", kMinute}, {"min", kMinute}, {"h", kHour}};
  for (int i = 0; i < 1000; ++i) {
    const auto& [name, unit] = units[random.below(std::size(units))];
    const std::int64_t time = random.between(1, 8000);
    const std::int64_t count = random.between(1, INT64_MAX);
    const std::string duration = std::to_string(time) + name;
    EXPECT_EQ(parse_duration(duration), time * unit);
    EXPECT_EQ(parse_rate(std::to_string(count) + "/" + duration), (Rate{count, time * unit}));
  }
}

TEST(ConfigScalars, Percentages) {
  EXPECT_EQ(parse_percent("10%"), 100);
  EXPECT_EQ(parse_percent("8.3%"), 83);
  EXPECT_EQ(parse_percent("0%"), 0);
  EXPECT_EQ(parse_percent("100%"), 1000);
  for (const char* bad :
       {"", "%", "10", "10 %", "101%", "100.1%", "8.33%", "8.%", ".5%", "-1%", "010%", "0x1%"}) {
    EXPECT_FALSE(parse_percent(bad)) << bad;
  }
}

TEST(ConfigScalars, Endpoints) {
  EXPECT_EQ(parse_endpoint("127.0.0.1:8080"), (Endpoint{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_endpoint("weir-0.weir.svc:7070"), (Endpoint{"weir-0.weir.svc", 7070}));
  EXPECT_EQ(parse_endpoint("[::1]:1"), (Endpoint{"::1", 1}));
  EXPECT_EQ(parse_endpoint("[::]:65535"), (Endpoint{"::", 65535}));
  EXPECT_EQ(parse_endpoint("[2001:db8::1]:80"), (Endpoint{"2001:db8::1", 80}));
  EXPECT_EQ(parse_endpoint("[1:2:3:4:5:6:7:8]:80"), (Endpoint{"1:2:3:4:5:6:7:8", 80}));
  EXPECT_EQ(parse_endpoint("127.0.0.1:0", 0), (Endpoint{"127.0.0.1", 0}));
  for (const char* bad : {"",
                          "8080",
                          ":8080",
                          "localhost",
                          "localhost:",
                          "localhost:0",
                          "localhost:65536",
                          "localhost:080",
                          "localhost:http",
                          "::1:8080",
                          "256.0.0.1:80",
                          "1.2.3:80",
                          "1.2.3.4.5:80",
                          "01.2.3.4:80",
                          "a b:80",
                          "[]:80",
                          "[:]:80",
                          "[1:2:3]:80",
                          "[1::2::3]:80",
                          "[12345::]:80",
                          "[:1::2]:80",
                          "[1:2:3:4:5:6:7:8:9]:80",
                          "[127.0.0.1]:80",
                          "-a:80"}) {
    EXPECT_FALSE(parse_endpoint(bad)) << bad;
  }
  EXPECT_THAT(parse_endpoint("8080").error().message, HasSubstr("no host"));
  EXPECT_THAT(parse_endpoint("::1:8080").error().message, HasSubstr("brackets"));
  for (const char* text : {"127.0.0.1:1", "[::1]:1", "eu-1.example:443"}) {
    EXPECT_EQ(to_string(parse_endpoint(text).value()), text);
  }
}

TEST(ConfigScalars, RedisUrls) {
  for (const char* good :
       {"redis://127.0.0.1:6379", "redis://cache", "rediss://cache:1/3",
        "redis://user:p@ss@cache:6379/", "redis://[::1]:6379", "redis://[::1]"}) {
    EXPECT_EQ(parse_redis_url(good), good) << good;
  }
  for (const char* bad : {"", "http://cache", "cache:6379", "redis://", "redis://:6379",
                          "redis://cache:port", "redis://cache/db", "redis://[::1"}) {
    EXPECT_FALSE(parse_redis_url(bad)) << bad;
  }
  // The URL may hold a password: no message repeats it.
  EXPECT_THAT(parse_redis_url("redis://me:secret@cache:99999999").error().message,
              testing::Not(HasSubstr("secret")));
}

TEST(ConfigScalars, Names) {
  const std::string longest = "a" + std::string(63, 'Z');
  for (const std::string& good : {std::string("a"), std::string("Api.v1_x-2"), longest}) {
    EXPECT_EQ(parse_name(good), good);
    EXPECT_EQ(parse_place_name(good), good);
  }
  for (const std::string& bad :
       {std::string(), longest + "a", std::string("-a"), std::string("a b"), std::string("a/b"),
        std::string("caf\xC3\xA9")}) {
    EXPECT_FALSE(parse_name(bad)) << bad;
    EXPECT_FALSE(parse_place_name(bad)) << bad;
  }
  EXPECT_FALSE(parse_name("1a"));
  EXPECT_EQ(parse_place_name("1a"), "1a");
}

TEST(ConfigScalars, LongTextsAreCutInMessages) {
  const std::string text(100'000, 'x');
  EXPECT_LT(parse_name(text).error().message.size(), 400U);
  EXPECT_LT(parse_rate(text).error().message.size(), 400U);
  EXPECT_LT(parse_integer(text, 0, 1).error().message.size(), 400U);
}

TEST(ConfigScalars, TimeZones) {
  for (const char* good : {"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"}) {
    EXPECT_EQ(parse_timezone(good), good);
  }
  for (const char* bad :
       {"", "/etc/passwd", "../UTC", "Europe/../UTC", "Europe//Berlin", "Berlin time", "+02:00"}) {
    EXPECT_FALSE(parse_timezone(bad)) << bad;
  }
}

TEST(ConfigScalars, TokensAndHeaders) {
  const std::string sum(64, 'a');
  EXPECT_TRUE(parse_token("sha256:" + sum));
  EXPECT_TRUE(parse_token("file:/run/secrets/weir"));
  for (const std::string& bad :
       {std::string(), std::string("secret"), "sha256:" + sum + "a", "sha256:" + sum.substr(1),
        "sha256:" + sum.substr(1) + "g", std::string("file:"), "sha1:" + sum}) {
    EXPECT_FALSE(parse_token(bad)) << bad;
  }
  EXPECT_THAT(parse_token("hunter2").error().message, testing::Not(HasSubstr("hunter2")));
  EXPECT_EQ(parse_header_name("X-API-Key"), "X-API-Key");
  for (const char* bad : {"", "X API", "X:", "X\n", "caf\xC3\xA9"}) {
    EXPECT_FALSE(parse_header_name(bad)) << bad;
  }
}

TEST(ConfigScalars, Loopback) {
  for (const char* host : {"127.0.0.1", "127.9.9.9", "localhost", "::1"}) {
    EXPECT_TRUE(is_loopback({host, 1})) << host;
  }
  for (const char* host : {"0.0.0.0", "10.0.0.1", "127.evil.example", "::", "::2"}) {
    EXPECT_FALSE(is_loopback({host, 1})) << host;
  }
}

}  // namespace
}  // namespace weir::config
