#include "regions/relay.h"

#include <utility>

namespace weir::regions {

Relay::Relay(RelayConfig config, std::uint64_t seed)
    : config_(std::move(config)), random_(seed), round_trips_(kSlotCount, 0) {}

void Relay::step(const Event& event, Nanos now_ns, Effects& effects) {
  std::visit([&](const auto& what) { on(what, now_ns, effects); }, event);
  while (next_deadline() <= now_ns) {
    const auto at = due_.begin()->second;
    at->second.bucket->tick(now_ns, {effects.answers, effects.requests});
    settle(at, now_ns);
  }
}

void Relay::on(const Requested& event, Nanos now_ns, Effects& effects) {
  auto at = buckets_.find({event.request.bucket, event.request.reg});
  if (at == buckets_.end()) {
    const auto key = decode_bucket_key(event.request.bucket);
    if (!key || key->scope == Scope::node) return;  // no edge of ours writes this
    if (leaving_ || buckets_.size() >= config_.most_buckets) {
      effects.answers.push_back(answer_to(event.request, LeaseStatus::not_owner));
      return;
    }
    at = make(event, now_ns);
  }
  at->second.bucket->request(event.request, now_ns, {effects.answers, effects.requests});
  settle(at, now_ns);
}

Relay::Places::iterator Relay::make(const Requested& event, Nanos now_ns) {
  const LeaseRequest& request = event.request;
  const Nanos measured_ns = round_trips_[request.reg.slot % kSlotCount];
  const Nanos round_trip_ns = measured_ns != 0 ? measured_ns : event.round_trip_ns;
  Place place;
  place.bucket = std::make_unique<RelayBucket>(request.bucket, request.reg, round_trip_ns, config_,
                                               random_, now_ns);
  place.number = ++numbers_;
  return buckets_.emplace(std::pair(request.bucket, request.reg), std::move(place)).first;
}

std::optional<RegisterId> Relay::asked_by(const LeaseAnswer& answer) const {
  auto at = buckets_.lower_bound({answer.bucket, RegisterId{}});
  while (at != buckets_.end() && at->first.first == answer.bucket) {
    if (at->second.bucket->incarnation() == answer.lessee.incarnation) return at->first.second;
    ++at;
  }
  return std::nullopt;
}

void Relay::on(const Answered& event, Nanos now_ns, Effects& effects) {
  const auto reg = asked_by(event.answer);
  if (!reg) return;
  const auto at = buckets_.find({event.answer.bucket, *reg});
  RelayBucket& bucket = *at->second.bucket;
  bucket.answer(event.answer, event.ask_again, now_ns, {effects.answers, effects.requests});
  if (bucket.round_trip_ns() != 0) {
    round_trips_[reg->slot % kSlotCount] = bucket.round_trip_ns();
  }
  settle(at, now_ns);
}

void Relay::on(const OwnersGone& event, Nanos now_ns, Effects& effects) {
  for (auto at = buckets_.begin(); at != buckets_.end();) {
    if (!event.registers.contains(at->first.second)) {
      ++at;
      continue;
    }
    at->second.bucket->owner_gone(now_ns, {effects.answers, effects.requests});
    at = settle(at, now_ns);
  }
}

void Relay::on(const PolicyChanged&, Nanos now_ns, Effects& effects) {
  for (auto at = buckets_.begin(); at != buckets_.end();) {
    at->second.bucket->forget_denial(now_ns, {effects.answers, effects.requests});
    at = settle(at, now_ns);
  }
}

void Relay::on(const Leave&, Nanos now_ns, Effects& effects) {
  leaving_ = true;
  for (auto at = buckets_.begin(); at != buckets_.end();) {
    at->second.bucket->leave(now_ns, {effects.answers, effects.requests});
    at = settle(at, now_ns);
  }
}

Relay::Places::iterator Relay::settle(Places::iterator at, Nanos now_ns) {
  Place& place = at->second;
  due_.erase({place.due_ns, place.number});
  if (!place.returned) --unreturned_;
  if (place.bucket->done(now_ns)) return buckets_.erase(at);
  place.returned = place.bucket->has_returned();
  if (!place.returned) ++unreturned_;
  place.due_ns = place.bucket->next_deadline();
  due_.emplace(std::pair(place.due_ns, place.number), at);
  return std::next(at);
}

std::vector<Relay::View> Relay::view() const {
  std::vector<View> views;
  for (const auto& [name, place] : buckets_) {
    const lease::Ledger& ledger = place.bucket->ledger();
    views.push_back({name.first, ledger.grantor(), ledger.level(), ledger.outstanding(),
                     place.bucket->deadline_ns(), ledger.lessees().size()});
  }
  return views;
}

}  // namespace weir::regions
