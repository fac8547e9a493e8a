#include "test/sim/node.h"

#include <algorithm>
#include <utility>

#include "test/sim/say.h"

namespace weir::sim {
namespace {

/// The grantor's view of a policy.
class Book final : public ownership::LimitBook {
 public:
  explicit Book(std::shared_ptr<const policy::Policy> policy) : policy_(std::move(policy)) {
    for (const LimitDefinition& limit : policy_->definition().limits) {
      auto& calendar = calendars_.emplace_back();
      if (limit.algorithm != Algorithm::fixed_window) continue;
      if (auto made = limit::Calendar::make(limit.window, limit.timezone)) calendar = *made;
    }
  }
  std::optional<LimitNumbers> numbers(const BucketKey& bucket) const override {
    const auto found = policy_->find(bucket.limit, bucket.customer);
    if (!found || found->kind != policy::MatchedLimit::Kind::numbers) return std::nullopt;
    return found->numbers;
  }
  std::optional<limit::WindowSpan> window(const BucketKey& bucket, Nanos wall_ns) const override {
    const auto found = policy_->find(bucket.limit, bucket.customer);
    if (!found || !calendars_[found->index]) return std::nullopt;
    return calendars_[found->index]->containing(wall_ns);
  }
  std::uint64_t version() const override { return policy_->version(); }

