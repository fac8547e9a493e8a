// The relay of one customer under one register, in a region that is not the home or at a home whose
// record has no place for more edges (PROTOCOL F, D9): it leases in bulk from the owner and
// sub-leases to the edges near it, so that one wide-area call serves a region. A pure state
// machine; it stores nothing, for what it holds is debited at the owner already.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
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
    std::vector<LeaseRequest> requests;  ///< send to the owner
    bool passive = false;                ///< holds nothing and nobody asks: may be let go
  };

  /// An edge asks.
  struct Requested {
    LeaseRequest request;
  };
  /// The owner, or whoever was taken for it, says something. `ask_again`: it was redirected, and
  /// the request goes out again at once.
  struct Answered {
    LeaseAnswer answer;
    bool ask_again = false;
  };
  struct PolicyChanged {};
  /// The node is told to stop: what is not lent on is given back.
  struct Leave {};
  struct Tick {};
  using Event = std::variant<Requested, Answered, PolicyChanged, Leave, Tick>;

  Relay(RelayConfig config, std::uint64_t seed, Nanos now_ns);

  void step(const Event& event, Nanos now_ns, Effects& effects);
  /// When to step with Tick next; kForever: not before another event.
  Nanos next_deadline() const;
  /// True when nothing is held any more and nothing is asked (after Leave).
  bool holds_nothing() const { return buckets_.empty(); }

  /// To the owner, as last measured or as given; 0: not known.
  Nanos round_trip_ns() const { return config_.round_trip_ns; }

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
  RelayBucket* find_or_make(const std::string& bucket, Nanos now_ns);

  RelayConfig config_;
  Random random_;
  std::map<std::string, std::unique_ptr<RelayBucket>> buckets_;
  Nanos used_ns_ = 0;
};

}  // namespace weir::regions
