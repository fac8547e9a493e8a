#include "src/policy/spread.h"

#include <algorithm>

namespace weir::policy {

Spread::Spread(std::optional<PolicyText> stored) : own_(std::move(stored).value_or(PolicyText{})) {}

void Spread::adopt(PolicyText policy, Effects& out) {
  own_ = std::move(policy);
  out.adopt = own_;
}

Result<Reload> Spread::read(PolicyText file, Effects& out) {
  const auto decided = decide_reload(own_.stamp, file.stamp);
  if (decided && *decided == Reload::replace) adopt(std::move(file), out);
  return decided;
}

void Spread::heard(const std::string& peer, const PolicyStamp& stamp, Nanos now_ns, Effects& out) {
  if (stamp.version == 0) {
    peers_.erase(peer);
    if (asking_ == peer) asking_.clear();
    return ask(now_ns, out);
  }
  const auto found = peers_.find(peer);
  if (found == peers_.end()) {
    if (peers_.size() >= kMaxPolicyPeers) return;
    peers_[peer].stamp = stamp;
  } else {
    PolicyStamp& known = found->second.stamp;
    const bool version_alone = stamp.content_hash == 0 && known.version == stamp.version;
    if (version_alone || known == stamp) return ask(now_ns, out);
    found->second = {stamp, false};
  }
  ask(now_ns, out);
}

void Spread::received(const std::string& peer, PolicyText policy, Nanos now_ns, Effects& out) {
  if (asking_ == peer) asking_.clear();
  const PolicyStamp stamp = policy.stamp;
  if (stamp.version > own_.stamp.version) adopt(std::move(policy), out);
  heard(peer, stamp, now_ns, out);
}

void Spread::progressed(const std::string& peer, Nanos now_ns) {
  if (asking_ == peer) asked_ns_ = now_ns;
}

void Spread::unreadable(const std::string& peer, Nanos now_ns, Effects& out) {
  if (asking_ == peer) asking_.clear();
  const auto found = peers_.find(peer);
  if (found != peers_.end()) found->second.unreadable = true;
  ask(now_ns, out);
}

/// One peer at a time: of those with the highest version the next one in order.
void Spread::ask(Nanos now_ns, Effects& out) {
  if (!asking_.empty() && now_ns < add_saturating(asked_ns_, kAskPolicyAgainNs)) return;
  asking_.clear();
  const std::uint64_t version = wanted();
  if (version == 0) return;
  const auto has_it = [&](const auto& item) {
    return item.second.stamp.version == version && !item.second.unreadable;
  };
  auto next = std::find_if(peers_.upper_bound(last_asked_), peers_.end(), has_it);
  if (next == peers_.end()) next = std::find_if(peers_.begin(), peers_.end(), has_it);
  asking_ = last_asked_ = next->first;
  asked_ns_ = now_ns;
  out.ask.push_back(asking_);
}

void Spread::tick(Nanos now_ns, Effects& out) { ask(now_ns, out); }

Nanos Spread::next_deadline() const {
  return asking_.empty() ? kForever : add_saturating(asked_ns_, kAskPolicyAgainNs);
}

std::uint64_t Spread::wanted() const {
  std::uint64_t highest = 0;
  for (const auto& [name, peer] : peers_) {
    if (!peer.unreadable) highest = std::max(highest, peer.stamp.version);
  }
  return highest > own_.stamp.version ? highest : 0;
}

std::map<std::string, PolicyStamp> Spread::refused() const {
  std::map<std::string, PolicyStamp> result;
  for (const auto& [name, peer] : peers_) {
    const PolicyStamp& stamp = peer.stamp;
    const bool other = stamp.content_hash != 0 && stamp.content_hash != own_.stamp.content_hash;
    if (stamp.version == own_.stamp.version && other) result.emplace(name, stamp);
  }
  return result;
}

}  // namespace weir::policy
