#include "src/lease/holder.h"

#include <algorithm>

#include "src/base/mutants.h"

namespace weir::lease {

void Holder::restart(std::uint64_t incarnation) {
  incarnation_ = incarnation == 0 ? 1 : incarnation;
  sequence_ = 0;
  held_ = 0;
  spent_total_ = 0;
  reported_spent_ = 0;
  // What was sent under the old incarnation may have been booked: it is not sent again.
  given_back_ -= reported_given_back_;
  reported_given_back_ = 0;
  grantor_ = 0;
  deadline_ns_ = 0;
  open_ = parked_ = recalled_ = restart_ = established_ = false;
}

/// True when the grantor has most likely dropped this incarnation's entry: a new one saves a round
/// trip. While it asks, its entry lives on, and with it what the grantor has saved up for it.
bool Holder::lease_is_gone(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const {
  if (held_ > 0 || demand.lent > 0 || spent_total_ == 0) return false;
  const Nanos lease_end_ns = add_saturating(deadline_ns_, terms.grantor_ns() - terms.lessee_ns());
  return now_ns >= std::max(lease_end_ns, add_saturating(first_sent_ns_, terms.grantor_ns()));
}

Nanos Holder::lost_after_ns(Nanos round_trip_ns) const {
  if (WEIR_MUTANT(resent_too_early)) return kLostAfterNs;
  const Nanos first_ns =
      std::max(kLostAfterNs, multiply_saturating(kLostAfterRoundTrips, round_trip_ns));
  const Nanos doubled_ns = multiply_saturating(first_ns, 1LL << std::min<int>(lost_, 10));
  return std::min(doubled_ns, std::max(first_ns, kLongestResendNs << late_));
}

/// When the lease is to be renewed. One that nearly reaches the end of its window is not: each
/// renewal would bring less than the last.
Nanos Holder::renew_ns(const Demand& demand, const LeaseTerms& terms) const {
  if (window_end_ns_ != 0 && deadline_ns_ >= window_end_ns_ - terms.ttl_ns / 32) {
    return deadline_ns_;
  }
  if (lends_) {
    // What it lends on ends before: sub-leases are to have half of their length left.
    const Nanos lead_ns = terms.lessee_ns() / 2 + 2 * kGuardNs + demand.round_trip_ns;
    return deadline_ns_ - std::min(lead_ns, terms.lessee_ns() / 4 * 3);
  }
  return deadline_ns_ - std::max(2 * demand.round_trip_ns, terms.ttl_ns / 8);
}

std::int64_t Holder::goal(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const {
  // What lies here unused while checks come waits for another limit: it is idle (E6).
  if (demand.strict || (held_ > 0 && now_ns >= used_ns_ + kBusyNs)) return 0;
  const std::int64_t rate = this->rate(demand, now_ns);
  return tokens_in(rate, horizon_ns(rate, demand.round_trip_ns, terms.ttl_ns));
}

bool Holder::has_reason(const Demand& demand) const {
  return demand.waiting > 0 || (demand.look && told_ns_ == 0) || held_ > 0 || demand.lent > 0 ||
         unreported() || demand.probe;
}

/// Somebody waits for tokens: ask unless the owner knows of it, has spoken lately and is not late.
bool Holder::due_to_wait(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const {
  if (demand.waiting == 0 || demand.need <= held_) return false;
  if (!parked(terms, now_ns)) return true;
  const bool same =
      demand.need == asked_need_ || (demand.need < asked_need_ && known_level_ < demand.need);
  const bool known = same && !ask_anew_ && now_ns < trusted_until(demand);
  return !known && now_ns >= sent_ns_ + lost_after_ns(demand.round_trip_ns);
}

bool Holder::due_to_prefetch(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const {
  if (demand.strict || parked(terms, now_ns) || denied(1, now_ns)) return false;
  // Asking early would only park beside tokens that block the bucket until they are reported spent.
  if (all_out() && held_ > 0) return false;
  const std::int64_t rate = this->rate(demand, now_ns);
  const Nanos lead_ns = demand.round_trip_ns + demand.round_trip_ns / 2 + kCommitAllowanceNs;
  return held_ <= tokens_in(rate, lead_ns) && goal(demand, terms, now_ns) > held_;
}

/// What has been spent blocks the bucket until it is told (G1): at once when nothing at all is free
/// and this holder has nothing left either, else every now and then.
bool Holder::due_to_report(Nanos now_ns) const {
  if (!clamp_binds() || !unreported()) return false;
  return (all_out() && held_ == 0) || now_ns >= sent_ns_ + kReportEveryNs;
}

bool Holder::due(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const {
  if (open_) return resend_now_ || now_ns >= sent_ns_ + lost_after_ns(demand.round_trip_ns);
  const bool renews = (held_ > 0 || demand.lent > 0) && now_ns >= renew_ns(demand, terms) &&
                      now_ns >= sent_ns_ + kLostAfterNs;
  if (demand.leave) {
    return held_ > 0 || unreported() || parked(terms, now_ns) || (demand.lent > 0 && renews);
  }
  if (recalled_ && held_ > 0 && demand.waiting == 0 && now_ns >= used_ns_ + kBusyNs) return true;
  if (due_to_wait(demand, terms, now_ns)) return true;
  if (due_to_look(demand, terms, now_ns)) return true;
  if (demand.strict) return (held_ > 0 || unreported()) && demand.waiting == 0;
  if (due_to_prefetch(demand, terms, now_ns)) return true;
  if (given_back_ != reported_given_back_) return true;
  if (due_to_report(now_ns)) return true;
  return renews;
}

Nanos Holder::next_deadline(const Demand& demand, const LeaseTerms& terms, Nanos now_ns) const {
  if (open_) return resend_now_ ? now_ns : sent_ns_ + lost_after_ns(demand.round_trip_ns);
  if (due(demand, terms, now_ns)) return now_ns;
  Nanos next_ns = kForever;
  if (parked(terms, now_ns)) next_ns = std::min(next_ns, parked_until(terms));
  if (demand.look && told_ns_ == 0 && !demand.leave) {
    next_ns = std::min(next_ns, trusted_until(demand));
  }
  if (recalled_ && held_ > 0 && demand.waiting == 0) {
    next_ns = std::min(next_ns, used_ns_ + kBusyNs);
  }
  if (demand.waiting > 0 && demand.need > held_) {
    const Nanos lost_ns = sent_ns_ + lost_after_ns(demand.round_trip_ns);
    next_ns = std::min(next_ns, ask_anew_ ? lost_ns : std::max(lost_ns, trusted_until(demand)));
  }
  // Strict: what is left is told once nobody waits; until then only an answer changes anything.
  if (demand.strict) return std::max(next_ns, now_ns + 1);
  if (clamp_binds() && unreported()) next_ns = std::min(next_ns, sent_ns_ + kReportEveryNs);
  if (held_ > 0 || demand.lent > 0) {
    next_ns = std::min(next_ns, std::max(renew_ns(demand, terms), sent_ns_ + kLostAfterNs));
  }
  return std::max(next_ns, now_ns + 1);
}

std::optional<LeaseRequest> Holder::poll(const Demand& demand, const LeaseTerms& terms,
                                         Nanos now_ns) {
  expire(now_ns);
  if (!due(demand, terms, now_ns)) return std::nullopt;
  const bool same_again = WEIR_MUTANT(resent_same_sequence) && open_;
  if (open_) {
    open_ = parked_ = false;
    if (!resend_now_) lost_ = static_cast<std::uint8_t>(std::min(lost_ + 1, 20));
    resend_now_ = false;
    const bool returns = demand.leave && established_ && lost_ <= kReturnTries;
    if (!has_reason(demand) && !returns) return std::nullopt;
  }
  const bool leaves = demand.leave || (recalled_ && demand.waiting == 0);
  // Asking ahead is asking for whole checks: parts of one would lie idle at several edges (E6).
  std::int64_t need = demand.need;
  if (need == 0 && !leaves && !demand.strict && held_ < unit_) {
    need = goal(demand, terms, now_ns) > held_ ? unit_ : 0;
  }
  const bool gives_up = demand.leave || recalled_ ||
                        (need > held_ && !WEIR_MUTANT(held_while_waiting)) ||
                        (demand.strict && demand.waiting == 0);
  if (incarnation_ == 0 || restart_ || lease_is_gone(demand, terms, now_ns)) {
    restart(demand.fresh_incarnation);
  }
  // Whoever asks for more than it holds gives up what it holds (E6); a relay its own level only
  // (F1).
  if (gives_up) held_ = 0;
  recalled_ = ask_anew_ = false;

  LeaseRequest request;
  request.lessee.incarnation = incarnation_;
  request.sequence = same_again ? sequence_ : ++sequence_;
  request.held = held_ + (WEIR_MUTANT(relay_reports_own_level) ? 0 : demand.lent);
  request.spent_total = spent_total_;
  request.given_back = established_ ? given_back_ : 0;
  request.rate_per_s = rate(demand, now_ns);
  request.grantor = grantor_;
  request.weight = std::max<std::uint32_t>(1, demand.weight);
  request.strict = demand.strict;
  if (!leaves) {
    request.need = need;
    const std::int64_t most = std::max(demand.waiting, goal(demand, terms, now_ns));
    request.want = std::max(need, subtract_saturating(most, held_));
    request.want = std::max<std::int64_t>(0, request.want);
  }
  reported_spent_ = spent_total_;
  reported_given_back_ = request.given_back;
  asked_need_ = std::max<std::int64_t>(1, request.need);
  first_sent_ns_ = sent_ns_ = now_ns;
  resend_now_ = false;
  open_ = true;
  parked_ = false;
  return request;
}

/// The earliest of all instants told for one end is the nearest to the truth.
void Holder::learn_window(Nanos left_ns, Nanos now_ns) {
  if (left_ns <= 0) {
    window_end_ns_ = 0;
    return;
  }
  const Nanos end_ns = add_saturating(now_ns, left_ns);
  const bool same = window_end_ns_ != 0 && end_ns - window_end_ns_ < kWindowJitterNs &&
                    window_end_ns_ - end_ns < kWindowJitterNs;
  window_end_ns_ = same ? std::min(window_end_ns_, end_ns) : end_ns;
}

/// The window is over: what it gave ends with it (PROTOCOL H2), and give-backs that have not been
/// sent die with it (D7). The grantor drops its entries too, so a new incarnation begins.
void Holder::leave_window() {
  window_end_ns_ = 0;
  held_ = 0;
  reported_spent_ = spent_total_;
  given_back_ = reported_given_back_;
  parked_ = false;
  restart_ = restart_ || established_;
  retry_at_ns_ = 0;
  known_level_ = capacity_;
  known_outstanding_ = 0;
}

void Holder::learn(const LeaseAnswer& answer, const LeaseTerms& terms, Nanos now_ns) {
  lost_ = late_ = 0;
  // A relay passes on what the owner has said: a denial is never older than kDenialNs (E7).
  told_ns_ = std::max<Nanos>(1, now_ns - answer.age_ns);
  grantor_ = answer.grantor;
  established_ = true;
  known_level_ = answer.level;
  known_outstanding_ = answer.outstanding;
  known_next_token_ns_ = answer.next_token_ns;
  capacity_ = answer.capacity;
  learn_window(answer.window_left_ns, now_ns);
  // What has run out is gone before the rest lives on.
  expire(now_ns);
  held_ += answer.granted;
  extend(answer, terms, now_ns);
  expire(now_ns);
}

void Holder::extend(const LeaseAnswer& answer, const LeaseTerms& terms, Nanos now_ns) {
  if (answer.ttl_ns > 0) {
    const Nanos from_ns = WEIR_MUTANT(deadline_from_answer) ? now_ns : first_sent_ns_;
    const std::uint32_t slew_permille = WEIR_MUTANT(no_drift_margin) ? 0 : terms.slew_permille;
    const Nanos end_ns = from_ns + LeaseTerms::lessee_ns(answer.ttl_ns, slew_permille);
    deadline_ns_ = std::max(deadline_ns_, end_ns);
  }
}

Holder::Heard Holder::on_answer(const LeaseAnswer& answer, const LeaseTerms& terms, Nanos now_ns) {
  if (incarnation_ == 0 || answer.lessee.incarnation != incarnation_) return Heard::ignored;
  if (answer.status == LeaseStatus::recall) {
    recalled_ = held_ > 0 || lends_;
    return recalled_ ? Heard::recalled : Heard::ignored;
  }
  if (open_ && answer.sequence < sequence_ && late_ < kMostLate) ++late_;
  const bool used = !open_ && !parked_ && !WEIR_MUTANT(answer_used_twice);
  if (answer.sequence != sequence_ || used) return Heard::ignored;
  pending_ = false;
  // What a relay had lent on under this incarnation is forgotten: it does not go on with it.
  const bool forgotten = lends_ && restart_;
  switch (answer.status) {
    case LeaseStatus::granted:
      if (answer.granted < 0) return Heard::ignored;
      if (forgotten) {
        open_ = parked_ = false;
        return Heard::ignored;
      }
      open_ = parked_ = restart_ = false;
      retry_at_ns_ = 0;
      learn(answer, terms, now_ns);
      return Heard::tokens;
    case LeaseStatus::empty: {
      open_ = false;
      parked_ = answer.retry_ns >= 0 && !forgotten;
      learn(answer, terms, now_ns);
      const Nanos again_ns =
          answer.retry_ns < 0 ? kForever : add_saturating(now_ns, answer.retry_ns);
      // The same instant told once more differs by the time it travelled: it does not wobble.
      const bool same = denied_need_ == asked_need_ && again_ns >= retry_at_ns_ &&
                        again_ns - retry_at_ns_ < kRetryJitterNs;
      if (!same) retry_at_ns_ = again_ns;
      denied_need_ = asked_need_;
      return Heard::denied;
    }
    case LeaseStatus::unknown:
      open_ = parked_ = false;
      held_ = 0;
      restart_ = true;
      lost_ = 0;
      return Heard::restart;
    case LeaseStatus::ask_again:
      open_ = parked_ = false;
      retry_at_ns_ = 0;
      lost_ = 0;
      return Heard::pending;
    case LeaseStatus::pending:
      // A relay keeps the request and pushes what the owner says.
      pending_ = answer.hop == LeaseHop::to_relay;
      if (pending_) {
        open_ = false;
        parked_ = true;
        expire(now_ns);
        extend(answer, terms, now_ns);
      }
      lost_ = 0;
      return Heard::pending;
    case LeaseStatus::no_limit:
    case LeaseStatus::crowded:
      lost_ = 0;
      return Heard::pending;
    case LeaseStatus::not_owner:
      parked_ = false;
      return Heard::nobody;
    case LeaseStatus::recall:
      break;
  }
  return Heard::ignored;
}

}  // namespace weir::lease
