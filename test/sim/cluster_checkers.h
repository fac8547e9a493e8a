// The judges that compare what stores, owners and edges hold at one instant.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/edge/limiter.h"
#include "src/model/lease.h"
#include "src/model/register.h"
#include "test/sim/checkers.h"

namespace weir::sim {

/// One bucket in all the stores of its replica set.
struct BucketCopies {
  struct Copy {
    std::string node;
    bool votes = false;
    std::optional<AgedRecord> record;
  };
  RegisterId reg;
  std::string bucket;
  std::vector<Copy> copies;

  /// The newest version in any store, committed or not.
  const AgedRecord* newest() const;
  /// The smallest and the greatest age among those that have the newest version.
  std::pair<Nanos, Nanos> ages() const;
};

/// A lease that an edge may spend right now.
struct LiveLease {
  LesseeId lessee;
  std::int64_t held = 0;
  std::uint64_t grantor = 0;  ///< incarnation of the relay that lent it; 0: the owner
};

/// What a relay that runs may still lend on, of one lease from above.
struct RelayLevel {
  std::uint64_t grantor = 0;
  std::int64_t level = 0;
};

/// replica agreement, second half: no majority of stores, amnesic ones left out, may lack a
/// committed record or have an older version of it; and none is committed by an older policy than
/// one before it (D8).
class AgreementChecker final : public Checker {
 public:
  AgreementChecker() : Checker("replica agreement") {}
  /// An owner with this epoch has just heard that its commit is stored.
  void committed(const BucketCopies& copies, const Epoch& epoch, Nanos true_ns);
  void sampled(const BucketCopies& copies, Nanos true_ns);
  Version committed_version(const BucketCopies& copies) const;
  /// Majorities of stores are destroyed.
  void forget() { committed_.clear(); }

 private:
  std::map<std::pair<RegisterId, std::string>, Version> committed_;
  std::map<std::string, std::pair<Version, std::uint64_t>> policies_;  ///< of the newest, by bucket
};

/// conservation: every token that an edge may spend stands in a record that is committed or newer,
/// under that holder, unexpired; one that a relay has lent on stands there under that relay's
/// lease, together with all others of it (PROTOCOL F). All of them and the free level together fit
/// the capacity.
class ConservationChecker final : public Checker {
 public:
  ConservationChecker() : Checker("conservation") {}
  void sampled(const BucketCopies& copies, const Version& committed,
               const std::vector<LiveLease>& leases, const std::vector<RelayLevel>& relays,
               std::int64_t capacity, Nanos true_ns);
  /// An owner has begun with the record of this version and now counts `tokens` free and out
  /// together: no more than the record and its age give, with what flowed in kept below what was
  /// out (D5, B9).
  void activated(const BucketCopies& copies, const Version& loaded, const LimitNumbers& numbers,
                 std::int64_t tokens, Nanos slack_ns, Nanos true_ns);
  /// While more is out than a lowered limit allows, no lease ends later than it did (D8).
  void watch_excess(const BucketCopies& copies, Nanos true_ns);
  void spent_late(const std::string& edge, const std::string& bucket, Nanos true_ns);
  /// Majorities of stores are destroyed: leases of before are in no record.
  void forget() { forgets_ = true; }

 private:
  std::map<std::string, std::map<LesseeId, Nanos>> excess_ends_ns_;
  bool forgets_ = false;
};

/// no false denial: whoever is denied by the owner's word finds a bucket whose record has had less
/// than the cost within the time that denials, parked requests and commits may take.
class DenialChecker final : public Checker {
 public:
  DenialChecker() : Checker("no false denial") {}
  void sampled(const BucketCopies& copies, std::int64_t cost, Nanos true_ns);
  /// No fault since `quiet_since_ns`; denials may lag behind by `allowance_ns`. Said so long after
  /// the denial that what the owner had granted by then is stored.
  void denied(const std::string& bucket, Nanos quiet_since_ns, Nanos allowance_ns, Nanos denied_ns,
              Nanos true_ns);
  void forget() { full_.clear(); }

 private:
  struct Full {
    Version version;  ///< of the record seen last
    Nanos since_ns = 0;
  };
  std::map<std::string, Full> full_;  ///< by bucket; absent: not full
};

}  // namespace weir::sim
