// Goal: no check that a policy cannot decide gets past validate(), nothing is cut or folded, and
// the error names the member (FIELD kind 3).
// Method: UTF-8 against an independent encoder and by counting all short strings; validate() at
// each limit and one beyond it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/limits.h"
#include "src/model/check.h"

namespace weir {
namespace {

using testing::HasSubstr;

std::string utf8(std::uint32_t code_point) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  const auto tail = [&](unsigned shift) { return byte(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) return {byte(code_point)};
  if (code_point < 0x800) return {byte(0xC0 | code_point >> 6), tail(0)};
  if (code_point < 0x10000) return {byte(0xE0 | code_point >> 12), tail(6), tail(0)};
  return {byte(0xF0 | code_point >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePointButNulAndSurrogatesIsValid) {
  for (std::uint32_t code_point = 0; code_point <= 0x110010; ++code_point) {
    const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
    const bool expected = code_point != 0 && !surrogate && code_point <= 0x10FFFF;
    ASSERT_EQ(is_valid_utf8(utf8(code_point)), expected) << std::hex << code_point;
  }
}

TEST(Utf8, ExactlyTheRightNumberOfShortStringsIsValid) {
  constexpr int kAscii = 127;
  constexpr int kTwoBytes = 0x800 - 0x80;
  constexpr int kThreeBytes = 0x10000 - 0x800 - 0x800;  // less the surrogates
  int valid_of_two = 0;
  int valid_of_three = 0;
  std::string text(3, '\0');
  for (int first = 0; first < 256; ++first) {
    text[0] = static_cast<char>(first);
    for (int second = 0; second < 256; ++second) {
      text[1] = static_cast<char>(second);
      if (is_valid_utf8(std::string_view(text).substr(0, 2))) ++valid_of_two;
      for (int third = 0; third < 256; ++third) {
        text[2] = static_cast<char>(third);
        if (is_valid_utf8(text)) ++valid_of_three;
      }
    }
  }
  EXPECT_EQ(valid_of_two, kAscii * kAscii + kTwoBytes);
  EXPECT_EQ(valid_of_three, kAscii * kAscii * kAscii + 2 * kAscii * kTwoBytes + kThreeBytes);
}

TEST(Utf8, BadSequencesByName) {
  struct Bad {
    const char* what;
    std::string_view bytes;
  };
  const Bad table[] = {
      {"NUL", {"a\0b", 3}},
      {"lone continuation", "\x80"},
      {"lone continuation at the end", "abc\xBF"},
      {"overlong slash, two bytes", "\xC0\xAF"},
      {"overlong NUL, two bytes", "\xC0\x80"},
      {"overlong 0x7F", "\xC1\xBF"},
      {"overlong slash, three bytes", "\xE0\x80\xAF"},
      {"largest overlong of three bytes", "\xE0\x9F\xBF"},
      {"overlong slash, four bytes", "\xF0\x80\x80\xAF"},
      {"largest overlong of four bytes", "\xF0\x8F\xBF\xBF"},
      {"first high surrogate", "\xED\xA0\x80"},
      {"last low surrogate", "\xED\xBF\xBF"},
      {"surrogate pair (CESU-8)", "\xED\xA0\xBD\xED\xB8\x80"},
      {"above U+10FFFF", "\xF4\x90\x80\x80"},
      {"first byte F5", "\xF5\x80\x80\x80"},
      {"five bytes", "\xF8\x88\x80\x80\x80"},
      {"six bytes", "\xFC\x84\x80\x80\x80\x80"},
      {"FE", "\xFE"},
      {"FF", "\xFF"},
      {"two bytes cut", "a\xC3"},
      {"three bytes cut after one", "\xE2"},
      {"three bytes cut after two", "\xE2\x82"},
      {"four bytes cut after one", "\xF0"},
      {"four bytes cut after three", "\xF0\x9F\x98"},
      {"continuation missing in the middle", "\xE2\x28\xA1"},
      {"third byte of four wrong", "\xF0\x9F\x28\x80"},
      {"fourth byte of four wrong", "\xF0\x9F\x98\x28"},
      {"Latin-1", "caf\xE9"},
  };
  for (const auto& bad : table) EXPECT_FALSE(is_valid_utf8(bad.bytes)) << bad.what;
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8("Stra\u00DFe \u20AC \U0001F600 \uFEFF \uFFFF"));
}

TEST(Utf8, DoesNotReadPastTheEndOfAView) {
  const std::string text = "\xE2\x82\xAC";
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_FALSE(is_valid_utf8(std::string_view(text).substr(0, 2)));
}

Check good() { return {"acme", {{"route", "GET /v1/items"}, {"ip", "203.0.113.9"}}, 1}; }

void expect_refused(const Check& check, const std::string& field, const std::string& message) {
  const auto status = validate(check);
  ASSERT_FALSE(status.has_value()) << "expected a refusal of " << field;
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(status.error().field, field);
  EXPECT_THAT(status.error().message, HasSubstr(message));
}

TEST(ValidateCheck, AcceptsWhatIsFine) {
  EXPECT_TRUE(validate(good()));
  EXPECT_TRUE(validate({"x", {}, 0}));
  EXPECT_TRUE(validate({"x", {{"empty", ""}}, INT64_MIN}));
  EXPECT_TRUE(validate({"\U0001F600", {{"\u00DF", "\u20AC"}}, INT64_MAX}));
  EXPECT_TRUE(validate({"acme", {{"Customer", "x"}, {"COST", "1"}}, 1}));
}

TEST(ValidateCheck, CustomerAtTheLimitAndBeyond) {
  Check check = good();
  check.customer = std::string(kMaxKeyBytes, 'x');
  EXPECT_TRUE(validate(check));
  check.customer += 'x';
  expect_refused(check, "customer", "is 1025 bytes long; at most 1024");
  check.customer.clear();
  expect_refused(check, "customer", "must not be empty");
  check.customer = "caf\xE9";
  expect_refused(check, "customer", "valid UTF-8");
  check.customer = std::string("ac\0me", 5);
  expect_refused(check, "customer", "NUL");
}

TEST(ValidateCheck, AttributeNamesAtTheLimitAndBeyond) {
  Check check = good();
  check.attributes = {{std::string(kMaxAttributeNameBytes, 'n'), "v"}};
  EXPECT_TRUE(validate(check));
  check.attributes[0].first += 'n';
  expect_refused(check, "attributes", "the name of an attribute is 129 bytes long; at most 128");
  check.attributes[0].first.clear();
  expect_refused(check, "attributes", "the name of an attribute must not be empty");
  check.attributes[0].first = "\xFF";
  expect_refused(check, "attributes", "the name of an attribute must be valid UTF-8");
  for (const std::string name : {"customer", "cost"}) {
    check.attributes[0].first = name;
    expect_refused(check, "attributes." + name, "cannot be an attribute");
  }
}

TEST(ValidateCheck, AttributeValuesAtTheLimitAndBeyond) {
  Check check = good();
  check.attributes[1].second = std::string(kMaxKeyBytes, 'v');
  EXPECT_TRUE(validate(check));
  check.attributes[1].second += 'v';
  expect_refused(check, "attributes.ip", "is 1025 bytes long; at most 1024");
  check.attributes[1].second = "\xED\xA0\x80";
  expect_refused(check, "attributes.ip", "valid UTF-8");
}

TEST(ValidateCheck, AttributesAreUniqueAndNotTooMany) {
  Check check = good();
  check.attributes.emplace_back("route", "GET /v1/items");
  expect_refused(check, "attributes.route", "twice");
  check.attributes.clear();
  for (std::size_t i = 0; i < kMaxAttributes; ++i) {
    check.attributes.emplace_back("a" + std::to_string(i), "v");
  }
  EXPECT_TRUE(validate(check));
  check.attributes.emplace_back("one-more", "v");
  expect_refused(check, "attributes", "has 33 members; at most 32");
}

TEST(CheckAttribute, AbsentIsNotEmptyAndTheCustomerIsOne) {
  const Check check{"acme", {{"route", ""}}, 1};
  ASSERT_NE(check.attribute("route"), nullptr);
  EXPECT_EQ(*check.attribute("route"), "");
  EXPECT_EQ(check.attribute("ip"), nullptr);
  EXPECT_EQ(check.attribute("rout"), nullptr);
  EXPECT_EQ(check.attribute(""), nullptr);
  EXPECT_EQ(check.attribute("customer"), &check.customer);
}

}  // namespace
}  // namespace weir
