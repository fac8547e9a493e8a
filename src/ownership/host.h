// Everything one owner node does for the registers it replicates: its replica, a seat for each
// register, who claims what, and which customers' owners run under which epoch (PROTOCOL B). A pure
// state machine that the simulator and the actors drive alike; the owners themselves (owner.h) run
// beside it, one actor each.
//
// Messages to the node itself do not leave: they are handled within the same step. A register
// without work costs nothing: its seat sleeps until its claim changes or grows old.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/base/time.h"
#include "src/model/ids.h"
#include "src/model/lease.h"
#include "src/model/register.h"
#include "src/ownership/owner.h"
#include "src/ownership/replica.h"
#include "src/ownership/seat.h"
#include "src/ownership/topology_view.h"

namespace weir::ownership {

struct OwnerKey {
  RegisterId reg;
  std::string customer;

  friend auto operator<=>(const OwnerKey&, const OwnerKey&) = default;
};

struct HostConfig {
  std::string self;
  std::uint64_t incarnation = 0;      ///< of this process, random
  std::uint32_t previous_number = 0;  ///< of an amnesic store (Store::previous_number)
  SeatConfig seat;
  Nanos beat_every_ns = 100 * kMillisecond;
  /// A changed list of claims leaves after this long, with all that has changed meanwhile.
  Nanos claims_every_ns = 20 * kMillisecond;
  std::size_t max_owners = 1'000'000;  ///< active owners; a further customer is answered `pending`
};

/// Most seats that one tick moves, so that what arrives is handled in between; the rest is due at
/// once again.
inline constexpr std::size_t kMaxSeatsPerTick = 1024;
/// Registers that are promised anew at the same time while a topology version is under way.
inline constexpr std::size_t kMovesAtOnce = 16;
inline constexpr Nanos kMovesEveryNs = 20 * kMillisecond;
/// Registers that a node that stops gives up at the same time, those with active owners first: what
/// one customer misses is then its own hand-over, not that of thousands.
inline constexpr std::size_t kReleasesAtOnce = 64;
inline constexpr Nanos kReleasesEveryNs = 10 * kMillisecond;
/// Registers are taken back by rank one after the other, at this distance, by a node that has just
/// started.
inline constexpr Nanos kHandOverSpacingNs = 500 * kMicrosecond;
/// A register counts as in use for so long after a commit.
inline constexpr Nanos kInUseNs = 60 * kSecond;
/// Most seats that try at once; the others wait their turn. More would only wait for each other in
/// the queues of disks and links, until their attempts are over.
inline constexpr std::size_t kMaxAttempts = 256;
/// Writes to the disk that an attempt may have to wait for, one after the other.
inline constexpr std::int64_t kWritesPerAttempt = 4;
/// Most requests that wait for their register's next owner; a further one is answered `not_owner`.
inline constexpr std::size_t kMaxHeldRequests = 65'536;
/// So long they wait; their edges have asked again by then.
inline constexpr Nanos kHoldRequestNs = 1 * kSecond;

class Host {
 public:
  struct OwnerStart {
    OwnerKey key;
    std::uint64_t activation = 0;
    Epoch epoch;
    std::uint64_t generation = 0;  ///< OwnerConfig::generation
  };
  struct OwnerStop {
    OwnerKey key;
    std::uint64_t activation = 0;
  };
  struct OwnerEvent {
    OwnerKey key;
    std::uint64_t activation = 0;
    Owner::Event event;
  };
  struct Effects {
    std::vector<std::pair<std::string, RegisterMessage>> send;  ///< to other nodes
    std::vector<LeaseAnswer> answers;                           ///< to answer.lessee.node
    std::vector<Replica::Write> writes;                         ///< in order; answer with stored
    /// In order: stops before starts of the same key.
    std::vector<std::variant<OwnerStart, OwnerStop, OwnerEvent>> owners;
    std::uint32_t number = 0;       ///< store this number durably, then call numbered; 0: nothing
    std::vector<RegisterId> taken;  ///< registers that this node owns from now on
    std::vector<RegisterId> lost;
    std::vector<Nanos> commits;             ///< how long each owner's commit took that ended now
    std::optional<TopologyState> topology;  ///< committed: store it durably, and follow it
  };

  /// `topology` is what the node has stored, or, `assumed`, what its file says: a cluster that is
  /// new starts with that, any other replaces it by what is committed (J1). Its view must be made
  /// without an error.
  Host(HostConfig config, Replica replica, TopologyState topology, bool assumed, MakeView make_view,
       Random random, Nanos now_ns);

