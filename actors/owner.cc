#include "actors/owner.h"

#include <optional>
#include <utility>

namespace weir::actors {
namespace {

struct Shell {
  explicit Shell(OwnerActor::pointer self_pointer) : self(self_pointer) {}

  void begin(std::shared_ptr<const OwnerContext> with, const RegisterId& of, const Book& book) {
    context = std::move(with);
    reg = of;
    owner.emplace(context->config, context->epoch, book, context->clock->boot_ns());
    arm();
  }

  void step(ownership::Owner::Event event) {
    ownership::Owner::Effects effects;
    owner->step(std::move(event), instant(*context->clock), effects);
    for (LeaseAnswer& answer : effects.answers) route(self, *context->links, std::move(answer));
    for (std::string& bucket : effects.loads) load(std::move(bucket));
    if (effects.commit) commit(*effects.commit);
    passive = effects.passive;
    if (effects.resign) return self->quit(caf::exit_reason::user_shutdown);
    if (passive && !std::exchange(offered, true)) {
      self->send(context->links->directory, OfferAtom::value);
    }
    arm();
  }

  void load(std::string bucket) {
    self->request(context->links->reader, caf::infinite, LoadRecord{reg, bucket})
        .then(
            [this, bucket](Loaded& loaded) {
              step(ownership::Owner::Loaded{bucket, std::move(loaded.record)});
            },
            [this, bucket](const caf::error&) {
              step(ownership::Owner::Loaded{
                  bucket, failure(ErrorCode::unavailable, "", "the store's reader has ended")});
            });
  }

  void commit(ownership::Owner::Commit& what) {
    const std::uint64_t id = what.id;
    self->request(context->links->writer, caf::infinite,
                  CommitRecords{reg, std::move(what.records)})
        .then(
            [this, id](const Stored& stored) {
              if (stored.status) {
                step(ownership::Owner::Committed{id});
              } else {
                step(ownership::Owner::CommitFailed{id});
              }
            },
            [this, id](const caf::error&) { step(ownership::Owner::CommitFailed{id}); });
  }

  /// An owner that has offered to end has nothing to do until it hears again.
  void arm() {
    if (!offered) timer.arm(self, owner->next_deadline(), context->clock->boot_ns());
  }

  /// The directory routes nothing here since the offer: end, unless something came before that.
  void end() {
    offered = false;
    if (passive) return self->quit();
    self->send(context->links->directory, StayAtom::value);
    arm();
  }

  OwnerActor::pointer self;
  std::shared_ptr<const OwnerContext> context;
  RegisterId reg;
  std::optional<ownership::Owner> owner;
  Timer timer;
  bool passive = false;
  bool offered = false;  ///< to end; the directory has not answered yet
};

OwnerActor::behavior_type owner_behavior(OwnerActor::stateful_pointer<Shell> self,
                                         std::shared_ptr<const OwnerContext> context,
                                         const RegisterId& reg, const Book& book) {
  Shell* shell = &self->state;
  shell->begin(std::move(context), reg, book);
  return {
      [shell](LeaseRequest& request) {
        shell->step(ownership::Owner::Requested{std::move(request)});
      },
      [shell](const Book& changed) { shell->step(ownership::Owner::PolicyChanged{changed}); },
      [shell](TimerAtom, Nanos at_ns) {
        if (shell->timer.fired(at_ns)) shell->step(ownership::Owner::Tick{});
      },
      [shell](EndAtom) { shell->end(); },
      [shell](DescribeAtom) { return Views{shell->owner->view(shell->context->clock->boot_ns())}; },
  };
}

}  // namespace

OwnerActor spawn_owner(caf::actor_system& system, std::shared_ptr<const OwnerContext> context,
                       const RegisterId& reg, const Book& book) {
  return system.spawn(owner_behavior, std::move(context), reg, book);
}

}  // namespace weir::actors
