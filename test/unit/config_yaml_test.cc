// Goal: YAML that a person did not mean is refused where it stands, though yaml-cpp would take it.
// Method: one text per kind of surprise, each read as a policy whose only mistake it is.
#include "src/config/parse.h"
#include "test/unit/config_test_support.h"

namespace weir::config {
namespace {

const std::string kGood =
    "version: 1\n"
    "limits: [{name: api, scope: global, rate: 5/s}]\n";

class YamlMistake : public testing::TestWithParam<Mistake> {};

TEST_P(YamlMistake, IsRefusedAtItsPlace) {
  expect_one_error(GetParam(), parse_policy(GetParam().text, "p.yaml"));
}

INSTANTIATE_TEST_SUITE_P(
    Each, YamlMistake,
    testing::Values(
        Mistake{"empty", "", 1, 1, "empty", "good one"},
        Mistake{"only_comments", "# nothing\n\n", 1, 1, "empty", "good one"},
        Mistake{"only_null", "~\n", 1, 1, "empty", "good one"},
        Mistake{"not_a_map", "- version: 1\n", 1, 1, "a list where a map", "version: 1"},
        Mistake{"a_scalar", "hello\n", 1, 1, "a plain value where a map", "version: 1"},
        Mistake{"second_document", kGood + "---\nversion: 2\n", 3, 1, "second document", "---"},
        Mistake{"second_empty_document", kGood + "---\n", 3, 1, "second document", "---"},
        Mistake{"duplicate_at_the_top", kGood + "version: 2\n", 3, 1, "duplicate key `version`",
                "first on line 1"},
        Mistake{"duplicate_though_quoted", kGood + "\"version\": 2\n", 3, 1, "duplicate key",
                "first on line 1"},
        Mistake{"anchor", kGood + "plans: &p {}\n", 3, 8, "anchors", "write the value out"},
        Mistake{"anchor_on_scalar", "version: &v 1\n" + kGood.substr(11), 1, 10, "anchors",
                "write the value out"},
        Mistake{"merge_key", kGood + "customers: {a: {<<: {plan: x}}}\n", 3, 17, "merge keys",
                "write the keys out"},
        Mistake{"tag", "version: !!int 1\n" + kGood.substr(11), 1, 10, "tags", "remove it"},
        Mistake{"null_key", kGood + "customers: {~: {}}\n", 3, 13, "nothing where a key", "quote"},
        Mistake{"empty_key", kGood + "customers: {\"\": {}}\n", 3, 13, "an empty text", "word"},
        Mistake{"list_as_key", kGood + "customers: {[a]: {}}\n", 3, 13, "a list where a key",
                "word"},
        Mistake{"no_space_after_colon", kGood + "customers: {a: {plan:pro}}\n", 3, 17, "`plan:pro`",
                "space"},
        Mistake{"tab_as_indentation", "version: 1\nlimits:\n\t- name: a\n", 3, 2, "not YAML",
                "indentation"},
        Mistake{"open_bracket", "version: 1\nlimits: [{name: a\n", 3, 1, "not YAML", "brackets"},
        Mistake{"open_quote_midway", "version: \"1\n" + kGood, 1, 10, "never closed",
                "end the text"},
        Mistake{"open_quote_at_the_end", kGood + "default_plan: 'it''s\n", 3, 15, "never closed",
                "end the text"},
        Mistake{"open_quote_after_escape", kGood + "default_plan: \"free\\\"\n", 3, 15,
                "never closed", "end the text"},
        Mistake{"stray_bracket", kGood + "]\n", 3, 1, "not YAML", "brackets"},
        Mistake{"nul_byte", kGood + std::string("a\0b: 1\n", 7), 3, 2, "0x00", "right file"},
        Mistake{"end_of_transmission", kGood + "a: \x04\nb: 1\n", 3, 4, "0x04", "right file"},
        Mistake{"lone_carriage_return", "version: 1\rlimits: []\n", 1, 11, "0x0d", "right file"},
        Mistake{"invalid_utf8", kGood + "# caf\xE9 \n", 3, 6, "UTF-8", "save the file"},
        Mistake{"overlong_utf8", kGood + "# \xC3\xA9 \xC0\xAF\n", 3, 6, "UTF-8", "save the file"},
        Mistake{"utf16", std::string("\xFF\xFEv\0", 4), 1, 4, "0x00", "right file"},
        Mistake{"escaped_nul", kGood + "customers: {\"a\\0b\": {}}\n", 3, 13, "NUL", "remove"},
        Mistake{"too_deep", kGood + "plans: " + std::string(40, '[') + std::string(40, ']') + "\n",
                3, 39, "deeper than 32", "brackets"}),
    mistake_name);

TEST(ConfigYaml, AliasesAreRefusedAtEachUse) {
  const auto parsed = parse_policy(kGood + "plans: {a: &x {}, b: *x}\n", "p.yaml");
  ASSERT_EQ(parsed.errors.size(), 2U) << to_string(parsed.errors);
  EXPECT_EQ(parsed.errors[0].column, 12);
  EXPECT_THAT(parsed.errors[0].message, testing::HasSubstr("anchors"));
  EXPECT_EQ(parsed.errors[1].column, 22);
  EXPECT_THAT(parsed.errors[1].message, testing::HasSubstr("aliases"));
}

TEST(ConfigYaml, WindowsLineEndsByteOrderMarkAndDocumentMarksAreFine) {
  const auto plain = parse_policy(kGood, "p.yaml");
  ASSERT_TRUE(plain) << to_string(plain.errors);
  std::string windows;
  for (const char c : kGood) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  for (const std::string& text : {windows, "\xEF\xBB\xBF" + kGood, "---\n" + kGood + "...\n",
                                  "%YAML 1.2\n---\n" + kGood, kGood.substr(0, kGood.size() - 1)}) {
    const auto parsed = parse_policy(text, "p.yaml");
    ASSERT_TRUE(parsed) << to_string(parsed.errors);
    EXPECT_EQ(parsed.value->limits, plain.value->limits);
    EXPECT_NE(parsed.value->content_hash, plain.value->content_hash);
  }
}

TEST(ConfigYaml, DuplicatesAreFoundInLargeMapsToo) {
  std::string text = kGood + "customers:\n";
  for (int i = 0; i < 1000; ++i) text += "  c" + std::to_string(i) + ": {}\n";
  const auto good = parse_policy(text, "p.yaml");
  ASSERT_TRUE(good) << to_string(good.errors);
  EXPECT_EQ(good.value->customers.size(), 1000U);
  const auto bad = parse_policy(text + "  c5: {}\n  c999: {}\n", "p.yaml");
  ASSERT_EQ(bad.errors.size(), 2U);
  EXPECT_EQ(bad.errors[0].line, 1004);
  EXPECT_THAT(bad.errors[0].message, testing::HasSubstr("first on line 9"));
  EXPECT_EQ(bad.errors[1].line, 1005);
}

TEST(ConfigYaml, ATextAboveTheLimitIsNotRead) {
  const auto parsed = parse_policy(kGood + std::string(kMaxFileBytes, '\n'), "p.yaml");
  EXPECT_FALSE(parsed);
  EXPECT_EQ(to_string(parsed.errors), "p.yaml: is larger than 64 MiB, is this the right file?\n");
}

TEST(ConfigYaml, ErrorsAreSortedBoundedAndCounted) {
  std::string text = kGood + "customers:\n";
  for (int i = 0; i < 250; ++i) text += "  c" + std::to_string(i) + ": {plan: pro}\n";
  const auto parsed = parse_policy(text, "p.yaml");
  ASSERT_EQ(parsed.errors.size(), kMaxDiagnosticsPerFile + 1);
  EXPECT_EQ(to_string(parsed.errors.back()), "p.yaml: and 150 more; mend the first ones");
  EXPECT_EQ(to_string(parsed.errors.front()),
            "p.yaml:4:14: plan: unknown plan `pro`, declare it under `plans`");
}

}  // namespace
}  // namespace weir::config
