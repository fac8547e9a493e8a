// Goal: what is not a check gets the 4xx of API.md, costs no quota and harms nobody else.
// Method: hostile bytes on raw sockets against one node, its counters looked at before and after.
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/cli/process.h"
#include "test/integration/fixture.h"

namespace weir::test {
namespace {

using HostileInput = ClusterTest;

constexpr const char* kPolicy =
    "version: 1\nlimits:\n  - {name: api, scope: global, rate: 1/h, burst: 10}\n";

struct Attack {
  const char* name;
  std::string bytes;
  const char* status;  ///< first line of the answer begins so
};

std::string post(const std::string& path, const std::string& type, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
std::string json_check(const std::string& body) {
  return post("/v1/check", "application/json", body);
}
std::string proto_check(const std::string& body) {
  return post("/v1/check", "application/x-protobuf", body);
}

std::vector<Attack> attacks() {
  const std::string good = R"({"customer":"victim"})";
  return {
      {"no HTTP", "\x16\x03\x01\x02 not a request\r\n\r\n", "HTTP/1.1 400"},
      {"no method", " /v1/check HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400"},
      {"another version", "GET /v1/check?customer=victim HTTP/9.9\r\nHost: h\r\n\r\n",
       "HTTP/1.1 505"},
      {"two lengths",
       "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 21\r\nContent-Length: 20\r\n"
       "Content-Type: application/json\r\n\r\n" +
           good,
       "HTTP/1.1 400"},
      {"negative length",
       "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n"
       "Content-Type: application/json\r\n\r\n" +
           good,
       "HTTP/1.1 400"},
      {"length and chunks",
       "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 21\r\nTransfer-Encoding: chunked\r\n"
       "Content-Type: application/json\r\n\r\n15\r\n" +
           good + "\r\n0\r\n\r\n",
       "HTTP/1.1 400"},
      {"wrong type", post("/v1/check", "text/plain", good), "HTTP/1.1 415"},
      {"wrong path", post("/v1/chek", "application/json", good), "HTTP/1.1 404"},
      {"wrong method",
       "DELETE /v1/check?customer=victim HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       "HTTP/1.1 405"},
      {"too large", json_check(std::string(70 * 1024, ' ') + good), "HTTP/1.1 413"},
      {"no JSON", json_check("{"), "HTTP/1.1 400"},
      {"no object", json_check("[1]"), "HTTP/1.1 400"},
      {"something behind", json_check(good + "x"), "HTTP/1.1 400"},
      {"unknown member", json_check(R"({"customer":"victim","costs":1})"), "HTTP/1.1 400"},
      {"member twice", json_check(R"({"customer":"victim","customer":"victim"})"), "HTTP/1.1 400"},
      {"cost as text", json_check(R"({"customer":"victim","cost":"1"})"), "HTTP/1.1 400"},
      {"cost beyond 64 bits", json_check(R"({"customer":"victim","cost":9223372036854775808})"),
       "HTTP/1.1 400"},
      {"no customer", json_check("{}"), "HTTP/1.1 400"},
      {"empty customer", json_check(R"({"customer":""})"), "HTTP/1.1 400"},
      {"no UTF-8", json_check("{\"customer\":\"vic\xfftim\"}"), "HTTP/1.1 400"},
      {"too deep",
       json_check(R"({"customer":"victim","attributes":)" + std::string(1000, '[') +
                  std::string(1000, ']') + "}"),
       "HTTP/1.1 400"},
      {"Protobuf cut off", proto_check(std::string("\x0a\x09victim", 8)), "HTTP/1.1 400"},
      {"Protobuf of another wire type", proto_check(std::string("\x08\x01", 2)), "HTTP/1.1 400"},
      {"Protobuf without customer", proto_check(std::string("\x18\x01", 2)), "HTTP/1.1 400"},
      {"unknown query name twice",
       "GET /v1/check?customer=victim&a=1&a=2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       "HTTP/1.1 400"},
      {"percent sign without number",
       "GET /v1/check?customer=vic%zztim HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       "HTTP/1.1 400"},
  };
}

TEST_F(HostileInput, GetsItsFourHundredsAndCostsNothing) {
  ASSERT_NO_FATAL_FAILURE(start(1, 1, kPolicy, patient_node()));
  const Endpoint& at = node(0).http;
  ASSERT_EQ(check(at, "victim").number("remaining"), 9);
  for (const Attack& attack : attacks()) {
    const std::string answer = exchange_raw(at, attack.bytes);
    EXPECT_EQ(answer.substr(0, 12), attack.status) << attack.name << ": " << answer;
  }
  EXPECT_EQ(check(at, "victim").number("remaining"), 8) << "nothing of all that was charged";
}

TEST_F(HostileInput, AGoodCheckInTheSameFormIsCharged) {
  // Otherwise the test above could pass because nothing is ever charged that way.
  ASSERT_NO_FATAL_FAILURE(start(1, 1, kPolicy, patient_node()));
  const Endpoint& at = node(0).http;
  EXPECT_EQ(exchange_raw(at, json_check(R"({"customer":"victim"})")).substr(0, 12), "HTTP/1.1 200");
  EXPECT_EQ(exchange_raw(at, proto_check(std::string("\x0a\x06victim", 8))).substr(0, 12),
            "HTTP/1.1 200");
  EXPECT_EQ(exchange_raw(at,
                         "GET /v1/check?customer=victim HTTP/1.1\r\nHost: h\r\n"
                         "Connection: close\r\n\r\n")
                .substr(0, 12),
            "HTTP/1.1 200");
  EXPECT_EQ(check(at, "victim").number("remaining"), 6);
}

TEST_F(HostileInput, ABatchIsChargedForItsGoodChecksOnly) {
  ASSERT_NO_FATAL_FAILURE(start(1, 1, kPolicy, patient_node()));
  const Answer batch =
      ask(node(0).http, "POST", "/v1/checks",
          R"({"checks":[{"customer":"victim"},{"customer":"victim","x":1},{"customer":""}]})");
  ASSERT_EQ(batch.status, 200) << batch.text;
  const auto& results = batch.json.at("results").as_array();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].as_object().contains("allowed"));
  EXPECT_TRUE(results[1].as_object().contains("error"));
  EXPECT_TRUE(results[2].as_object().contains("error"));
  EXPECT_EQ(check(node(0).http, "victim").number("remaining"), 8);
}

TEST(Validate, TenMistakesAreTenErrorsWithPositions) {
  std::string pattern = testing::TempDir() + "weir-validate-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::string policy = pattern + "/policy.yaml";
  std::ofstream(policy) << "version: 010\n"                                                    // 1
                           "limits:\n"                                                         // 2
                           "  - {name: 1st, scope: global, rate: 1/s}\n"                       // 3
                           "  - {name: a, scope: globl, rate: 1/s}\n"                          // 4
                           "  - {name: b, scope: global, rate: fast}\n"                        // 5
                           "  - {name: c, scope: global, rate: 1/s, burst: -1}\n"              // 6
                           "  - {name: d, scope: global, rate: 1/s, brust: 5}\n"               // 7
                           "  - {name: e, scope: global, rate: 1/s, quota: 5, window: day}\n"  // 8
                           "  - {name: f, scope: global, by: [ip], rate: 1/s}\n"               // 9
                           "  - {name: g, scope: global, rate: 1/s, rate: 2/s}\n"              // 10
                           "customers:\n"                                                      // 11
                           "  acme: {plan: gold}\n";                                           // 12
  const auto spawned = cli::spawn_process({WEIR_PROGRAM, {"validate", policy}, pattern + "/log"});
  ASSERT_TRUE(spawned) << spawned.error().message;
  ::close(spawned->ready_fd);
  int wait_status = 0;
  ASSERT_EQ(::waitpid(spawned->pid, &wait_status, 0), spawned->pid);
  EXPECT_EQ(cli::describe_wait_status(wait_status), "exit status 1");
  std::ifstream log(pattern + "/log");
  const std::string out{std::istreambuf_iterator<char>(log), {}};
  for (const int line : {1, 3, 4, 5, 6, 7, 8, 9, 10, 12}) {
    EXPECT_NE(out.find(policy + ":" + std::to_string(line) + ":"), std::string::npos)
        << "line " << line << " in\n"
        << out;
  }
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace weir::test
