// The typed interfaces of this node's actors, and what they send each other. None of these messages
// leaves the process: CAF moves them by reference count and never serialises them.
//
// Seen by the .cc files of actors/ and their tests only.
#pragma once

#include <algorithm>
#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/node.h"
#include "actors/shape.h"
#include "actors/transport.h"
#include "src/codec/envelope.h"
#include "src/model/activity.h"
#include "src/model/ids.h"
#include "src/model/lease.h"
#include "src/ownership/host.h"
#include "src/ownership/owner.h"
#include "src/ownership/replica.h"
#include "src/policy/spread.h"
#include "src/store/store.h"

namespace weir::actors {

/// Names of stored values; the first was an epoch of versions without replicas. For ever.
inline constexpr const char* kOldEpochKey = "epoch";
inline constexpr const char* kTopologyKey = "topology";

struct Requests {
  std::vector<LeaseRequest> all;
};
struct RequestsFor {
  std::string node;
  std::vector<LeaseRequest> all;
};
struct Answers {
  std::string from;  ///< the node that says so
  std::vector<LeaseAnswer> all;
};

/// What the replicas of this node say to another's, and hear from it.
struct RegistersFor {
  std::string node;
  std::vector<RegisterMessage> all;
};
struct RegistersFrom {
  std::string node;
  std::vector<RegisterMessage> all;
};

/// Store these, each all or nothing, in their order.
struct Writes {
  std::vector<ownership::Replica::Write> all;
};
/// All that was in one write to the disk, in order.
struct Written {
  std::vector<std::uint64_t> tokens;
  Status status;  ///< ErrorCode::unavailable: refused, and the disk is well
};
/// Store this value by its name; sent back when that is done.
struct StoreMeta {
  std::string name;
  std::string value;
};

/// An event for an owner, and what it did in one step.
struct ForOwner {
  ownership::Owner::Event event;
  ownership::Instant now;  ///< when it was sent
};
struct OwnerDid {
  ownership::OwnerKey key;
  std::uint64_t activation = 0;
  std::uint64_t seen = 0;  ///< events of the host that it had handled by then
  ownership::Owner::Effects did;
};

/// Buckets of one customer as its owner sees them.
struct Views {
  std::vector<ownership::BucketView> buckets;
};
using Book = std::shared_ptr<const ownership::LimitBook>;
/// The cluster's shape has changed; the board has it already.
using ShapeNews = std::shared_ptr<const Shape>;

/// A question for an owner of this node; the answer goes to the courier when `node` is another one,
/// else to this node's desk.
struct Asked {
  std::string node;  ///< who asks
  codec::OwnerQuery query;
};
struct Replied {
  std::string node;  ///< who asked
  codec::OwnerReply reply;
};

/// A question from this node's server for the owner of (reg, customer).
struct Question {
  codec::OwnerQuery query;
  std::function<void(Result<OwnerDescription>)> done;
};
/// An operator's word that majorities are destroyed, to this node (PROTOCOL C4).
struct RecoverOrder {
  std::uint64_t version = 0;
  std::string document;
  std::function<void(Status)> done;
};
struct DrainOrder {
  Nanos deadline_ns = 0;
  std::function<void()> done;
};

/// The stamp that a peer's heartbeat tells.
struct PeerPolicy {
  std::string node;
  policy::PolicyStamp stamp;
};
struct PolicyFor {
  std::string node;
  codec::PolicyMessage message;
};
struct PolicyFrom {
  std::string node;
  codec::PolicyMessage message;
};

struct Frame {
  std::string from;
  std::string bytes;
};
/// A frame that a chaos test holds up.
struct Late {
  std::string to;
  std::string bytes;
};
struct Link {
  std::string node;
  bool up = false;
};
struct PeerNews {
  PeerState state;
};
/// The connection to an owner node ended, or there is one again.
struct PeerLink {
  std::string node;
  bool up = false;
};

using WakeAtom = caf::atom_constant<caf::atom("wake")>;    // something is due
using TimerAtom = caf::atom_constant<caf::atom("timer")>;  // a timer of one's own
using FlushAtom = caf::atom_constant<caf::atom("flush")>;  // what has gathered goes now
using DescribeAtom = caf::atom_constant<caf::atom("describe")>;
using StopAtom = caf::atom_constant<caf::atom("stop")>;
using EdgesAtom = caf::atom_constant<caf::atom("edges")>;
using HopAtom = caf::atom_constant<caf::atom("hop")>;

/// Stores; runs in a thread of its own.
using WriterActor =
    caf::typed_actor<caf::reacts_to<Writes>, caf::reacts_to<StoreMeta>, caf::reacts_to<FlushAtom>>;
/// One customer's owner.
using OwnerActor = caf::typed_actor<caf::reacts_to<ForOwner>, caf::reacts_to<TimerAtom, Nanos>,
                                    caf::replies_to<DescribeAtom>::with<Views>>;
/// A question, what is known of its reply, and the owner to ask, if it runs.
struct Interview {
  Asked question;
  codec::OwnerReply reply;
  OwnerActor owner;
  ownership::Instant now;        ///< for the register asked about
  std::uint64_t generation = 0;  ///< and its generation
};
/// Answers questions about customers; runs in a thread of its own.
using ClerkActor = caf::typed_actor<caf::reacts_to<Interview>, caf::reacts_to<Book>>;
/// All registers of this node.
using ReplicationActor =
    caf::typed_actor<caf::reacts_to<Requests>, caf::reacts_to<RegistersFrom>,
                     caf::reacts_to<OwnerDid>, caf::reacts_to<Written>, caf::reacts_to<StoreMeta>,
                     caf::reacts_to<Asked>, caf::reacts_to<Book>, caf::reacts_to<TimerAtom, Nanos>,
                     caf::reacts_to<DrainOrder>, caf::reacts_to<RecoverOrder>,
                     caf::reacts_to<PeerLink>, caf::reacts_to<StopAtom>>;
/// Between the limiter and the owners.
using BrokerActor = caf::typed_actor<
    caf::reacts_to<WakeAtom>, caf::reacts_to<TimerAtom, Nanos>, caf::reacts_to<LeaseAnswer>,
    caf::reacts_to<Answers>, caf::reacts_to<EdgesAtom, std::uint32_t>, caf::reacts_to<PeerNews>,
    caf::reacts_to<PeerLink>, caf::reacts_to<ShapeNews>, caf::reacts_to<DrainOrder>>;
/// Between the edges near it and the owners.
using RelayActor =
    caf::typed_actor<caf::reacts_to<Requests>, caf::reacts_to<LeaseAnswer>, caf::reacts_to<Answers>,
                     caf::reacts_to<PeerNews>, caf::reacts_to<PeerLink>, caf::reacts_to<ShapeNews>,
                     caf::reacts_to<Book>, caf::reacts_to<TimerAtom, Nanos>,
                     caf::reacts_to<DrainOrder>>;
/// Between this node's actors and its peers.
using CourierActor =
    caf::typed_actor<caf::reacts_to<RequestsFor>, caf::reacts_to<RegistersFor>,
                     caf::reacts_to<LeaseAnswer>, caf::reacts_to<Asked>, caf::reacts_to<Replied>,
                     caf::reacts_to<PolicyFor>, caf::reacts_to<ActivityReport>,
                     caf::reacts_to<policy::PolicyStamp>, caf::reacts_to<NetworkFaults>,
                     caf::reacts_to<Late>, caf::reacts_to<Frame>, caf::reacts_to<Link>,
                     caf::reacts_to<ShapeNews>, caf::reacts_to<FlushAtom>,
                     caf::reacts_to<TimerAtom>>;
/// Which policy this node has, and its peers.
using HeraldActor = caf::typed_actor<caf::reacts_to<policy::PolicyText>, caf::reacts_to<PeerPolicy>,
                                     caf::reacts_to<PolicyFrom>, caf::reacts_to<TimerAtom, Nanos>>;
/// Questions of this node's server, until they are answered.
using DeskActor = caf::typed_actor<
    caf::reacts_to<Question>, caf::reacts_to<Replied>, caf::reacts_to<TimerAtom, std::uint64_t>,
    caf::reacts_to<HopAtom, std::uint64_t, std::uint32_t>, caf::reacts_to<StopAtom>>;

/// Who is who on this node. Written by node.cc before the first message, never afterwards; emptied
/// by nobody, so every actor drops its reference when it ends. A missing actor is an empty handle.
struct Links {
  std::string node;  ///< this one
  WriterActor writer;
  ClerkActor clerk;
  ReplicationActor replication;
  BrokerActor broker;
  RelayActor relay;
  CourierActor courier;
  HeraldActor herald;
  DeskActor desk;
};
using SharedLinks = std::shared_ptr<const Links>;

/// Sends an answer towards its lessee: an edge, or a relay.
template <typename Self>
void route(Self* self, const Links& links, LeaseAnswer answer) {
  if (answer.lessee.node != links.node) {
    if (links.courier) self->send(links.courier, std::move(answer));
  } else if (answer.hop == LeaseHop::from_relay) {
    if (links.relay) self->send(links.relay, std::move(answer));
  } else if (links.broker) {
    self->send(links.broker, std::move(answer));
  }
}

/// Sends answers of another node to the edge and the relay of this one.
template <typename Self>
void route(Self* self, const Links& links, Answers answers) {
  auto& all = answers.all;
  const auto relays = std::stable_partition(all.begin(), all.end(), [](const LeaseAnswer& answer) {
    return answer.hop != LeaseHop::from_relay;
  });
  Answers theirs{answers.from,
                 {std::make_move_iterator(relays), std::make_move_iterator(all.end())}};
  all.erase(relays, all.end());
  if (links.relay && !theirs.all.empty()) self->send(links.relay, std::move(theirs));
  if (links.broker && !all.empty()) self->send(links.broker, std::move(answers));
}

/// Sends requests to this node's owners and to its relay, to each what is for it.
template <typename Self>
void route(Self* self, const Links& links, Requests requests) {
  auto& all = requests.all;
  const auto relays = std::stable_partition(
      all.begin(), all.end(),
      [](const LeaseRequest& request) { return request.hop != LeaseHop::to_relay; });
  Requests theirs{{std::make_move_iterator(relays), std::make_move_iterator(all.end())}};
  all.erase(relays, all.end());
  if (links.relay && !theirs.all.empty()) self->send(links.relay, std::move(theirs));
  if (links.replication && !all.empty()) self->send(links.replication, std::move(requests));
}

/// Sends requests to a node, which may be this one.
template <typename Self>
void route(Self* self, const Links& links, const std::string& node,
           std::vector<LeaseRequest> requests) {
  if (node == links.node) {
    route(self, links, Requests{std::move(requests)});
  } else if (links.courier) {
    self->send(links.courier, RequestsFor{node, std::move(requests)});
  }
}

/// Sends the reply to whoever asked: to this node's desk, or to another node's.
template <typename Self>
void reply_to(Self* self, const Links& links, const std::string& node, codec::OwnerReply reply) {
  if (node == links.node) {
    self->send(links.desk, Replied{node, std::move(reply)});
  } else if (links.courier) {
    self->send(links.courier, Replied{node, std::move(reply)});
  }
}

/// The one timer of an actor. CAF's delayed messages cannot be taken back: one that was overtaken
/// by an earlier one is known by its instant and ignored.
class Timer {
 public:
  /// A timer further away fires by then and is armed again, because a delayed message keeps a dead
  /// actor's memory until it fires.
  static constexpr Nanos kFurthestNs = 5 * kSecond;

