#include "src/net/check_routes.h"

#include <atomic>
#include <memory>
#include <utility>

#include "src/base/limits.h"
#include "src/codec/check_json.h"
#include "src/codec/check_proto.h"

namespace weir::net {
namespace {

constexpr std::string_view kCheckPath = "/v1/check";
constexpr std::string_view kBatchPath = "/v1/checks";
constexpr std::string_view kUsagePath = "/v1/usage";

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

bool is_read(Method method) { return method == Method::get || method == Method::head; }

MediaType type_of(const HttpRequest& request) {
  const MediaType fallback =
      media_type_of(request.header("Content-Type")).value_or(MediaType::json);
  return accepted_by(request.header("Accept"), fallback).type;
}

Error unsupported_type() {
  return {ErrorCode::unsupported, "Content-Type",
          "must be application/json or application/x-protobuf"};
}

/// A batch some of whose checks wait. Each result is written by one completion; the last one
/// answers.
struct PendingBatch {
  std::vector<Result<Decision>> results;
  std::atomic<std::size_t> waiting = 0;
  MediaType type = MediaType::json;
  RequestHandler::Later later;
};

}  // namespace

CheckRoutes::CheckRoutes(const CheckApiOptions& options, CheckService& service, const Clock& clock)
    : options_(options), service_(service), clock_(clock), random_(options.jitter_seed) {}

std::size_t CheckRoutes::max_body_bytes(std::string_view target) const {
  return path_of(target) == kBatchPath ? kMaxBatchBodyBytes : kMaxCheckBodyBytes;
}

bool CheckRoutes::handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) {
  if (request.path == kCheckPath) return handle_check(request, response, deferral);
  if (request.path == kBatchPath) return handle_batch(request, response, deferral);
  if (request.path == kUsagePath) return handle_usage(request, response, deferral);
  write_error(404,
              {ErrorCode::not_found, "path",
               "there is nothing here; there are /v1/check, /v1/checks and /v1/usage"},
              type_of(request), response);
  return true;
}

void CheckRoutes::refuse(const HttpRequest& request, int status, const Error& error,
                         HttpResponse& response) {
  write_error(status, error, type_of(request), response);
}

bool CheckRoutes::fail(const Error& error, MediaType type, HttpResponse& response) const {
  write_error(status_of(error.code), error, type, response);
  return true;
}

bool CheckRoutes::serving(MediaType type, HttpResponse& response) const {
  const Readiness readiness = service_.readiness();
  if (readiness == Readiness::serving) return true;
  fail({ErrorCode::unavailable, "",
        readiness == Readiness::draining ? "this node is shutting down; ask another one"
                                         : "this node has no policy yet"},
       type, response);
  return false;
}

void CheckRoutes::observe(Nanos began_ns) const {
  if (options_.check_duration != nullptr) {
    options_.check_duration->observe(clock_.boot_ns() - began_ns);
  }
}

bool CheckRoutes::handle_check(const HttpRequest& request, HttpResponse& response,
                               Deferral& deferral) {
  AnswerForm form;
  form.headers = options_.headers;
  form.random = random_.next();
  const auto body_type = media_type_of(request.header("Content-Type"));
  form.accepted = accepted_by(request.header("Accept"), body_type.value_or(MediaType::json));
  const MediaType type = form.accepted.type;
  if (!is_read(request.method) && request.method != Method::post) {
    write_method_not_allowed("GET, HEAD, POST", type, response);
    return true;
  }
  if (!serving(type, response)) return true;

  Result<codec::AnswerOptions> options;
  if (request.method == Method::post) {
    if (!body_type) {
      write_error(415, unsupported_type(), type, response);
      return true;
    }
    options = codec::parse_answer_options(request.query);
    const Status parsed = *body_type == MediaType::protobuf
                              ? codec::parse_check_proto(request.body, check_)
                              : codec::parse_check_json(request.body, check_);
    if (!parsed) return fail(parsed.error(), type, response);
  } else {
    options = codec::parse_check_query(request.query, check_);
  }
  if (!options) return fail(options.error(), type, response);
  form.options = *options;
  if (auto valid = validate(check_); !valid) return fail(valid.error(), type, response);
  return decide(form, response, deferral);
}

