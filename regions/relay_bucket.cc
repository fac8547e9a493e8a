#include "regions/relay_bucket.h"

#include <algorithm>
#include <utility>

#include "src/base/assert.h"
#include "src/base/mutants.h"

namespace weir::regions {
namespace {

using Outcome = lease::Ledger::Outcome;

std::uint64_t draw(Random& random) { return random.next() | 1; }

/// So long a relay for which the owner has no place sends edges on.
constexpr Nanos kTurnedAwayNs = 1 * kSecond;

}  // namespace

RelayBucket::RelayBucket(std::string bucket, RegisterId reg, Nanos round_trip_ns,
                         const RelayConfig& config, Random& random, Nanos now_ns)
    : config_(config),
      random_(random),
      reg_(std::move(reg)),
      ledger_(lease::Ledger::of_relay(std::move(bucket), draw(random), config.terms, now_ns)),
      round_trip_ns_(round_trip_ns),
      used_ns_(now_ns) {}

/// What the ledger says of its tokens, for the holder.
void RelayBucket::mirror() {
  const lease::Ledger::Reports reports = ledger_.take_reports();
  holder_.lend(ledger_.level(), reports.spent, unit_, lent_ns_);
  if (reports.given_back > 0) holder_.give_back(reports.given_back);
}

/// Before any event: what has run out by now is gone, here and below.
void RelayBucket::settle(Nanos now_ns, Outcome& out) {
  out.append(ledger_.tick(now_ns));
  mirror();
  const Nanos window_end_ns = holder_.window_end_ns();
  holder_.expire(now_ns);
  // Nothing of an old window is lent on in the next one (H2). A holder that has heard nothing yet
  // under its incarnation keeps it, and so does the grantor.
  const bool over = window_end_ns != 0 && now_ns >= window_end_ns;
  if (over && holder_.restarts()) renew_grantor(draw(random_), now_ns, out);
}

void RelayBucket::renew_grantor(std::uint64_t incarnation, Nanos now_ns, Outcome& out) {
  out.append(ledger_.restart(incarnation, now_ns));
  mirror();
}

/// The holder has more, or less, than the ledger knows: grants came, or its own level was given up.
void RelayBucket::take_up(Nanos now_ns, Outcome& out) {
  WEIR_ASSERT(holder_.incarnation() == ledger_.grantor());
  const std::int64_t more = outdated() ? 0 : holder_.held() - ledger_.level();
  if (more < 0) ledger_.withdraw(-more);
  out.append(ledger_.lend(std::max<std::int64_t>(0, more), holder_.deadline_ns(), now_ns));
}

/// An edge knows a higher version of the policy than the owner has said: until it says so too, what
/// it lends is of no use here (PROTOCOL D8).
bool RelayBucket::outdated() const {
  return met_version_ > owner_version_ && !WEIR_MUTANT(older_policy_grants);
}

/// An edge knows this version. The own level of an older one goes back, as what any lessee gives up
/// does: with the next report. What edges give up meanwhile is not lent on, either, nothing is
/// extended, and the owner's denials die with it (E7).
void RelayBucket::meet(std::uint64_t policy_version, Nanos now_ns, Outcome& out) {
  if (policy_version <= met_version_) return;
  met_version_ = policy_version;
  if (!outdated()) return;
  out.append(ledger_.withhold(true, now_ns));
  ledger_.withdraw(ledger_.level());
  mirror();
  holder_.forget_denial();
}

void RelayBucket::request(const LeaseRequest& request, Nanos now_ns, Effects effects) {
  Outcome out;
  settle(now_ns, out);
  meet(request.policy_version, now_ns, out);
  strict_ = request.strict;
  if (request.need > 0) unit_ = request.need;
  if (request.want > 0 || request.need > 0) used_ns_ = now_ns;
  const bool blank = request.held == 0 && request.spent_total == 0 && request.given_back == 0;
  const bool looks = request.want == 0 && request.need == 0 && blank;
  if (looks && holder_.told_ns() == 0 && lookers_.size() < kMaxLookers) {
    used_ns_ = now_ns;
    std::erase_if(lookers_,
                  [&](const LeaseRequest& other) { return other.lessee == request.lessee; });
    lookers_.push_back(request);
    out.now.push_back(answer_to(request, LeaseStatus::empty));
  } else {
    out.append(ledger_.request(request, now_ns));
  }
  turn(now_ns, std::move(out), effects);
}

void RelayBucket::answer(const LeaseAnswer& answer, bool ask_again, Nanos now_ns, Effects effects) {
  Outcome out;
  settle(now_ns, out);
  const bool was_open = holder_.open();
  const Nanos sent_ns = holder_.sent_ns();
  if (ask_again) static_cast<void>(holder_.redirected(answer));
  const auto heard = holder_.on_answer(answer, config_.terms, now_ns);
  if (heard != lease::Holder::Heard::nobody && heard != lease::Holder::Heard::ignored) {
    silent_since_ns_ = holder_.open() ? now_ns : 0;
    owner_version_ = std::max(owner_version_, answer.policy_version);
  }
  if (was_open && !holder_.open()) {
    // What takes longer is an outage, which says nothing of the way.
    const Nanos longest_ns = add_saturating(config_.suspicion_ns, round_trip_ns_);
    const Nanos sample_ns = std::clamp<Nanos>(now_ns - sent_ns, 1, longest_ns);
    round_trip_ns_ = round_trip_ns_ == 0 ? sample_ns : round_trip_ns_ / 8 * 7 + sample_ns / 8;
  }
  switch (heard) {
    case lease::Holder::Heard::tokens:
    case lease::Holder::Heard::denied:
      told_ = answer;
      if (!holder_.restarts()) take_up(now_ns, out);
      // Not before: what it serves then the holder would count as its own once more.
      out.append(ledger_.withhold(outdated(), now_ns));
      serve_lookers(now_ns, out);
      if (outdated()) {
        holder_.forget_denial();
      } else if (heard == lease::Holder::Heard::denied) {
        out.append(ledger_.say_empty(now_ns));
      }
      break;
    case lease::Holder::Heard::restart:
      renew_grantor(draw(random_), now_ns, out);
      break;
    case lease::Holder::Heard::recalled:
      out.append(ledger_.recall_below(now_ns));
      break;
    case lease::Holder::Heard::pending:
      // No place for this relay: whoever waits here must try another way (D9).
      if (answer.status == LeaseStatus::crowded) {
        turned_away_ns_ = now_ns;
        send_away(now_ns, out);
      }
      break;
    case lease::Holder::Heard::ignored:
    case lease::Holder::Heard::nobody:
      break;
  }
  turn(now_ns, std::move(out), effects);
}

void RelayBucket::serve_lookers(Nanos now_ns, Outcome& out) {
  for (const LeaseRequest& looker : std::exchange(lookers_, {})) {
    out.append(ledger_.request(looker, now_ns));
  }
}

void RelayBucket::tick(Nanos now_ns, Effects effects) {
  Outcome out;
  settle(now_ns, out);
  if (is_silent(now_ns)) send_away(now_ns, out);
  turn(now_ns, std::move(out), effects);
}

void RelayBucket::owner_gone(Nanos now_ns, Effects effects) {
  Outcome out;
  settle(now_ns, out);
  holder_.grantor_gone();
  turn(now_ns, std::move(out), effects);
}

void RelayBucket::forget_denial(Nanos now_ns, Effects effects) {
  Outcome out;
  settle(now_ns, out);
  holder_.forget_denial();
  turn(now_ns, std::move(out), effects);
}

void RelayBucket::leave(Nanos now_ns, Effects effects) {
  Outcome out;
  settle(now_ns, out);
  leaving_ = true;
  send_away(now_ns, out);
  turn(now_ns, std::move(out), effects);
}

/// The owner does not speak: whoever waits here is told to ask elsewhere.
void RelayBucket::send_away(Nanos now_ns, Outcome& out) {
  out.append(ledger_.say_empty(now_ns));
  for (const LeaseRequest& looker : std::exchange(lookers_, {})) {
    out.now.push_back(answer_to(looker, LeaseStatus::empty));
  }
}

lease::Holder::Demand RelayBucket::demand(Nanos now_ns) const {
  const lease::Ledger::Demand below = ledger_.demand(now_ns);
  lease::Holder::Demand demand;
  demand.need = below.need;
  demand.waiting = below.want;
  demand.look = !lookers_.empty();
  demand.strict = strict_;
  demand.leave = leaving_ || idle(now_ns);
  demand.round_trip_ns = round_trip_ns_;
  demand.lent = ledger_.outstanding();
  demand.rate_per_s = below.rate_per_s;
  demand.weight = below.lessees;
  return demand;
}

Nanos RelayBucket::idle_ns() const { return lease::idle_after_ns(config_.terms.ttl_ns); }

bool RelayBucket::idle(Nanos now_ns) const {
  return lookers_.empty() && ledger_.demand(now_ns).need == 0 && now_ns - used_ns_ >= idle_ns();
}

bool RelayBucket::is_silent(Nanos now_ns) const {
  if (leaving_) return true;
  if (turned_away_ns_ != 0 && now_ns - turned_away_ns_ < kTurnedAwayNs) return true;
  return silent_since_ns_ != 0 && now_ns - silent_since_ns_ >= config_.suspicion_ns;
}

bool RelayBucket::done(Nanos now_ns) const {
  return (leaving_ || idle(now_ns)) && lookers_.empty() && ledger_.quiet() &&
         ledger_.level() == 0 && holder_.empty();
}

void RelayBucket::ask(Nanos now_ns, Outcome& out, Effects effects) {
  mirror();
  auto wanted = demand(now_ns);
  // The grantor's incarnation is the holder's next one, unless that one has begun already (D1).
  wanted.fresh_incarnation =
      holder_.incarnation() == ledger_.grantor() ? draw(random_) : ledger_.grantor();
  auto request = holder_.poll(wanted, config_.terms, now_ns);
  if (!request) {
    if (!holder_.open()) silent_since_ns_ = 0;
    return;
  }
  if (holder_.incarnation() != ledger_.grantor()) {
    renew_grantor(holder_.incarnation(), now_ns, out);
  } else if (holder_.held() < ledger_.level()) {
    ledger_.withdraw(ledger_.level() - holder_.held());
  }
  request->reg = reg_;
  request->bucket = ledger_.bucket();
  request->lessee.node = config_.node;
  request->policy_version = std::max(owner_version_, met_version_);
  request->hop = LeaseHop::from_relay;
  if (silent_since_ns_ == 0) silent_since_ns_ = now_ns;
  effects.requests.push_back(std::move(*request));
}

/// Answers below, and asks above for what is lacking.
void RelayBucket::turn(Nanos now_ns, Outcome&& out, Effects effects) {
  for (const LeaseAnswer& answer : out.after_commit) {
    if (answer.granted > 0) lent_ns_ = now_ns;
  }
  reply_all(std::move(out), now_ns, effects);
  Outcome more;
  ask(now_ns, more, effects);
  reply_all(std::move(more), now_ns, effects);
  next_ns_ = std::min(ledger_.next_deadline(),
                      holder_.next_deadline(demand(now_ns), config_.terms, now_ns));
  if (silent_since_ns_ != 0 && !is_silent(now_ns)) {
    next_ns_ = std::min(next_ns_, silent_since_ns_ + config_.suspicion_ns);
  }
  if (!idle(now_ns)) next_ns_ = std::min(next_ns_, used_ns_ + idle_ns());
  next_ns_ = std::max(next_ns_, now_ns + 1);
}

/// A relay's grants are debited already: nothing is stored before they leave.
void RelayBucket::reply_all(Outcome&& out, Nanos now_ns, Effects effects) {
  for (auto* answers : {&out.now, &out.after_commit}) {
    for (LeaseAnswer& answer : *answers) reply(std::move(answer), now_ns, effects);
  }
}

/// Levels and denials are the owner's word, passed on with its age. `empty` is a denial only while
/// the owner's own holds (F4); who leaves denies nobody, so that edges go on.
void RelayBucket::reply(LeaseAnswer answer, Nanos now_ns, Effects effects) {
  answer.hop = LeaseHop::to_relay;
  answer.grantor = ledger_.grantor();
  answer.level = told_.level;
  answer.outstanding = told_.outstanding;
  answer.capacity = told_.capacity;
  answer.next_token_ns = told_.next_token_ns;
  answer.policy_version = told_.policy_version;
  answer.epoch = told_.epoch;
  answer.upstream_round_trip_ns = round_trip_ns_;
  answer.age_ns = holder_.told_ns() == 0 ? 0 : std::max<Nanos>(0, now_ns - holder_.told_ns());
  answer.window_left_ns = std::max<Nanos>(0, holder_.window_end_ns() - now_ns);
  if (answer.status == LeaseStatus::empty) {
    const std::int64_t need = ledger_.need_of(answer.lessee);
    const bool never = holder_.retry_at_ns() == kForever;
    const bool denied = holder_.denied(need, now_ns) && (!never || need >= holder_.denied_need());
    if (denied && !leaving_) {
      answer.retry_ns = never ? -1 : holder_.retry_at_ns() - now_ns;
      if (never) ledger_.drop_parked(answer.lessee);
    } else if (is_silent(now_ns)) {
      answer.status = LeaseStatus::not_owner;
      answer.ttl_ns = 0;
      ledger_.drop_parked(answer.lessee);
    } else if (WEIR_MUTANT(relay_pending_denies)) {
      answer.retry_ns = std::max<Nanos>(1, round_trip_ns_);
      answer.age_ns = 0;
    } else {
      answer.status = LeaseStatus::pending;
      answer.retry_ns = 0;
    }
  }
  effects.answers.push_back(std::move(answer));
}

}  // namespace weir::regions
