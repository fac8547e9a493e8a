#include "regions/relay.h"

#include <algorithm>
#include <utility>

namespace weir::regions {

Relay::Relay(RelayConfig config, std::uint64_t seed, Nanos now_ns)
    : config_(std::move(config)), random_(seed), used_ns_(now_ns) {}

RelayBucket* Relay::find_or_make(const std::string& bucket, Nanos now_ns) {
  auto found = buckets_.find(bucket);
  if (found == buckets_.end()) {
    if (!decode_bucket_key(bucket)) return nullptr;  // no edge of ours writes this
    auto made = std::make_unique<RelayBucket>(bucket, config_, random_, now_ns);
    found = buckets_.emplace(bucket, std::move(made)).first;
  }
  return found->second.get();
}

void Relay::step(const Event& event, Nanos now_ns, Effects& effects) {
  const RelayBucket::Effects out{effects.answers, effects.requests};
  if (const auto* asked = std::get_if<Requested>(&event)) {
    used_ns_ = now_ns;
    RelayBucket* bucket = find_or_make(asked->request.bucket, now_ns);
    if (bucket != nullptr) bucket->request(asked->request, now_ns, out);
  } else if (const auto* answered = std::get_if<Answered>(&event)) {
    const auto found = buckets_.find(answered->answer.bucket);
    if (found != buckets_.end()) {
      found->second->answer(answered->answer, answered->ask_again, now_ns, out);
      config_.round_trip_ns = found->second->round_trip_ns();
    }
  }
  for (auto& [name, bucket] : buckets_) {
    if (std::holds_alternative<PolicyChanged>(event)) bucket->forget_denial(now_ns, out);
    if (std::holds_alternative<Leave>(event)) bucket->leave(now_ns, out);
    if (bucket->next_deadline() <= now_ns) bucket->tick(now_ns, out);
  }
  std::erase_if(buckets_, [&](const auto& item) { return item.second->done(now_ns); });
  effects.passive = buckets_.empty() && now_ns - used_ns_ >= config_.quiet_ns;
}

Nanos Relay::next_deadline() const {
  Nanos next_ns = kForever;
  if (buckets_.empty()) next_ns = add_saturating(used_ns_, config_.quiet_ns);
  for (const auto& [name, bucket] : buckets_) {
    next_ns = std::min(next_ns, bucket->next_deadline());
  }
  return next_ns;
}

std::vector<Relay::View> Relay::view() const {
  std::vector<View> views;
  for (const auto& [name, bucket] : buckets_) {
    const lease::Ledger& ledger = bucket->ledger();
    views.push_back({name, ledger.grantor(), ledger.level(), ledger.outstanding(),
                     bucket->deadline_ns(), ledger.lessees().size()});
  }
  return views;
}

}  // namespace weir::regions