  void message(const std::string& from, const RegisterMessage& message, Nanos now_ns, Effects& out);
  void lease_request(const LeaseRequest& request, Nanos now_ns, Effects& out);
  void stored(std::uint64_t token, bool ok, Nanos now_ns, Effects& out);
  void numbered(Nanos now_ns, Effects& out);
  void tick(Nanos now_ns, Effects& out);
  Nanos next_deadline() const;

  /// What a step of an owner asked for. Effects of an activation that has ended are dropped (B4).
  void owner_did(const OwnerKey& key, std::uint64_t activation, Owner::Effects&& did, Nanos now_ns,
                 Effects& out);
  /// The connection to another node ended, or there is one again. Who owns what does not change by
  /// it, but nobody is sent to a node that has none to this one; such requests wait here.
  void set_link(const std::string& node, bool up, Nanos now_ns, Effects& out);
  /// What this node's wall clock says. Beats carry it.
  void set_wall(Nanos wall_ns, Nanos now_ns) {
    wall_ahead_ns_ = subtract_saturating(wall_ns, now_ns);
  }
  /// Now, for the owners of a register: what a majority of its replicas' wall clocks have reached,
  /// as they last told, decides when a window opens (H1). Its wall_ns is 0 until a majority has.
  Instant instant(const RegisterId& reg, Nanos now_ns) const;
  /// An owner ended by itself (killed): the next request starts another.
  void owner_died(const OwnerKey& key, std::uint64_t activation);

  /// Starts a topology version at the owner of the register `topology`. The answer comes when it is
  /// committed, as a changed `topology()`. Fails with `unavailable` elsewhere (see owner_of) or
  /// while another is under way, and with `invalid_argument` when it is not newer, is no topology,
  /// or has an owner node that is not heard now.
  Status propose(std::uint64_t version, const std::string& document, Nanos now_ns, Effects& out);
  /// The operator vouches that so many nodes are destroyed that registers have lost their majority:
  /// a new generation without them, from this node on (PROTOCOL C4). Every bucket starts empty.
  /// Fails with `invalid_argument` as `propose` does.
  Status recover(std::uint64_t version, const std::string& document, Nanos now_ns, Effects& out);
  /// OwnerConfig::generation of a register's owners.
  std::uint64_t generation_of(const RegisterId& reg) const;
  const TopologyState& topology() const { return topology_; }
  /// Nobody has said yet that it is committed.
  bool topology_assumed() const { return assumed_; }
  const TopologyView& view() const { return *view_; }
  /// Registers that this node stores and that have not moved yet, while a version is under way.
  std::size_t unmarked() const { return unmarked_; }
  /// Hands every register over, some at a time (shutdown); the others are served meanwhile.
  void retire(Nanos now_ns, Effects& out);
  /// Gives every register up at once and for good: this store takes no more writes (C5).
  void resign(Nanos now_ns, Effects& out);

  bool owns(const RegisterId& reg) const;
  std::size_t registers_owned() const { return owned_.size(); }
  /// Owned registers of which some member does not vote, or has not been heard since.
  std::size_t registers_incomplete() const;
  /// Registers that became this node's after another node had claimed them.
  std::uint64_t takeovers() const { return takeovers_; }
  std::size_t owners() const { return owners_.size(); }
  /// Of a customer's owner; nothing: it does not run.
  std::optional<std::uint64_t> activation_of(const OwnerKey& key) const;
  const Replica& replica() const { return replica_; }
  const Seat* seat(const RegisterId& reg) const;
  /// Who claims a register, as far as is known here; empty: nobody.
  std::string owner_of(const RegisterId& reg, Nanos now_ns) const;

