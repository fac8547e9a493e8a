// Reads a YamlDocument field by field, collecting every mistake with its place. One thread, lives
// as long as one parse. Private to src/config.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/config/problems.h"
#include "src/config/yaml.h"

namespace weir::config {

/// The candidate that `word` most likely meant, or empty when none is near.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

/// Text from the file for a message: in backquotes, cut, without line breaks.
std::string in_quotes(std::string_view text);

struct MapEntry {
  std::string_view key;
  const YamlNode* key_node = nullptr;
  const YamlNode* value = nullptr;
};

/// What all readers share. `what` is how messages call a value: mostly its key.
class Reader {
 public:
  Reader(const YamlDocument& document, Problems& problems)
      : document_(document), problems_(problems) {}

  Problems& problems() { return problems_; }
  const YamlDocument& document() const { return document_; }
  std::string_view text(const YamlNode& node) const { return document_.text(node); }
  void error(const YamlNode& at, std::string message) {
    problems_.error(at.place(), std::move(message));
  }

  /// ", did you mean `x`?" or, when nothing is near, ", write one of `a`, `b`". Empty when nobody
  /// will read it: a hundred thousand customers may name the same unknown limit.
  std::string suggestion(std::string_view word,
                         const std::vector<std::string_view>& candidates) const;

  /// The entries of a map in the file's order, without duplicates and without keys that are no
  /// words (each an error). Nothing, and an error, when it is no map.
  std::optional<std::vector<MapEntry>> entries(const YamlNode& node, std::string_view what,
                                               std::string_view example);
  /// The items of a list; nothing, and an error, when it is no list.
  std::optional<std::vector<const YamlNode*>> items(const YamlNode& node, std::string_view what,
                                                    std::string_view example);

  std::optional<std::string> text_value(const YamlNode& node, std::string_view what,
                                        std::string_view example);
  std::optional<bool> boolean(const YamlNode& node, std::string_view what);
  std::optional<std::int64_t> integer(const YamlNode& node, std::string_view what, std::int64_t min,
                                      std::int64_t max);

  /// A scalar in one of the notations of scalars.h.
  template <typename T>
  std::optional<T> scalar(const YamlNode& node, std::string_view what, std::string_view example,
                          Result<T> (*parse)(std::string_view)) {
    if (!expect_scalar(node, what, example)) return std::nullopt;
    Result<T> value = parse(text(node));
    if (value) return std::move(*value);
    error(node, std::string(what) + ": " + value.error().message);
    return std::nullopt;
  }

  /// One of a few words.
  template <typename T>
  std::optional<T> word(const YamlNode& node, std::string_view what,
                        std::initializer_list<std::pair<std::string_view, T>> words) {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : words) names.push_back(name);
    if (!expect_scalar(node, what, names.front())) return std::nullopt;
    for (const auto& [name, value] : words) {
      if (name == text(node)) return value;
    }
    error(node,
          std::string(what) + ": unknown " + in_quotes(text(node)) + suggestion(text(node), names));
    return std::nullopt;
  }

  /// False, and an error, when the node is a list, a map or absent.
  bool expect_scalar(const YamlNode& node, std::string_view what, std::string_view example);

 private:
  void wrong_kind(const YamlNode& node, std::string_view what, std::string_view due,
                  std::string_view example);
  void report_duplicates_and_collect(const YamlNode& map, std::string_view what,
                                     std::vector<MapEntry>& out);
  bool check_key(const YamlNode& key, std::string_view what);

  const YamlDocument& document_;
  Problems& problems_;
};

/// A map with fixed keys. Every key that may stand in it is asked for once with `take`; `finish`
/// reports those nobody asked for.
class MapReader {
 public:
  MapReader(Reader& reader, const YamlNode& node, std::string_view what, std::string_view example);

  /// False when the node was no map (reported); then take gives nullptr without further errors.
  bool is_map() const { return entries_.has_value(); }
  /// The value of `key`, or nullptr.
  const YamlNode* take(std::string_view key);
  /// The same, and an error when it is absent. `example` is a whole line, such as `version: 1`.
  const YamlNode* require(std::string_view key, std::string_view example);
  /// Where the key stands; nullptr when it is absent.
  const YamlNode* key_node(std::string_view key) const;
  const YamlNode& node() const { return node_; }
  void finish();

 private:
  Reader& reader_;
  const YamlNode& node_;
  std::string what_;
  std::optional<std::vector<MapEntry>> entries_;
  std::vector<std::string_view> known_;  ///< keys asked for; literals, so they outlive this
};

}  // namespace weir::config
