#include "actors/desk.h"

#include <map>
#include <utility>

#include "actors/describe.h"

namespace weir::actors {
namespace {

using Answer = Result<OwnerDescription>;

struct Desk {
  struct Open {
    RegisterId reg;
    std::string node;
    std::function<void(Answer)> done;
  };

  explicit Desk(DeskActor::pointer self_pointer) : self(self_pointer) {}

  void ask(Question& question) {
    const auto& replicas = placement->replicas(question.query.reg);
    if (replicas.empty()) return question.done(unavailable("no node owns this customer"));
    if (open.size() >= kMaxQuestions) return question.done(unavailable("too many questions wait"));
    const std::string& node = replicas.front();
    const std::uint64_t id = ++last_id;
    question.query.id = id;
    open[id] = {question.query.reg, node, std::move(question.done)};
    self->delayed_send(self, std::chrono::nanoseconds(kQueryDeadlineNs), TimerAtom::value, id);
    Asked asked{node, std::move(question.query)};
    if (node != links->node) {
      if (links->courier) self->send(links->courier, std::move(asked));
    } else if (links->directory) {
      self->send(links->directory, std::move(asked));
    }
  }

  void replied(const Replied& replied) {
    const auto found = open.find(replied.reply.id);
    if (found == open.end() || found->second.node != replied.node) return;
    finish(replied.reply.id, read_reply(replied.reply, found->second.reg, *placement));
  }

  void expired(std::uint64_t id) {
    const auto found = open.find(id);
    if (found == open.end()) return;
    finish(id, unavailable("node " + found->second.node + " did not answer in time"));
  }

  void finish(std::uint64_t id, Answer answer) {
    auto question = open.extract(id);
    question.mapped().done(std::move(answer));
  }

  void stop() {
    for (auto& [id, question] : std::exchange(open, {})) {
      question.done(unavailable("this node stops"));
    }
    self->quit();
  }

  static Answer unavailable(std::string why) {
    return failure(ErrorCode::unavailable, "", std::move(why));
  }

  DeskActor::pointer self;
  SharedLinks links;
  const regions::Placement* placement = nullptr;
  std::map<std::uint64_t, Open> open;  ///< by the query's id
  std::uint64_t last_id = 0;
};

DeskActor::behavior_type desk_behavior(DeskActor::stateful_pointer<Desk> self, SharedLinks links,
                                       const regions::Placement* placement) {
  Desk* desk = &self->state;
  desk->links = std::move(links);
  desk->placement = placement;
  return {
      [desk](Question& question) { desk->ask(question); },
      [desk](const Replied& replied) { desk->replied(replied); },
      [desk](TimerAtom, std::uint64_t id) { desk->expired(id); },
      [desk](StopAtom) { desk->stop(); },
  };
}

}  // namespace

DeskActor spawn_desk(caf::actor_system& system, SharedLinks links,
                     const regions::Placement& placement) {
  return system.spawn(desk_behavior, std::move(links), &placement);
}

}  // namespace weir::actors
