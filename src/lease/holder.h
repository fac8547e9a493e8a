// The lessee's side of one bucket: tokens in hand, what has been asked, what was last heard
// (PROTOCOL E, G1).
//
// A pure state machine for an edge or a relay. The owner of a Holder calls `take` on its hot path
// and `poll` when its deadline comes; `poll` returns the one request that should be sent now, if
// any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "src/base/mutants.h"
#include "src/base/time.h"
#include "src/lease/sizing.h"
#include "src/lease/terms.h"
#include "src/model/lease.h"

namespace weir::lease {

/// A request is taken for lost after this many round trips, and at least this time, doubling (E1).
inline constexpr std::int64_t kLostAfterRoundTrips = 4;
inline constexpr Nanos kLostAfterNs = 50 * kMillisecond;
/// The doubling ends here, and for each answer that came too late one doubling later: were it to
/// end before the first answer can come, no answer would ever be the latest.
inline constexpr Nanos kLongestResendNs = 1 * kSecond;
inline constexpr std::uint8_t kMostLate = 1;
/// A return that is not answered is repeated this often; then its tokens are left to burn (E9).
inline constexpr int kReturnTries = 4;
/// A denial learnt from the owner is believed this long (E7).
inline constexpr Nanos kDenialNs = 1 * kSecond;
/// A report by itself goes at most this often (G1).
inline constexpr Nanos kReportEveryNs = 500 * kMillisecond;
/// Besides one and a half round trips, what is left when a holder asks for more lasts this long:
/// time for the owner to store the grant.
inline constexpr Nanos kCommitAllowanceNs = 5 * kMillisecond;
/// A grant that has not come this long, and a round trip, after its promised instant is asked for
/// again: whoever promised it may be gone.
inline constexpr Nanos kOverdueNs = 20 * kMillisecond;
/// Retry instants told again within this much of each other are one instant.
inline constexpr Nanos kRetryJitterNs = 5 * kMillisecond;
/// A recalled holder that took tokens within this time keeps them.
inline constexpr Nanos kBusyNs = 100 * kMillisecond;
/// Window ends told within this much of each other are one end, told by answers of different speed.
inline constexpr Nanos kWindowJitterNs = 5 * kSecond;

class Holder {
 public:
  /// What the surroundings know when they ask for the next request.
  struct Demand {
    std::int64_t need = 0;     ///< cost of the oldest waiting check; 0: nobody waits
    std::int64_t waiting = 0;  ///< costs of all waiting checks
    bool look = false;         ///< somebody waits for a first word without wanting tokens
    bool strict = false;       ///< keep no lease
    bool probe = false;        ///< the owner is silent: ask on until it is known to be (I2)
    bool leave = false;        ///< give everything back (idle, eviction, shutdown)
    Nanos round_trip_ns = 0;   ///< to the owner, as far as known; or to its relay
    Nanos upstream_ns = 0;     ///< from the relay to the owner; 0: no relay
    // A relay's own: what its ledger has lent on, and how much is asked for there.
    std::int64_t lent = 0;         ///< tokens
    std::int64_t rate_per_s = -1;  ///< instead of the measured one; -1: none
    std::uint32_t weight = 1;
    std::uint64_t fresh_incarnation = 0;  ///< random; used if a new incarnation begins (D1)
  };

  /// What an answer meant.
  enum class Heard : std::uint8_t {
    ignored,   ///< not the latest sequence, or used already (E2)
    tokens,    ///< tokens came, or what is held lives on
    denied,    ///< nothing to give now: see denied()
    restart,   ///< a new incarnation begins with the next request
    pending,   ///< no decision; somebody is there
    recalled,  ///< give back what is idle
    nobody,    ///< not the owner: no sign of one
  };

