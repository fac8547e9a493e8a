#include "src/codec/check_proto.h"

#include <google/protobuf/arena.h>

#include "src/base/limits.h"
#include "src/codec/parse_protobuf.h"
#include "weir/v1/check.pb.h"

namespace weir::codec {
namespace {

/// Memory of one message on the stack; larger ones go on to the heap.
class Scratch {
 public:
  Scratch() : arena_(block_, sizeof block_) {}

  template <typename Message>
  Message& make() {
    return *google::protobuf::Arena::CreateMessage<Message>(&arena_);
  }

 private:
  alignas(std::max_align_t) char block_[4096];
  google::protobuf::Arena arena_;
};

tl::unexpected<Error> not_a(const char* message) {
  return failure(ErrorCode::invalid_argument, "",
                 std::string("the body is not a ") + message +
                     ": it is cut off, has a wrong wire type or a string that is not UTF-8");
}

void take(const v1::CheckRequest& from, Check& to) {
  to.customer = from.customer();
  to.attributes.clear();
  for (const auto& [name, value] : from.attributes()) to.attributes.emplace_back(name, value);
  to.cost = from.has_cost() ? from.cost() : 1;
}

void fill(const Check& from, v1::CheckRequest& to) {
  to.set_customer(from.customer);
  for (const auto& [name, value] : from.attributes) (*to.mutable_attributes())[name] = value;
  to.set_cost(from.cost);
}

void fill(const Decision& from, v1::CheckResponse& to) {
  to.set_allowed(from.allowed);
  to.set_name(from.name);
  to.set_limit(from.limit);
  to.set_remaining(from.remaining);
  to.set_retry_after_ms(from.retry_after_ms);
  to.set_reset_ms(from.reset_ms);
  to.set_source(static_cast<v1::Source>(from.source));
  for (const LimitDecision& limit : from.limits) {
    auto& out = *to.add_limits();
    out.set_name(limit.name);
    out.set_scope(static_cast<v1::Scope>(limit.scope));
    out.set_allowed(limit.allowed);
    out.set_limit(limit.limit);
    out.set_remaining(limit.remaining);
    out.set_retry_after_ms(limit.retry_after_ms);
    out.set_reset_ms(limit.reset_ms);
    out.set_shadow(limit.shadow);
  }
}

/// Bytes of a query that were not UTF-8 may be repeated in an error; Protobuf strings must be.
std::string as_utf8(std::string_view text) {
  if (is_valid_utf8(text)) return std::string(text);
  std::string out;
  for (const char c : text) {
    out.push_back(static_cast<unsigned char>(c) < 0x80 && c != '\0' ? c : '?');
  }
  return out;
}

void fill(const weir::Error& from, v1::Error& to) {
  to.set_code(to_string(from.code));
  to.set_field(as_utf8(from.field));
  to.set_message(as_utf8(from.message));
}

Result<Decision> take(const v1::CheckResponse& from) {
  Decision to;
  if (from.source() < v1::SOURCE_LEASE || from.source() > v1::SOURCE_DENY) {
    return failure(ErrorCode::corrupt, "source", "is unknown");
  }
  to.allowed = from.allowed();
  to.name = from.name();
  to.limit = from.limit();
  to.remaining = from.remaining();
  to.retry_after_ms = from.retry_after_ms();
  to.reset_ms = from.reset_ms();
  to.source = static_cast<Source>(from.source());
  for (const auto& limit : from.limits()) {
    if (limit.scope() < v1::SCOPE_NODE || limit.scope() > v1::SCOPE_GLOBAL) {
      return failure(ErrorCode::corrupt, "limits.scope", "is unknown");
    }
    LimitDecision out;
    out.name = limit.name();
    out.scope = static_cast<Scope>(limit.scope());
    out.allowed = limit.allowed();
    out.shadow = limit.shadow();
    out.limit = limit.limit();
    out.remaining = limit.remaining();
    out.retry_after_ms = limit.retry_after_ms();
    out.reset_ms = limit.reset_ms();
    to.limits.push_back(std::move(out));
  }
  return to;
}

weir::Error take(const v1::Error& from) {
  weir::Error to{ErrorCode::invalid_argument, from.field(), from.message()};
  for (const auto code :
       {ErrorCode::invalid_argument, ErrorCode::not_found, ErrorCode::too_large,
        ErrorCode::unavailable, ErrorCode::io, ErrorCode::corrupt, ErrorCode::unsupported}) {
    if (from.code() == to_string(code)) to.code = code;
  }
  return to;
}

}  // namespace

Status parse_check_proto(std::string_view body, Check& check) {
  Scratch scratch;
  auto& message = scratch.make<v1::CheckRequest>();
  if (!parse_protobuf(message, body)) return not_a("weir.v1.CheckRequest");
  take(message, check);
  return {};
}

Result<std::vector<Result<Check>>> parse_batch_proto(std::string_view body) {
  // Counted first: half a million empty checks fit into a body, and each would become an object.
  if (count_fields(body, v1::BatchRequest::kChecksFieldNumber) > kMaxChecksPerBatch) {
    return failure(ErrorCode::too_large, "checks",
                   "has more than " + std::to_string(kMaxChecksPerBatch) +
                       " members, which is the most that is allowed");
  }
  Scratch scratch;
  auto& message = scratch.make<v1::BatchRequest>();
  if (!parse_protobuf(message, body)) return not_a("weir.v1.BatchRequest");
  std::vector<Result<Check>> checks(static_cast<std::size_t>(message.checks_size()));
  for (int i = 0; i < message.checks_size(); ++i) {
    take(message.checks(i), *checks[static_cast<std::size_t>(i)]);
  }
  return checks;
}

void append_decision_proto(const Decision& decision, std::string& out) {
  Scratch scratch;
  auto& message = scratch.make<v1::CheckResponse>();
  fill(decision, message);
  message.AppendToString(&out);
}

void append_batch_proto(const std::vector<Result<Decision>>& results, std::string& out) {
  Scratch scratch;
  auto& message = scratch.make<v1::BatchResponse>();
  for (const Result<Decision>& result : results) {
    auto& item = *message.add_results();
    if (result) {
      fill(*result, *item.mutable_decision());
    } else {
      fill(result.error(), *item.mutable_error());
    }
  }
  message.AppendToString(&out);
}

void append_error_proto(const weir::Error& error, std::string& out) {
  Scratch scratch;
  auto& message = scratch.make<v1::ErrorResponse>();
  fill(error, *message.mutable_error());
  message.AppendToString(&out);
}

std::string encode_check_proto(const Check& check) {
  Scratch scratch;
  auto& message = scratch.make<v1::CheckRequest>();
  fill(check, message);
  return message.SerializeAsString();
}

std::string encode_batch_proto(const std::vector<Check>& checks) {
  Scratch scratch;
  auto& message = scratch.make<v1::BatchRequest>();
  for (const Check& check : checks) fill(check, *message.add_checks());
  return message.SerializeAsString();
}

Result<Decision> parse_decision_proto(std::string_view body) {
  Scratch scratch;
  auto& message = scratch.make<v1::CheckResponse>();
  if (!parse_protobuf(message, body)) return not_a("weir.v1.CheckResponse");
  return take(message);
}

Result<std::vector<Result<Decision>>> parse_decisions_proto(std::string_view body) {
  Scratch scratch;
  auto& message = scratch.make<v1::BatchResponse>();
  if (!parse_protobuf(message, body)) return not_a("weir.v1.BatchResponse");
  std::vector<Result<Decision>> results;
  for (const auto& item : message.results()) {
    if (item.has_decision()) {
      auto decision = take(item.decision());
      if (!decision) return tl::unexpected(decision.error());
      results.push_back(std::move(decision));
    } else if (item.has_error()) {
      results.emplace_back(tl::unexpected(take(item.error())));
    } else {
      return failure(ErrorCode::corrupt, "results", "has an item without a result");
    }
  }
  return results;
}

Result<weir::Error> parse_error_proto(std::string_view body) {
  Scratch scratch;
  auto& message = scratch.make<v1::ErrorResponse>();
  if (!parse_protobuf(message, body)) return not_a("weir.v1.ErrorResponse");
  return take(message.error());
}

}  // namespace weir::codec
