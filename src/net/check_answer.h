// From decisions to HTTP answers. Pure functions, called by the HTTP thread or by whichever thread
// completes a check.
#pragma once

#include <cstdint>
#include <vector>

#include "src/base/result.h"
#include "src/codec/query.h"
#include "src/model/check.h"
#include "src/net/http_message.h"
#include "src/net/media_type.h"
#include "src/net/rate_limit_headers.h"

namespace weir::net {

/// How one request wants its answer; a value, so that a late answer can keep it.
struct AnswerForm {
  Accepted accepted;
  codec::AnswerOptions options;
  HeaderStyle headers = HeaderStyle::draft11;
  std::uint64_t random = 0;  ///< for the jitter of Retry-After
};

/// The answer to one check.
void write_decision(const Decision& decision, const AnswerForm& form, HttpResponse& response);

/// The answer to a batch.
void write_batch(const std::vector<Result<Decision>>& results, MediaType type,
                 HttpResponse& response);

/// An error as a body of `type`; 503 carries `Retry-After: 1`.
void write_error(int status, const Error& error, MediaType type, HttpResponse& response);

/// 405 with the methods that would do.
void write_method_not_allowed(std::string_view allow, MediaType type, HttpResponse& response);

}  // namespace weir::net
