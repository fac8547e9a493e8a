#include "src/config/reader.h"

#include <algorithm>
#include <unordered_map>

#include "src/base/hash.h"
#include "src/config/scalars.h"

namespace weir::config {
namespace {

/// Optimal string alignment distance: inserts, deletes, changes and swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, change});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

const char* kind_name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::plain:
      return "a plain value";
    case YamlNode::Kind::quoted:
      return "quoted text";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
    case YamlNode::Kind::broken:
      return "a broken value";
  }
  return "something else";
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t kLongestWord = 64;
  if (word.size() > kLongestWord) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(word.size() / 3, 1) + 1;
  for (const auto candidate : candidates) {
    if (candidate.size() > kLongestWord) continue;
    const std::size_t found = distance(word, candidate);
    if (found < best_distance) {
      best_distance = found;
      best = candidate;
    }
  }
  return best;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::size_t cut = std::min(text.size(), kShown);
  while (cut < text.size() && cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) {
    --cut;
  }
  std::string shown(text.substr(0, cut));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return "`" + shown + (cut < text.size() ? "...`" : "`");
}

std::string Reader::suggestion(std::string_view word,
                               const std::vector<std::string_view>& candidates) const {
  if (problems_.is_full()) return {};
  constexpr std::size_t kMostListed = 16;
  const auto best = nearest(word, candidates);
  if (!best.empty()) return ", did you mean `" + std::string(best) + "`?";
  if (candidates.empty()) return ", nothing may stand here";
  std::string text = candidates.size() == 1 ? ", write " : ", write one of ";
  for (std::size_t i = 0; i < std::min(candidates.size(), kMostListed); ++i) {
    if (i > 0) text += ", ";
    text += "`" + std::string(candidates[i]) + "`";
  }
  if (candidates.size() > kMostListed) text += " ...";
  return text;
}

void Reader::wrong_kind(const YamlNode& node, std::string_view what, std::string_view due,
                        std::string_view example) {
  if (node.kind == YamlNode::Kind::broken) return;
  error(node, std::string(what) + ": " + kind_name(node.kind) + " where " + std::string(due) +
                  " is due, write it as `" + std::string(example) + "`");
}

bool Reader::expect_scalar(const YamlNode& node, std::string_view what, std::string_view example) {
  if (node.is_scalar()) return true;
  wrong_kind(node, what, "a single value", example);
  return false;
}

bool Reader::check_key(const YamlNode& key, std::string_view what) {
  if (key.kind == YamlNode::Kind::plain && text(key) == "<<") {
    error(key, "merge keys (<<) are not supported, write the keys out");
    return false;
  }
  if (key.kind == YamlNode::Kind::broken) return false;
  if (key.is_scalar() && key.text_size > 0) return true;
  error(key, std::string(what) + ": " + (key.is_scalar() ? "an empty text" : kind_name(key.kind)) +
                 " where a key is due, write a word; quote it when it is `null` or `~`");
  return false;
}

void Reader::report_duplicates_and_collect(const YamlNode& map, std::string_view what,
                                           std::vector<MapEntry>& out) {
  constexpr std::size_t kFewEntries = 16;  // a scan beats a hash map below this
  std::unordered_map<std::string_view, const YamlNode*, StringHash> seen;
  const auto first_of = [&](std::string_view key) -> const YamlNode* {
    if (out.size() < kFewEntries) {
      const auto found = std::find_if(out.begin(), out.end(),
                                      [&](const MapEntry& entry) { return entry.key == key; });
      return found == out.end() ? nullptr : found->key_node;
    }
    if (seen.empty()) {
      for (const auto& entry : out) seen.emplace(entry.key, entry.key_node);
    }
    const auto found = seen.find(key);
    return found == seen.end() ? nullptr : found->second;
  };
  for (const YamlNode* key = document_.first_child(map); key != nullptr;) {
    const YamlNode* value = document_.next(*key);
    const YamlNode* next = document_.next(*value);
    if (check_key(*key, what)) {
      const MapEntry entry{text(*key), key, value};
      if (const YamlNode* first = first_of(entry.key)) {
        error(*key, std::string(what) + ": duplicate key " + in_quotes(entry.key) +
                        ", first on line " + std::to_string(first->line) + ": keep one of them");
      } else {
        out.push_back(entry);
        if (!seen.empty()) seen.emplace(entry.key, key);
      }
    }
    key = next;
  }
}

