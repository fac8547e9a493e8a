#include "actors/owner.h"

#include <optional>
#include <utility>

namespace weir::actors {
namespace {

struct Shell {
  explicit Shell(OwnerActor::pointer self_pointer) : self(self_pointer) {}

  void begin(std::shared_ptr<const OwnerContext> with, const ownership::Host::OwnerStart& start,
             const Book& book) {
    context = std::move(with);
    key = start.key;
    activation = start.activation;
    ownership::OwnerConfig config = context->config;
    config.generation = start.generation;
    owner.emplace(config, start.epoch, book, context->clock->boot_ns());
    arm();
  }

  void step(ownership::Owner::Event event) {
    ownership::Owner::Effects did;
    owner->step(std::move(event), told.at(context->clock->boot_ns()), did);
    // One that offers to end has nothing to do until it hears again.
    const bool offers = did.passive;
    const bool silent = did.answers.empty() && did.loads.empty() && !did.commit && !did.resign;
    if (!silent || offers) {
      self->send(context->links->replication, OwnerDid{key, activation, seen, std::move(did)});
    }
    if (!offers) arm();
  }

  void arm() { timer.arm(self, owner->next_deadline(), context->clock->boot_ns()); }

  OwnerActor::pointer self;
  std::shared_ptr<const OwnerContext> context;
  ownership::OwnerKey key;
  std::uint64_t activation = 0;
  std::uint64_t seen = 0;   ///< events that the host sent
  ownership::Instant told;  ///< by the host; what the replicas' clocks say is its to know
  std::optional<ownership::Owner> owner;
  Timer timer;
};

OwnerActor::behavior_type owner_behavior(OwnerActor::stateful_pointer<Shell> self,
                                         std::shared_ptr<const OwnerContext> context,
                                         const ownership::Host::OwnerStart& start,
                                         const Book& book) {
  Shell* shell = &self->state;
  shell->begin(std::move(context), start, book);
  return {
      [shell](ForOwner& what) {
        ++shell->seen;
        shell->told = what.now;
        shell->step(std::move(what.event));
      },
      [shell](TimerAtom, Nanos at_ns) {
        if (shell->timer.fired(at_ns)) shell->step(ownership::Owner::Tick{});
      },
      [shell](DescribeAtom) { return Views{shell->owner->view(shell->context->clock->boot_ns())}; },
  };
}

}  // namespace

OwnerActor spawn_owner(caf::actor_system& system, std::shared_ptr<const OwnerContext> context,
                       const ownership::Host::OwnerStart& start, const Book& book) {
  return system.spawn(owner_behavior, std::move(context), start, book);
}

}  // namespace weir::actors
