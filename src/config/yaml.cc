#include "src/config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <istream>
#include <optional>
#include <streambuf>

#include "src/config/parse.h"
#include "src/model/check.h"

namespace weir::config {
namespace {

Place place_of(const YAML::Mark& mark) {
  if (mark.is_null()) return {1, 1};
  return {mark.line + 1, mark.column + 1};
}

/// Ends the parse from inside the event handler; what is wrong has already been reported.
struct GivenUp {};

/// A stream over bytes that somebody else owns.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());  // streambuf's get area is never written to
    setg(begin, begin, begin + text.size());
  }
};

/// The first byte of `line` at which it stops being UTF-8.
std::size_t first_bad_byte(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size()) {
    std::size_t length = 1;
    while (length <= 4 && !is_valid_utf8(line.substr(at, length))) ++length;
    if (length > 4) return at;
    at += length;
  }
  return at;
}

std::string hex_byte(unsigned char byte) {
  static constexpr char kDigits[] = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 0xF]};
}

/// What is wrong with one line's bytes: the column and the message.
std::optional<std::pair<std::size_t, std::string>> bad_bytes(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const bool line_end = byte == '\r' && i + 1 == line.size();
    if ((byte >= 0x20 && byte != 0x7F) || byte == '\t' || line_end) continue;
    // yaml-cpp takes byte 0x04 for the end of the file: the rest would be dropped silently.
    return {{i, "byte " + hex_byte(byte) +
                    " is a control character, which no text file holds; is this the right file?"}};
  }
  if (is_valid_utf8(line)) return std::nullopt;
  return {{first_bad_byte(line), "invalid UTF-8, save the file as UTF-8"}};
}

/// Whether the quote that opens at `place` is closed. yaml-cpp takes the end of the file for one.
bool quote_is_closed(std::string_view text, Place place) {
  for (int line = 1; line < place.line; ++line) text.remove_prefix(text.find('\n') + 1);
  text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(place.column) - 1));
  if (text.empty() || (text[0] != '"' && text[0] != '\'')) return true;  // a block of text
  const char quote = text[0];
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      const bool doubled = quote == '\'' && i + 1 < text.size() && text[i + 1] == quote;
      if (!doubled) return true;
      ++i;
    }
  }
  return false;
}

/// True when every byte may stand in a YAML file; else one error with its place.
bool check_bytes(std::string_view text, Problems& problems) {
  for (int line = 1; !text.empty(); ++line) {
    const auto end = text.find('\n');
    if (const auto bad = bad_bytes(text.substr(0, end))) {
      problems.error({line, static_cast<int>(bad->first) + 1}, bad->second);
      return false;
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace

/// Turns yaml-cpp's events into a YamlDocument.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(YamlDocument& document, Problems& problems)
      : document_(document), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (document_started_) {
      problems_.error(place_of(mark), "a second document, a file holds one: remove the `---`");
      throw GivenUp();
    }
    document_started_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(YamlNode::Kind::null, mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problems_.error(place_of(mark), "aliases (*name) are not supported, write the value out");
    add(YamlNode::Kind::broken, mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    YamlNode& node = add(tag == "!" ? YamlNode::Kind::quoted : YamlNode::Kind::plain, mark);
    node.text_begin = static_cast<std::uint32_t>(document_.text_.size());
    node.text_size = static_cast<std::uint32_t>(value.size());
    document_.text_ += value;
    if (tag == "!") last_quoted_ = place_of(mark);
    if (tag == "!" && !is_valid_utf8(value)) {
      problems_.error(place_of(mark), "the text holds a NUL or invalid UTF-8, remove the escape");
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { open_.pop_back(); }

  /// Where the last quoted text (or block of text) began; line 0 when there was none.
  Place last_quoted() const { return last_quoted_; }

 private:
  struct Open {
    std::uint32_t index = 0;
    std::uint32_t last_child = YamlNode::kNone;
    std::uint32_t children = 0;
  };

  YamlNode& add(YamlNode::Kind kind, const YAML::Mark& mark) {
    auto& nodes = document_.nodes_;
    if (nodes.size() >= kMaxYamlNodes) {
      problems_.error(place_of(mark), "more than " + std::to_string(kMaxYamlNodes) +
                                          " values in one file, split or shorten it");
      throw GivenUp();
    }
    const auto index = static_cast<std::uint32_t>(nodes.size());
    const Place place = place_of(mark);
    YamlNode node;
    node.kind = kind;
    node.line = static_cast<std::uint32_t>(place.line);
    node.column = static_cast<std::uint32_t>(place.column);
    if (!open_.empty()) {
      Open& parent = open_.back();
      YamlNode& owner = nodes[parent.index];
      if (parent.last_child == YamlNode::kNone) {
        owner.first_child = index;
      } else {
        nodes[parent.last_child].next_sibling = index;
      }
      // yaml-cpp places an absent value at the token after it: the key is where to look.
      const bool is_value = owner.kind == YamlNode::Kind::map && parent.children % 2 == 1;
      if (kind == YamlNode::Kind::null && is_value) {
        node.line = nodes[parent.last_child].line;
        node.column = nodes[parent.last_child].column;
      }
      parent.last_child = index;
      ++parent.children;
    }
    nodes.push_back(node);
    return nodes.back();
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() >= kMaxYamlDepth) {
      problems_.error(place_of(mark), "nested deeper than " + std::to_string(kMaxYamlDepth) +
                                          " levels; check the brackets and the indentation");
      throw GivenUp();
    }
    add(kind, mark);
    open_.push_back({static_cast<std::uint32_t>(document_.nodes_.size() - 1)});
  }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      problems_.error(place_of(mark), "anchors (&name) are not supported, write the value out");
    }
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      problems_.error(place_of(mark), "tags (`" + tag + "`) are not supported, remove it");
    }
  }

  YamlDocument& document_;
  Problems& problems_;
  std::vector<Open> open_;
  Place last_quoted_;
  bool document_started_ = false;
};

std::string too_large_message() {
  return "is larger than " + std::to_string(kMaxFileBytes / (1024 * 1024)) +
         " MiB, is this the right file?";
}

YamlDocument::YamlDocument(std::string_view text, Problems& problems) {
  if (text.size() > kMaxFileBytes) {
    problems.error({}, too_large_message());
    return;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  if (!check_bytes(text, problems)) return;
  MemoryBuffer buffer(text);
  std::istream stream(&buffer);
  TreeBuilder builder(*this, problems);
  const std::size_t problems_before = problems.count();
  bool whole = false;
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    const Place quote = builder.last_quoted();
    whole = quote.line == 0 || quote_is_closed(text, quote);
    if (!whole) problems.error(quote, "the quote is never closed, end the text with one");
  } catch (const YAML::Exception& error) {
    problems.error(place_of(error.mark),
                   "not YAML: " + error.msg + "; check colons, brackets, quotes and indentation");
  } catch (const GivenUp&) {
  } catch (const std::exception& error) {
    problems.error({1, 1}, std::string("cannot be read as YAML: ") + error.what());
  }
  const bool empty = nodes_.empty() || nodes_[0].kind == YamlNode::Kind::null;
  if (whole && empty && problems.count() == problems_before) {
    problems.error({1, 1}, "the file is empty; an empty file never replaces a good one");
  }
  if (!whole || empty) nodes_.clear();
}

}  // namespace weir::config
