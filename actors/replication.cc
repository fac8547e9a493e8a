#include "actors/replication.h"

#include <charconv>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "actors/owner_crowd.h"
#include "src/telemetry/names.h"

namespace weir::actors {
namespace {

using ownership::Host;

/// An early timer waits for this; nothing in the protocol is finer.
constexpr Nanos kFinestTimerNs = 1 * kMillisecond;
/// How often it is looked whether every register has an owner, while somebody waits for that.
constexpr Nanos kLookEveryNs = 10 * kMillisecond;
/// How long a node that has handed everything over waits for its successors to say so.
constexpr Nanos kSuccessorNs = 1 * kSecond;

/// How often it is said how many registers have moved, while some do.
constexpr Nanos kReportEveryNs = 1 * kSecond;
/// How often the registers that lack a voter are counted, for `status`.
constexpr Nanos kCountEveryNs = 500 * kMillisecond;

class StoreReader final : public ownership::RecordReader {
 public:
  explicit StoreReader(const store::Store& store) : store_(store) {}
  Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                const std::string& bucket) const override {
    return store_.read_record(reg, bucket);
  }
  Result<std::vector<AgedRecord>> read_register(const RegisterId& reg, const std::string& after,
                                                std::size_t most) const override {
    return store_.read_register(reg, after, most);
  }

 private:
  const store::Store& store_;
};

struct Replication {
  explicit Replication(ReplicationActor::pointer self_pointer) : self(self_pointer) {}

  void begin(ReplicationContext with, const Book& book) {
    context = std::move(with);
    reader.emplace(*context.store);
    crowd.emplace(self, context.owners, book,
                  [this](const RegisterId& reg) { return host->instant(reg, now()); });
    commit_duration = &context.metrics->histogram(telemetry::metric::kCommitDuration.name,
                                                  telemetry::metric::kCommitDuration.help);
    ownership::Replica replica({context.host.self, context.store_number}, std::move(context.states),
                               *reader);
    host.emplace(
        context.host, std::move(replica), context.topology, context.topology_assumed,
        [parse = context.parse_topology](
            const TopologyState& state) -> Result<std::shared_ptr<const ownership::TopologyView>> {
          auto view = regions::make_view(state, parse);
          if (!view) return tl::unexpected<Error>(view.error());
          return std::shared_ptr<const ownership::TopologyView>(*view);
        },
        Random(context.seed), now());
    registers = host->view().registers(context.host.self);
    arm();
  }

  Nanos now() const { return context.owners->clock->boot_ns(); }
  const Links& links() const { return *context.owners->links; }

  /// One event of the host, and everything that follows from it.
  template <typename Event>
  void step(Event event) {
    Host::Effects did;
    host->set_wall(context.owners->clock->wall_ns(), now());
    event(did);
    carry(std::move(did));
    arm();
  }

  void request(LeaseRequest& request) {
    if (stopping) return;
    step([&](Host::Effects& did) { host->lease_request(request, now(), did); });
  }

  void carry(Host::Effects&& first) {
    std::deque<Host::Effects> todo;
    todo.push_back(std::move(first));
    while (!todo.empty()) {
      Host::Effects did = std::move(todo.front());
      todo.pop_front();
      send(did);
      for (LeaseAnswer& answer : did.answers) route(self, links(), std::move(answer));
      for (auto& what : did.owners) {
        std::visit([this](auto& one) { crowd->carry(std::move(one)); }, what);
      }
      for (const Nanos took_ns : did.commits) commit_duration->observe(took_ns);
      if (did.number != 0) {
        self->send(links().writer,
                   StoreMeta{std::string(store::kNumberMeta), std::to_string(did.number)});
      }
      if (did.topology) {
        self->send(links().writer, StoreMeta{kTopologyKey, encode(*did.topology)});
        follow(*did.topology);
      }
      write(did.writes, todo);
      note(did);
    }
  }