bool CheckRoutes::decide(const AnswerForm& form, HttpResponse& response, Deferral& deferral) {
  const Nanos began_ns = options_.check_duration != nullptr ? clock_.boot_ns() : 0;
  const Result<bool> decided = service_.decide(check_, decision_);
  if (!decided) {
    // The limits that match a check are the caller's doing (service.h): never a 5xx of ours.
    const int status = decided.error().code == ErrorCode::unavailable ? 503 : 400;
    write_error(status, decided.error(), form.accepted.type, response);
    return true;
  }
  if (*decided) {
    observe(began_ns);
    write_decision(decision_, form, response);
    return true;
  }
  service_.decide_later(
      check_, [form, began_ns, later = deferral.defer(), duration = options_.check_duration,
               &clock = clock_](const Decision& decision) {
        if (duration != nullptr) duration->observe(clock.boot_ns() - began_ns);
        HttpResponse late;
        write_decision(decision, form, late);
        later(std::move(late));
      });
  return false;
}

bool CheckRoutes::handle_batch(const HttpRequest& request, HttpResponse& response,
                               Deferral& deferral) {
  const MediaType type = type_of(request);
  if (request.method != Method::post) {
    write_method_not_allowed("POST", type, response);
    return true;
  }
  if (!serving(type, response)) return true;
  const auto body_type = media_type_of(request.header("Content-Type"));
  if (!body_type) {
    write_error(415, unsupported_type(), type, response);
    return true;
  }
  if (!request.query.empty()) {
    return fail({ErrorCode::invalid_argument, "query", "a batch takes no query"}, type, response);
  }
  auto checks = *body_type == MediaType::protobuf ? codec::parse_batch_proto(request.body)
                                                  : codec::parse_batch_json(request.body);
  if (!checks) return fail(checks.error(), type, response);

  const Nanos began_ns = clock_.boot_ns();
  std::vector<Result<Decision>> results(checks->size());
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < checks->size(); ++i) {
    const Result<Check>& check = (*checks)[i];
    if (!check) {
      results[i] = tl::unexpected(check.error());
    } else if (auto valid = validate(*check); !valid) {
      results[i] = tl::unexpected(valid.error());
    } else if (const Result<bool> decided = service_.decide(*check, *results[i]); !decided) {
      results[i] = tl::unexpected(decided.error());
    } else if (*decided) {
      observe(began_ns);
    } else {
      waiting.push_back(i);
    }
  }
  if (waiting.empty()) {
    write_batch(results, type, response);
    return true;
  }
  start_batch(*checks, type, began_ns, std::move(results), waiting, deferral);
  return false;
}

void CheckRoutes::start_batch(const std::vector<Result<Check>>& checks, MediaType type,
                              Nanos began_ns, std::vector<Result<Decision>> results,
                              const std::vector<std::size_t>& waiting, Deferral& deferral) {
  auto batch = std::make_shared<PendingBatch>();
  batch->results = std::move(results);
  batch->waiting = waiting.size();
  batch->type = type;
  batch->later = deferral.defer();
  for (const std::size_t i : waiting) {
    service_.decide_later(*checks[i], [batch, i, began_ns, duration = options_.check_duration,
                                       &clock = clock_](const Decision& decision) {
      if (duration != nullptr) duration->observe(clock.boot_ns() - began_ns);
      batch->results[i] = decision;
      // acq_rel: the last completion sees what all others have written.
      if (batch->waiting.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      HttpResponse late;
      write_batch(batch->results, batch->type, late);
      batch->later(std::move(late));
    });
  }
}

bool CheckRoutes::handle_usage(const HttpRequest& request, HttpResponse& response,
                               Deferral& deferral) {
  if (!is_read(request.method)) {
    write_method_not_allowed("GET, HEAD", type_of(request), response);
    return true;
  }
  if (!serving(MediaType::json, response)) return true;
  auto query = codec::parse_query(request.query);
  if (!query) return fail(query.error(), MediaType::json, response);
  Check probe;
  for (auto& [name, value] : *query) {
    if (name != "customer") {
      return fail({ErrorCode::invalid_argument, name, "is unknown here; there is only customer"},
                  MediaType::json, response);
    }
    probe.customer = std::move(value);
  }
  if (auto valid = validate(probe); !valid) return fail(valid.error(), MediaType::json, response);
  service_.usage(probe.customer, [customer = probe.customer, later = deferral.defer()](
                                     Result<std::vector<BucketUsage>> usage) {
    HttpResponse late;
    late.headers = "Cache-Control: no-store\r\n";
    if (usage) {
      late.content_type = kJsonType;
      codec::append_usage_json(customer, *usage, late.body);
    } else {
      write_error(status_of(usage.error().code), usage.error(), MediaType::json, late);
    }
    later(std::move(late));
  });
  return false;
}

}  // namespace weir::net
