// Shared by the tests of src/config: a mistake is a text, and exactly one error at one place.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/config/diagnostic.h"

namespace weir::config {

struct Mistake {
  std::string name;  ///< of the test
  std::string text;  ///< the file
  int line = 0;
  int column = 0;
  std::string wrong;  ///< part of the message: what is wrong
  std::string right;  ///< part of the message: what would be right
};

inline std::string mistake_name(const testing::TestParamInfo<Mistake>& info) {
  return info.param.name;
}
inline void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

/// The mistake is found at its place, and nothing else is reported because of it.
template <typename T>
void expect_one_error(const Mistake& mistake, const Parsed<T>& parsed) {
  EXPECT_FALSE(parsed.value.has_value());
  ASSERT_EQ(parsed.errors.size(), 1U) << to_string(parsed.errors);
  const Diagnostic& error = parsed.errors.front();
  EXPECT_EQ(error.line, mistake.line) << to_string(error);
  EXPECT_EQ(error.column, mistake.column) << to_string(error);
  EXPECT_THAT(error.message, testing::HasSubstr(mistake.wrong));
  EXPECT_THAT(error.message, testing::HasSubstr(mistake.right));
}

}  // namespace weir::config