  /// Everybody on this node goes by what is committed.
  void follow(const TopologyState& state) {
    auto view = regions::make_view(state, context.parse_topology);
    if (!view) return;
    const auto shape = std::make_shared<const Shape>(Shape{state, true, *view});
    context.shape->post(shape);
    registers = host->view().registers(context.host.self);
    count_ns = 0;  // what is incomplete now is another matter
    if (links().broker) self->send(links().broker, ShapeNews(shape));
    if (links().relay) self->send(links().relay, ShapeNews(shape));
    if (links().courier) self->send(links().courier, ShapeNews(shape));
    context.log->info("topology", {{"version", state.finished.version},
                                   {"under_way", state.next ? state.next->version : 0},
                                   {"generation", state.finished.generation}});
  }

  void send(Host::Effects& did) {
    std::map<std::string, std::vector<RegisterMessage>> by_node;
    for (auto& [node, message] : did.send) by_node[std::move(node)].push_back(std::move(message));
    for (auto& [node, messages] : by_node) {
      if (links().courier) self->send(links().courier, RegistersFor{node, std::move(messages)});
    }
  }

  /// A write of nothing is a place in the queue; with nothing before it, it is done.
  void write(std::vector<ownership::Replica::Write>& writes, std::deque<Host::Effects>& todo) {
    Writes out;
    for (auto& write : writes) {
      const bool nothing = write.records.empty() && write.copies.empty() && !write.state;
      if (nothing && unwritten == 0) {
        host->stored(write.token, true, now(), todo.emplace_back());
      } else {
        ++unwritten;
        out.all.push_back(std::move(write));
      }
    }
    if (!out.all.empty()) self->send(links().writer, std::move(out));
  }

  void written(const Written& done) {
    unwritten -= done.tokens.size();
    step([&](Host::Effects& did) {
      if (done.status) return host->stored(done.tokens.back(), true, now(), did);
      for (const std::uint64_t token : done.tokens) host->stored(token, false, now(), did);
      // Too long a queue is a refusal; a disk that fails is the end of all that is owned here (C5).
      if (done.status.error().code == ErrorCode::unavailable) return;
      if (context.board->store_failed.exchange(true)) return;
      host->resign(now(), did);
    });
  }

  void note(const Host::Effects& did) {
    if (did.taken.empty() && did.lost.empty()) return;
    OwnershipBoard& board = *context.board;
    for (const RegisterId& reg : did.lost) {
      if (reg.kind == RegisterId::Kind::global) --board.slots_owned;
    }
    for (const RegisterId& reg : did.taken) {
      if (reg.kind == RegisterId::Kind::global) ++board.slots_owned;
    }
    taken += did.taken.size();
    lost += did.lost.size();
    board.registers_owned = static_cast<std::uint32_t>(host->registers_owned());
    if (const auto more = host->takeovers() - board.takeovers) {
      board.takeovers += more;
      context.metrics
          ->counter(telemetry::metric::kTakeovers.name, telemetry::metric::kTakeovers.help)
          .add(more);
    }
  }

  /// One line for all that has moved since the last one.
  void report() {
    if (now() >= count_ns) {
      count_ns = now() + kCountEveryNs;
      context.board->registers_incomplete =
          static_cast<std::uint32_t>(host->registers_incomplete());
      context.board->registers_unmarked = static_cast<std::uint32_t>(host->unmarked());
    }
    if (taken + lost == 0 || now() < report_ns) return;
    report_ns = now() + kReportEveryNs;
    context.log->info("ownership moved", {{"taken", std::exchange(taken, 0)},
                                          {"lost", std::exchange(lost, 0)},
                                          {"owned", host->registers_owned()}});
  }

  void tick() {
    step([&](Host::Effects& did) { host->tick(now(), did); });
    report();
    look();
  }

  bool all_have_owners() const {
    const Nanos now_ns = now();
    for (const RegisterId& reg : registers) {
      const bool alone = order && host->view().layout(reg, 0).quorums.members().size() == 1;
      if (!alone && host->owner_of(reg, now_ns).empty()) return false;
    }
    return true;
  }

