// Weir's style rules as data: what may include what, what a pure module may not say, how long
// things may be, and the few exceptions with their reasons. tidy.cc applies them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace weir::tidy {

/// A row of the table of DESIGN.md section 7.
struct Module {
  std::string_view name;       ///< as in weir_module(NAME ...)
  std::string_view directory;  ///< from the root, without a slash at the end
  bool pure = false;           ///< no clock, no randomness, no Boost
  /// Modules it may include; what those may include is allowed with them.
  std::vector<std::string_view> includes;
};

/// A module of which another may see a few headers only.
struct Narrow {
  std::string_view module;
  std::string_view included;
  std::vector<std::string_view> headers;
};

/// A directory that may not include paths with a prefix.
struct Ban {
  std::string_view directory;
  std::string_view prefix;
  std::string_view reason;
};

enum class Place { source_only, header_too };

/// A library whose headers are dear to compile or would tie a module to it.
struct HeavyHeader {
  std::string_view prefix;  ///< of the included path; the longest that fits counts
  std::string_view suffix;  ///< of the included path
  std::vector<std::string_view> owners;
  Place place = Place::source_only;
};

/// How a banned name must be used to be a finding.
enum class Use {
  word,       ///< anywhere
  call,       ///< as a free function: `rand()`, but not `dice.rand()`
  time_call,  ///< with no argument or a null or an address: `time(nullptr)`
};

struct BannedName {
  std::string_view name;
  Use use = Use::word;
};

/// A rule that does not hold for a path or, with a slash at its end, for what lies below it.
struct Exception {
  std::string_view rule;
  std::string_view path;
  std::string_view reason;
};

inline constexpr int kMaxFileLines = 600;
inline constexpr int kMaxFunctionLines = 70;
inline constexpr int kMaxColumns = 100;

std::span<const Module> modules();
std::span<const Narrow> narrow_includes();
std::span<const Ban> include_bans();
std::span<const HeavyHeader> heavy_headers();
/// Names that read a clock, ask for randomness or sleep.
std::span<const BannedName> impure_names();
std::span<const BannedName> sleeping_names();
/// Directories in which nothing sleeps (their tests drive time themselves).
std::span<const std::string_view> sleepless_directories();
std::span<const std::string_view> forbidden_words();
std::span<const std::string_view> top_level_entries();
/// Directories, besides the modules, that explain themselves in a README.md.
std::span<const std::string_view> explained_directories();
std::span<const Exception> exceptions();

}  // namespace weir::tidy
