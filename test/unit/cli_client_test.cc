// Goal: what a person types as address and attributes is taken or refused with a reason, and is
// encoded so that the node reads back the same bytes.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "src/cli/client.h"

namespace weir::cli {
namespace {

TEST(Target, TakesUrlsAndBareAddresses) {
  EXPECT_EQ(parse_target("http://127.0.0.1:8080")->endpoint, (Endpoint{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_target("http://127.0.0.1:8080/")->endpoint, (Endpoint{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_target("localhost:9")->endpoint, (Endpoint{"localhost", 9}));
  EXPECT_EQ(parse_target("http://[::1]:80")->endpoint, (Endpoint{"::1", 80}));
  EXPECT_FALSE(parse_target("http://a:1")->tls);
  EXPECT_TRUE(parse_target("https://a:1/")->tls);
  EXPECT_EQ(parse_target("https://a:1/")->endpoint, (Endpoint{"a", 1}));
}

TEST(Target, RefusesWhatItCannotReach) {
  for (const char* url : {"", "http://", "127.0.0.1", "http://a:0", "http://a:70000", "ftp://a:1",
                          "http://a:1/v1/check", "https://http://a:1"}) {
    EXPECT_FALSE(parse_target(url)) << url;
  }
}

TEST(Target, ShowsTheTokenOfTheFlagOrElseOfTheFile) {
  const std::string path = testing::TempDir() + "/weir-cli-token";
  std::ofstream(path) << "from-file\n";
  Credentials credentials;
  const auto token = [&] { return parse_target("--admin", "https://a:1", credentials)->token; };
  const auto wrong_flag = [&](const char* url) {
    const auto target = parse_target("--admin", url, credentials);
    return target ? "" : target.error().field;
  };
  credentials.token_file = path;
  EXPECT_EQ(token(), "from-file");
  credentials.token = "from-flag";
  EXPECT_EQ(token(), "from-flag");
  EXPECT_EQ(wrong_flag("ftp://a:1"), "--admin");
  credentials.token = "two\r\nX-Header: words";
  EXPECT_EQ(wrong_flag("https://a:1"), "--token");
  credentials.token.clear();
  for (const std::string& text : {std::string("\n"), std::string(5000, 'x')}) {
    std::ofstream(path) << text;
    EXPECT_EQ(wrong_flag("https://a:1"), "--token-file");
  }
  std::remove(path.c_str());
  EXPECT_EQ(wrong_flag("https://a:1"), "--token-file");
}

TEST(Attributes, SplitAtTheFirstEqualsSign) {
  const auto parsed = parse_attributes({"route=GET /a?b=c", "empty="});
  ASSERT_TRUE(parsed);
  EXPECT_EQ((*parsed)[0], std::make_pair(std::string("route"), std::string("GET /a?b=c")));
  EXPECT_EQ((*parsed)[1], std::make_pair(std::string("empty"), std::string()));
}

TEST(Attributes, RefuseWhatHasNoNameOrTwoValues) {
  EXPECT_FALSE(parse_attributes({"route"}));
  EXPECT_FALSE(parse_attributes({"=x"}));
  EXPECT_FALSE(parse_attributes({"a=1", "a=1"}));
}

TEST(PercentEncoding, KeepsOnlyUnreservedBytes) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode("a b&c=d/é%"), "a%20b%26c%3Dd%2F%C3%A9%25");
  EXPECT_EQ(percent_encode(std::string_view("\0\xff", 2)), "%00%FF");
}

TEST(DescribeError, ReadsTheErrorBodyOrShowsItAsItIs) {
  EXPECT_EQ(describe_error(
                {400, R"({"error":{"code":"invalid_argument","field":"cost","message":"no"}})"}),
            "invalid_argument: cost: no");
  EXPECT_EQ(describe_error({503, R"({"error":{"code":"unavailable","message":"draining"}})"}),
            "unavailable: draining");
  EXPECT_EQ(describe_error({500, "<html>"}), "<html>");
  EXPECT_EQ(describe_error({500, R"({"error":7})"}), R"({"error":7})");
}

}  // namespace
}  // namespace weir::cli
