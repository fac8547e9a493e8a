// Query strings as HTML forms and curl write them (application/x-www-form-urlencoded). Pure
// functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/model/check.h"

namespace weir::codec {

/// Most names of one query. More is refused.
inline constexpr std::size_t kMaxQueryNames = 64;

using QueryPairs = std::vector<std::pair<std::string, std::string>>;

/// The decoded names and values, in order: `%XX` is a byte, `+` a space, a name without `=` has an
/// empty value, empty pieces (`a=1&&b=2`) are skipped. A bad escape, an empty name, and a name
/// given twice are errors whose field is the name. Values need not be UTF-8.
Result<QueryPairs> parse_query(std::string_view query);

/// How a check wants to be answered: `?status=always`, `?deny_status=403`.
struct AnswerOptions {
  bool status_always = false;  ///< 200 for a denial too
  int deny_status = 429;       ///< in [400, 599]

  friend bool operator==(const AnswerOptions&, const AnswerOptions&) = default;
};

/// The query of a POST: answer options only; any other name is an error.
Result<AnswerOptions> parse_answer_options(std::string_view query);

/// The query of GET /v1/check: `customer`, `cost`, answer options; all other names are attributes.
Result<AnswerOptions> parse_check_query(std::string_view query, Check& check);

/// Decodes `%XX` in a segment of a path, where `+` is itself.
Result<std::string> decode_path_segment(std::string_view segment);

}  // namespace weir::codec