  // The hot path. Tokens are valid until `deadline_ns`, checked on a fresh clock by the caller
  // after taking (E4).
  std::int64_t held() const { return held_; }
  Nanos deadline_ns() const { return deadline_ns_; }
  void take(std::int64_t cost, Nanos now_ns) {
    held_ -= cost;
    spent_total_ += cost;
    used_ns_ = now_ns;
  }
  /// Undoes `take` of the same lease: the same incarnation, with no request sent in between (E5).
  void put_back(std::int64_t cost) {
    held_ += cost;
    spent_total_ -= cost;
  }
  /// Drops what has expired. The owner counts it as spent unless it hears of it in time (D6).
  void expire(Nanos now_ns) {
    if (window_end_ns_ != 0 && now_ns >= window_end_ns_) leave_window();
    if (held_ > 0 && now_ns >= deadline_ns_) held_ = 0;
  }
  /// A relay's tokens are spent below (PROTOCOL F1): `own` is what it could still lend on, `spent`
  /// what has been reported or burnt there since the last call, `unit` the least that is of use.
  void lend(std::int64_t own, std::int64_t spent, std::int64_t unit, Nanos used_ns) {
    lends_ = true;
    held_ = own;
    spent_total_ = add_saturating(spent_total_, spent);
    unit_ = std::max<std::int64_t>(1, unit);
    used_ns_ = used_ns;
  }
  /// Negative cost: goes to the owner with the next request (D7).
  void give_back(std::int64_t tokens) { given_back_ = add_saturating(given_back_, tokens); }
  /// Every check, admitted or not, once.
  void note_demand(std::int64_t tokens, Nanos now_ns) {
    demand_.add(tokens, now_ns);
    unit_ = tokens;
  }

  /// True when a denial learnt from the owner settles a check of this cost now (E7).
  bool denied(std::int64_t cost, Nanos now_ns) const {
    const bool fresh = now_ns - told_ns_ < kDenialNs || WEIR_MUTANT(denial_for_ever);
    return now_ns < retry_at_ns_ && fresh && (cost >= denied_need_ || cost > known_level_);
  }
  /// When the owner will have tokens for the denied need; boot clock of this node.
  Nanos retry_at_ns() const { return retry_at_ns_; }
  std::int64_t denied_need() const { return denied_need_; }
  /// A changed policy or epoch: ask anew (E7).
  void forget_denial() {
    retry_at_ns_ = 0;
    ask_anew_ = true;
  }

  /// The owner's level and total outstanding as last told, and when. told_ns() 0: never heard.
  std::int64_t known_level() const { return known_level_; }
  std::int64_t known_outstanding() const { return known_outstanding_; }
  Nanos known_next_token_ns() const { return known_next_token_ns_; }
  Nanos told_ns() const { return told_ns_; }
  /// When the calendar window that the owner told ends, by this node's boot clock; 0: none told, or
  /// it is over.
  Nanos window_end_ns() const { return window_end_ns_; }
  std::int64_t rate_per_s(Nanos now_ns) const { return demand_.rate_per_s(now_ns); }

