#include "src/codec/envelope.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <utility>

#include "src/base/limits.h"
#include "src/codec/common_message.h"
#include "src/codec/envelope_check.h"
#include "src/codec/parse_protobuf.h"
#include "src/codec/register_message.h"
#include "src/codec/seal.h"
#include "src/model/check.h"
#include "weir/v1/cluster.pb.h"

namespace weir::codec {
namespace {

using codec::fill;
using codec::take;

constexpr std::uint32_t kEnvelopeFormat = 1;
/// Room in a frame for its header, hello, heartbeat and seal.
constexpr std::size_t kFrameHeaderBytes = 1024;
/// Bytes that an item adds besides its own: its tag and length.
constexpr std::size_t kItemOverheadBytes = 6;

// Values to messages.

void fill(const LeaseRequest& from, v1::LeaseRequest& to) {
  fill(from.reg, *to.mutable_reg());
  to.set_bucket(from.bucket);
  to.set_lessee_node(from.lessee.node);
  to.set_lessee_incarnation(from.lessee.incarnation);
  to.set_sequence(from.sequence);
  to.set_held(from.held);
  to.set_spent_total(from.spent_total);
  to.set_given_back(from.given_back);
  to.set_want(from.want);
  to.set_need(from.need);
  to.set_rate_per_s(from.rate_per_s);
  to.set_strict(from.strict);
  to.set_policy_version(from.policy_version);
  to.set_hop(static_cast<std::uint32_t>(from.hop));
  to.set_grantor(from.grantor);
  if (from.weight > 1) to.set_weight(from.weight);
}

void fill(const LeaseAnswer& from, v1::LeaseAnswer& to) {
  to.set_bucket(from.bucket);
  to.set_lessee_node(from.lessee.node);
  to.set_lessee_incarnation(from.lessee.incarnation);
  to.set_sequence(from.sequence);
  to.set_status(static_cast<std::uint32_t>(from.status));
  to.set_granted(from.granted);
  to.set_ttl_ns(from.ttl_ns);
  to.set_retry_ns(from.retry_ns);
  to.set_level(from.level);
  to.set_next_token_ns(from.next_token_ns);
  to.set_outstanding(from.outstanding);
  to.set_capacity(from.capacity);
  to.set_policy_version(from.policy_version);
  fill(from.epoch, *to.mutable_epoch());
  to.set_owner_hint(from.owner_hint);
  to.set_window_left_ns(from.window_left_ns);
  to.set_hop(static_cast<std::uint32_t>(from.hop));
  to.set_grantor(from.grantor);
  to.set_upstream_round_trip_ns(from.upstream_round_trip_ns);
  to.set_age_ns(from.age_ns);
}

void fill(const OwnerQuery& from, v1::OwnerQuery& to) {
  to.set_id(from.id);
  fill(from.reg, *to.mutable_reg());
  to.set_customer(from.customer);
  to.set_kind(static_cast<std::uint32_t>(from.kind));
  to.set_version(from.version);
  to.set_document(from.document);
}

void fill(const BucketDescription& from, v1::BucketDescription& to) {
  to.set_bucket(from.bucket);
  to.set_capacity(from.capacity);
  to.set_level(from.level);
  to.set_outstanding(from.outstanding);
  to.set_reset_ms(from.reset_ms);
  to.set_next_token_ms(from.next_token_ms);
  for (const LesseeDescription& lessee : from.lessees) {
    auto& out = *to.add_lessees();
    out.set_node(lessee.node);
    out.set_outstanding(lessee.outstanding);
    out.set_expires_in_ms(lessee.expires_in_ms);
    out.set_relay(lessee.relay);
  }
}

void fill(const OwnerReply& from, v1::OwnerReply& to) {
  to.set_id(from.id);
  to.set_found(from.found);
  std::string_view error = from.error;
  error = error.substr(0, kMaxReplyErrorBytes);
  // A character that the cut went through is left out whole.
  while (!error.empty() && !is_valid_utf8(error)) error.remove_suffix(1);
  to.set_error(std::string(error));
  to.set_node(from.node);
  fill(from.epoch, *to.mutable_epoch());
  for (std::size_t i = 0; i < std::min(from.buckets.size(), kMaxBucketsPerReply); ++i) {
    fill(from.buckets[i], *to.add_buckets());
  }
  to.set_not_owner(from.not_owner);
  to.set_owner_hint(from.owner_hint);
  to.set_forbidden(from.forbidden);
}

void fill(const Hello& from, v1::Hello& to) {
  to.set_node(from.node);
  to.set_incarnation(from.incarnation);
  to.set_region(from.region);
  to.set_edge(from.edge);
  to.set_owner(from.owner);
  to.set_topology_version(from.topology_version);
  to.set_topology_hash(from.topology_hash);
}

void fill(const Heartbeat& from, v1::Heartbeat& to) {
  to.set_sequence(from.sequence);
  to.set_sent_ns(from.sent_ns);
  to.set_echo_ns(from.echo_ns);
  to.set_echo_delay_ns(from.echo_delay_ns);
  to.set_live_edges(from.live_edges);
  to.set_policy_version(from.policy_version);
  to.set_policy_hash(from.policy_hash);
}

void fill(const PolicyMessage& from, v1::PolicyMessage& to) {
  to.set_kind(static_cast<std::uint32_t>(from.kind));
  to.set_version(from.version);
  to.set_hash(from.hash);
  to.set_offset(from.offset);
  to.set_total(from.total);
  to.set_text(from.text);
}

void fill(const ActivityReport& from, v1::ActivityReport& to) {
  for (std::size_t i = 0; i < std::min(from.customers.size(), kMostTold); ++i) {
    auto& out = *to.add_customers();
    out.set_customer(from.customers[i].customer);
    out.set_checks_per_s(from.customers[i].checks_per_s);
    out.set_denied_per_s(from.customers[i].denied_per_s);
  }
}

/// Collects items into messages and starts a new one when the next item does not fit.
class FrameWriter {
 public:
  explicit FrameWriter(const Envelope& envelope, bool split) : envelope_(envelope), split_(split) {
    begin();
    if (envelope.hello) fill(*envelope.hello, *message_->mutable_hello());
    if (envelope.heartbeat) fill(*envelope.heartbeat, *message_->mutable_heartbeat());
  }