  /// Tells those who wait until everything is owned, here or elsewhere.
  void look() {
    if (now() < look_ns) return;
    look_ns = now() + kLookEveryNs;
    if (!settled && all_have_owners()) {
      settled = true;
      context.board->set_settled();
    }
    if (!order) return;
    const bool late = now() >= order->deadline_ns;
    const bool handed = host->registers_owned() == 0;
    if (late || (handed && (now() >= retired_ns + kSuccessorNs || all_have_owners()))) {
      std::exchange(order, std::nullopt)->done();
    }
  }

  void retire(DrainOrder& what) {
    order = std::move(what);
    retired_ns = now();
    step([&](Host::Effects& did) { host->retire(now(), did); });
    look_ns = 0;
    look();
  }

  void arm() {
    context.board->owners_active = crowd->size();
    Nanos next_ns = host->next_deadline();
    if (!settled || order) next_ns = std::min(next_ns, look_ns);
    timer.arm(self, std::max(next_ns, now() + kFinestTimerNs), now());
  }

  void owner_did(OwnerDid& done) {
    if (done.did.passive && !crowd->has_seen_all(done)) done.did.passive = false;
    step([&](Host::Effects& did) {
      host->owner_did(done.key, done.activation, std::move(done.did), now(), did);
    });
  }

  void ended(const caf::actor_addr& address) {
    if (const auto owner = crowd->ended(address)) host->owner_died(owner->first, owner->second);
    context.board->owners_active = crowd->size();
    if (stopping && crowd->size() == 0) self->quit();
  }

  void asked(Asked& question) {
    const codec::OwnerQuery& query = question.query;
    codec::OwnerReply reply;
    reply.id = query.id;
    reply.node = links().node;
    if (!host->owns(query.reg)) {
      reply.not_owner = true;
      reply.owner_hint = host->owner_of(query.reg, now());
      return reply_to(self, links(), question.node, std::move(reply));
    }
    reply.epoch = host->seat(query.reg)->epoch();
    const auto activation = host->activation_of({query.reg, query.customer});
    if (query.kind == codec::OwnerQuery::Kind::propose) return propose(question, reply);
    if (query.kind == codec::OwnerQuery::Kind::describe) {
      const OwnerActor owner = activation ? crowd->find(*activation) : OwnerActor();
      return self->send(links().clerk,
                        Interview{std::move(question), std::move(reply), owner,
                                  host->instant(query.reg, now()), host->generation_of(query.reg)});
    }
    if (!context.chaos) {
      reply.forbidden = true;
      reply.error = "killing owners needs `chaos: true` in the file of node " + links().node;
    } else if (activation) {
      reply.found = true;
      self->send_exit(crowd->find(*activation), caf::exit_reason::kill);
      context.log->warn("owner killed", {{"customer", query.customer}});
    }
    reply_to(self, links(), question.node, std::move(reply));
  }

  void propose(const Asked& question, codec::OwnerReply& reply) {
    step([&](Host::Effects& did) {
      const Status begun =
          host->propose(question.query.version, question.query.document, now(), did);
      reply.found = begun.has_value();
      if (begun) return;
      reply.forbidden = begun.error().code != ErrorCode::unavailable;
      reply.error = begun.error().field + ": " + begun.error().message;
    });
    reply_to(self, links(), question.node, std::move(reply));
  }

  void recover(RecoverOrder& what) {
    Status done;
    step(
        [&](Host::Effects& did) { done = host->recover(what.version, what.document, now(), did); });
    what.done(done);
  }

  /// Ends when the last owner has: until then somebody uses what they share.
  void stop() {
    stopping = true;
    crowd->kill_all();
    if (crowd->size() == 0) self->quit();
  }

