// A YAML text as a tree with the place of each part. Keeps what strictness needs and yaml-cpp's own
// tree loses: duplicate keys, quotes, order. Immutable once parsed. Private to src/config.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/config/problems.h"

namespace weir::config {

/// Most nodes (scalars, lists, maps) of one file: 512 MiB of tree. More is an error.
inline constexpr std::size_t kMaxYamlNodes = 16'000'000;
/// Deepest nesting. Deeper is an error.
inline constexpr std::size_t kMaxYamlDepth = 32;

/// One node. In a map, children alternate: key, value, key, value.
struct YamlNode {
  /// `broken` has been reported: who meets it says nothing more.
  enum class Kind : std::uint8_t { null, plain, quoted, list, map, broken };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Kind kind = Kind::null;
  std::uint32_t line = 1;
  std::uint32_t column = 1;
  std::uint32_t text_begin = 0;  ///< into the document's text; for scalars
  std::uint32_t text_size = 0;
  std::uint32_t first_child = kNone;
  std::uint32_t next_sibling = kNone;

  bool is_scalar() const { return kind == Kind::plain || kind == Kind::quoted; }
  Place place() const { return {static_cast<int>(line), static_cast<int>(column)}; }
};

/// What to say of a text or file above kMaxFileBytes.
std::string too_large_message();

class YamlDocument {
 public:
  /// Parses `text`; mistakes go to `problems`. After a mistake in the syntax itself the document is
  /// empty. Refuses what no file of Weir needs and yaml-cpp would take quietly: control characters,
  /// invalid UTF-8, anchors, aliases, tags, further documents, an open quote at the end, an empty
  /// file.
  YamlDocument(std::string_view text, Problems& problems);

  /// nullptr after a syntax error or for an empty file (then `problems` is not empty).
  const YamlNode* root() const { return nodes_.empty() ? nullptr : nodes_.data(); }
  std::string_view text(const YamlNode& node) const {
    return std::string_view(text_).substr(node.text_begin, node.text_size);
  }
  const YamlNode* first_child(const YamlNode& node) const { return at(node.first_child); }
  const YamlNode* next(const YamlNode& node) const { return at(node.next_sibling); }

 private:
  friend class TreeBuilder;
  const YamlNode* at(std::uint32_t index) const {
    return index == YamlNode::kNone ? nullptr : &nodes_[index];
  }

  std::vector<YamlNode> nodes_;
  std::string text_;
};

}  // namespace weir::config
