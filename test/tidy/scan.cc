#include "test/tidy/scan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::tidy {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The identifier (or number) that ends just before `end`.
std::string_view word_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && is_identifier_char(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class Blanker {
 public:
  explicit Blanker(std::string_view source) : source_(source), result_(source) {}

  std::string run() {
    while (at_ < source_.size()) step();
    return std::move(result_);
  }

 private:
  void step() {
    const char current = source_[at_];
    if (looking_at("//")) {
      blank_line_comment();
    } else if (looking_at("/*")) {
      const std::size_t end = source_.find("*/", at_ + 2);
      blank_to(end == std::string_view::npos ? source_.size() : end + 2);
    } else if (current == '"' && is_raw_string()) {
      blank_raw_string();
    } else if (current == '"' || (current == '\'' && !is_digit_separator())) {
      blank_literal(current);
    } else {
      ++at_;
    }
  }

  bool looking_at(std::string_view what) const { return source_.substr(at_, what.size()) == what; }

  bool is_raw_string() const {
    constexpr std::array<std::string_view, 5> kPrefixes = {"R", "u8R", "uR", "UR", "LR"};
    return is_one_of(word_before(source_, at_), kPrefixes);
  }

  bool is_digit_separator() const {
    constexpr std::array<std::string_view, 4> kPrefixes = {"u8", "u", "U", "L"};
    const std::string_view before = word_before(source_, at_);
    return !before.empty() && !is_one_of(before, kPrefixes);
  }

  void blank_to(std::size_t end) {
    for (; at_ < end; ++at_) {
      if (source_[at_] != '\n') result_[at_] = ' ';
    }
  }

  void blank_line_comment() {
    std::size_t end = source_.find('\n', at_);
    while (end != std::string_view::npos && source_[end - 1] == '\\') {
      end = source_.find('\n', end + 1);
    }
    blank_to(std::min(end, source_.size()));
  }

  void blank_raw_string() {
    const std::size_t open = source_.find('(', at_);
    if (open == std::string_view::npos) return blank_to(source_.size());
    std::string close = ")";
    close.append(source_.substr(at_ + 1, open - at_ - 1)).append("\"");
    const std::size_t end = source_.find(close, open);
    ++at_;
    if (end == std::string_view::npos) return blank_to(source_.size());
    blank_to(end + close.size() - 1);
    ++at_;
  }

  /// A literal ends at its quote or, when it has none, with its line.
  void blank_literal(char quote) {
    std::size_t end = ++at_;
    while (end < source_.size() && source_[end] != quote && source_[end] != '\n') {
      end += source_[end] == '\\' ? 2 : 1;
    }
    blank_to(std::min(end, source_.size()));
    if (at_ < source_.size() && source_[at_] == quote) ++at_;
  }

  std::string_view source_;
  std::string result_;
  std::size_t at_ = 0;
};

/// Blanks lines that begin with '#', with the lines that continue them.
std::string blank_preprocessor(std::string text) {
  bool continued = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t first = text.find_first_not_of(" \t", begin);
    const bool directive = continued || (first < end && text[first] == '#');
    continued = directive && end > begin && text[end - 1] == '\\';
    if (directive) std::fill(text.begin() + begin, text.begin() + end, ' ');
    begin = end + 1;
  }
  return text;
}

/// `head` without what stands in parentheses (the parentheses stay) and without `template <...>`.
std::string outline(std::string_view head) {
  std::string result;
  int depth = 0;
  for (const char c : head) {
    if (c == ')') --depth;
    if (depth == 0) result.push_back(c);
    if (c == '(') ++depth;
  }
  std::size_t at = 0;
  while ((at = find_word(result, "template")) != std::string::npos) {
    std::size_t end = result.find('<', at);
    if (end == std::string::npos) break;
    for (int angles = 0; end < result.size(); ++end) {
      if (result[end] == '<') ++angles;
      if (result[end] == '>' && --angles == 0) break;
    }
    result.erase(at, end - at + 1);
  }
  return result;
}

/// Where an assignment stands in an outline, comparisons and `operator=` left out; npos for none.
std::size_t find_assignment(std::string_view outline) {
  constexpr std::string_view kOperators = "=<>!+-*/%&|^";
  for (std::size_t at = 0; at < outline.size(); ++at) {
    if (outline[at] != '=') continue;
    const char before = at > 0 ? outline[at - 1] : ' ';
    const char after = at + 1 < outline.size() ? outline[at + 1] : ' ';
    const bool comparison = kOperators.find(before) != std::string_view::npos || after == '=';
    const bool named = word_before(outline, at) == "operator";
    if (!comparison && !named) return at;
  }
  return std::string_view::npos;
}

