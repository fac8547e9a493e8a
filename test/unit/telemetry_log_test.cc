// Goal: a log line says what was logged, and no value can forge another line or field.
// Method: log through a sink that keeps the lines; JSON lines are parsed back with Boost.JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "src/telemetry/escape.h"
#include "src/telemetry/log.h"

namespace weir::telemetry {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class Lines {
 public:
  explicit Lines(Format format, Level level = Level::debug)
      : log_(make_log(level, format, [this](std::string_view line) { all_.emplace_back(line); })) {}

  Log& log() { return *log_; }
  const std::vector<std::string>& all() const { return all_; }
  /// The only line, without the time and level of the text format.
  std::string message() const {
    EXPECT_EQ(all_.size(), 1U);
    return all_.empty()
               ? ""
               : all_.front().substr(std::string("2026-11-29T19:40:00.123Z info  ").size());
  }
  boost::json::object json() const {
    EXPECT_EQ(all_.size(), 1U);
    return boost::json::parse(all_.at(0)).as_object();
  }

 private:
  std::vector<std::string> all_;
  std::unique_ptr<Log> log_;
};

TEST(TextLog, HasTimeLevelEventAndFields) {
  Lines lines(Format::text);
  lines.log().info("owner activated", {{"customer", "acme"},
                                       {"epoch", "3.eu-1.77"},
                                       {"slot", 42},
                                       {"new", true},
                                       {"lowest", INT64_MIN},
                                       {"most", UINT64_MAX}});
  ASSERT_EQ(lines.all().size(), 1U);
  EXPECT_TRUE(::testing::Matches(::testing::MatchesRegex(
      "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z info  owner activated "
      "customer=acme epoch=3\\.eu-1\\.77 slot=42 new=true lowest=-9223372036854775808 "
      "most=18446744073709551615"))(lines.all()[0]))
      << lines.all()[0];
}

TEST(TextLog, LevelsLineUpAndLowerOnesAreDropped) {
  Lines lines(Format::text, Level::warn);
  lines.log().debug("a");
  lines.log().info("b");
  lines.log().warn("c");
  lines.log().error("d");
  EXPECT_THAT(lines.all(), ElementsAre(EndsWith("Z warn  c"), EndsWith("Z error d")));
}

std::string text_value(std::string_view value) {
  std::string out;
  append_text_value(out, value);
  return out;
}

TEST(TextLog, PlainValuesStayBareAndOthersAreQuoted) {
  EXPECT_EQ(text_value("GET/v1:a-b_c.d"), "GET/v1:a-b_c.d");
  EXPECT_EQ(text_value(""), "\"\"");
  EXPECT_EQ(text_value("two words"), "\"two words\"");
  EXPECT_EQ(text_value("a=b"), "\"a=b\"");
  EXPECT_EQ(text_value("say \"hi\""), R"("say \"hi\"")");
  EXPECT_EQ(text_value("back\\slash"), R"("back\\slash")");
  EXPECT_EQ(text_value("M\xC3\xBCller"), "\"M\xC3\xBCller\"");
}

TEST(TextLog, ControlBytesInvisibleCodePointsAndBadUtf8AreWrittenOut) {
  EXPECT_EQ(text_value("a\nb\r\tc"), R"("a\nb\r\tc")");
  EXPECT_EQ(text_value(std::string_view("\0\x1B[31m\x7F", 7)), R"("\u{0000}\u{001b}[31m\u{007f}")");
  EXPECT_EQ(text_value("a\xE2\x80\xA8z\xE2\x80\xAE"), R"("a\u{2028}z\u{202e}")");
  EXPECT_EQ(text_value("\xC2\x9B"), R"("\u{009b}")");
  // Bytes that UTF-8 does not allow: a stray continuation, overlong, surrogate, too high, cut off.
  EXPECT_EQ(text_value("\x80"), R"("\x80")");
  EXPECT_EQ(text_value("\xC0\xAF"), R"("\xc0\xaf")");
  EXPECT_EQ(text_value("\xE0\x80\xAF"), R"("\xe0\x80\xaf")");
  EXPECT_EQ(text_value("\xED\xA0\x80"), R"("\xed\xa0\x80")");
  EXPECT_EQ(text_value("\xF4\x90\x80\x80"), R"("\xf4\x90\x80\x80")");
  EXPECT_EQ(text_value("x\xE2\x82"), R"("x\xe2\x82")");
}

TEST(TextLog, AValueCannotForgeALineOrAField) {
  Lines lines(Format::text);
  lines.log().info("denied", {{"customer", "a\n2026-01-01T00:00:00.000Z error disk lost"},
                              {"route", "x admin=true"},
                              {"bad name=\n", "v"}});
  EXPECT_EQ(lines.message(),
            "denied customer=\"a\\n2026-01-01T00:00:00.000Z error disk lost\" "
            "route=\"x admin=true\" bad_name__=v");
}

TEST(TextLog, AnEventCannotForgeEither) {
  Lines lines(Format::text);
  lines.log().info("odd\nevent x=1");
  EXPECT_EQ(lines.message(), "\"odd\\nevent x=1\"");
}

TEST(TextLog, PatternCharactersAreNotInterpreted) {
  Lines lines(Format::text);
  lines.log().info("100 %v %l {} {0}", {{"a", "%v{}%%"}});
  EXPECT_EQ(lines.message(), "100 %v %l {} {0} a=%v{}%%");
}

TEST(TextLog, OverlongValuesAreCutBetweenCodePoints) {
  std::string value(kMaxLogValueBytes - 1, 'x');
  const std::string shown = value;
  value += "\xE2\x82\xAC tail";
  EXPECT_EQ(text_value(value), "\"" + shown + "...[8 more bytes]\"");
  EXPECT_EQ(text_value(std::string(kMaxLogValueBytes, 'y')), std::string(kMaxLogValueBytes, 'y'));
}

TEST(JsonLog, IsOneValidObjectPerLine) {
  Lines lines(Format::json);
  const std::string value = "a\"b\\c\nd\te\x01\xE2\x80\xA8/\xC3\xBC";
  lines.log().warn(
      "disk \"slow\"",
      {{"customer", value}, {"count", 7}, {"ok", false}, {"most", UINT64_MAX}, {"text", "7"}});
  EXPECT_THAT(lines.all().at(0), Not(HasSubstr("\n")));
  const boost::json::object object = lines.json();
  EXPECT_EQ(object.size(), 8U);
  EXPECT_EQ(object.at("level"), "warn");
  EXPECT_EQ(object.at("event"), "disk \"slow\"");
  EXPECT_EQ(object.at("customer").as_string(), value);
  EXPECT_EQ(object.at("count"), 7);
  EXPECT_EQ(object.at("ok"), false);
  EXPECT_EQ(object.at("most").as_uint64(), UINT64_MAX);
  EXPECT_EQ(object.at("text"), "7");
  EXPECT_EQ(object.at("ts").as_string().size(), 24U);
}

TEST(JsonLog, BadUtf8BecomesTheReplacementCharacter) {
  Lines lines(Format::json);
  lines.log().info("e", {{"customer", "a\xFF"}});
  EXPECT_EQ(lines.json().at("customer").as_string(), "a\xEF\xBF\xBD");
}

TEST(JsonLog, AFieldCannotTakeAReservedName) {
  Lines lines(Format::json);
  lines.log().info("e", {{"level", "error"}, {"ts", 1}, {"event", "x"}, {"a\"b", 2}});
  const boost::json::object object = lines.json();
  EXPECT_EQ(object.at("level"), "info");
  EXPECT_EQ(object.at("level_"), "error");
  EXPECT_EQ(object.at("event"), "e");
  EXPECT_EQ(object.at("a_b"), 2);
}

TEST(JsonLog, AnyBytesGiveValidJson) {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes.push_back(static_cast<char>(b));
  Lines lines(Format::json);
  lines.log().info(bytes, {{bytes, bytes}});
  EXPECT_EQ(lines.json().size(), 4U);
}

TEST(Log, LinesOfThreadsDoNotMix) {
  Lines lines(Format::text);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) lines.log().info("x", {{"value", "yy zz"}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines.all().size(), 400U);
  for (const std::string& line : lines.all())
    EXPECT_THAT(line, EndsWith("info  x value=\"yy zz\""));
}

TEST(Log, TheRealOneWritesToStderr) {
  ::testing::internal::CaptureStderr();
  make_log(Level::info, Format::text)->error("to stderr", {{"n", 1}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), EndsWith("error to stderr n=1\n"));
}

TEST(Log, TheNullLogSaysNothing) {
  ::testing::internal::CaptureStderr();
  make_null_log()->error("lost");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Log, LevelsHaveWords) {
  EXPECT_EQ(level_from("warn"), Level::warn);
  EXPECT_EQ(level_from("Warn"), std::nullopt);
  EXPECT_EQ(level_from(to_string(Level::debug)), Level::debug);
}

}  // namespace
}  // namespace weir::telemetry
