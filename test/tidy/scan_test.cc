// Goal: the scanner sees code where code is, and functions as long as they are.
// Method: small sources with each kind of literal, comment and block that could mislead it.
#include "test/tidy/scan.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::tidy {
namespace {

TEST(Blank, RemovesCommentsAndKeepsLines) {
  EXPECT_EQ(blank_comments_and_literals("a; // b\nc;"), "a;     \nc;");
  EXPECT_EQ(blank_comments_and_literals("a /* b\nc */ d"), "a     \n     d");
  EXPECT_EQ(blank_comments_and_literals("// a \\\nb\nc"), "      \n \nc");
  EXPECT_EQ(blank_comments_and_literals("a /* never closed\n"), "a                \n");
}

TEST(Blank, RemovesWhatStandsBetweenQuotes) {
  EXPECT_EQ(blank_comments_and_literals("f(\"rand()\")"), "f(\"      \")");
  EXPECT_EQ(blank_comments_and_literals("f(\"a\\\"b\", c)"), "f(\"    \", c)");
  EXPECT_EQ(blank_comments_and_literals("f(\"// a\"); g"), "f(\"    \"); g");
  EXPECT_EQ(blank_comments_and_literals("'\\'' + '\"' + x"), "'  ' + ' ' + x");
  EXPECT_EQ(blank_comments_and_literals("\"never closed\nx"), "\"            \nx");
}

TEST(Blank, KnowsRawStrings) {
  EXPECT_EQ(blank_comments_and_literals("R\"x(a\"b\n)\")x\" c"), "R\"     \n    \" c");
  EXPECT_EQ(blank_comments_and_literals("u8R\"(//)\" c"), "u8R\"    \" c");
  EXPECT_EQ(blank_comments_and_literals("BAR\"(\" c"), "BAR\" \" c");
}

TEST(Blank, TakesADigitSeparatorForNoQuote) {
  EXPECT_EQ(blank_comments_and_literals("1'000'000 + rand()"), "1'000'000 + rand()");
  EXPECT_EQ(blank_comments_and_literals("0xff'ff; u8'x'"), "0xff'ff; u8' '");
}

TEST(Includes, AreFoundWithTheirLines) {
  const std::vector<Include> expected = {{1, "src/a.h", true}, {3, "vector", false}};
  EXPECT_EQ(find_includes("#include \"src/a.h\"\n\n  #  include <vector>\n"), expected);
}

TEST(Includes, InCommentsAndStringsDoNotCount) {
  EXPECT_TRUE(find_includes("// #include <a>\n/*\n#include <b>\n*/\n").empty());
  EXPECT_TRUE(find_includes("auto x = R\"(\n#include <c>\n)\";\n#define include <d>\n").empty());
}

TEST(Functions, AreMeasuredFromDeclarationToBrace) {
  const std::vector<Function> expected = {{3, 5}, {8, 1}};
  EXPECT_EQ(find_functions("namespace a {\n\n"
                           "template <typename T>\n"
                           "int f(T a,\n"
                           "      T b = {}) {\n"
                           "  if (a) { return 1; }\n"
                           "}\n"
                           "void g() noexcept {}\n"
                           "}\n"),
            expected);
}

TEST(Functions, OfClassesAreFoundBehindAccessLabels) {
  const std::vector<Function> expected = {{3, 1}, {5, 2}};
  EXPECT_EQ(find_functions("class A : public B {\n"
                           " public:\n"
                           "  A& operator=(const A&) { return *this; }\n"
                           " private:\n"
                           "  bool operator==(const A& other) const {\n"
                           "    return true; }\n"
                           "  int member_{f(1)};\n"
                           "};\n"),
            expected);
}

TEST(Functions, WithMemberInitializersIncludeTheirBody) {
  const std::vector<Function> expected = {{1, 5}};
  EXPECT_EQ(find_functions("A::A(int x)\n"
                           "    : a_{x}, b_(x), c_{1},\n"
                           "      d_{2} {\n"
                           "  f();\n"
                           "}\n"),
            expected);
}

TEST(Functions, AreNotTypesTablesOrMacros) {
  EXPECT_TRUE(find_functions("struct alignas(64) A {\n  int x;\n};\n"
                             "enum class B : int { c };\n"
                             "const Row kRows[] = {\n  {f(1)},\n  {f(2)},\n};\n"
                             "#define MACRO(x) \\\n  if (x) { \\\n  }\n"
                             "extern \"C\" {\nint puts(const char*);\n}\n")
                  .empty());
}

TEST(Functions, MayBeLambdasInANamespace) {
  const std::vector<Function> expected = {{1, 3}};
  EXPECT_EQ(find_functions("const auto kTwice = [](int x) {\n  return 2 * x;\n};\n"), expected);
}

TEST(Functions, AreNotConfusedByBracesInLiterals) {
  const std::vector<Function> expected = {{1, 3}, {4, 1}};
  EXPECT_EQ(find_functions("void f() {\n  g('{', \"}}\");  // }\n}\nvoid h() {}\n"), expected);
}

TEST(Functions, MayFollowAMacroWithALambda) {
  const std::vector<Function> expected = {{2, 1}};
  EXPECT_EQ(find_functions("SUITE(A, [](int i) { return name(i); });\nTEST(A, b) { f(); }\n"),
            expected);
}

TEST(Words, AreWholeIdentifiers) {
  EXPECT_EQ(find_word("grand rand_r rand", "rand"), 13U);
  EXPECT_EQ(find_word("grand", "rand"), std::string::npos);
  EXPECT_EQ(find_word("rand", "rand", 1), std::string::npos);
}

TEST(Lines, KeepALastOneWithoutANewline) {
  EXPECT_EQ(split_lines("a\n\nb").size(), 3U);
  EXPECT_EQ(split_lines("a\n").size(), 1U);
  EXPECT_TRUE(split_lines("").empty());
}

}  // namespace
}  // namespace weir::tidy
