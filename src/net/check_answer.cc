#include "src/net/check_answer.h"

#include <string>

#include "src/codec/check_json.h"
#include "src/codec/check_proto.h"

namespace weir::net {

void write_decision(const Decision& decision, const AnswerForm& form, HttpResponse& response) {
  const bool denied = !decision.allowed && !form.options.status_always;
  response.status = denied ? form.options.deny_status : 200;
  append_rate_limit_headers(decision, form.headers, response.headers);
  if (denied) {
    if (const auto wait = retry_after_s(decision, form.random)) {
      response.headers += "Retry-After: ";
      response.headers += std::to_string(*wait);
      response.headers += "\r\n";
    }
  }
  // Also on success: a GET that is answered from a cache would count nothing.
  response.headers += "Cache-Control: no-store\r\n";
  if (denied && form.accepted.problem) {
    response.content_type = kProblemType;
    codec::append_problem_json(decision, response.status, response.body);
  } else if (form.accepted.type == MediaType::protobuf) {
    response.content_type = kProtobufType;
    codec::append_decision_proto(decision, response.body);
  } else {
    response.content_type = kJsonType;
    codec::append_decision_json(decision, response.body);
  }
}

void write_batch(const std::vector<Result<Decision>>& results, MediaType type,
                 HttpResponse& response) {
  if (type == MediaType::protobuf) {
    response.content_type = kProtobufType;
    codec::append_batch_proto(results, response.body);
  } else {
    response.content_type = kJsonType;
    codec::append_batch_json(results, response.body);
  }
}

void write_error(int status, const Error& error, MediaType type, HttpResponse& response) {
  response.status = status;
  if (status == 503) response.headers += "Retry-After: 1\r\n";
  if (type == MediaType::protobuf) {
    response.content_type = kProtobufType;
    codec::append_error_proto(error, response.body);
  } else {
    response.content_type = kJsonType;
    codec::append_error_json(error, response.body);
  }
}

void write_method_not_allowed(std::string_view allow, MediaType type, HttpResponse& response) {
  response.headers += "Allow: ";
  response.headers += allow;
  response.headers += "\r\n";
  write_error(
      405, {ErrorCode::unsupported, "", "this method is not known here; use " + std::string(allow)},
      type, response);
}

}  // namespace weir::net
