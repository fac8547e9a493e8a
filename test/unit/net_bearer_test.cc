// Goal: a token opens what its scope allows and nothing else, and what is refused reaches no
// service. Method: the judgement as a function, then a server with a fake service behind it.
#include <gtest/gtest.h>

#include "src/net/bearer.h"
#include "test/unit/net_support.h"

namespace weir::net::test {
namespace {

TokenDigests three() {
  TokenDigests tokens;
  tokens.check = {digest_of("c1"), digest_of("c2")};
  tokens.read = {digest_of("r")};
  tokens.admin = {digest_of("a")};
  return tokens;
}

TEST(Digest, IsSha256AndReadFromItsDigits) {
  // FIPS 180-2, appendix B.1.
  const auto digest =
      parse_digest("BA7816BF8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ASSERT_TRUE(digest);
  EXPECT_EQ(*digest, digest_of("abc"));
  EXPECT_FALSE(parse_digest(""));
  EXPECT_FALSE(parse_digest(std::string(63, '0')));
  EXPECT_FALSE(parse_digest(std::string(66, '0')));
  EXPECT_FALSE(parse_digest(std::string(63, '0') + "g"));
}

TEST(Judge, EachScopeOpensItsOwn) {
  const TokenDigests tokens = three();
  const auto verdict = [&](Access access, const char* token) {
    return judge(tokens, access, std::string("Bearer ") + token);
  };
  for (const char* token : {"c1", "c2"}) {
    EXPECT_EQ(verdict(Access::check, token), Verdict::granted) << token;
    EXPECT_EQ(verdict(Access::read, token), Verdict::insufficient) << token;
    EXPECT_EQ(verdict(Access::admin, token), Verdict::insufficient) << token;
  }
  EXPECT_EQ(verdict(Access::read, "r"), Verdict::granted);
  EXPECT_EQ(verdict(Access::admin, "r"), Verdict::insufficient);
  EXPECT_EQ(verdict(Access::check, "r"), Verdict::insufficient);
  EXPECT_EQ(verdict(Access::admin, "a"), Verdict::granted);
  EXPECT_EQ(verdict(Access::read, "a"), Verdict::granted) << "admin implies read";
  EXPECT_EQ(verdict(Access::check, "a"), Verdict::insufficient);
  for (const char* token : {"c", "c11", "C1", "nobody", "c1 c2", "sha256:00"}) {
    for (const Access access : {Access::check, Access::read, Access::admin}) {
      EXPECT_EQ(verdict(access, token), Verdict::unknown) << token;
    }
  }
}

TEST(Judge, TakesTheHeaderOfRfc6750AndNothingLikeIt) {
  const TokenDigests tokens = three();
  for (const char* header : {"Bearer c1", "bearer c1", "BEARER   c1", "Bearer c1 "}) {
    EXPECT_EQ(judge(tokens, Access::check, header), Verdict::granted) << header;
  }
  for (const char* header : {"", "c1", "Bearer", "Bearer ", "Bearer    ", "Bearerc1", "Basic c1",
                             "Bearer\tc1", " Bearer c1", "Token c1"}) {
    EXPECT_EQ(judge(tokens, Access::check, header), Verdict::missing) << header;
  }
}

TEST(Judge, WithoutTokensNothingIsAsked) {
  EXPECT_EQ(judge({}, Access::check, ""), Verdict::granted);
  EXPECT_EQ(judge({}, Access::admin, "Bearer x"), Verdict::granted);
  TokenDigests only_check;
  only_check.check = {digest_of("c")};
  EXPECT_EQ(judge(only_check, Access::check, ""), Verdict::missing);
  EXPECT_EQ(judge(only_check, Access::read, ""), Verdict::granted);
  TokenDigests only_read;
  only_read.read = {digest_of("r")};
  EXPECT_EQ(judge(only_read, Access::check, ""), Verdict::granted);
  EXPECT_EQ(judge(only_read, Access::admin, ""), Verdict::missing);
  EXPECT_EQ(judge(only_read, Access::admin, "Bearer r"), Verdict::insufficient)
      << "nobody may change what only has readers";
}

HttpServerOptions with(TokenBook& book) {
  HttpServerOptions options;
  options.tokens = &book;
  return options;
}

TEST(GuardedServer, RefusesBeforeAnyServiceIsAsked) {
  TokenBook book;
  book.replace(three());
  Served served(with(book));
  const std::string body = R"({"customer":"acme"})";
  const auto ask = [&](const char* authorization) {
    HttpHeaders headers{{"Content-Type", "application/json"}};
    if (*authorization != 0) headers.emplace_back("Authorization", authorization);
    return served.request("POST", "/v1/check", body, headers);
  };
  const auto missing = ask("");
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(*missing.header("WWW-Authenticate"), "Bearer realm=\"weir\"");
  EXPECT_NE(missing.body.find(R"("code":"unauthenticated","field":"Authorization")"),
            std::string::npos)
      << missing.body;
  const auto wrong = ask("Bearer hunter2");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_NE(wrong.header("WWW-Authenticate")->find("invalid_token"), std::string::npos);
  EXPECT_EQ(wrong.body.find("hunter2"), std::string::npos);
  const auto insufficient = ask("Bearer a");
  EXPECT_EQ(insufficient.status, 403);
  EXPECT_NE(insufficient.header("WWW-Authenticate")->find("scope=\"check\""), std::string::npos);
  EXPECT_NE(insufficient.body.find("\"forbidden\""), std::string::npos);
  // What is there is nobody's business, either.
  EXPECT_EQ(served.request("GET", "/nowhere").status, 401);
  EXPECT_EQ(served.request("GET", "/v1/usage?customer=acme").status, 401);
  EXPECT_EQ(served.service.decided, 0);

  EXPECT_EQ(ask("Bearer c2").status, 200);
  EXPECT_EQ(served.service.decided, 1);
  const auto refusals = book.refusals();
  EXPECT_EQ(refusals.missing, 3U);
  EXPECT_EQ(refusals.unknown, 1U);
  EXPECT_EQ(refusals.insufficient, 1U);
}

TEST(GuardedServer, FollowsAReplacedBookOnAnOpenConnection) {
  TokenBook book;
  book.replace(three());
  Served served(with(book));
  auto client = HttpClient::connect(served.endpoint, kPatience);
  ASSERT_TRUE(client);
  const auto ask = [&] {
    const auto response = client->request("POST", "/v1/check", {{"Authorization", "Bearer c1"}},
                                          R"({"customer":"acme"})", kPatience);
    return response ? response->status : 0;
  };
  EXPECT_EQ(ask(), 200);
  TokenDigests others;
  others.check = {digest_of("c3")};
  book.replace(others);
  EXPECT_EQ(ask(), 401);
  book.replace(three());
  EXPECT_EQ(ask(), 200);
}

}  // namespace
}  // namespace weir::net::test
