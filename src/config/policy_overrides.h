// Plans and customers of a policy file: what they change about the limits. Used by parse_policy
// after the limits have been read. Private to src/config.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/base/hash.h"
#include "src/config/reader.h"
#include "src/model/limit.h"

namespace weir::config {

/// The limits of the file so far. A limit with mistakes keeps its name, so that overrides of it are
/// not reported as well.
class DeclaredLimits {
 public:
  struct Limit {
    LimitDefinition definition;
    bool sound = false;
    std::uint32_t line = 0;
  };

  std::size_t size() const { return limits_.size(); }
  const Limit* find(std::string_view name) const;
  /// The name must not be declared yet.
  void add(Limit limit);
  std::vector<std::string_view> names() const;
  std::vector<LimitDefinition> take_definitions();

 private:
  std::vector<Limit> limits_;
  std::unordered_map<std::string, std::size_t, StringHash, std::equal_to<>> index_;
};

class OverrideReader {
 public:
  OverrideReader(Reader& reader, const DeclaredLimits& limits) : reader_(reader), limits_(limits) {}

  /// Reads `{api: {rate: 6000/min}, monthly: unlimited}`. What numbers leave out comes from `base`
  /// (a plan's overrides; may be nullptr), else from the limit.
  LimitOverrides read(const YamlNode& node, std::string_view what, const LimitOverrides* base);

 private:
  std::optional<LimitOverride> read_one(const YamlNode& node, const LimitDefinition& limit,
                                        const LimitOverrides* base);
  std::optional<LimitNumbers> read_numbers(const YamlNode& node, const LimitDefinition& limit,
                                           LimitNumbers numbers);

  Reader& reader_;
  const DeclaredLimits& limits_;
};

/// Whether the `by` of a limit names `attribute`.
bool is_keyed_by(const LimitDefinition& limit, std::string_view attribute);

}  // namespace weir::config
