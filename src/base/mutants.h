// Rules of PROTOCOL.md that a test may break, so that the simulator's checkers are themselves
// tested. In production `WEIR_MUTANT(name)` is the constant false and costs nothing.
//
// The simulator compiles the pure modules once more with -DWEIR_MUTANTS. Only there the set of
// broken rules exists: the one mutable global of the code base, set before a run by
// test/sim, read by its single thread. A program never links both builds of a module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir {

/// The breakable rules, in the order of kMutants.
enum class Mutant : std::uint8_t {
  epoch_reused,
  promise_not_durable,
  read_unfenced,
  takeover_unprepared,
  sequence_repeats,
  older_replaces_newer,
  stale_accepted,
  answers_before_commit,
  renewal_uncommitted,
  prepare_without_poll,
  age_forfeited,
  age_of_any_holder,
  clock_error_once,
  wiped_votes_at_once,
  replaced_store_counts,
  learner_without_scan,
  started_by_majority,
  votes_on_join,
  version_uncommitted,
  moves_without_copy,
  moves_with_old_set,
  recovered_starts_full,
  moved_as_new,
  register_unchecked,
  incarnation_reused,
  restart_overwrites,
  breach_credited,
  equal_booked_again,
  burnt_before_refill,
  clamp_ignores_leases,
  expired_put_back,
  older_policy_grants,
  lessees_unbounded,
  resent_too_early,
  resent_same_sequence,
  answer_used_twice,
  deadline_from_answer,
  no_drift_margin,
  cached_clock,
  taken_before_all_suffice,
  held_while_waiting,
  first_come,
  denial_for_ever,
  grants_to_old,
  window_by_own_clock,
  window_reopened,
  window_redefined,
  lease_outlives_window,
  suspicion_hasty,
  relay_reports_own_level,
  relay_outlives_backing,
  relay_counters_survive,
  relay_pending_denies,
};

struct MutantInfo {
  Mutant mutant;
  std::string_view name;
  std::string_view rule;  ///< of PROTOCOL.md
};

inline constexpr auto kMutants = std::to_array<MutantInfo>({
    {Mutant::epoch_reused, "epoch-reused", "B1, B4"},
    {Mutant::promise_not_durable, "promise-not-durable", "B2"},
    {Mutant::read_unfenced, "read-unfenced", "B3"},
    {Mutant::takeover_unprepared, "takeover-unprepared", "B2, B3"},
    {Mutant::sequence_repeats, "sequence-repeats", "B4"},
    {Mutant::older_replaces_newer, "older-replaces-newer", "B5"},
    {Mutant::stale_accepted, "stale-accepted", "B5"},
    {Mutant::answers_before_commit, "answers-before-commit", "B6"},
    {Mutant::renewal_uncommitted, "renewal-uncommitted", "B6"},
    {Mutant::prepare_without_poll, "prepare-without-poll", "B8"},
    {Mutant::age_forfeited, "age-forfeited", "B9"},
    {Mutant::age_of_any_holder, "age-of-any-holder", "B9"},
    {Mutant::clock_error_once, "clock-error-once", "B9"},
    {Mutant::wiped_votes_at_once, "wiped-votes-at-once", "C1, C2"},
    {Mutant::replaced_store_counts, "replaced-store-counts", "C2"},
    {Mutant::learner_without_scan, "learner-without-scan", "C2"},
    {Mutant::started_by_majority, "started-by-majority", "C3"},
    {Mutant::votes_on_join, "votes-on-join", "C3"},
    {Mutant::version_uncommitted, "version-uncommitted", "J1"},
    {Mutant::moves_without_copy, "moves-without-copy", "J2"},
    {Mutant::moves_with_old_set, "moves-with-old-set", "J2"},
    {Mutant::recovered_starts_full, "recovered-starts-full", "C4"},
    {Mutant::moved_as_new, "moved-as-new", "J3"},
    {Mutant::register_unchecked, "register-unchecked", "J3"},
    {Mutant::incarnation_reused, "incarnation-reused", "D1"},
    {Mutant::restart_overwrites, "restart-overwrites", "D2"},
    {Mutant::breach_credited, "breach-credited", "D3, D4"},
    {Mutant::equal_booked_again, "equal-booked-again", "D4"},
    {Mutant::burnt_before_refill, "burnt-before-refill", "D5"},
    {Mutant::clamp_ignores_leases, "clamp-ignores-leases", "D5"},
    {Mutant::expired_put_back, "expired-put-back", "D6"},
    {Mutant::older_policy_grants, "older-policy-grants", "D8"},
    {Mutant::lessees_unbounded, "lessees-unbounded", "D9"},
    {Mutant::resent_too_early, "resent-too-early", "E1"},
    {Mutant::resent_same_sequence, "resent-same-sequence", "E1"},
    {Mutant::answer_used_twice, "answer-used-twice", "E2"},
    {Mutant::deadline_from_answer, "deadline-from-answer", "E3"},
    {Mutant::no_drift_margin, "no-drift-margin", "E3"},
    {Mutant::cached_clock, "cached-clock", "E4"},
    {Mutant::taken_before_all_suffice, "taken-before-all-suffice", "E5"},
    {Mutant::held_while_waiting, "held-while-waiting", "E6"},
    {Mutant::first_come, "first-come", "E6"},
    {Mutant::denial_for_ever, "denial-for-ever", "E7"},
    {Mutant::grants_to_old, "grants-to-old", "G3"},
    {Mutant::window_by_own_clock, "window-by-own-clock", "H1"},
    {Mutant::window_reopened, "window-reopened", "H1"},
    {Mutant::window_redefined, "window-redefined", "H1"},
    {Mutant::lease_outlives_window, "lease-outlives-window", "H2"},
    {Mutant::suspicion_hasty, "suspicion-hasty", "I2"},
    {Mutant::relay_reports_own_level, "relay-reports-own-level", "F1"},
    {Mutant::relay_outlives_backing, "relay-outlives-backing", "F2"},
    {Mutant::relay_counters_survive, "relay-counters-survive", "D2, F3"},
    {Mutant::relay_pending_denies, "relay-pending-denies", "F4"},
});

static_assert(kMutants.size() <= 64, "broken_rules has one bit for each");

/// The mutant of this name; nothing: there is none.
constexpr std::optional<Mutant> mutant_named(std::string_view name) {
  for (const MutantInfo& info : kMutants) {
    if (info.name == name) return info.mutant;
  }
  return std::nullopt;
}

#ifdef WEIR_MUTANTS
/// One bit for each broken rule.
inline std::uint64_t broken_rules = 0;

inline bool is_broken(Mutant mutant) {
  return (broken_rules >> static_cast<unsigned>(mutant) & 1U) != 0;
}
#else
constexpr bool is_broken(Mutant) { return false; }
#endif

}  // namespace weir

/// True while a test breaks this rule.
#define WEIR_MUTANT(name) (::weir::is_broken(::weir::Mutant::name))
