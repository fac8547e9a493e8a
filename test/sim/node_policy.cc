// How a simulated node learns which policy is in force (PROTOCOL J4): the operator changes a file
// somewhere, and nodes tell each other.

#include "test/sim/node.h"

namespace weir::sim {
namespace {

constexpr std::string_view kPolicyKey = "store/policy";
constexpr Nanos kTellPolicyEveryNs = 300 * kMillisecond;

}  // namespace

policy::PolicyText Node::policy_text(std::uint64_t version) {
  return {{version, version}, std::to_string(version)};
}

/// What is stored beats an older file.
void Node::boot_policy() {
  std::optional<policy::PolicyText> stored;
  if (const auto text = store_->read_meta(kPolicyKey); text && text->has_value()) {
    stored = policy_text(std::stoull(**text));
  }
  process_->spread = std::make_unique<policy::Spread>(std::move(stored));
  policy::Spread::Effects did;
  static_cast<void>(process_->spread->read(policy_text(file_version_), did));
  if (shared_.policies_change) tell_policy();
}

std::shared_ptr<const policy::Policy> Node::policy() const {
  return shared_.policies.at(process_->spread->stamp().version);
}

std::uint64_t Node::policy_version() const {
  return process_ ? process_->spread->stamp().version : 0;
}

void Node::read_policy_file(std::uint64_t version) {
  file_version_ = version;
  in_process([this, version] {
    policy::Spread::Effects did;
    static_cast<void>(process_->spread->read(policy_text(version), did));
    carry_policy(std::move(did));
    tell_policy_now();
  });
}

void Node::to_peer(const std::string& to, std::function<void(Node&)> deliver) {
  shared_.network.send(settings_.name, to, [this, to, deliver = std::move(deliver)] {
    Node& peer = *nodes_.at(to);
    peer.in_process([&peer, deliver] { deliver(peer); });
  });
}

void Node::carry_policy(policy::Spread::Effects did) {
  const std::string& self = settings_.name;
  for (const std::string& peer : did.ask) {
    to_peer(peer, [self](Node& at) {
      const policy::PolicyText& own = at.process_->spread->own();
      if (own.stamp.version == 0) return;
      at.to_peer(self, [from = at.settings_.name, own](Node& back) {
        policy::Spread::Effects more;
        back.process_->spread->received(from, own, back.clock_.boot_ns(), more);
        back.carry_policy(std::move(more));
      });
    });
  }
  if (!did.adopt) return;
  shared_.world.log(settings_.name + " has policy " + did.adopt->text);
  static_cast<void>(store_->write({{}, {{std::string(kPolicyKey), did.adopt->text}}}));
  use_policy();
  observer_.adopted_policy();
}

/// Edges talk to owners, and owners to all: whoever has another version says which.
void Node::tell_policy_now() {
  for (const auto& [name, node] : nodes_) {
    if (name == settings_.name || !node->settings().owner) continue;
    to_peer(name, [self = settings_.name, stamp = process_->spread->stamp()](Node& at) {
      at.hear_policy(self, stamp);
      const policy::PolicyStamp own = at.process_->spread->stamp();
      if (own == stamp) return;
      at.to_peer(self,
                 [name = at.settings_.name, own](Node& back) { back.hear_policy(name, own); });
    });
  }
}

void Node::hear_policy(const std::string& from, const policy::PolicyStamp& stamp) {
  policy::Spread::Effects did;
  process_->spread->heard(from, stamp, clock_.boot_ns(), did);
  carry_policy(std::move(did));
}

void Node::tell_policy() {
  shared_.world.after(kTellPolicyEveryNs, [this, alive = std::weak_ptr<Process>(process_)] {
    const auto same = alive.lock();
    if (!same || same != process_) return;
    in_process([this] {
      policy::Spread::Effects did;
      process_->spread->tick(clock_.boot_ns(), did);
      carry_policy(std::move(did));
      tell_policy_now();
    });
    tell_policy();
  });
}

void Node::use_policy() {
  const auto now = policy();
  if (process_->limiter) process_->limiter->set_policy(now);
  const auto book = make_book();
  std::vector<ownership::OwnerKey> keys;
  for (const auto& [key, owner] : process_->owners) keys.push_back(key);
  ownership::Host::Effects more;
  for (const auto& key : keys) step_owner(key, ownership::Owner::PolicyChanged{book}, more);
  step_relay(regions::Relay::PolicyChanged{});
  carry(std::move(more));
}

}  // namespace weir::sim
