// A simulated machine with its disk and clocks, and the process on it: the production classes
// (Limiter, Host, Replica, Seat, Owner, Ledger, Holder, MemoryStore), wired as the actors wire
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "regions/relay.h"
#include "regions/topology_view.h"
#include "src/edge/limiter.h"
#include "src/edge/router.h"
#include "src/ownership/host.h"
#include "src/policy/policy.h"
#include "src/policy/spread.h"
#include "src/store/memory_store.h"
#include "test/sim/network.h"
#include "test/sim/topology.h"
#include "test/sim/world.h"

namespace weir::sim {

struct NodeSettings {
  std::string name;
  std::string region;
  bool edge = true;
  bool owner = true;
  std::int64_t drift_ppm = 0;
  Nanos wall_offset_ns = 0;
};

/// What all nodes of a run share.
struct Shared {
  World& world;
  Network& network;
  lease::LeaseTerms terms;
  ownership::SeatConfig seat;
  Nanos wait_ns = 50 * kMillisecond;
  Nanos max_clock_error_ns = 5 * kSecond;
  std::size_t max_buckets = edge::kMaxBuckets;
  std::map<std::uint64_t, std::shared_ptr<const policy::Policy>> policies;  ///< by version
  bool policies_change = false;
  Topologies topologies;
  TopologyState first_topology;  ///< what their files say
  TopologyState topology;        ///< the newest that a node follows; at first what their files say
  std::shared_ptr<const regions::View> view;  ///< of it; edges go by it
};

/// Called by nodes for the checkers.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void committed(const std::string& node, const ownership::OwnerKey& key,
                         const Epoch& epoch) = 0;
  /// An owner under this epoch has taken a record over: what it counts now.
  virtual void activated(const ownership::OwnerKey& key, const Version& loaded,
                         const ownership::BucketView& view) = 0;
  /// An edge has admitted by a lease whose deadline had passed when it answered.
  virtual void spent_late(const std::string& edge, const std::string& bucket) = 0;
  /// A replica has stored a record of a commit.
  virtual void accepted(const std::string& node, const RegisterId& reg, const Version& version) = 0;
  /// A replica says something to another node.
  virtual void said(const std::string& node, const RegisterMessage& message) = 0;
  /// An edge asked a node that does not own the register.
  virtual void misdirected(const std::string& edge, const RegisterId& reg) = 0;
  /// A node goes by a higher version of the policy from now on.
  virtual void adopted_policy() = 0;
  virtual void found_owner(const std::string& edge, const RegisterId& reg) = 0;
};

class Node {
 public:
  Node(NodeSettings settings, Shared& shared, std::map<std::string, std::unique_ptr<Node>>& nodes,
       Observer& observer);

  void boot();
  /// The process ends; `lose_unsynced`: so does the machine, and the boot clock starts anew.
  void crash(bool machine);
  void pause() { paused_ = true; }
  void resume();
  /// The disk is replaced by an empty one (the process must be down).
  void wipe();
  /// Its connection to another node has ended, or there is one again.
  void link(const std::string& node, bool up);
  /// Gives leases and registers back, as a node that is told to stop.
  void retire();
  /// The next check here is interrupted for `span_ns` between taking its tokens and answering.
  void stall_next_check(Nanos span_ns) { stall_ns_ = span_ns; }
  /// Kills the owner of one customer, if it runs here.
  bool kill_owner(const std::string& customer);
  /// Starts a topology version, if that is decided here.
  bool propose(const TopologyVersion& version);
  /// What an operator does here when majorities are destroyed (PROTOCOL C4).
  bool recover(const TopologyVersion& version);
  /// The operator has put another version into this node's file, and bids it read that.
  void read_policy_file(std::uint64_t version);
  /// In force; 0: the process is down.
  std::uint64_t policy_version() const;

  using Completion = edge::Limiter::Completion;
  /// A client's check at this edge. False: nobody answers here now.
  bool check(const Check& check, Completion done);

  bool alive() const { return process_ != nullptr; }
  bool paused() const { return paused_; }
  const NodeSettings& settings() const { return settings_; }
  SimClock& clock() { return clock_; }
  edge::Limiter* limiter() { return process_ ? process_->limiter.get() : nullptr; }
  const ownership::Host* host() const { return process_ ? process_->host.get() : nullptr; }
  store::MemoryStore& store() { return *store_; }
  std::uint64_t disk() const { return disk_; }
  /// 0: none runs.
  std::uint64_t process_incarnation() const { return process_ ? process_->incarnation : 0; }
  std::uint64_t lease_requests() const { return lease_requests_; }
  /// Of them, what the relay here asked owners for.
  std::uint64_t relay_requests() const { return relay_requests_; }
  /// What the relay here has from above.
  std::vector<regions::Relay::View> relay_views() const;
  /// Every bucket that an owner here has in memory.
  std::vector<std::pair<ownership::OwnerKey, ownership::BucketView>> ledgers();
  /// The next writes fail; `torn`: they are written all the same.
  void fail_writes(int count, bool torn) {
    failing_writes_ = count;
    torn_ = torn;
  }
  void fill_disk(bool full) { disk_full_ = full; }
  /// What the disk says, whether the process runs or not.
  bool votes(const RegisterId& reg) const { return register_state(reg).votes; }
  RegisterState register_state(const RegisterId& reg) const;
  /// The number that the store on the disk has; 0: none yet.
  std::uint32_t store_number() const;
  /// Its disk is not the first one.
  bool wiped() const { return disk_ > 1; }

