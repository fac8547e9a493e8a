// The check API in Protobuf (proto/weir/v1/check.proto). Unknown fields are ignored, as Protobuf's
// evolution wants it; truncated bytes and strings that are not UTF-8 are errors. Pure functions;
// any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/model/check.h"

namespace weir::codec {

/// Parses a weir.v1.CheckRequest into `check`, whose memory is reused. Of an attribute that is sent
/// twice the last counts, as in every map of Protobuf.
Status parse_check_proto(std::string_view body, Check& check);

/// Parses a weir.v1.BatchRequest; more than kMaxChecksPerBatch is ErrorCode::too_large. Every item
/// is a value: Protobuf cannot tell which item is broken, so broken bytes are an error of the
/// whole.
Result<std::vector<Result<Check>>> parse_batch_proto(std::string_view body);

/// weir.v1.CheckResponse.
void append_decision_proto(const Decision& decision, std::string& out);
/// weir.v1.BatchResponse.
void append_batch_proto(const std::vector<Result<Decision>>& results, std::string& out);
/// weir.v1.ErrorResponse.
void append_error_proto(const Error& error, std::string& out);

// The other direction, for clients.

/// weir.v1.CheckRequest.
std::string encode_check_proto(const Check& check);
/// weir.v1.BatchRequest.
std::string encode_batch_proto(const std::vector<Check>& checks);
/// A CheckResponse as a client sees it: next_token_ms and window_s are not on this wire and are 0.
Result<Decision> parse_decision_proto(std::string_view body);
Result<std::vector<Result<Decision>>> parse_decisions_proto(std::string_view body);
Result<Error> parse_error_proto(std::string_view body);

}  // namespace weir::codec