  template <typename Item, typename Repeated>
  void add(const std::vector<Item>& items, Repeated* (v1::Envelope::*list)()) {
    for (const Item& item : items) {
      auto* filled = (message_->*list)()->Add();
      fill(item, *filled);
      const std::size_t size = filled->ByteSizeLong() + kItemOverheadBytes;
      const bool full = bytes_ + size > kMaxFrameBytes || items_ == kMaxItemsPerFrame;
      if (split_ && full && items_ > 0) {
        (message_->*list)()->RemoveLast();
        end();
        begin();
        fill(item, *(message_->*list)()->Add());
      }
      bytes_ += size;
      ++items_;
    }
  }

  std::vector<std::string> finish() {
    end();
    return std::move(frames_);
  }

 private:
  void begin() {
    arena_.Reset();
    message_ = google::protobuf::Arena::CreateMessage<v1::Envelope>(&arena_);
    message_->set_format(kEnvelopeFormat);
    message_->set_from(envelope_.from);
    message_->set_to(envelope_.to);
    message_->set_from_incarnation(envelope_.from_incarnation);
    message_->set_topology_version(envelope_.topology_version);
    bytes_ = kFrameHeaderBytes;
    items_ = 0;
  }

  void end() {
    std::string& frame = frames_.emplace_back(message_->SerializeAsString());
    append_seal(frame);
  }