std::optional<std::vector<MapEntry>> Reader::entries(const YamlNode& node, std::string_view what,
                                                     std::string_view example) {
  if (node.kind != YamlNode::Kind::map) {
    wrong_kind(node, what, "a map", example);
    return std::nullopt;
  }
  std::vector<MapEntry> found;
  report_duplicates_and_collect(node, what, found);
  return found;
}

std::optional<std::vector<const YamlNode*>> Reader::items(const YamlNode& node,
                                                          std::string_view what,
                                                          std::string_view example) {
  if (node.kind != YamlNode::Kind::list) {
    wrong_kind(node, what, "a list", example);
    return std::nullopt;
  }
  std::vector<const YamlNode*> found;
  for (const YamlNode* item = document_.first_child(node); item != nullptr;
       item = document_.next(*item)) {
    found.push_back(item);
  }
  return found;
}

std::optional<std::string> Reader::text_value(const YamlNode& node, std::string_view what,
                                              std::string_view example) {
  if (!expect_scalar(node, what, example)) return std::nullopt;
  return std::string(text(node));
}

std::optional<bool> Reader::boolean(const YamlNode& node, std::string_view what) {
  if (node.kind == YamlNode::Kind::plain && text(node) == "true") return true;
  if (node.kind == YamlNode::Kind::plain && text(node) == "false") return false;
  if (node.is_scalar()) {
    error(node, std::string(what) + ": " + in_quotes(text(node)) +
                    (node.kind == YamlNode::Kind::quoted ? " is quoted text" : "") +
                    " where true or false is due, write `true` or `false`");
  } else {
    wrong_kind(node, what, "true or false", "true");
  }
  return std::nullopt;
}

std::optional<std::int64_t> Reader::integer(const YamlNode& node, std::string_view what,
                                            std::int64_t min, std::int64_t max) {
  if (node.kind != YamlNode::Kind::plain) {
    wrong_kind(node, what, "a number", std::to_string(std::clamp<std::int64_t>(1, min, max)));
    return std::nullopt;
  }
  const auto value = parse_integer(text(node), min, max);
  if (value) return *value;
  error(node, std::string(what) + ": " + value.error().message);
  return std::nullopt;
}

MapReader::MapReader(Reader& reader, const YamlNode& node, std::string_view what,
                     std::string_view example)
    : reader_(reader), node_(node), what_(what), entries_(reader.entries(node, what, example)) {}

const YamlNode* MapReader::take(std::string_view key) {
  known_.push_back(key);
  if (!entries_) return nullptr;
  for (const auto& entry : *entries_) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
}

const YamlNode* MapReader::require(std::string_view key, std::string_view example) {
  const YamlNode* value = take(key);
  if (value == nullptr && entries_) {
    reader_.error(node_, what_ + ": `" + std::string(key) + "` is missing, write `" +
                             std::string(example) + "`");
  }
  return value;
}

const YamlNode* MapReader::key_node(std::string_view key) const {
  if (!entries_) return nullptr;
  for (const auto& entry : *entries_) {
    if (entry.key == key) return entry.key_node;
  }
  return nullptr;
}

void MapReader::finish() {
  if (!entries_) return;
  for (const auto& entry : *entries_) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    const bool no_space = entry.key.find(':') != std::string_view::npos;
    reader_.error(*entry.key_node, what_ + ": unknown key " + in_quotes(entry.key) +
                                       (no_space ? ", a space is due after the colon"
                                                 : reader_.suggestion(entry.key, known_)));
  }
}

}  // namespace weir::config