 private:
  std::shared_ptr<const policy::Policy> policy_;
  std::vector<std::optional<limit::Calendar>> calendars_;  ///< by index of the limit
};

constexpr Nanos kFastestSyncNs = 100 * kMicrosecond;
constexpr Nanos kSlowestSyncNs = 1500 * kMicrosecond;
constexpr std::string_view kNumberKey = "store/number";
constexpr std::string_view kTopologyKey = "topology";

}  // namespace

Result<std::optional<AgedRecord>> Node::Process::read_record(const RegisterId& reg,
                                                             const std::string& bucket) const {
  return store->read_record(reg, bucket);
}

Result<std::vector<AgedRecord>> Node::Process::read_register(const RegisterId& reg,
                                                             const std::string& after,
                                                             std::size_t most) const {
  return store->read_register(reg, after, most);
}

Node::Node(NodeSettings settings, Shared& shared,
           std::map<std::string, std::unique_ptr<Node>>& nodes, Observer& observer)
    : settings_(std::move(settings)),
      shared_(shared),
      nodes_(nodes),
      observer_(observer),
      clock_(shared.world, settings_.drift_ppm, settings_.wall_offset_ns),
      store_(std::make_unique<store::MemoryStore>(clock_, "boot-0", shared.max_clock_error_ns, 1,
                                                  store::MemoryStore::Sync::on_demand)) {
  shared_.network.place(settings_.name, settings_.region);
}

void Node::in_process(std::function<void()> what) {
  if (!process_) return;
  if (paused_) {
    held_back_.push_back(std::move(what));
  } else {
    what();
  }
}

void Node::boot() {
  if (process_) return;
  process_ = std::make_shared<Process>();
  Process& process = *process_;
  process.incarnation = shared_.world.random.next() | 1;
  process.store = store_.get();
  process.stored_until_ns = shared_.world.now_ns();
  process.router =
      std::make_unique<edge::Router>([this](const RegisterId& reg) { return places(reg, true); });
  if (settings_.edge) {
    edge::LimiterConfig config;
    config.node = settings_.name;
    config.region = settings_.region;
    config.terms = shared_.terms;
    config.wait_ns = shared_.wait_ns;
    config.max_buckets = shared_.max_buckets;
    process.limiter = std::make_unique<edge::Limiter>(config, clock_, shared_.world.random.next(),
                                                      [this] { schedule_collect(0); });
  }
  boot_policy();
  if (process.limiter) process.limiter->set_policy(policy());
  if (settings_.owner) boot_owner();
  shared_.world.log(settings_.name + " boots");
}

void Node::boot_owner() {
  Process& process = *process_;
  const StoreMark own{settings_.name, store_number()};
  std::map<RegisterId, RegisterState> states;
  std::vector<RegisterId> registers = shared_.topologies.registers();
  registers.push_back(kTopologyRegister);
  for (const RegisterId& reg : registers) {
    const auto bytes = store_->read_meta(meta_key(reg));
    if (!bytes || !bytes->has_value()) continue;
    if (auto state = decode_register_state(**bytes)) states.emplace(reg, std::move(*state));
  }
  TopologyState topology = shared_.first_topology;
  bool assumed = true;
  if (const auto bytes = store_->read_meta(kTopologyKey); bytes && bytes->has_value()) {
    if (auto stored = decode_topology_state(**bytes)) {
      topology = *stored;
      assumed = false;
    }
  }
  ownership::HostConfig config;
  config.self = settings_.name;
  config.incarnation = process.incarnation;
  config.seat = shared_.seat;
  process.host = std::make_unique<ownership::Host>(
      config, ownership::Replica(own, std::move(states), process), topology, assumed,
      [this](const TopologyState& state) { return shared_.topologies.view(state); },
      Random(shared_.world.random.next()), clock_.boot_ns());
  schedule_tick();
}

void Node::crash(bool machine) {
  if (!process_) return;
  process_.reset();
  paused_ = false;
  held_back_.clear();
  if (machine) {
    store_->crash(true);
    clock_.reboot();
    store_->set_boot_id("boot-" + std::to_string(++boots_));
  }
  shared_.world.log(settings_.name + (machine ? " loses power" : " is killed"));
}

void Node::link(const std::string& node, bool up) {
  in_process([this, node, up] {
    const Nanos now_ns = clock_.boot_ns();
    for (edge::Router* router : {process_->router.get(), process_->upstream.get()}) {
      if (router == nullptr) continue;
      if (up) {
        router->found(node);
        continue;
      }
      const std::set<RegisterId> moved = router->lost(node, now_ns);
      if (router == process_->upstream.get()) {
        step_relay(regions::Relay::OwnersGone{moved});
      } else if (process_->limiter) {
        process_->limiter->grantors_gone(moved);
        collect();
      }
    }
    if (!process_->host) return;
    ownership::Host::Effects effects;
    process_->host->set_link(node, up, now_ns, effects);
    carry(std::move(effects));
  });
}

void Node::resume() {
  if (!paused_) return;
  paused_ = false;
  std::vector<std::function<void()>> held = std::move(held_back_);
  held_back_.clear();
  shared_.world.log(settings_.name + " resumes with " + std::to_string(held.size()));
  catching_up_ = true;
  for (auto& what : held) what();
  catching_up_ = false;
}

void Node::wipe() {
  store_->wipe(shared_.world.random.next());
  ++disk_;
  shared_.world.log(settings_.name + " is wiped");
}

std::shared_ptr<const ownership::LimitBook> Node::make_book() const {
  return std::make_shared<Book>(policy());
}

void Node::retire() {
  in_process([this] {
    shared_.world.log(settings_.name + " retires");
    if (process_->limiter) process_->limiter->begin_return();
    step_relay(regions::Relay::Leave{});
    if (!process_->host) return;
    ownership::Host::Effects effects;
    process_->host->retire(clock_.boot_ns(), effects);
    carry(std::move(effects));
  });
}

bool Node::kill_owner(const std::string& customer) {
  if (!process_ || !process_->host) return false;
  bool killed = false;
  for (auto it = process_->owners.begin(); it != process_->owners.end();) {
    if (it->first.customer != customer) {
      ++it;
      continue;
    }
    process_->host->owner_died(it->first, it->second.first);
    it = process_->owners.erase(it);
    killed = true;
  }
  return killed;
}

bool Node::check(const Check& check, Completion done) {
  if (!process_ || paused_ || !process_->limiter) return false;
  if (stall_ns_ > 0) return stalled_check(check, std::move(done));
  Decision decision;
  const auto decided = process_->limiter->decide(check, decision);
  if (decided && *decided) {
    done(decision);
    return true;
  }
  process_->limiter->decide_later(check, std::move(done));
  return true;
}

/// The process is stopped in the middle of a decision; the client hears when it goes on.
bool Node::stalled_check(const Check& check, Completion done) {
  const Nanos span_ns = std::exchange(stall_ns_, 0);
  Decision decision;
  clock_.begin_stall(span_ns);
  const auto decided = process_->limiter->decide(check, decision);
  if (decided && *decided) tell_late(check, decision);
  clock_.end_stall();
  pause();
  if (decided && *decided) {
    held_back_.push_back([done = std::move(done), decision] { done(decision); });
  } else {
    held_back_.push_back(
        [this, check, done = std::move(done)] { process_->limiter->decide_later(check, done); });
  }
  shared_.world.after(clock_.true_span(span_ns), [this] { resume(); });
  return true;
}

/// By a clock that says when the answer leaves (E4).
void Node::tell_late(const Check& check, const Decision& decision) {
  if (!decision.allowed || decision.source != Source::lease || check.cost <= 0) return;
  for (const edge::LeaseView& lease : process_->limiter->leases()) {
    const auto key = decode_bucket_key(lease.bucket);
    if (!key || key->customer != check.customer || clock_.boot_ns() < lease.deadline_ns) continue;
    observer_.spent_late(settings_.name, lease.bucket);
  }
}

void Node::schedule_collect(Nanos boot_deadline_ns) {
  Process& process = *process_;
  const Nanos wait_ns = std::max<Nanos>(0, boot_deadline_ns - clock_.boot_ns());
  const Nanos at_ns = shared_.world.now_ns() + (wait_ns == 0 ? 0 : clock_.true_span(wait_ns));
  if (at_ns >= process.collect_at_ns) return;
  process.collect_at_ns = at_ns;
  shared_.world.at(at_ns, [this, at_ns, alive = std::weak_ptr<Process>(process_)] {
    const auto same = alive.lock();
    if (!same || same != process_ || same->collect_at_ns != at_ns) return;
    same->collect_at_ns = kForever;
    in_process([this] { collect(); });
  });
}

void Node::collect() {
  std::vector<LeaseRequest> requests;
  const Nanos next_ns = process_->limiter->collect(requests);
  for (const LeaseRequest& request : requests) send_request(request);
  process_->limiter->take_degradations();
  if (next_ns != kForever) schedule_collect(next_ns);
}

void Node::send_request(LeaseRequest request) {
  if (const auto key = decode_bucket_key(request.bucket)) request.reg = register_for(*key);
  const edge::Router::Target& target = process_->router->target(request.reg, clock_.boot_ns());
  request.hop = target.hop;
  ask(target.node, request);
}

void Node::ask(const std::string& target, const LeaseRequest& request) {
  ++lease_requests_;
  shared_.world.detail([&] { return settings_.name + " to " + target + ": " + say(request); });
  shared_.network.send(settings_.name, target, [this, target, request] {
    Node& owner = *nodes_.at(target);
    owner.in_process([&owner, request] { owner.receive_request(request); });
  });
}

RegisterId Node::register_for(const BucketKey& key) const {
  return shared_.view->placement().register_for(key.scope, settings_.region, key.customer);
}

void Node::receive_request(const LeaseRequest& request) {
  if (!process_ || !process_->host) return;
  if (request.hop == LeaseHop::to_relay) {
    relay_request(request);
    return;
  }
  ownership::Host::Effects effects;
  process_->host->lease_request(request, clock_.boot_ns(), effects);
  carry(std::move(effects));
}

void Node::receive_answer(const LeaseAnswer& answer, const std::string& from) {
  if (!process_) return;
  if (answer.hop == LeaseHop::from_relay) {
    relay_answer(answer, from);
    return;
  }
  if (!process_->limiter) return;
  const auto key = decode_bucket_key(answer.bucket);
  if (!key) return;
  const RegisterId reg = register_for(*key);
  const Nanos now_ns = clock_.boot_ns();
  if (answer.status != LeaseStatus::not_owner) {
    observer_.found_owner(settings_.name, reg);
  } else if (answer.hop == LeaseHop::direct) {
    observer_.misdirected(settings_.name, reg);
  }
  const bool again = process_->router->learn(reg, from, answer, now_ns);
  if (again) process_->limiter->ask_again_now(answer);
  process_->limiter->on_answer(answer);
}

/// Sends an answer to the edge or the relay that it is for.
void Node::answer_edge(const LeaseAnswer& answer) {
  shared_.world.detail(
      [&] { return settings_.name + " to " + answer.lessee.node + ": " + say(answer); });
  shared_.network.send(settings_.name, answer.lessee.node, [this, answer] {
    const auto edge = nodes_.find(answer.lessee.node);
    if (edge == nodes_.end()) return;
    Node& node = *edge->second;
    node.in_process([&node, answer, from = settings_.name] { node.receive_answer(answer, from); });
  });
}

/// Does what the host asked for, owners included, until nothing is left.
void Node::carry(ownership::Host::Effects&& effects) {
  std::deque<ownership::Host::Effects> todo;
  todo.push_back(std::move(effects));
  while (!todo.empty() && process_) {
    ownership::Host::Effects now = std::move(todo.front());
    todo.pop_front();
    for (const RegisterId& reg : now.taken) {
      shared_.world.log(settings_.name + " owns " + to_string(reg) + " " +
                        to_string(process_->host->seat(reg)->epoch()));
    }
    for (const RegisterId& reg : now.lost) {
      shared_.world.log(settings_.name + " lost " + to_string(reg));
    }
    for (auto& [to, message] : now.send) {
      observer_.said(settings_.name, message);
      if (!std::holds_alternative<Beat>(message)) {
        shared_.world.detail([&] { return settings_.name + " to " + to + ": " + say(message); });
      }
      shared_.network.send(settings_.name, to, [this, to = to, message = message] {
        Node& peer = *nodes_.at(to);
        peer.in_process([&peer, from = settings_.name, message] {
          if (!peer.process_ || !peer.process_->host) return;
          ownership::Host::Effects did;
          peer.process_->host->message(from, message, peer.clock_.boot_ns(), did);
          peer.carry(std::move(did));
        });
      });
    }
    for (const LeaseAnswer& answer : now.answers) answer_edge(answer);
    for (auto& request : now.writes) write(std::move(request));
    if (now.topology) follow(*now.topology);
    if (now.number != 0) {
      store_->write({{}, {{std::string(kNumberKey), std::to_string(now.number)}}});
      store_->sync();
      process_->host->numbered(clock_.boot_ns(), todo.emplace_back());
    }
    for (const auto& what : now.owners) carry_owner(what, todo.emplace_back());
  }
  if (process_ && process_->host) schedule_tick();
}

void Node::carry_owner(const std::variant<ownership::Host::OwnerStart, ownership::Host::OwnerStop,
                                          ownership::Host::OwnerEvent>& what,
                       ownership::Host::Effects& more) {
  if (const auto* start = std::get_if<ownership::Host::OwnerStart>(&what)) {
    ownership::OwnerConfig config;
    config.generation = start->generation;
    config.terms = shared_.terms;
    config.max_clock_error_ns = shared_.max_clock_error_ns;
    auto owner =
        std::make_unique<ownership::Owner>(config, start->epoch, make_book(), clock_.boot_ns());
    process_->owners[start->key] = {start->activation, std::move(owner)};
  } else if (const auto* stop = std::get_if<ownership::Host::OwnerStop>(&what)) {
    const auto found = process_->owners.find(stop->key);
    if (found != process_->owners.end() && found->second.first == stop->activation) {
      process_->owners.erase(found);
    }
  } else if (const auto* event = std::get_if<ownership::Host::OwnerEvent>(&what)) {
    const auto found = process_->owners.find(event->key);
    if (found == process_->owners.end() || found->second.first != event->activation) return;
    if (const auto* done = std::get_if<ownership::Owner::Committed>(&event->event);
        done != nullptr && !catching_up_) {
      observer_.committed(settings_.name, event->key, found->second.second->epoch());
    }
    step_owner(event->key, event->event, more);
    if (const auto* loaded = std::get_if<ownership::Owner::Loaded>(&event->event)) {
      tell_activation(event->key, *loaded);
    }
  }
}

void Node::tell_activation(const ownership::OwnerKey& key, const ownership::Owner::Loaded& loaded) {
  const auto owner = process_->owners.find(key);
  if (catching_up_ || owner == process_->owners.end() || !loaded.record || !*loaded.record) return;
  for (const auto& view : owner->second.second->view(clock_.boot_ns())) {
    if (view.bucket == loaded.bucket) {
      observer_.activated(key, (*loaded.record)->record.version, view);
    }
  }
}

void Node::step_owner(const ownership::OwnerKey& key, ownership::Owner::Event event,
                      ownership::Host::Effects& more) {
  const auto found = process_->owners.find(key);
  if (found == process_->owners.end()) return;
  const std::uint64_t activation = found->second.first;
  ownership::Owner::Effects did;
  process_->host->set_wall(clock_.wall_ns(), clock_.boot_ns());
  found->second.second->step(std::move(event), process_->host->instant(key.reg, clock_.boot_ns()),
                             did);
  process_->host->owner_did(key, activation, std::move(did), clock_.boot_ns(), more);
  schedule_owner(key);
}

void Node::schedule_owner(const ownership::OwnerKey& key) {
  const auto found = process_->owners.find(key);
  if (found == process_->owners.end()) return;
  const Nanos deadline_ns = found->second.second->next_deadline();
  if (deadline_ns == kForever) return;
  const Nanos wait_ns = std::max<Nanos>(kMicrosecond, deadline_ns - clock_.boot_ns());
  const std::uint64_t activation = found->second.first;
  shared_.world.after(clock_.true_span(wait_ns), [this, key, activation, deadline_ns,
                                                  alive = std::weak_ptr<Process>(process_)] {
    const auto same = alive.lock();
    if (!same || same != process_) return;
    in_process([this, key, activation, deadline_ns] {
      const auto again = process_->owners.find(key);
      if (again == process_->owners.end() || again->second.first != activation) return;
      if (again->second.second->next_deadline() > clock_.boot_ns()) return;
      ownership::Host::Effects more;
      step_owner(key, ownership::Owner::Tick{}, more);
      carry(std::move(more));
    });
  });
}

void Node::schedule_tick() {
  Process& process = *process_;
  const Nanos wait_ns =
      std::max<Nanos>(kMillisecond, process.host->next_deadline() - clock_.boot_ns());
  const Nanos at_ns = shared_.world.now_ns() + clock_.true_span(wait_ns);
  if (at_ns >= process.tick_at_ns) return;
  process.tick_at_ns = at_ns;
  shared_.world.at(at_ns, [this, at_ns, alive = std::weak_ptr<Process>(process_)] {
    const auto same = alive.lock();
    if (!same || same != process_ || same->tick_at_ns != at_ns) return;
    same->tick_at_ns = kForever;
    in_process([this] {
      ownership::Host::Effects effects;
      process_->host->set_wall(clock_.wall_ns(), clock_.boot_ns());
      process_->host->tick(clock_.boot_ns(), effects);
      carry(std::move(effects));
    });
  });
}

/// The disk: one write after the other. A write is in the machine's memory when its turn begins,
/// and durable and acknowledged when it ends: a process that ends in between leaves it, a power cut
/// takes it away.
void Node::write(ownership::Replica::Write write) {
  World& world = shared_.world;
  const bool nothing = write.records.empty() && write.copies.empty() && !write.state;
  const Nanos sync_ns = nothing ? 0 : world.random.between(kFastestSyncNs, kSlowestSyncNs);
  const Nanos start_ns = std::max(process_->stored_until_ns, world.now_ns());
  process_->stored_until_ns = start_ns + sync_ns;
  const auto ok = std::make_shared<bool>(true);
  const auto token = write.token;
  const std::weak_ptr<Process> alive = process_;
  std::vector<Version> versions;
  const RegisterId reg = write.reg;
  for (const StoredRecord& record : write.records) versions.push_back(record.version);
  world.at(start_ns, [this, ok, alive, write = std::move(write)] {
    const auto same = alive.lock();
    if (same && same == process_) *ok = apply(write);
  });
  world.at(start_ns + sync_ns, [this, ok, alive, token, reg, versions] {
    const auto same = alive.lock();
    if (!same || same != process_) return;
    store_->sync();
    for (const Version& version : versions) {
      if (*ok) observer_.accepted(settings_.name, reg, version);
    }
    in_process([this, ok, token] {
      ownership::Host::Effects effects;
      process_->host->stored(token, *ok, clock_.boot_ns(), effects);
      carry(std::move(effects));
    });
  });
}

/// Hands a write to the store. False: the disk says that it failed.
bool Node::apply(const ownership::Replica::Write& write) {
  store::WriteBatch batch;
  for (const StoredRecord& record : write.records) batch.records.push_back({write.reg, record});
  for (const AgedRecord& copy : write.copies) {
    batch.records.push_back({write.reg, copy.record, copy.age_ns});
  }
  if (write.state) batch.meta.emplace_back(meta_key(write.reg), encode(*write.state));
  if (batch.empty()) return true;
  if (disk_full_) return false;
  if (failing_writes_ == 0) return store_->write(batch).has_value();
  --failing_writes_;
  if (torn_) static_cast<void>(store_->write(batch));
  return false;
}

std::uint32_t Node::store_number() const {
  const auto number = store_->read_meta(kNumberKey);
  if (!number || !number->has_value()) return 0;
  return static_cast<std::uint32_t>(std::stoul(**number));
}

RegisterState Node::register_state(const RegisterId& reg) const {
  const auto bytes = store_->read_meta(meta_key(reg));
  if (!bytes || !bytes->has_value()) return {};
  auto state = decode_register_state(**bytes);
  return state ? std::move(*state) : RegisterState{};
}

/// A committed state of the topology: stored, and what edges go by when it is the newest.
void Node::follow(const TopologyState& state) {
  static_cast<void>(store_->write({{}, {{std::string(kTopologyKey), encode(state)}}}));
  store_->sync();
  shared_.world.log(settings_.name + " follows topology stage " + std::to_string(state.stage()));
  if (state.stage() <= shared_.topology.stage()) return;
  shared_.topology = state;
  shared_.view = shared_.topologies.whole_view(state);
}

bool Node::recover(const TopologyVersion& version) {
  if (!process_ || paused_ || !process_->host) return false;
  ownership::Host::Effects effects;
  const auto done =
      process_->host->recover(version.version, version.document, clock_.boot_ns(), effects);
  carry(std::move(effects));
  return done.has_value();
}

bool Node::propose(const TopologyVersion& version) {
  if (!process_ || paused_ || !process_->host) return false;
  ownership::Host::Effects effects;
  const auto done =
      process_->host->propose(version.version, version.document, clock_.boot_ns(), effects);
  carry(std::move(effects));
  return done.has_value();
}

std::vector<std::pair<ownership::OwnerKey, ownership::BucketView>> Node::ledgers() {
  std::vector<std::pair<ownership::OwnerKey, ownership::BucketView>> result;
  if (!process_) return result;
  for (const auto& [key, owner] : process_->owners) {
    for (auto& view : owner.second->view(clock_.boot_ns())) result.emplace_back(key, view);
  }
  return result;
}

}  // namespace weir::sim