  const Envelope& envelope_;
  const bool split_;
  google::protobuf::Arena arena_;
  v1::Envelope* message_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t items_ = 0;
  std::vector<std::string> frames_;
};

std::vector<std::string> write_frames(const Envelope& envelope, bool split) {
  FrameWriter writer(envelope, split);
  writer.add(envelope.lease_requests, &v1::Envelope::mutable_lease_requests);
  writer.add(envelope.lease_answers, &v1::Envelope::mutable_lease_answers);
  writer.add(envelope.owner_queries, &v1::Envelope::mutable_owner_queries);
  writer.add(envelope.owner_replies, &v1::Envelope::mutable_owner_replies);
  writer.add(envelope.register_messages, &v1::Envelope::mutable_register_messages);
  writer.add(envelope.policy_messages, &v1::Envelope::mutable_policy_messages);
  writer.add(envelope.activity_reports, &v1::Envelope::mutable_activity_reports);
  return writer.finish();
}

// Messages to values; the caller has checked that the numbers fit (envelope_check.h).

LeaseRequest take(v1::LeaseRequest& from) {
  return {take(*from.mutable_reg()),
          std::move(*from.mutable_bucket()),
          {std::move(*from.mutable_lessee_node()), from.lessee_incarnation()},
          from.sequence(),
          from.held(),
          from.spent_total(),
          from.given_back(),
          from.want(),
          from.need(),
          from.rate_per_s(),
          from.strict(),
          from.policy_version(),
          static_cast<LeaseHop>(from.hop()),
          from.grantor(),
          std::max<std::uint32_t>(1, from.weight())};
}

LeaseAnswer take(v1::LeaseAnswer& from) {
  return {std::move(*from.mutable_bucket()),
          {std::move(*from.mutable_lessee_node()), from.lessee_incarnation()},
          from.sequence(),
          static_cast<LeaseStatus>(from.status()),
          from.granted(),
          from.ttl_ns(),
          from.retry_ns(),
          from.level(),
          from.next_token_ns(),
          from.outstanding(),
          from.capacity(),
          from.policy_version(),
          take(*from.mutable_epoch()),
          std::move(*from.mutable_owner_hint()),
          from.window_left_ns(),
          static_cast<LeaseHop>(from.hop()),
          from.grantor(),
          from.upstream_round_trip_ns(),
          from.age_ns()};
}

OwnerQuery take(v1::OwnerQuery& from) {
  return {from.id(),
          take(*from.mutable_reg()),
          std::move(*from.mutable_customer()),
          static_cast<OwnerQuery::Kind>(from.kind()),
          from.version(),
          std::move(*from.mutable_document())};
}

BucketDescription take(v1::BucketDescription& from) {
  BucketDescription to{std::move(*from.mutable_bucket()),
                       from.capacity(),
                       from.level(),
                       from.outstanding(),
                       from.reset_ms(),
                       from.next_token_ms(),
                       {}};
  to.lessees.reserve(static_cast<std::size_t>(from.lessees_size()));
  for (auto& lessee : *from.mutable_lessees()) {
    to.lessees.push_back({std::move(*lessee.mutable_node()), lessee.outstanding(),
                          lessee.expires_in_ms(), lessee.relay()});
  }
  return to;
}

OwnerReply take(v1::OwnerReply& from) {
  OwnerReply to;
  to.id = from.id();
  to.found = from.found();
  to.error = std::move(*from.mutable_error());
  to.node = std::move(*from.mutable_node());
  to.epoch = take(*from.mutable_epoch());
  to.buckets.reserve(static_cast<std::size_t>(from.buckets_size()));
  for (auto& bucket : *from.mutable_buckets()) to.buckets.push_back(take(bucket));
  to.not_owner = from.not_owner();
  to.owner_hint = std::move(*from.mutable_owner_hint());
  to.forbidden = from.forbidden();
  return to;
}

Hello take(v1::Hello& from) {
  return {std::move(*from.mutable_node()),
          from.incarnation(),
          std::move(*from.mutable_region()),
          from.edge(),
          from.owner(),
          from.topology_version(),
          from.topology_hash()};
}

Heartbeat take(const v1::Heartbeat& from) {
  return {from.sequence(),   from.sent_ns(),        from.echo_ns(),    from.echo_delay_ns(),
          from.live_edges(), from.policy_version(), from.policy_hash()};
}

PolicyMessage take(v1::PolicyMessage& from) {
  return {static_cast<PolicyMessage::Kind>(from.kind()),
          from.version(),
          from.hash(),
          from.offset(),
          from.total(),
          std::move(*from.mutable_text())};
}

ActivityReport take(v1::ActivityReport& from) {
  ActivityReport to;
  to.customers.reserve(static_cast<std::size_t>(from.customers_size()));
  for (auto& each : *from.mutable_customers()) {
    to.customers.push_back(
        {std::move(*each.mutable_customer()), each.checks_per_s(), each.denied_per_s()});
  }
  return to;
}

template <typename Item, typename List>
void take_list(List& from, std::vector<Item>& to) {
  to.reserve(static_cast<std::size_t>(from.size()));
  for (auto& item : from) to.push_back(take(item));
}

}  // namespace

std::string encode_envelope(const Envelope& envelope) {
  return std::move(write_frames(envelope, false).front());
}

std::vector<std::string> encode_frames(const Envelope& envelope) {
  return write_frames(envelope, true);
}

Result<Envelope> decode_envelope(std::string_view bytes) {
  if (bytes.size() > kMaxFrameBytes) {
    return failure(ErrorCode::too_large, "", "cluster frame: larger than 4 MiB");
  }
  const auto content = unseal(bytes);
  if (!content) {
    return failure(ErrorCode::corrupt, "seal", "cluster frame: the bytes were cut or altered");
  }
  std::size_t items = 0;
  for (const int list :
       {v1::Envelope::kLeaseRequestsFieldNumber, v1::Envelope::kLeaseAnswersFieldNumber,
        v1::Envelope::kOwnerQueriesFieldNumber, v1::Envelope::kOwnerRepliesFieldNumber,
        v1::Envelope::kRegisterMessagesFieldNumber, v1::Envelope::kPolicyMessagesFieldNumber,
        v1::Envelope::kActivityReportsFieldNumber}) {
    items += count_fields(*content, list);
  }
  if (items > kMaxItemsPerFrame) {
    return failure(ErrorCode::too_large, "", "cluster frame: more than 16384 items");
  }
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<v1::Envelope>(&arena);
  if (!parse_protobuf(message, *content)) {
    return failure(ErrorCode::corrupt, "", "cluster frame: not a weir.v1.Envelope");
  }
  if (message.format() != kEnvelopeFormat) {
    return failure(ErrorCode::corrupt, "format", "cluster frame: unknown; this build knows 1");
  }
  if (auto status = check_envelope(message); !status) return tl::unexpected(status.error());

  Envelope envelope;
  envelope.from = std::move(*message.mutable_from());
  envelope.to = std::move(*message.mutable_to());
  envelope.from_incarnation = message.from_incarnation();
  envelope.topology_version = message.topology_version();
  if (message.has_hello()) envelope.hello = take(*message.mutable_hello());
  if (message.has_heartbeat()) envelope.heartbeat = take(message.heartbeat());
  take_list(*message.mutable_lease_requests(), envelope.lease_requests);
  take_list(*message.mutable_lease_answers(), envelope.lease_answers);
  take_list(*message.mutable_owner_queries(), envelope.owner_queries);
  take_list(*message.mutable_owner_replies(), envelope.owner_replies);
  take_list(*message.mutable_register_messages(), envelope.register_messages);
  take_list(*message.mutable_policy_messages(), envelope.policy_messages);
  take_list(*message.mutable_activity_reports(), envelope.activity_reports);
  return envelope;
}

}  // namespace weir::codec
