// Reads C++ as text, well enough for style rules: no preprocessor, no parser. Values in, values
// out; every function may be called from any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::tidy {

struct Include {
  int line = 0;
  std::string path;
  bool quoted = false;  ///< "path" rather than <path>

  friend bool operator==(const Include&, const Include&) = default;
};

struct Function {
  int line = 0;   ///< where its declaration begins
  int lines = 0;  ///< from there to the closing brace, both counted

  friend bool operator==(const Function&, const Function&) = default;
};

/// `source` with its comments, and what stands between the quotes of its literals, turned into
/// spaces. Same size, same lines.
std::string blank_comments_and_literals(std::string_view source);

/// The #include lines of `source`, those in comments left out.
std::vector<Include> find_includes(std::string_view source);

/// The outermost functions of `source` in order of their ends; lambdas and local classes count as
/// part of the function around them. A heuristic over braces: a block is a function when what
/// stands before its brace has parentheses and is neither a type, a namespace nor an initializer.
std::vector<Function> find_functions(std::string_view source);

/// Where `word` stands in `text` at or after `from`, not as a part of a longer identifier; npos
/// when it does not.
std::size_t find_word(std::string_view text, std::string_view word, std::size_t from = 0);

/// The lines of `text` without their newlines; a last line without a newline counts.
std::vector<std::string_view> split_lines(std::string_view text);

/// `text` without spaces, tabs and newlines at either end.
std::string_view trim(std::string_view text);

}  // namespace weir::tidy