 private:
  using Owned = std::vector<std::pair<RegisterId, std::uint64_t>>;  ///< in order
  struct Peer {
    Nanos heard_ns = INT64_MIN / 2;  ///< its last beat
    Nanos beat_ns = INT64_MIN / 2;   ///< the last one that renewed its claims
    bool stale = false;              ///< those who follow its claims have been woken
    std::uint64_t incarnation = 0;   ///< 0: has said nothing
    std::uint64_t generation = 0;
    std::uint64_t knows_generation = 0;  ///< of ours
    Owned owned;
    std::optional<Nanos> wall_ahead_ns;  ///< its wall clock less our boot clock, as last told
  };
  /// One register that this node serves.
  struct Place {
    Seat seat;
    std::uint32_t number = 0;           ///< in order of creation
    Nanos queued_ns = kForever;         ///< its key in queue_; kForever: not in it
    bool trying = false;                ///< counted in trying_
    bool waits = false;                 ///< in waiting_: it would try
    Nanos promised_ns = INT64_MIN / 2;  ///< when the replica here last promised
    std::string last_owner = {};        ///< of the other nodes; empty: none seen yet
    Nanos accepted_ns = INT64_MIN / 2;  ///< when an owner last wanted something stored here
    std::string predecessor = {};       ///< who released it to this node last
    std::string successor = {};         ///< to whom this node released it last
    Nanos released_ns = INT64_MIN / 2;
  };
  struct Earlier {
    bool operator()(const std::pair<Nanos, const Place*>& a,
                    const std::pair<Nanos, const Place*>& b) const {
      return a.first != b.first ? a.first < b.first : a.second->number < b.second->number;
    }
  };
  using Places = std::map<RegisterId, Place>;
  struct Ticket {
    OwnerKey key;
    std::uint64_t activation = 0;
    std::uint64_t commit = 0;  ///< 0: a load
    std::string bucket;
    Nanos since_ns = 0;
  };
  struct Running {
    std::uint64_t activation = 0;
    std::vector<std::uint64_t> tickets;  ///< open
  };
  struct Held {
    LeaseRequest request;
    Nanos since_ns = 0;
  };

  /// A customer that leaves a register owned here, page by page (J3).
  struct Leaving {
    RegisterId from;
    RegisterId to;
    Epoch epoch;  ///< of the old register's owner: with another one all begins anew
    std::string after;
    bool last = false;
    std::uint64_t ticket = 0;  ///< of the listing or the commit under way
    std::uint64_t token = 0;   ///< of the page being sent; 0: none
    std::vector<AgedRecord> records;
    Nanos sent_ns = 0;
  };

  void route(const std::string& to, RegisterMessage message);
  void drain(Nanos now_ns, Effects& out);
  bool silent(const std::string& node, Nanos now_ns) const;
  void handle(const std::string& from, const RegisterMessage& message, Nanos now_ns, Effects& out);
  void take_replica(Replica::Effects&& did, Effects& out);
  void take_seat(Places::value_type& place, Seat::Effects&& did, Nanos now_ns, Effects& out);
  void take_results(Seat::Effects& did, Nanos now_ns, Effects& out);
  void on_beat(const std::string& from, const Beat& beat, Nanos now_ns, Effects& out);
  void on_claims(const std::string& from, const Claims& claims, Nanos now_ns, Effects& out);
  void set_claims(const std::string& node, Peer& peer, Owned owned, Nanos now_ns, Effects& out);
  void claim_changed(const RegisterId& reg, Nanos now_ns, Effects& out);
  void on_poll(const std::string& from, const Poll& poll, Nanos now_ns);
  void find_stale_claims(Nanos now_ns);
  void wake(const RegisterId& reg, Nanos now_ns);
  void wake_owned(Nanos now_ns);
  std::vector<Places::value_type*> due(Nanos now_ns);
  void requeue(Place& place);
  void send_beats(Nanos now_ns, Effects& out);
  Seat::Claim claim_of(const RegisterId& reg) const;
  bool heard_enough(const std::vector<std::string>& set) const;
  void number_store(Effects& out);
  void stop_owners(const RegisterId& reg, Effects& out);
  Places::iterator serve(const RegisterId& reg, Nanos now_ns);
  Places::value_type& place_of(const RegisterId& reg, Nanos now_ns);
  Nanos attempt_ns(Nanos now_ns) const;
  void probe_writes(const Effects& out, Nanos now_ns);
  void release_some(Nanos now_ns, Effects& out);
  std::string next_owner(const RegisterId& reg, Nanos now_ns) const;
  bool in_use(const Places::value_type& place, Nanos now_ns) const;
  void hold(const LeaseRequest& request, Nanos now_ns, Effects& out);
  void answer_held(const RegisterId& reg, Nanos now_ns, Effects& out);
  void answer_all_held(Nanos now_ns, Effects& out);
  void drop_held(Nanos now_ns);
  // host_topology.cc
  Layout layout_of(const RegisterId& reg) const;
  bool foreign(const RegisterMessage& message) const;
  void catch_up(Places::value_type& place, std::uint64_t stage, Nanos now_ns, Effects& out);
  bool adopt(const TopologyState& state, Nanos now_ns, Effects& out);
  void follow(Nanos now_ns, Effects& out);
  void start_moves(Nanos now_ns, Effects& out);
  void lead(Nanos now_ns, Effects& out);
  void loaded_topology(const Result<std::optional<AgedRecord>>& record, Nanos now_ns, Effects& out);
  void commit_topology(TopologyState state, Nanos now_ns, Effects& out);
  void committed_topology(Nanos now_ns, Effects& out);
  void report_unmarked(Nanos now_ns, Effects& out);
  void finish_topology(Nanos now_ns, Effects& out);
  bool all_moved() const;
  // host_repin.cc
  void move_customers(Nanos now_ns, Effects& out);
  void list_customer(Leaving& leaving, Nanos now_ns, Effects& out);
  void listed_customer(Seat::Listed& listed, Nanos now_ns, Effects& out);
  bool committed_move(std::uint64_t ticket, Nanos now_ns);
  void send_move(const std::string& customer, Leaving& leaving, Nanos now_ns);
  void on_move(const std::string& from, const MoveOver& move, Nanos now_ns, Effects& out);
  void on_moved(const MovedOver& moved, Nanos now_ns, Effects& out);
  bool leaves(const OwnerKey& key) const;
  Status all_heard(const TopologyVersion& version, Nanos now_ns) const;
  Status list_stores(TopologyState& state, TopologyVersion& version, Nanos now_ns) const;