bool opens_function(std::string_view head) {
  const std::string shape = outline(head);
  if (shape.find('(') == std::string::npos) return false;
  for (const char* word : {"namespace", "class", "struct", "union", "enum"}) {
    if (find_word(shape, word) != std::string::npos) return false;
  }
  const std::size_t assignment = find_assignment(shape);
  if (assignment == std::string::npos) return true;
  const std::size_t value = shape.find_first_not_of(kSpaces, assignment + 1);
  return value != std::string::npos && shape[value] == '[';
}

/// Whether the head goes on into a constructor's list of member initializers.
bool has_initializer_list(std::string_view head) {
  const std::string shape = outline(head);
  for (std::size_t at = shape.find(')'); at < shape.size(); ++at) {
    if (shape[at] != ':') continue;
    if (at + 1 < shape.size() && shape[at + 1] == ':') {
      ++at;
    } else {
      return true;
    }
  }
  return false;
}

class FunctionFinder {
 public:
  explicit FunctionFinder(std::string text) : text_(std::move(text)) {}

  std::vector<Function> run() {
    for (at_ = 0; at_ < text_.size(); ++at_) {
      if (body_depth_ > 0) {
        step_in_function();
      } else {
        step_outside();
      }
    }
    return std::move(found_);
  }

 private:
  void step_in_function() {
    if (text_[at_] == '{') ++body_depth_;
    if (text_[at_] == '}' && --body_depth_ == 0) close_function();
  }

  /// Between functions: `head_` is where the declaration that we are in began. Braces in
  /// parentheses are default arguments or lambdas given to a macro: part of the head.
  void step_outside() {
    const char current = text_[at_];
    if (current == '(') ++parentheses_;
    if (current == ')' && parentheses_ > 0) --parentheses_;
    if (parentheses_ > 0) return;
    if (current == ';' || current == '}' || is_access_label()) {
      head_ = at_ + 1;
    } else if (current == '{') {
      if (opens_function(head())) {
        body_depth_ = 1;
      } else {
        head_ = at_ + 1;
      }
    }
  }

  bool is_access_label() const {
    constexpr std::array<std::string_view, 3> kLabels = {"public", "protected", "private"};
    return text_[at_] == ':' && is_one_of(word_before(text_, at_), kLabels);
  }

  std::string_view head() const { return std::string_view(text_).substr(head_, at_ - head_); }

  void close_function() {
    const std::size_t next = text_.find_first_not_of(kSpaces, at_ + 1);
    const bool more = next != std::string::npos && (text_[next] == ',' || text_[next] == '{');
    if (more && has_initializer_list(head())) return;  // it was `member_{value}`: the body follows
    const std::size_t begin = text_.find_first_not_of(kSpaces, head_);
    const int line = line_of(begin);
    found_.push_back({line, line_of(at_) - line + 1});
    head_ = at_ + 1;
  }

  int line_of(std::size_t position) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + position, '\n'));
  }

  std::string text_;
  std::vector<Function> found_;
  std::size_t at_ = 0;
  std::size_t head_ = 0;
  int parentheses_ = 0;
  int body_depth_ = 0;
};

}  // namespace

std::string blank_comments_and_literals(std::string_view source) { return Blanker(source).run(); }

std::vector<Include> find_includes(std::string_view source) {
  const std::string code = blank_comments_and_literals(source);
  const std::vector<std::string_view> raw_lines = split_lines(source);
  const std::vector<std::string_view> code_lines = split_lines(code);
  std::vector<Include> includes;
  for (std::size_t i = 0; i < code_lines.size(); ++i) {
    std::string_view directive = trim(code_lines[i]);
    if (directive.empty() || directive.front() != '#') continue;
    directive = trim(directive.substr(1));
    if (word_before(directive, std::min<std::size_t>(7, directive.size())) != "include") continue;
    const std::size_t open = raw_lines[i].find_first_of("\"<");
    if (open == std::string_view::npos) continue;
    const bool quoted = raw_lines[i][open] == '"';
    const std::size_t close = raw_lines[i].find(quoted ? '"' : '>', open + 1);
    if (close == std::string_view::npos) continue;
    includes.push_back({static_cast<int>(i) + 1,
                        std::string(raw_lines[i].substr(open + 1, close - open - 1)), quoted});
  }
  return includes;
}

std::vector<Function> find_functions(std::string_view source) {
  return FunctionFinder(blank_preprocessor(blank_comments_and_literals(source))).run();
}

std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
  for (std::size_t at = text.find(word, from); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !is_identifier_char(text[at - 1]);
    const bool ends = end == text.size() || !is_identifier_char(text[end]);
    if (begins && ends) return at;
  }
  return std::string_view::npos;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

}  // namespace weir::tidy
