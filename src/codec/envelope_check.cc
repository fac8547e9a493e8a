#include "src/codec/envelope_check.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "src/base/limits.h"
#include "src/codec/common_message.h"
#include "src/codec/envelope.h"
#include "src/codec/register_message.h"
#include "weir/v1/cluster.pb.h"

namespace weir::codec {
namespace {

using codec::check;

Status check_not_negative(std::initializer_list<std::pair<const char*, std::int64_t>> amounts) {
  for (const auto& [field, amount] : amounts) {
    if (amount < 0) return corrupt(field, "must not be negative");
  }
  return {};
}

Status check_hop(std::uint32_t hop) {
  if (hop > static_cast<std::uint32_t>(LeaseHop::from_relay)) return corrupt("hop", "is unknown");
  return {};
}

Status check(const v1::LeaseRequest& request) {
  if (auto status = check(request.reg()); !status) return status;
  if (auto status = check_bucket(request.bucket()); !status) return status;
  if (auto status = check_name("lessee_node", request.lessee_node()); !status) return status;
  if (request.sequence() == 0) return corrupt("sequence", "must be at least 1");
  if (auto status = check_hop(request.hop()); !status) return status;
  return check_not_negative({{"held", request.held()},
                             {"spent_total", request.spent_total()},
                             {"given_back", request.given_back()},
                             {"want", request.want()},
                             {"need", request.need()},
                             {"rate_per_s", request.rate_per_s()}});
}

Status check(const v1::LeaseAnswer& answer) {
  if (auto status = check_bucket(answer.bucket()); !status) return status;
  if (auto status = check_name("lessee_node", answer.lessee_node()); !status) return status;
  if (answer.status() < static_cast<std::uint32_t>(LeaseStatus::granted) ||
      answer.status() > static_cast<std::uint32_t>(LeaseStatus::recall)) {
    return corrupt("status", "is unknown");
  }
  if (auto status = check_hop(answer.hop()); !status) return status;
  if (answer.retry_ns() < -1) return corrupt("retry_ns", "must be -1 or more");
  if (auto status = check_name("owner_hint", answer.owner_hint(), true); !status) return status;
  if (auto status = check_name("epoch.node", answer.epoch().node(), true); !status) return status;
  return check_not_negative({{"granted", answer.granted()},
                             {"ttl_ns", answer.ttl_ns()},
                             {"level", answer.level()},
                             {"next_token_ns", answer.next_token_ns()},
                             {"outstanding", answer.outstanding()},
                             {"capacity", answer.capacity()},
                             {"window_left_ns", answer.window_left_ns()},
                             {"upstream_round_trip_ns", answer.upstream_round_trip_ns()},
                             {"age_ns", answer.age_ns()}});
}

Status check(const v1::OwnerQuery& query) {
  if (auto status = check(query.reg()); !status) return status;
  if (query.customer().empty()) return corrupt("customer", "must not be empty");
  if (query.customer().size() > kMaxKeyBytes) {
    return corrupt("customer", "is longer than 1024 bytes");
  }
  if (query.kind() < static_cast<std::uint32_t>(OwnerQuery::Kind::describe) ||
      query.kind() > static_cast<std::uint32_t>(OwnerQuery::Kind::propose)) {
    return corrupt("kind", "is unknown");
  }
  if (query.document().size() > kMaxDocumentBytes) return corrupt("document", "is too long");
  return {};
}

Status check(const v1::BucketDescription& bucket) {
  if (auto status = check_bucket(bucket.bucket()); !status) return status;
  if (static_cast<std::size_t>(bucket.lessees_size()) > kMaxLesseesPerRecord) {
    return corrupt("buckets.lessees", "are more than a ledger may have");
  }
  for (const auto& lessee : bucket.lessees()) {
    if (auto status = check_name("buckets.lessees.node", lessee.node()); !status) return status;
    if (auto status =
            check_not_negative({{"buckets.lessees.outstanding", lessee.outstanding()},
                                {"buckets.lessees.expires_in_ms", lessee.expires_in_ms()}});
        !status) {
      return status;
    }
  }
  return check_not_negative({{"buckets.capacity", bucket.capacity()},
                             {"buckets.level", bucket.level()},
                             {"buckets.outstanding", bucket.outstanding()},
                             {"buckets.reset_ms", bucket.reset_ms()},
                             {"buckets.next_token_ms", bucket.next_token_ms()}});
}

Status check(const v1::OwnerReply& reply) {
  if (reply.error().size() > kMaxReplyErrorBytes) return corrupt("error", "is too long");
  if (auto status = check_name("node", reply.node(), true); !status) return status;
  if (auto status = check_name("owner_hint", reply.owner_hint(), true); !status) return status;
  if (auto status = check_name("epoch.node", reply.epoch().node(), true); !status) return status;
  if (static_cast<std::size_t>(reply.buckets_size()) > kMaxBucketsPerReply) {
    return corrupt("buckets", "are too many");
  }
  for (const auto& bucket : reply.buckets()) {
    if (auto status = check(bucket); !status) return status;
  }
  return {};
}

Status check(const v1::Hello& hello) {
  if (auto status = check_name("hello.node", hello.node()); !status) return status;
  return check_name("hello.region", hello.region());
}

Status check(const v1::Heartbeat& heartbeat) {
  return check_not_negative({{"heartbeat.sent_ns", heartbeat.sent_ns()},
                             {"heartbeat.echo_ns", heartbeat.echo_ns()},
                             {"heartbeat.echo_delay_ns", heartbeat.echo_delay_ns()}});
}

Status check(const v1::PolicyMessage& policy) {
  if (policy.kind() != static_cast<std::uint32_t>(PolicyMessage::Kind::ask) &&
      policy.kind() != static_cast<std::uint32_t>(PolicyMessage::Kind::piece)) {
    return corrupt("kind", "is unknown");
  }
  if (policy.text().size() > kMaxPolicyPieceBytes) return corrupt("text", "is too long");
  if (policy.total() > kMaxPolicyBytes) return corrupt("total", "is more than a policy may have");
  if (policy.offset() > kMaxPolicyBytes) return corrupt("offset", "is more than a policy may have");
  return {};
}

Status check(const v1::ActivityReport& report) {
  if (static_cast<std::size_t>(report.customers_size()) > kMostTold) {
    return corrupt("customers", "are too many");
  }
  for (const auto& each : report.customers()) {
    if (each.customer().empty()) return corrupt("customers.customer", "must not be empty");
    if (each.customer().size() > kMaxKeyBytes) {
      return corrupt("customers.customer", "is longer than 1024 bytes");
    }
    if (auto status = check_not_negative({{"customers.checks_per_s", each.checks_per_s()},
                                          {"customers.denied_per_s", each.denied_per_s()}});
        !status) {
      return status;
    }
  }
  return {};
}

template <typename List>
Status check_list(const char* name, const List& list) {
  for (int i = 0; i < list.size(); ++i) {
    if (auto status = check(list.Get(i)); !status) {
      Error error = std::move(status.error());
      error.field = std::string(name) + "[" + std::to_string(i) + "]." + error.field;
      return tl::unexpected(std::move(error));
    }
  }
  return {};
}

}  // namespace

Status check_envelope(const v1::Envelope& message) {
  if (auto status = check_name("from", message.from()); !status) return status;
  if (auto status = check_name("to", message.to(), message.has_hello()); !status) return status;
  if (message.has_hello()) {
    if (auto status = check(message.hello()); !status) return status;
  }
  if (message.has_heartbeat()) {
    if (auto status = check(message.heartbeat()); !status) return status;
  }
  if (auto s = check_list("lease_requests", message.lease_requests()); !s) return s;
  if (auto s = check_list("lease_answers", message.lease_answers()); !s) return s;
  if (auto s = check_list("owner_queries", message.owner_queries()); !s) return s;
  if (auto s = check_list("owner_replies", message.owner_replies()); !s) return s;
  if (auto s = check_list("register_messages", message.register_messages()); !s) return s;
  if (auto s = check_list("policy_messages", message.policy_messages()); !s) return s;
  return check_list("activity_reports", message.activity_reports());
}

}  // namespace weir::codec
