// The grantor's ledger of one bucket: what is free, what is out on lease, who waits (PROTOCOL D,
// G).
//
// A pure state machine: every call takes the grantor's boot clock, nothing is sent from here.
// Grants and TTL extensions come back as `Outcome::after_commit` and may leave the owner only once
// the record taken after them is stored by a majority (PROTOCOL B6); `Outcome::now` may leave at
// once.
//
// Invariant after every call, asserted: 0 <= level <= max(0, capacity - outstanding()).
//
// Calendar windows (numbers without rate and period; PROTOCOL H): level = quota - used -
// outstanding within the window in force, nothing flows in. The grantor tells the wall clock with
// `set_wall` before it calls anything else, and opens the next window when `wants_window`. A lease
// ends with its window; at that end every entry whose lease ends with it goes, so nothing of the
// old window is ever credited to the new one. A lease that outlives its window (granted by a token
// bucket before, or under a clock that was stepped since) counts against the new one until it
// expires, and its lessee hears `unknown`. Before the wall clock is told a window grants nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/time.h"
#include "src/lease/terms.h"
#include "src/limit/calendar.h"
#include "src/limit/token_bucket.h"
#include "src/model/lease.h"

namespace weir::lease {

/// A parked request is dropped after half of the TTL, and is answered `ask_again` instead of tokens
/// after this part of it (PROTOCOL G3).
inline constexpr Nanos kParkedPartOfTtl = 2;
inline constexpr std::int64_t kTooOldPermille = 350;
/// One turn of all parked lessees under sustained overload takes at most this part of the TTL:
/// short enough that nobody's request gets too old meanwhile.
inline constexpr std::int64_t kTurnPermille = 400;
/// What was saved for a lessee that has been bidden to ask again waits this long for it, then it is
/// for the others.
inline constexpr Nanos kAskAgainNs = 250 * kMillisecond;
/// Parked lessees hear `empty` again this often, so that what they tell their callers is never
/// older than a second (PROTOCOL E7) and nobody polls.
inline constexpr Nanos kParkedRefreshNs = 800 * kMillisecond;
/// Under sustained overload parked lessees are served in portions of this many tokens or this much
/// refill, whichever is more, instead of token by token.
inline constexpr std::int64_t kPortionTokens = 8;
inline constexpr Nanos kPortionNs = 100 * kMillisecond;
/// All portions out together are at most one in this many parts of the capacity.
inline constexpr std::int64_t kRoomParts = 3;
/// At lower demand they are served in portions of this much refill, below what a check waits.
inline constexpr Nanos kShortPortionNs = 20 * kMillisecond;
/// Whoever was heard within this time counts as a contender for the taper (PROTOCOL G2).
inline constexpr Nanos kContenderNs = 2 * kSecond;
/// A holder is asked to give back at most this often while somebody waits.
inline constexpr Nanos kRecallEveryNs = 500 * kMillisecond;
/// What was granted is not recalled before this time: its caller may have been denied and told to
/// come back, and a second is the least that callers wait who count in seconds.
inline constexpr Nanos kComeBackNs = 1200 * kMillisecond;

/// No lease is granted for less than this before the end of its window: it would arrive dead.
inline constexpr Nanos kShortestLeaseNs = 10 * kMillisecond;

/// The sequence of an entry whose lease outlived its window: no request is younger, so what its
/// lessee says is never booked. Stored like any other.
inline constexpr std::uint64_t kOutlivedSequence = UINT64_MAX;
/// A relay grants nothing for less than this part of the TTL: it renews its own lease first.
inline constexpr std::int64_t kShortestLentPermille = 20;

/// What a grantor does with one bucket.
class Ledger {
 public:
  struct Outcome {
    std::vector<LeaseAnswer> now;
    std::vector<LeaseAnswer> after_commit;
    bool changed = false;  ///< the stored record no longer says all that is here
    void append(Outcome&& other);
  };

  /// Counters for metrics and tests; they only grow.
  struct Counters {
    std::uint64_t breaches = 0;  ///< D4: a lessee said what cannot be
    std::uint64_t burnt = 0;     ///< tokens that expired with their lease (D6)
  };

  /// A new bucket is full (PROTOCOL B10).
  Ledger(std::string bucket, const LimitNumbers& numbers, std::uint64_t policy_version,
         LeaseTerms terms, Nanos now_ns);
  /// Continues from a stored record: refill is credited and leases are aged by `age_ns` (B9).
  Ledger(std::string bucket, const LedgerRecord& record, Nanos age_ns, LeaseTerms terms,
         Nanos now_ns);

  // A relay's ledger (PROTOCOL F; ledger_lent.cc). Its tokens are lent from above and nothing flows
  // in; give-backs are passed on, not credited. All else is as at an owner.

