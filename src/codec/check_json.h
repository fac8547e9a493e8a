// The check API in JSON (API.md): bodies of checks and batches to values, answers to text. Parsing
// says what is wrong with the text and its members; whether a policy could decide the check is for
// weir::validate. Writers append to the caller's string and build no trees. Pure functions; any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/model/check.h"

namespace weir::codec {

/// Deepest nesting of a body that is parsed at all; a valid batch needs 4. Deeper is refused.
inline constexpr std::size_t kMaxJsonDepth = 8;

/// Parses `{"customer","attributes","cost"}` into `check`, whose memory is reused. Unknown members,
/// members given twice, values of another type and a `cost` that is not written as a 64-bit integer
/// are errors whose field is the member. After an error `check` is unspecified.
Status parse_check_json(std::string_view body, Check& check);

/// Parses `{"checks":[...]}`. A wrong check is an error at its place; text that is no such object
/// at all is one for the whole, and so are more than kMaxChecksPerBatch (ErrorCode::too_large).
Result<std::vector<Result<Check>>> parse_batch_json(std::string_view body);

/// A decision as API.md shows it, members in that order.
void append_decision_json(const Decision& decision, std::string& out);

/// `{"results":[...]}`, each a decision or `{"error":{...}}`.
void append_batch_json(const std::vector<Result<Decision>>& results, std::string& out);

/// `{"error":{"code","field","message"}}`; `field` is left out when it is empty.
void append_error_json(const Error& error, std::string& out);

/// `{"customer","buckets":[{"name","scope","attributes","limit","used","remaining","reset_ms"}]}`.
void append_usage_json(std::string_view customer, const std::vector<BucketUsage>& buckets,
                       std::string& out);

/// RFC 9457 of a denial, with the denying limits as `violated-policies`.
void append_problem_json(const Decision& decision, int status, std::string& out);

/// `text` in quotes. Bytes that are not UTF-8 become U+FFFD, so that the result is always JSON.
void append_json_string(std::string_view text, std::string& out);

}  // namespace weir::codec
