// The relay of a node, for edges of a region that is not a register's home and for those that find
// no place in the owner's record (PROTOCOL F, D9): it leases in bulk from the owners and sub-leases
// to the edges near it, so that one wide-area call serves a region. A pure state machine; it stores
// nothing, for what it holds is debited at the owners already.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "regions/relay_bucket.h"
#include "src/base/random.h"
#include "src/base/time.h"
#include "src/model/lease.h"

namespace weir::regions {

class Relay {
 public:
  struct Effects {
    std::vector<LeaseAnswer> answers;    ///< send to answer.lessee.node
    std::vector<LeaseRequest> requests;  ///< send to the owner of request.reg
  };

  /// An edge asks. `round_trip_ns` is the one to the owner as known from elsewhere; 0: not known.
  struct Requested {
    LeaseRequest request;
    Nanos round_trip_ns = 0;
  };
  /// The owner, or whoever was taken for it, says something. `ask_again`: it was redirected, and
  /// the request goes out again at once.
  struct Answered {
    LeaseAnswer answer;
    bool ask_again = false;
  };
  /// Whoever answered for these registers is gone.
  struct OwnersGone {
    std::set<RegisterId> registers;
  };
  struct PolicyChanged {};
  /// The node is told to stop: what is not lent on is given back, and edges are sent on.
  struct Leave {};
  struct Tick {};
  using Event = std::variant<Requested, Answered, OwnersGone, PolicyChanged, Leave, Tick>;

  Relay(RelayConfig config, std::uint64_t seed);
  Relay(const Relay&) = delete;  // its buckets refer to it
  Relay& operator=(const Relay&) = delete;

  void step(const Event& event, Nanos now_ns, Effects& effects);
  /// When to step with Tick next; kForever: not before another event.
  Nanos next_deadline() const { return due_.empty() ? kForever : due_.begin()->first.first; }
  /// Whose request an answer is to; nothing: none of this relay's.
  std::optional<RegisterId> asked_by(const LeaseAnswer& answer) const;
  std::size_t bucket_count() const { return buckets_.size(); }
  /// True when all that is not lent on is back at the owners (after Leave).
  bool has_returned() const { return unreturned_ == 0; }

  /// One lease from above, for auditors.
  struct View {
    std::string bucket;
    std::uint64_t grantor = 0;  ///< the incarnation, above and below
    std::int64_t level = 0;     ///< tokens that it may still lend on
    std::int64_t outstanding = 0;
    Nanos deadline_ns = 0;
    std::size_t lessees = 0;
  };
  std::vector<View> view() const;

 private:
  struct Place {
    std::unique_ptr<RelayBucket> bucket;
    std::uint64_t number = 0;  ///< in the order of their making
    Nanos due_ns = kForever;
    bool returned = true;
  };
  /// A customer that was pinned meanwhile has a bucket for each register (J3).
  using Places = std::map<std::pair<std::string, RegisterId>, Place>;

  void on(const Requested& event, Nanos now_ns, Effects& effects);
  void on(const Answered& event, Nanos now_ns, Effects& effects);
  void on(const OwnersGone& event, Nanos now_ns, Effects& effects);
  void on(const PolicyChanged& event, Nanos now_ns, Effects& effects);
  void on(const Leave& event, Nanos now_ns, Effects& effects);
  void on(const Tick&, Nanos, Effects&) {}
  Places::iterator make(const Requested& event, Nanos now_ns);
  /// The bucket has done something: when is it due next, and is it of any use?
  Places::iterator settle(Places::iterator at, Nanos now_ns);

  RelayConfig config_;
  Random random_;
  Places buckets_;
  std::map<std::pair<Nanos, std::uint64_t>, Places::iterator> due_;  ///< by deadline and number
  std::vector<Nanos> round_trips_;  ///< to the owners, as last measured, by slot; 0: not yet
  std::uint64_t numbers_ = 0;
  std::size_t unreturned_ = 0;
  bool leaving_ = false;
};

}  // namespace weir::regions