  /// An empty one. `grantor` is the incarnation that sub-leases' counters belong to (F3).
  static Ledger of_relay(std::string bucket, std::uint64_t grantor, LeaseTerms terms, Nanos now_ns);
  /// The lease from above holds until `deadline_ns` (boot clock) and has brought `tokens` more.
  Outcome lend(std::int64_t tokens, Nanos deadline_ns, Nanos now_ns);
  /// Tokens that leave the level: given up to the owner.
  void withdraw(std::int64_t tokens);
  /// The lease from above is lost: everything lent is forgotten, and with it all counters. Whoever
  /// waits with counters of the old grantor hears `unknown`, the others wait on.
  Outcome restart(std::uint64_t grantor, Nanos now_ns);
  /// Asks whoever holds tokens and does not wait for what lies idle.
  Outcome recall_below(Nanos now_ns);
  /// Says `empty` to all who wait: the owner has said so.
  Outcome say_empty(Nanos now_ns);
  /// The request of this lessee waits no longer.
  void drop_parked(const LesseeId& lessee);

  /// What the lessees below lack, for one request to the owner.
  struct Demand {
    std::int64_t need = 0;  ///< of the lessee whose turn it is; 0: nobody waits
    std::int64_t want = 0;  ///< of all who wait
    std::int64_t rate_per_s = 0;
    std::uint32_t lessees = 0;  ///< that ask or spend at this time
  };
  Demand demand(Nanos now_ns) const;
  /// What its parked request needs, at least 1.
  std::int64_t need_of(const LesseeId& lessee) const;
  /// What has been spent and given back below since the last call.
  struct Reports {
    std::int64_t spent = 0;  ///< reported or burnt
    std::int64_t given_back = 0;
  };
  Reports take_reports();
  std::uint64_t grantor() const { return lent_ ? lent_->grantor : 0; }

  /// Books a request and serves whoever can be served.
  Outcome request(const LeaseRequest& request, Nanos now_ns);
  /// Time passed: expiries, parked requests that fit now, refreshed denials.
  Outcome tick(Nanos now_ns);
  /// Another policy: its numbers rule from `now_ns` on (D8).
  Outcome set_numbers(const LimitNumbers& numbers, std::uint64_t policy_version, Nanos now_ns);
  /// While the limit's numbers are not known here in their highest version: books and lets expire,
  /// but grants nothing, extends nothing and denies nobody; who wants tokens hears `pending` and
  /// waits (D8).
  Outcome withhold(bool withholds, Nanos now_ns);
  /// Everything back to full but for what is out on lease (`weir customer reset`).
  Outcome reset(Nanos now_ns);

  /// What the grantor's wall clock says at `now_ns`; it may step.
  void set_wall(Nanos wall_ns, Nanos now_ns);
  /// True when a calendar window is to be opened before anything can be granted: there is none, or
  /// by the wall clock as told it is over.
  bool wants_window(Nanos now_ns) const;
  /// The window in force, if any, whether it is over or not.
  std::optional<limit::WindowSpan> window() const;
  /// Begins the calendar's window `span` (UTC, it contains the wall clock as told), but not before
  /// the end of the last one (H1). Full, less what leases that outlive the last window hold.
  Outcome open_window(const limit::WindowSpan& span, Nanos now_ns);
  /// Until the window in force ends; 0 when there is none or it is over.
  Nanos window_left_ns(Nanos now_ns) const;
  bool windowed() const { return numbers_.rate_count == 0 && numbers_.rate_period_ns == 0; }

  /// When `tick` next has something to do; kForever: not before the next request.
  Nanos next_deadline() const;

  /// The record of this moment; lessees with nothing to remember are left out.
  LedgerRecord record(Nanos now_ns);

  /// True when the stored record alone can say all that is here: nothing out, nobody parked.
  bool quiet() const;

  std::int64_t level() const { return level_.tokens; }
  limit::Level exact_level() const { return level_; }
  std::int64_t outstanding() const;
  const LimitNumbers& numbers() const { return numbers_; }
  std::uint64_t policy_version() const { return policy_version_; }
  const std::string& bucket() const { return bucket_; }
  const Counters& counters() const { return counters_; }
  Nanos as_of_ns() const { return as_of_ns_; }

  /// One lessee as `explain` shows it.
  struct LesseeView {
    LesseeId lessee;
    std::int64_t outstanding = 0;
    Nanos expires_ns = 0;
    bool parked = false;
    bool relay = false;
  };
  std::vector<LesseeView> lessees() const;

 private:
  struct Entry {
    std::uint64_t sequence = 0;
    std::int64_t outstanding = 0;
    std::int64_t spent_total = 0;
    std::int64_t given_back = 0;
    Nanos expires_ns = 0;