  template <typename Self>
  void arm(Self* self, Nanos at_ns, Nanos now_ns) {
    if (at_ns == kForever) return;
    at_ns = std::min(at_ns, now_ns + kFurthestNs);
    if (at_ns >= armed_ns_) return;
    armed_ns_ = at_ns;
    self->delayed_send(self, std::chrono::nanoseconds(std::max<Nanos>(0, at_ns - now_ns)),
                       TimerAtom::value, at_ns);
  }
  /// True when the message is of the timer armed last.
  bool fired(Nanos at_ns) {
    if (at_ns != armed_ns_) return false;
    armed_ns_ = kForever;
    return true;
  }

 private:
  Nanos armed_ns_ = kForever;
};

}  // namespace weir::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::LeaseRequest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::LeaseAnswer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::ActivityReport)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::ShapeNews)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::RecoverOrder)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Requests)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::RequestsFor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Answers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::RegistersFor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::RegistersFrom)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Writes)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Written)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::StoreMeta)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::ForOwner)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::OwnerDid)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Interview)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Views)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::ownership::Host::OwnerStart)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Book)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Asked)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Replied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Question)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::DrainOrder)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Frame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Link)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::PeerNews)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::PeerLink)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::Late)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::NetworkFaults)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::PeerPolicy)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::PolicyFor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::actors::PolicyFrom)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::policy::PolicyStamp)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weir::policy::PolicyText)