 private:
  struct Process : ownership::RecordReader {
    std::uint64_t incarnation = 0;
    std::unique_ptr<edge::Limiter> limiter;
    std::unique_ptr<edge::Router> router;
    std::unique_ptr<ownership::Host> host;
    std::unique_ptr<policy::Spread> spread;
    std::map<ownership::OwnerKey, std::pair<std::uint64_t, std::unique_ptr<ownership::Owner>>>
        owners;
    std::unique_ptr<edge::Router> upstream;  ///< of the relay
    std::unique_ptr<regions::Relay> relay;
    Nanos collect_at_ns = kForever;  ///< true time of the next scheduled collect
    Nanos tick_at_ns = kForever;
    Nanos relay_at_ns = kForever;
    Nanos stored_until_ns = 0;  ///< the disk's queue
    store::MemoryStore* store = nullptr;

    Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                  const std::string& bucket) const override;
    Result<std::vector<AgedRecord>> read_register(const RegisterId& reg, const std::string& after,
                                                  std::size_t most) const override;
  };

  /// Runs `what` in this process, now or when it is resumed; never in another one.
  void in_process(std::function<void()> what);
  void boot_owner();
  void boot_policy();
  static policy::PolicyText policy_text(std::uint64_t version);
  std::shared_ptr<const policy::Policy> policy() const;
  std::shared_ptr<const ownership::LimitBook> make_book() const;
  void to_peer(const std::string& to, std::function<void(Node&)> deliver);
  void carry_policy(policy::Spread::Effects did);
  void tell_policy();
  void tell_policy_now();
  void hear_policy(const std::string& from, const policy::PolicyStamp& stamp);
  void use_policy();
  void collect();
  void schedule_collect(Nanos boot_deadline_ns);
  void schedule_tick();
  void send_request(LeaseRequest request);
  RegisterId register_for(const BucketKey& key) const;
  void receive_request(const LeaseRequest& request);
  void receive_answer(const LeaseAnswer& answer, const std::string& from);
  void answer_edge(const LeaseAnswer& answer);
  void ask(const std::string& target, const LeaseRequest& request);

  // node_relay.cc
  edge::Router::Places places(const RegisterId& reg, bool relays) const;
  void relay_request(const LeaseRequest& request);
  void relay_answer(const LeaseAnswer& answer, const std::string& from);
  void step_relay(const regions::Relay::Event& event);
  void schedule_relay();

  void carry(ownership::Host::Effects&& effects);
  void follow(const TopologyState& state);
  void carry_owner(const std::variant<ownership::Host::OwnerStart, ownership::Host::OwnerStop,
                                      ownership::Host::OwnerEvent>& what,
                   ownership::Host::Effects& more);
  void tell_late(const Check& check, const Decision& decision);
  void tell_activation(const ownership::OwnerKey& key, const ownership::Owner::Loaded& loaded);
  void step_owner(const ownership::OwnerKey& key, ownership::Owner::Event event,
                  ownership::Host::Effects& more);
  bool stalled_check(const Check& check, Completion done);
  void write(ownership::Replica::Write write);
  bool apply(const ownership::Replica::Write& write);
  void schedule_owner(const ownership::OwnerKey& key);

  NodeSettings settings_;
  Shared& shared_;
  std::map<std::string, std::unique_ptr<Node>>& nodes_;
  Observer& observer_;
  SimClock clock_;
  std::uint64_t boots_ = 0;
  std::uint64_t disk_ = 1;
  std::uint64_t file_version_ = 1;  ///< of the policy
  std::unique_ptr<store::MemoryStore> store_;
  std::shared_ptr<Process> process_;
  bool paused_ = false;
  /// Hears what came while it was paused: majorities that were complete before others took over.
  bool catching_up_ = false;
  std::vector<std::function<void()>> held_back_;
  std::uint64_t lease_requests_ = 0;
  std::uint64_t relay_requests_ = 0;
  Nanos stall_ns_ = 0;
  int failing_writes_ = 0;
  bool torn_ = false;
  bool disk_full_ = false;
};

}  // namespace weir::sim
