#include "actors/herald.h"

#include <optional>
#include <utility>

#include "src/policy/assembly.h"

namespace weir::actors {

void PolicyBoard::post(Posted posted) {
  const std::lock_guard lock(mutex_);
  posted_ = std::move(posted);
}

PolicyBoard::Posted PolicyBoard::read() const {
  const std::lock_guard lock(mutex_);
  return posted_;
}

namespace {

using codec::PolicyMessage;

struct Herald {
  explicit Herald(HeraldActor::pointer self_pointer) : self(self_pointer) {}

  void begin(const HeraldContext& with) {
    context = with;
    spread.emplace(std::exchange(context.own, {}));
    if (!context.stored) store();
    tell();
  }

  Nanos now() const { return context.clock->boot_ns(); }

  template <typename Event>
  void step(Event event) {
    policy::Spread::Effects did;
    event(did);
    if (did.adopt) {
      store();
      tell();
    }
    for (const std::string& peer : did.ask) {
      assembly.begin(peer);
      ask(peer);
    }
    timer.arm(self, spread->next_deadline(), now());
    context.board->post({spread->wanted(), spread->refused()});
  }

  /// A node without a store hears it again from its peers.
  void store() {
    if (!context.links->writer || spread->stamp().version == 0) return;
    self->send(context.links->writer,
               StoreMeta{std::string(store::kPolicyMeta), spread->own().text});
  }

  void tell() {
    if (context.links->courier) self->send(context.links->courier, spread->stamp());
  }

  void ask(const std::string& peer) {
    const policy::PieceAsk next = assembly.next();
    send(peer, {PolicyMessage::Kind::ask,
                next.stamp.version,
                next.stamp.content_hash,
                next.offset,
                0,
                {}});
  }

  void send_piece(const std::string& peer, const policy::PieceAsk& ask) {
    const auto piece = policy::piece_of(spread->own(), ask, codec::kMaxPolicyPieceBytes);
    send(peer, {PolicyMessage::Kind::piece, piece.stamp.version, piece.stamp.content_hash,
                piece.offset, piece.total, std::string(piece.text)});
  }

  void send(const std::string& peer, PolicyMessage message) {
    if (context.links->courier) self->send(context.links->courier, PolicyFor{peer, message});
  }

  void hear(const std::string& peer, const PolicyMessage& message) {
    const policy::PolicyStamp stamp{message.version, message.hash};
    if (message.kind == PolicyMessage::Kind::ask) {
      if (spread->stamp().version != 0) send_piece(peer, {stamp, message.offset});
      return;
    }
    using Came = policy::Assembly::Came;
    switch (assembly.add(peer, {stamp, message.offset, message.total, message.text})) {
      case Came::ignored:
        return;
      case Came::more:
        spread->progressed(peer, now());
        return ask(peer);
      case Came::whole:
        return take(peer, assembly.take());
      case Came::unusable:
        return step([&](auto& did) { spread->unreadable(peer, now(), did); });
    }
  }

  /// In force first, told afterwards.
  void take(const std::string& peer, policy::PolicyText text) {
    const auto taken = context.port.take(text.text, peer);
    if (taken && *taken == text.stamp) {
      return step([&](auto& did) { spread->received(peer, std::move(text), now(), did); });
    }
    context.log->error(
        "a peer's policy cannot be used",
        {{"peer", peer},
         {"version", text.stamp.version},
         {"error", taken ? "its text is not what its stamp says" : taken.error().message}});
    step([&](auto& did) { spread->unreadable(peer, now(), did); });
  }

  HeraldActor::pointer self;
  HeraldContext context;
  std::optional<policy::Spread> spread;
  policy::Assembly assembly{codec::kMaxPolicyBytes};
  Timer timer;
};

HeraldActor::behavior_type herald_behavior(HeraldActor::stateful_pointer<Herald> self,
                                           const HeraldContext& context) {
  Herald* herald = &self->state;
  herald->begin(context);
  return {
      [herald](policy::PolicyText& read) {
        herald->step([&](auto& did) {
          // Refused when a peer's higher one has come meanwhile: that is in force, then.
          static_cast<void>(herald->spread->read(std::move(read), did));
        });
      },
      [herald](const PeerPolicy& heard) {
        herald->step(
            [&](auto& did) { herald->spread->heard(heard.node, heard.stamp, herald->now(), did); });
      },
      [herald](const PolicyFrom& heard) { herald->hear(heard.node, heard.message); },
      [herald](TimerAtom, Nanos at_ns) {
        if (!herald->timer.fired(at_ns)) return;
        herald->step([&](auto& did) { herald->spread->tick(herald->now(), did); });
      },
  };
}

}  // namespace

HeraldActor spawn_herald(caf::actor_system& system, const HeraldContext& context) {
  return system.spawn<caf::detached>(herald_behavior, context);
}

}  // namespace weir::actors
