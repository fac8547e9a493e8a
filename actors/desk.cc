#include "actors/desk.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "actors/describe.h"

namespace weir::actors {
namespace {

using Answer = Result<OwnerDescription>;

struct Desk {
  struct Open {
    codec::OwnerQuery query;
    std::string node;        ///< asked last
    std::uint32_t hops = 0;  ///< times that it was asked
    std::function<void(Answer)> done;
  };

  explicit Desk(DeskActor::pointer self_pointer) : self(self_pointer) {}

  void ask(Question& question) {
    const auto shape = board->read();
    const auto& replicas = shape->placement().replicas(question.query.reg);
    if (replicas.empty()) return question.done(unavailable("no node owns this customer"));
    if (open.size() >= kMaxQuestions) return question.done(unavailable("too many questions wait"));
    const std::uint64_t id = ++last_id;
    question.query.id = id;
    Open& waiting = open[id];
    waiting.query = std::move(question.query);
    waiting.done = std::move(question.done);
    self->delayed_send(self, std::chrono::nanoseconds(kQueryDeadlineNs), TimerAtom::value, id);
    send_to(replicas.front(), waiting);
  }

  void send_to(const std::string& node, Open& waiting) {
    waiting.node = node;
    ++waiting.hops;
    self->delayed_send(self, std::chrono::nanoseconds(kNextReplicaNs), HopAtom::value,
                       waiting.query.id, waiting.hops);
    Asked asked{links->node, waiting.query};
    if (node == links->node) {
      if (links->replication) self->send(links->replication, std::move(asked));
    } else if (links->courier) {
      asked.node = node;
      self->send(links->courier, std::move(asked));
    }
  }

  /// The reply did not come, or not from an owner.
  void next_replica(std::uint64_t id, std::uint32_t hops) {
    const auto found = open.find(id);
    if (found == open.end() || found->second.hops != hops) return;
    const auto shape = board->read();
    const auto& replicas = shape->placement().replicas(found->second.query.reg);
    const auto at = std::find(replicas.begin(), replicas.end(), found->second.node);
    const bool last = at == replicas.end() || at + 1 == replicas.end();
    send_to(last ? replicas.front() : *(at + 1), found->second);
  }

  void replied(const Replied& replied) {
    const auto found = open.find(replied.reply.id);
    if (found == open.end()) return;
    Open& waiting = found->second;
    if (!replied.reply.not_owner) {
      return finish(replied.reply.id,
                    read_reply(replied.reply, waiting.query, board->read()->placement()));
    }
    if (waiting.node != replied.node) return;  // another one is asked already
    const std::string& hint = replied.reply.owner_hint;
    if (!hint.empty() && hint != replied.node && waiting.hops <= kMaxHops) send_to(hint, waiting);
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
  std::shared_ptr<const ShapeBoard> board;
  std::map<std::uint64_t, Open> open;  ///< by the query's id
  std::uint64_t last_id = 0;
};

DeskActor::behavior_type desk_behavior(DeskActor::stateful_pointer<Desk> self, SharedLinks links,
                                       std::shared_ptr<const ShapeBoard> board) {
  Desk* desk = &self->state;
  desk->links = std::move(links);
  desk->board = std::move(board);
  return {
      [desk](Question& question) { desk->ask(question); },
      [desk](const Replied& replied) { desk->replied(replied); },
      [desk](TimerAtom, std::uint64_t id) { desk->expired(id); },
      [desk](HopAtom, std::uint64_t id, std::uint32_t hops) { desk->next_replica(id, hops); },
      [desk](StopAtom) { desk->stop(); },
  };
}

}  // namespace

DeskActor spawn_desk(caf::actor_system& system, SharedLinks links,
                     std::shared_ptr<const ShapeBoard> shape) {
  return system.spawn(desk_behavior, std::move(links), std::move(shape));
}

}  // namespace weir::actors
