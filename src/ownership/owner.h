// The owner of one customer under one register: its ledgers, and the rule that nothing leaves
// before it is stored (PROTOCOL B6, B7, B9, B11). A pure state machine; actors/owner.cc is its
// shell.
//
// One commit is in flight at a time; what is granted meanwhile gathers and goes with the next one.
// A failed commit ends the owner: it resigns, its answers are never released, and whoever starts
// next reads what is stored.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/lease/ledger.h"
#include "src/model/ids.h"
#include "src/model/lease.h"

namespace weir::ownership {

/// Most requests that wait for one bucket's record to be read; a further one is answered `pending`.
inline constexpr std::size_t kMaxWaitingForRecord = 1024;

/// The grantor's view of the policy. Immutable and shared; a reload hands over another one.
class LimitBook {
 public:
  virtual ~LimitBook() = default;
  /// The numbers of a bucket's limit for its customer; nothing when the policy has no such limit,
  /// or has it unlimited or blocked for this customer.
  virtual std::optional<LimitNumbers> numbers(const BucketKey& bucket) const = 0;
  /// For a limit that counts calendar windows: the window that contains `wall_ns` (UTC). Nothing
  /// for every other limit, and when this machine does not know the time zone: then nothing is
  /// granted.
  virtual std::optional<limit::WindowSpan> window(const BucketKey&, Nanos /*wall_ns*/) const {
    return std::nullopt;
  }
  virtual std::uint64_t version() const = 0;
};

/// Now, by the boot clock and by the wall clock. `trusted_wall_ns` is the latest instant that the
/// wall clocks in a majority's answers have reached; an owner on its own says its own. Windows
/// follow the owner's wall clock, held within `max_clock_error` of the trusted one (PROTOCOL H1).
/// `wall_ns` 0: not known, no window is opened.
struct Instant {
  Nanos boot_ns = 0;
  Nanos wall_ns = 0;
  Nanos trusted_wall_ns = 0;

  /// The same, when our boot clock says `now_ns` and nobody has told anything since.
  Instant at(Nanos now_ns) const {
    if (wall_ns == 0) return {now_ns, 0, 0};
    const Nanos since_ns = subtract_saturating(now_ns, boot_ns);
    return {now_ns, add_saturating(wall_ns, since_ns), add_saturating(trusted_wall_ns, since_ns)};
  }
};

struct OwnerConfig {
  lease::LeaseTerms terms;
  /// A bucket with nothing out, nobody waiting and no request for this long leaves memory.
  Nanos quiet_ns = 2 * kSecond;
  Nanos max_clock_error_ns = 5 * kSecond;
  std::uint64_t generation = 0;  ///< of the register (PROTOCOL C4)
};

/// One bucket as `explain` and `usage` show it.
struct BucketView {
  std::string bucket;
  std::int64_t capacity = 0;
  std::int64_t level = 0;
  std::int64_t outstanding = 0;
  Nanos reset_ns = 0;       ///< until full if nothing is out; windows: until the window ends
  Nanos next_token_ns = 0;  ///< until one more is free; 0: full or clamped
  struct Lessee {
    std::string node;
    std::int64_t outstanding = 0;
    Nanos expires_in_ns = 0;
    bool relay = false;  ///< it lends on to edges near it
  };
  std::vector<Lessee> lessees;
};

class Owner {
 public:
  struct Commit {
    std::uint64_t id = 0;
    std::vector<std::pair<std::string, LedgerRecord>> records;  ///< by encoded bucket
  };
  struct Effects {
    std::vector<LeaseAnswer> answers;  ///< send to answer.lessee.node
    std::vector<std::string> loads;    ///< buckets whose record is to be read; answer with Loaded
    std::optional<Commit> commit;      ///< store it; answer with Committed or CommitFailed
    bool resign = false;               ///< end now and release nothing more
    bool passive = false;              ///< everything is stored and quiet: may be let go
  };

  struct Requested {
    LeaseRequest request;
  };
  /// The stored record of a bucket, nothing when there never was one, or an error: then the waiting
  /// requests are dropped (their edges ask again) and nothing is believed about the bucket.
  struct Loaded {
    std::string bucket;
    Result<std::optional<AgedRecord>> record;
  };
  struct Committed {
    std::uint64_t id = 0;
  };
  struct CommitFailed {
    std::uint64_t id = 0;
  };
  struct PolicyChanged {
    std::shared_ptr<const LimitBook> book;
  };
  struct Tick {};
  using Event = std::variant<Requested, Loaded, Committed, CommitFailed, PolicyChanged, Tick>;

  Owner(OwnerConfig config, Epoch epoch, std::shared_ptr<const LimitBook> book, Nanos now_ns);

  void step(Event event, const Instant& now, Effects& effects);
  /// The same without a wall clock, for limits that need none.
  void step(Event event, Nanos now_ns, Effects& effects) {
    step(std::move(event), Instant{now_ns, 0, 0}, effects);
  }
  /// When to step with Tick next; kForever: not before another event.
  Nanos next_deadline() const;

  /// The buckets in memory.
  std::vector<BucketView> view(Nanos now_ns) const;
  const Epoch& epoch() const { return epoch_; }
  lease::Ledger::Counters counters() const { return retired_; }

 private:
  struct Bucket {
    std::optional<lease::Ledger> ledger;  ///< empty while its record is being read
    std::vector<LeaseRequest> waiting;    ///< for that
    Nanos used_ns = 0;
    std::uint64_t met_version = 0;  ///< the highest of the policy that anybody named for it
    bool dirty = false;             ///< something waits for the next commit
  };

  void on(Requested&& event, Nanos now_ns, Effects& effects);
  void on(Loaded&& event, Nanos now_ns, Effects& effects);
  void on(Committed&& event, Nanos now_ns, Effects& effects);
  void on(CommitFailed&& event, Nanos now_ns, Effects& effects);
  void on(PolicyChanged&& event, Nanos now_ns, Effects& effects);
  void on(Tick&& event, Nanos now_ns, Effects& effects);

  void apply(Bucket& bucket, const LeaseRequest& request, Nanos now_ns, Effects& effects);
  void rule(const BucketKey& key, Bucket& bucket, Nanos now_ns, Effects& effects);
  LedgerRecord drained(const std::optional<AgedRecord>& record,
                       const std::optional<LimitNumbers>& numbers) const;
  bool lags(const Bucket& bucket) const;
  bool forgets_window(const lease::Ledger& ledger, const BucketKey& key) const;
  void keep_window(const BucketKey& key, Bucket& bucket, Nanos now_ns, Effects& effects);
  void take(Bucket& bucket, lease::Ledger::Outcome&& outcome, Effects& effects);
  void commit_if_idle(Nanos now_ns, Effects& effects);
  void drop_quiet(Nanos now_ns, Effects& effects);
  LeaseAnswer refusal(const LeaseRequest& request, LeaseStatus status) const;

  OwnerConfig config_;
  Epoch epoch_;
  std::shared_ptr<const LimitBook> book_;
  std::map<std::string, Bucket> buckets_;
  std::vector<LeaseAnswer> gathered_;   ///< released by the next commit
  std::vector<LeaseAnswer> in_flight_;  ///< released by the commit under way
  Nanos wall_ns_ = 0;                   ///< of the event at hand; 0: not known
  std::uint64_t commit_id_ = 0;
  bool committing_ = false;
  bool resigned_ = false;
  Nanos idle_since_ns_ = 0;
  lease::Ledger::Counters retired_;  ///< of ledgers that left memory
};

}  // namespace weir::ownership