  ReplicationActor::pointer self;
  ReplicationContext context;
  std::optional<StoreReader> reader;
  std::optional<OwnerCrowd> crowd;
  std::optional<Host> host;
  std::vector<RegisterId> registers;  ///< that this node takes part in from the start
  telemetry::DurationHistogram* commit_duration = nullptr;
  Timer timer;
  std::size_t unwritten = 0;  ///< writes that wait for the writer
  std::size_t taken = 0;      ///< registers since the last report
  std::size_t lost = 0;
  bool settled = false;
  bool stopping = false;
  Nanos look_ns = 0;
  Nanos count_ns = 0;
  Nanos report_ns = 0;
  Nanos retired_ns = 0;
  std::optional<DrainOrder> order;
};

ReplicationActor::behavior_type replication_behavior(
    ReplicationActor::stateful_pointer<Replication> self,
    const std::shared_ptr<ReplicationContext>& context, const Book& book) {
  Replication* it = &self->state;
  it->begin(std::move(*context), book);
  self->set_down_handler([it](const caf::down_msg& down) { it->ended(down.source); });
  return {
      [it](Requests& requests) {
        for (LeaseRequest& request : requests.all) it->request(request);
      },
      [it](const RegistersFrom& heard) {
        it->step([&](Host::Effects& did) {
          for (const auto& one : heard.all) it->host->message(heard.node, one, it->now(), did);
        });
      },
      [it](OwnerDid& done) { it->owner_did(done); },
      [it](const Written& done) { it->written(done); },
      [it](const StoreMeta& stored) {
        if (stored.name != store::kNumberMeta) return;
        it->step([&](Host::Effects& did) { it->host->numbered(it->now(), did); });
      },
      [it](Asked& question) { it->asked(question); },
      [it](const Book& changed) { it->crowd->set_book(changed); },
      [it](TimerAtom, Nanos at_ns) {
        if (it->timer.fired(at_ns)) it->tick();
      },
      [it](const PeerLink& link) {
        it->step(
            [&](Host::Effects& did) { it->host->set_link(link.node, link.up, it->now(), did); });
      },
      [it](DrainOrder& order) { it->retire(order); },
      [it](RecoverOrder& order) { it->recover(order); },
      [it](StopAtom) { it->stop(); },
  };
}

}  // namespace

void OwnershipBoard::set_settled() {
  const std::lock_guard lock(mutex_);
  settled_ = true;
  changed_.notify_all();
}

bool OwnershipBoard::wait_settled(Nanos patience_ns) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                           [this] { return settled_; });
}

Result<StoredRegisters> read_stored_registers(const store::Store& store) {
  const auto old = store.read_meta(kOldEpochKey);
  if (!old) return tl::unexpected(old.error());
  if (old->has_value()) {
    return failure(ErrorCode::unsupported, "data",
                   "the folder was written by a version of Weir without replicas, whose records "
                   "have no promises; move it away and start with an empty one");
  }
  StoredRegisters stored;
  const auto number = store.read_meta(store::kNumberMeta);
  if (!number) return tl::unexpected(number.error());
  if (number->has_value()) {
    const std::string& text = **number;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, stored.store_number);
    if (parsed.ec != std::errc{} || parsed.ptr != end || stored.store_number == 0) {
      return failure(ErrorCode::corrupt, "data", "the stored store number is not a number");
    }
  }
  const auto metas = store.read_metas(kRegisterMetaPrefix);
  if (!metas) return tl::unexpected(metas.error());
  for (const auto& [key, value] : *metas) {
    const auto reg = register_of_meta_key(key);
    auto state = decode_register_state(value);
    if (!reg || !state) {
      return failure(ErrorCode::corrupt, "data", "the promises of " + key + " cannot be read");
    }
    stored.states.emplace(*reg, *std::move(state));
  }
  const auto topology = store.read_meta(kTopologyKey);
  if (!topology) return tl::unexpected(topology.error());
  if (topology->has_value()) {
    auto state = decode_topology_state(**topology);
    if (!state) return tl::unexpected(state.error());
    stored.topology = *std::move(state);
  }
  return stored;
}

ReplicationActor spawn_replication(caf::actor_system& system, ReplicationContext context,
                                   const Book& book) {
  return system.spawn<caf::detached>(
      replication_behavior, std::make_shared<ReplicationContext>(std::move(context)), book);
}

}  // namespace weir::actors
