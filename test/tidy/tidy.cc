#include "test/tidy/tidy.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "test/tidy/rules.h"
#include "test/tidy/scan.h"

namespace weir::tidy {
namespace {

constexpr std::string_view kSystemClock = "src/base/system_clock.h";

/// Whether `path` is `directory` or lies below it.
bool is_in(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

bool is_cxx(std::string_view path) { return path.ends_with(".h") || path.ends_with(".cc"); }

bool is_code(const File& file) {
  for (const char* suffix : {".h", ".cc", ".proto", ".lua", ".sh", ".cmake", "CMakeLists.txt"}) {
    if (file.path.ends_with(suffix)) return true;
  }
  return file.text.starts_with("#!");
}

const Module* module_of(std::string_view path) {
  for (const Module& module : modules()) {
    if (is_in(path, module.directory)) return &module;
  }
  return nullptr;
}

const Module* module_named(std::string_view name) {
  for (const Module& module : modules()) {
    if (module.name == name) return &module;
  }
  return nullptr;
}

void collect_reachable(std::string_view name, std::set<std::string_view>& names) {
  if (!names.insert(name).second) return;
  const Module* module = module_named(name);
  if (module == nullptr) return;
  for (const std::string_view next : module->includes) collect_reachable(next, names);
}

bool may_include(const Module& module, std::string_view name) {
  std::set<std::string_view> names;
  collect_reachable(module.name, names);
  return names.contains(name);
}

bool is_used(std::string_view line, std::size_t at, const BannedName& banned) {
  if (banned.use == Use::word) return true;
  const std::string_view before = trim(line.substr(0, at));
  const std::string_view after = trim(line.substr(at + banned.name.size()));
  if (before.ends_with(".") || before.ends_with("->") || !after.starts_with("(")) return false;
  if (banned.use == Use::call) return true;
  const std::string_view argument = trim(after.substr(1));
  if (argument.starts_with(")")) return before.ends_with("::");
  for (const char* null : {"nullptr", "NULL", "0", "&"}) {
    if (argument.starts_with(null)) return true;
  }
  return false;
}

bool uses(std::string_view line, const BannedName& banned) {
  for (std::size_t at = find_word(line, banned.name); at != std::string_view::npos;
       at = find_word(line, banned.name, at + 1)) {
    if (is_used(line, at, banned)) return true;
  }
  return false;
}

/// Columns as a reader sees them: UTF-8 continuation bytes do not count.
int columns(std::string_view line) {
  return static_cast<int>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
  }));
}

