// The actor system of one node behind a plain C++ face: src/server knows this header and no CAF.
//
//   edge::Limiter <-> broker <-- transport --> replication <-> owner (one per customer)
//                        \------ (same node) -----/    \-> store writer; replicas of other nodes
//   a region's edges <-> relay <-- transport --> owners elsewhere
//
// Thread rule: every method may be called from any thread; callbacks run on an actor's thread and
// must not block.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/shape.h"
#include "actors/transport.h"
#include "src/base/random.h"
#include "src/base/result.h"
#include "src/base/time.h"
#include "src/edge/activity_table.h"
#include "src/edge/limiter.h"
#include "src/lease/terms.h"
#include "src/model/ids.h"
#include "src/model/topology.h"
#include "src/ownership/owner.h"
#include "src/policy/spread.h"
#include "src/store/store.h"
#include "src/telemetry/log.h"
#include "src/telemetry/metrics.h"

namespace weir::actors {

/// How a policy that a peer has comes into force here.
struct PolicyPort {
  /// Reads `text`, puts it in force if its version is higher than what is, and says its stamp.
  /// Fails when it cannot be read. Called on a thread of its own; may take seconds.
  std::function<Result<policy::PolicyStamp>(const std::string& text, const std::string& peer)> take;
};

/// Faults that a test puts between this node and others (chaos only). What is on its way is not
/// taken back.
struct NetworkFaults {
  std::set<std::string> cut;              ///< nodes with which no frame is exchanged
  std::map<std::string, Nanos> delay_ns;  ///< by region: how much later a frame to it leaves
};

/// Paths of PEM files, good whenever they are there: CAF reads them at every connection.
struct ClusterTls {
  std::string certificate;
  std::string key;
  std::string ca;  ///< has signed every peer's
};

struct NodeConfig {
  std::string name;
  std::string region;
  bool edge = true;
  bool owner = true;
  std::optional<Endpoint> listen;  ///< cluster port (0: any free one); nothing: a node on its own
  std::optional<ClusterTls> tls;   ///< mutual, for every peer; nothing: none
  Topology topology;               ///< at least this node, when it owns
  std::string topology_document;   ///< its text, the same at all nodes
  /// Reads the text of later versions.
  regions::ParseTopology parse_topology;
  /// Addresses to begin with, for an edge without topology: its peers tell it.
  std::vector<Endpoint> join;
  lease::LeaseTerms terms;
  Nanos quiet_ns = 2 * kSecond;            ///< OwnerConfig::quiet_ns
  Nanos max_clock_error_ns = 5 * kSecond;  ///< OwnerConfig::max_clock_error_ns
  bool chaos = false;                      ///< kill_owner is allowed
  std::map<std::string, Nanos> delay_ns;   ///< NetworkFaults::delay_ns
  std::size_t most_owners = 0;             ///< alive at once; 0: kMaxActiveOwners
  policy::PolicyText policy;   ///< in force at the start; version 0: none, its peers tell it
  bool policy_stored = false;  ///< the store has it
};

/// What one owner says of its customer, wherever in the cluster it lives.
struct OwnerDescription {
  RegisterId reg;
  std::string node;
  std::string region;
  Epoch epoch;
  std::vector<std::string> replicas;  ///< in rank order
  std::vector<ownership::BucketView> buckets;
};

class Node {
 public:
  /// What the node works with; all outlive it. `store` may be null when the node does not own.
  /// `limiter` may be null when it is no edge; its wake is `wake_broker`.
  struct World {
    const Clock* clock = nullptr;
    SeedSource* seeds = nullptr;
    store::Store* store = nullptr;
    edge::Limiter* limiter = nullptr;
    telemetry::Log* log = nullptr;
    telemetry::Metrics* metrics = nullptr;
    /// In place of CAF's middleman (tests); not started yet.
    Transport* transport = nullptr;
    PolicyPort policy = {};
  };

  /// Reads the promises of its store, listens, connects to its peers.
  static Result<std::unique_ptr<Node>> start(NodeConfig config, World world,
                                             std::shared_ptr<const ownership::LimitBook> book);
  /// Stops without ceremony, as after `drain`.
  ~Node();

  /// Thread-safe, cheap, callable from the hot path: the limiter's `wake`.
  void wake_broker();

  void set_book(std::shared_ptr<const ownership::LimitBook> book);
  /// A policy was read from a file and is in force: it is stored, and told to the cluster.
  void spread_policy(policy::PolicyText text);

  /// The cluster's shape as this node follows it.
  std::shared_ptr<const Shape> shape() const;
  using TopologyCallback = std::function<void(Status)>;
  /// Asks whoever decides to start a version of the topology (ownership::Host::propose). `done`
  /// hears whether it has begun; `shape` shows when it is finished.
  void propose(std::uint64_t version, const std::string& document, TopologyCallback done);
  /// Begins a new generation at this node (ownership::Host::recover). Fails with `unavailable` at a
  /// node that does not own.
  void recover(std::uint64_t version, const std::string& document, TopologyCallback done);

  using DescribeCallback = std::function<void(Result<OwnerDescription>)>;
  /// Asks the owner of (reg, customer); fails with `unavailable` after `kQueryDeadlineNs`.
  void describe(const RegisterId& reg, const std::string& customer, DescribeCallback done);
  using KillCallback = std::function<void(Status)>;
  /// Kills the owning actor of a customer wherever it lives (only with chaos: true at its node).
  void kill_owner(const std::string& customer, KillCallback done);

  /// Exchanges no frame with these nodes any more, until it is called again.
  void cut_off(std::set<std::string> nodes);

  /// What this edge's customers do: for its peers, and for `activity`. Once a second.
  void tell_activity(ActivityReport report);
  /// The busiest customers of all the edges that this node has heard lately, itself included.
  edge::ActivityTable::Top activity() const;

  struct State {
    std::uint64_t incarnation = 0;
    std::vector<PeerState> peers;
    std::uint64_t owners_active = 0;
    std::uint32_t slots_owned = 0;           ///< of the global registers
    std::uint32_t registers_incomplete = 0;  ///< owned here, but some replica does not vote
    std::uint32_t registers_unmarked = 0;    ///< stored here, not moved to the version under way
    std::uint64_t relay_buckets = 0;         ///< that the relay here lends of
    std::uint64_t takeovers = 0;             ///< registers taken after another node had owned them
    bool store_failed = false;  ///< a write failed: this node owns nothing any more (C5)
    std::uint16_t cluster_port = 0;
    std::uint32_t live_edges = 1;
    std::uint64_t policy_wanted = 0;  ///< a higher version that peers have, and is not here yet
    /// Peers that have the version in force with other content (J4).
    std::map<std::string, policy::PolicyStamp> policy_refused;
  };
  State state() const;
  /// Waits until every register that this node replicates has an owner; false: not in time.
  bool wait_settled(Nanos patience_ns);

  /// Returns leases (through the limiter) and hands its registers over, then calls `done`; at the
  /// latest at `deadline_ns` (boot clock).
  void drain(Nanos deadline_ns, std::function<void()> done);

 private:
  struct Impl;
  explicit Node(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

inline constexpr Nanos kQueryDeadlineNs = 2 * kSecond;

}  // namespace weir::actors