  /// The request to send now, if one is due. The caller fills in bucket, register and lessee node.
  std::optional<LeaseRequest> poll(const Demand& demand, const LeaseTerms& terms, Nanos now_ns);
  /// When to poll again if nothing happens before.
  Nanos next_deadline(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const;
  Heard on_answer(const LeaseAnswer& answer, const LeaseTerms& terms, Nanos now_ns);

  /// Somebody else owns the bucket: the open request is due again at once. False: it is not that
  /// request.
  bool redirected(const LeaseAnswer& answer) {
    if (!open_ || answer.lessee.incarnation != incarnation_ || answer.sequence != sequence_)
      return false;
    resend_now_ = true;
    return true;
  }
  /// Whoever had the latest request is gone, and with it what it knew of one that waits there.
  /// False: none is under way.
  bool grantor_gone() {
    if (!open_ && !parked_) return false;
    resend_now_ = open_;
    parked_ = false;
    return true;
  }
  /// True while a request is unanswered.
  bool open() const { return open_; }
  /// When the unanswered request was sent; its answer's arrival measures the round trip.
  Nanos sent_ns() const { return sent_ns_; }
  /// True when forgetting this holder loses nothing: nothing held, nothing to report, nothing
  /// asked.
  bool empty() const { return held_ == 0 && !open_ && !unreported(); }
  std::uint64_t incarnation() const { return incarnation_; }
  /// Its next request begins a new incarnation.
  bool restarts() const { return restart_; }
  /// Who lent what is held: the incarnation of a relay; 0: the owner, or nobody yet (F3).
  std::uint64_t grantor() const { return grantor_; }

 private:
  bool unreported() const {
    return spent_total_ != reported_spent_ || given_back_ != reported_given_back_;
  }
  bool parked(const LeaseTerms& terms, Nanos now_ns) const {
    return parked_ && now_ns < parked_until(terms);
  }
  /// Asked again a little before the grantor forgets the request and what it saved up for it (G3).
  Nanos parked_until(const LeaseTerms& terms) const {
    return first_sent_ns_ + terms.ttl_ns / 2 - kLostAfterNs;
  }
  /// Until when a parked request is known to be in good hands.
  Nanos trusted_until(const Demand& demand) const {
    if (pending_) return sent_ns_ + lost_after_ns(demand.round_trip_ns + demand.upstream_ns);
    const Nanos overdue_ns = add_saturating(retry_at_ns_, kOverdueNs + demand.round_trip_ns);
    return std::min(told_ns_ + kDenialNs, overdue_ns);
  }
  bool due(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const;
  Nanos lost_after_ns(Nanos round_trip_ns) const;
  bool has_reason(const Demand& demand) const;
  bool due_to_look(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const {
    if (!demand.look || told_ns_ != 0) return false;
    return !parked(terms, now_ns) || now_ns >= trusted_until(demand);
  }
  std::int64_t rate(const Demand& demand, Nanos now_ns) const {
    return demand.rate_per_s >= 0 ? demand.rate_per_s : rate_per_s(now_ns);
  }
  bool due_to_wait(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const;
  bool due_to_prefetch(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const;
  std::int64_t goal(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const;
  bool clamp_binds() const {
    return capacity_ > 0 && known_level_ >= capacity_ - known_outstanding_;
  }
  /// True when, as last told, every token of the bucket is out on lease: none flows in until
  /// somebody reports what it has spent.
  bool all_out() const { return clamp_binds() && known_level_ == 0; }
  bool due_to_report(Nanos now_ns) const;
  void restart(std::uint64_t incarnation);
  bool lease_is_gone(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const;
  Nanos renew_ns(const Demand& demand, const LeaseTerms& terms) const;
  void extend(const LeaseAnswer& answer, const LeaseTerms& terms, Nanos now_ns);
  void learn(const LeaseAnswer& answer, const LeaseTerms& terms, Nanos now_ns);
  void learn_window(Nanos left_ns, Nanos now_ns);
  void leave_window();

  std::int64_t held_ = 0;
  std::int64_t spent_total_ = 0;
  Nanos deadline_ns_ = 0;
  Nanos used_ns_ = 0;
  DemandMeter demand_;
  std::int64_t unit_ = 1;  ///< cost of the latest check: less than this is of no use

  std::uint64_t incarnation_ = 0;  ///< 0: none yet
  std::uint32_t sequence_ = 0;
  std::uint8_t lost_ = 0;  ///< requests in a row that went unanswered
  std::uint8_t late_ = 0;  ///< answers in a row to requests that had been taken for lost
  bool open_ = false;
  bool parked_ = false;  ///< the latest sequence may still be granted
  bool recalled_ = false;
  bool resend_now_ = false;  ///< redirected: the open request counts as lost already
  bool restart_ = false;
  bool ask_anew_ = false;     ///< what the owner knows of this one's need may be out of date
  bool established_ = false;  ///< the grantor has an entry of this incarnation
  bool pending_ = false;      ///< parked at a relay that asks the owner (F4)
  bool lends_ = false;        ///< a relay's
  Nanos first_sent_ns_ = 0;   ///< of the latest sequence
  Nanos sent_ns_ = 0;
  std::int64_t asked_need_ = 0;  ///< with the latest sequence
  std::int64_t reported_spent_ = 0;
  std::int64_t given_back_ = 0;
  std::int64_t reported_given_back_ = 0;

  std::int64_t denied_need_ = 0;
  Nanos retry_at_ns_ = 0;
  std::int64_t known_level_ = 0;
  std::int64_t known_outstanding_ = 0;
  Nanos known_next_token_ns_ = 0;
  std::int64_t capacity_ = 0;
  Nanos told_ns_ = 0;
  Nanos window_end_ns_ = 0;
  std::uint64_t grantor_ = 0;
};

}  // namespace weir::lease