  LeaseAnswer refusal(const LeaseRequest& request, LeaseStatus status, std::string hint) const;

  HostConfig config_;
  Replica replica_;
  TopologyState topology_;
  bool assumed_ = false;
  MakeView make_view_;
  std::shared_ptr<const TopologyView> view_;
  std::vector<std::string> owner_nodes_;
  std::optional<TopologyState> proposed_;  ///< being committed here
  bool leads_ = false;                     ///< owns the register `topology` and has read its record
  Nanos reported_ns_ = INT64_MIN / 2;
  std::size_t unmarked_ = 0;
  std::map<std::string, Unmarked> reports_;
  std::deque<RegisterId> to_move_;  ///< owned, not in the joint phase yet
  std::set<RegisterId> moving_;     ///< being promised anew
  Nanos moves_ns_ = INT64_MIN / 2;
  std::map<std::string, Leaving> leaving_customers_;
  std::set<std::string> moved_customers_;
  std::map<std::uint64_t, std::pair<std::string, MovedOver>> taking_;  ///< by ticket: whom to tell
  Random random_;
  Places places_;
  std::set<std::pair<Nanos, Place*>, Earlier> queue_;  ///< by the seats' deadlines
  std::deque<Place*> waiting_;                         ///< for their turn to try
  std::size_t trying_ = 0;
  std::map<RegisterId, std::uint64_t> owned_;  ///< active seats: their epochs' counters
  std::map<std::string, Peer> peers_;
  std::set<std::string> gone_;  ///< nodes whose connection has ended
  /// Who claims a register, with the counter; mostly one.
  std::map<RegisterId, std::vector<std::pair<std::string, std::uint64_t>>> claims_;
  std::vector<StoreMark> known_;
  std::uint64_t generation_ = 1;
  std::uint64_t told_generation_ = 0;  ///< sent to all at least once
  Nanos beaten_ns_ = INT64_MIN / 2;
  Nanos claimed_ns_ = INT64_MIN / 2;
  std::uint64_t probe_ = 0;             ///< a write whose time is taken; 0: none
  Nanos probed_ns_ = 0;                 ///< when it was begun
  Nanos write_ns_ = 0;                  ///< what writes have taken lately, the longest
  std::optional<Nanos> wall_ahead_ns_;  ///< our wall clock less our boot clock
  bool numbering_ = false;
  bool leaving_ = false;  ///< retires or has resigned
  std::deque<RegisterId> to_release_;
  Nanos releases_ns_ = INT64_MIN / 2;
  std::uint64_t takeovers_ = 0;
  std::map<OwnerKey, Running> owners_;
  std::uint64_t activations_ = 0;
  std::map<std::uint64_t, Ticket> tickets_;
  std::uint64_t ticket_ = 0;
  std::map<RegisterId, std::vector<Held>> held_;  ///< requests for registers without an owner
  std::size_t held_count_ = 0;
  std::deque<std::pair<std::string, RegisterMessage>> inbox_;  ///< to itself
};

}  // namespace weir::ownership