    // What follows is the activation's own and is not recorded.
    std::int64_t want = 0;
    std::int64_t need = 0;
    std::int64_t rate_per_s = 0;
    std::int64_t weight = 1;  ///< lessees whose part it gets: a relay's
    std::int64_t served = 0;  ///< relays: tokens granted; whoever had least comes first
    bool relay = false;       ///< recorded, too
    bool strict = false;
    bool parked = false;
    bool asked_again = false;  ///< its tokens wait for a younger request (G3)
    /// How long before `expires_ns` its lessee has surely stopped (E3). Of a lease that another
    /// activation granted, by another clock, only the guard is known.
    Nanos margin_ns = kGuardNs;
    Nanos heard_ns = 0;      ///< when its last request came; parked since then if parked
    Nanos refreshed_ns = 0;  ///< when it last heard `empty`
    Nanos recalled_ns = INT64_MIN;
    std::int64_t credit = 0;              ///< free tokens saved up for its need (E6)
    std::optional<LeaseAnswer> answered;  ///< to the same sequence, by this activation (D4)
  };
  using Entries = std::map<LesseeId, Entry>;

  struct CalendarWindow {
    limit::WindowSpan span;
    std::int64_t used = 0;  ///< spent in it, as reported or burnt
  };

  /// What a relay's ledger has beside the others'.
  struct Lent {
    std::uint64_t grantor = 0;
    Nanos deadline_ns = 0;  ///< of the lease from above
    Reports reports;
  };

  Ledger(std::string bucket, std::uint64_t grantor, LeaseTerms terms, Nanos now_ns);
  void end_backing(Nanos now_ns);
  void share_lent(const std::map<LesseeId, std::int64_t>& targets);
  std::vector<LesseeId> fair_order() const;
  std::int64_t least_served() const;
  bool is_crowded_for(const LeaseRequest& request);

  void advance(Nanos now_ns);
  void refill_to(Nanos instant_ns);
  void clamp();
  void count_used(std::int64_t spent, std::int64_t given_back);
  void leave_window(Nanos end_ns, Outcome& out);
  std::int64_t room() const;
  std::int64_t ceiling() const;
  std::int64_t reserved() const;
  std::int64_t free() const { return level_.tokens - reserved(); }
  bool exceeds() const { return outstanding() > room(); }
  bool may_extend() const;
  LeaseAnswer not_now(const LesseeId& lessee, const Entry& entry, Nanos now_ns) const;
  Nanos ttl_ns() const;
  bool ends_soon() const;
  Nanos lease_end_ns(Nanos now_ns) const;
  Nanos entry_end_ns(Nanos now_ns) const;
  void extend(Entry& entry, LeaseAnswer& answer, Nanos now_ns) const;
  void live_until(Entry& entry, Nanos end_ns, Nanos now_ns) const;

  Entry* find_or_create(const LeaseRequest& request, Nanos now_ns, Outcome& out);
  void repeat_answer(const LeaseRequest& request, Entry& entry, Nanos now_ns, Outcome& out);
  bool book(const LeaseRequest& request, Entry& entry);
  void answer_booked(const LeaseRequest& request, Entry& entry, Nanos now_ns, Outcome& out);

  void serve(Nanos now_ns, Outcome& out);
  void grant_saved(Nanos now_ns, Outcome& out);
  void share_out(const std::map<LesseeId, std::int64_t>& targets);
  void pool(const std::map<LesseeId, std::int64_t>& targets);
  std::map<LesseeId, std::int64_t> targets(Nanos now_ns) const;
  std::int64_t target(const Entry& entry, std::int64_t taper, std::int64_t portion) const;
  bool is_overloaded() const;
  std::int64_t portion() const;
  void grant(const LesseeId& lessee, Entry& entry, Nanos now_ns, Outcome& out);
  void refresh_parked(Nanos now_ns, Outcome& out);
  void recall_idle(Nanos now_ns, Outcome& out);
  void recall(Nanos now_ns, Outcome& out);
  static void unpark(Entry& entry);
  Nanos parked_until(const Entry& entry) const;

  LeaseAnswer answer(const LesseeId& lessee, const Entry& entry, LeaseStatus status) const;
  Nanos retry_for(const LesseeId& lessee, const Entry& entry, Nanos now_ns) const;
  Nanos time_to_room(std::int64_t tokens, Nanos now_ns) const;
  Nanos next_service() const;

  std::string bucket_;
  LimitNumbers numbers_;
  std::uint64_t policy_version_ = 0;
  bool withholds_ = false;
  LeaseTerms terms_;
  limit::Level level_;
  Nanos as_of_ns_ = 0;
  std::optional<CalendarWindow> window_;
  std::optional<Nanos> wall_ahead_ns_;  ///< the wall clock less the boot clock, as last told
  std::int64_t carried_ = 0;  ///< spent lately as a token bucket; the first window begins with it
  std::optional<Lent> lent_;  ///< set: the ledger of a relay
  Entries entries_;
  LesseeId turn_;                ///< who got the last odd token; the next in order gets the next
  std::int64_t turn_given_ = 0;  ///< so many at this turn; as many as its weight are due
  Counters counters_;
};

}  // namespace weir::lease