std::string join(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

class Checker {
 public:
  explicit Checker(const std::vector<File>& files) : files_(files) {}

  std::vector<Finding> run() {
    for (const File& file : files_) check_file(file);
    check_layout();
    report_unused_exceptions();
    std::sort(found_.begin(), found_.end(), [](const Finding& a, const Finding& b) {
      return std::tie(a.path, a.line, a.rule, a.message) <
             std::tie(b.path, b.line, b.rule, b.message);
    });
    return std::move(found_);
  }

 private:
  void check_file(const File& file) {
    if (!is_code(file)) return;
    const std::vector<std::string_view> lines = split_lines(file.text);
    check_whitespace(file, lines);
    check_words(file, lines);
    if (file.path.ends_with("CMakeLists.txt")) check_links(file);
    if (!is_cxx(file.path)) return;
    check_lengths(file, lines);
    check_names(file);
    for (const Include& include : find_includes(file.text)) check_include(file, include);
  }

  void check_whitespace(const File& file, const std::vector<std::string_view>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const int number = static_cast<int>(i) + 1;
      if (lines[i].find('\t') != std::string_view::npos) {
        report(file, number, "space", "a tab; indent with spaces");
      }
      if (!lines[i].empty() && (lines[i].back() == ' ' || lines[i].back() == '\r')) {
        report(file, number, "space", "space at the end of the line");
      }
    }
    if (!file.text.empty() && file.text.back() != '\n') {
      report(file, static_cast<int>(lines.size()), "space", "no newline at the end of the file");
    }
  }

  void check_words(const File& file, const std::vector<std::string_view>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      for (const std::string_view word : forbidden_words()) {
        if (find_word(lines[i], word) == std::string_view::npos) continue;
        report(file, static_cast<int>(i) + 1, "words",
               std::string(word) + ": finish it, or open an issue");
      }
    }
  }

  void check_lengths(const File& file, const std::vector<std::string_view>& lines) {
    const int count = static_cast<int>(lines.size());
    if (count > kMaxFileLines) {
      report(file, count, "file-length",
             std::to_string(count) + " lines, at most " + std::to_string(kMaxFileLines));
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const int width = columns(lines[i]);
      if (width <= kMaxColumns) continue;
      report(file, static_cast<int>(i) + 1, "line-length",
             std::to_string(width) + " columns, at most " + std::to_string(kMaxColumns));
    }
    for (const Function& function : find_functions(file.text)) {
      if (function.lines <= kMaxFunctionLines) continue;
      report(file, function.line, "function-length",
             "a function of " + std::to_string(function.lines) + " lines, at most " +
                 std::to_string(kMaxFunctionLines));
    }
  }

  void check_names(const File& file) {
    const Module* module = module_of(file.path);
    const bool pure = module != nullptr && module->pure;
    const auto sleepless = sleepless_directories();
    const bool awake = std::any_of(sleepless.begin(), sleepless.end(),
                                   [&](std::string_view in) { return is_in(file.path, in); });
    const std::string code = blank_comments_and_literals(file.text);
    int number = 0;
    for (const std::string_view line : split_lines(code)) {
      ++number;
      for (const BannedName& banned : impure_names()) {
        if (!pure || !uses(line, banned)) continue;
        report(file, number, "clock",
               std::string(banned.name) + " in " + std::string(module->directory) +
                   ", which is pure: time and seeds are arguments");
      }
      for (const BannedName& banned : sleeping_names()) {
        if (!awake || !uses(line, banned)) continue;
        report(file, number, "sleep",
               std::string(banned.name) + ": wait for the event, or drive the clock");
      }
    }
  }

  void check_include(const File& file, const Include& include) {
    const Module* module = module_of(file.path);
    check_bans(file, include);
    if (include.path == kSystemClock) check_system_clock(file, include);
    if (module != nullptr) check_heavy(file, *module, include);
    if (!include.quoted || include.path.ends_with(".pb.h")) return;
    const Module* included = module_of(include.path);
    if (included == nullptr) {
      const bool from_test = is_in(file.path, "test") && is_in(include.path, "test");
      if (from_test) return;
      report(file, include.line, "include",
             is_in(include.path, "test") ? "the product includes nothing of test/"
                                         : "\"" + include.path + "\" is not a path from the root");
      return;
    }
    if (module == nullptr) return;
    if (!may_include(*module, included->name)) {
      report(file, include.line, "include", direction_message(*module, *included));
    }
    for (const Narrow& narrow : narrow_includes()) {
      if (narrow.module != module->name || narrow.included != included->name) continue;
      const auto& headers = narrow.headers;
      if (std::find(headers.begin(), headers.end(), include.path) != headers.end()) continue;
      report(file, include.line, "include",
             std::string(module->directory) + " sees only " + join(headers) + " of " +
                 std::string(included->directory));
    }
  }

  static std::string direction_message(const Module& module, const Module& included) {
    return std::string(module.directory) + " may not include " + std::string(included.directory) +
           " (allowed: " + (module.includes.empty() ? "nothing" : join(module.includes)) +
           ", and what these may include)";
  }

  void check_bans(const File& file, const Include& include) {
    for (const Ban& ban : include_bans()) {
      if (!is_in(file.path, ban.directory) || !include.path.starts_with(ban.prefix)) continue;
      report(file, include.line, "include", include.path + ": " + std::string(ban.reason));
    }
  }

  void check_system_clock(const File& file, const Include& include) {
    for (const char* directory : {"src/server", "src/cli", "test"}) {
      if (is_in(file.path, directory)) return;
    }
    report(file, include.line, "clock",
           "only src/server, src/cli and tests build the real clock; take a Clock& instead");
  }

  /// The rows of the longest prefix that fits decide; one of them must allow the include.
  void check_heavy(const File& file, const Module& module, const Include& include) {
    std::size_t longest = 0;
    bool allowed = true;
    std::string owners;
    for (const HeavyHeader& heavy : heavy_headers()) {
      if (!include.path.starts_with(heavy.prefix) || !include.path.ends_with(heavy.suffix)) {
        continue;
      }
      const std::size_t weight = heavy.prefix.size() + heavy.suffix.size();
      if (weight < longest) continue;
      if (weight > longest) {
        longest = weight;
        allowed = false;
        owners.clear();
      }
      const bool owner =
          std::find(heavy.owners.begin(), heavy.owners.end(), module.name) != heavy.owners.end();
      const bool source_only = heavy.place == Place::source_only;
      allowed = allowed || (owner && (!source_only || file.path.ends_with(".cc")));
      owners += (owners.empty() ? "" : "; ") + join(heavy.owners) + (source_only ? " (.cc)" : "");
    }
    if (!allowed) report(file, include.line, "heavy", include.path + " belongs to " + owners);
  }

  /// The DEPS of weir_module(...) obey the same table as the includes.
  void check_links(const File& file) {
    constexpr std::string_view kCall = "weir_module(";
    constexpr std::string_view kSpaces = " \t\r\n";
    const Module* module = module_of(file.path);
    const std::size_t begin = file.text.find(kCall);
    if (module == nullptr || begin == std::string::npos) return;
    const std::size_t end = std::min(file.text.find(')', begin), file.text.size());
    bool in_deps = false;
    for (std::size_t at = begin + kCall.size(); at < end;) {
      at = std::min(file.text.find_first_not_of(kSpaces, at), end);
      const std::size_t stop = std::min(file.text.find_first_of(kSpaces, at), end);
      const std::string word = file.text.substr(at, stop - at);
      const auto line = 1 + std::count(file.text.begin(), file.text.begin() + at, '\n');
      at = stop;
      if (word == "SOURCES" || word == "LIBS" || word == "PCH" || word == "NAME") {
        in_deps = false;
      } else if (word == "DEPS") {
        in_deps = true;
      } else if (in_deps && !word.empty() && !may_include(*module, word)) {
        report(file, static_cast<int>(line), "link",
               std::string(module->directory) + " may not depend on " + word);
      }
    }
  }

  void check_layout() {
    std::set<std::string> entries;
    std::set<std::string_view> paths;
    for (const File& file : files_) {
      entries.insert(file.path.substr(0, file.path.find('/')));
      paths.insert(file.path);
      if (is_cxx(file.path) && is_in(file.path, "src") && module_of(file.path) == nullptr) {
        report(file, 0, "layout", "in no module (DESIGN.md section 7; test/tidy/rules.cc)");
      }
    }
    for (const std::string& entry : entries) {
      const auto known = top_level_entries();
      if (entry.starts_with(".") || std::count(known.begin(), known.end(), entry) > 0) continue;
      report({entry, {}}, 0, "layout",
             "not one of the entries of the root; has it a better place?");
    }
    for (const Module& module : modules()) check_readme(module.directory, paths);
    for (const std::string_view directory : explained_directories()) check_readme(directory, paths);
  }

  void check_readme(std::string_view directory, const std::set<std::string_view>& paths) {
    const bool exists = std::any_of(paths.begin(), paths.end(),
                                    [&](std::string_view path) { return is_in(path, directory); });
    const std::string readme = std::string(directory) + "/README.md";
    if (!exists || paths.contains(readme)) return;
    report({readme, {}}, 0, "layout", "missing: what may live here, what it may include");
  }

  void report(const File& file, int line, std::string_view rule, std::string message) {
    for (const Exception& exception : exceptions()) {
      if (exception.rule != rule || !covers(exception, file.path)) continue;
      used_.insert(&exception);
      return;
    }
    found_.push_back({file.path, line, std::string(rule), std::move(message)});
  }

  static bool covers(const Exception& exception, std::string_view path) {
    return exception.path.ends_with('/') ? path.starts_with(exception.path)
                                         : path == exception.path;
  }

  void report_unused_exceptions() {
    for (const Exception& exception : exceptions()) {
      const bool present = std::any_of(files_.begin(), files_.end(), [&](const File& file) {
        return covers(exception, file.path);
      });
      if (!present || used_.contains(&exception)) continue;
      found_.push_back({std::string(exception.path), 0, "exception",
                        "excused from `" + std::string(exception.rule) +
                            "` for nothing; drop it from test/tidy/rules.cc"});
    }
  }

  const std::vector<File>& files_;
  std::vector<Finding> found_;
  std::set<const Exception*> used_;
};

}  // namespace

std::string to_string(const Finding& finding) {
  return finding.path + ":" + std::to_string(finding.line) + ": " + finding.rule + ": " +
         finding.message;
}

std::vector<Finding> check_tree(const std::vector<File>& files) { return Checker(files).run(); }

}  // namespace weir::tidy
