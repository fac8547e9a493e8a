// What the ledger's tests share: a ledger of 100 tokens at 10/s with a TTL of 10 s, as in the
// schedules of PROTOCOL.md, and short ways to ask it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/lease/ledger.h"

namespace weir::lease::test {

inline constexpr LimitNumbers kNumbers{100, 10, kSecond};
inline constexpr LeaseTerms kTerms{.ttl_ns = 10 * kSecond, .slew_permille = 100};
inline constexpr Nanos kStart = 1000 * kSecond;

inline Ledger full_ledger(const LimitNumbers& numbers = kNumbers) {
  return {"bucket", numbers, 1, kTerms, kStart};
}

struct Ask {
  std::int64_t want = 0;
  std::int64_t need = 0;
  std::int64_t held = 0;
  std::int64_t spent = 0;
  std::int64_t given_back = 0;
  bool strict = true;  ///< exactly what is wanted: no taper
};

inline LeaseRequest request_of(const std::string& node, std::uint64_t sequence, const Ask& ask,
                               std::uint64_t incarnation = 1) {
  LeaseRequest request;
  request.bucket = "bucket";
  request.lessee = {node, incarnation};
  request.sequence = sequence;
  request.want = ask.want;
  request.need = ask.need;
  request.held = ask.held;
  request.spent_total = ask.spent;
  request.given_back = ask.given_back;
  request.strict = ask.strict;
  return request;
}

/// The answers to one lessee, committed or not.
inline std::vector<LeaseAnswer> answers_to(const Ledger::Outcome& outcome,
                                           const std::string& node) {
  std::vector<LeaseAnswer> result;
  for (const auto* answers : {&outcome.now, &outcome.after_commit}) {
    for (const LeaseAnswer& answer : *answers) {
      if (answer.lessee.node == node) result.push_back(answer);
    }
  }
  return result;
}

/// The one answer to `node`; fails when there is not exactly one.
inline LeaseAnswer answer_to(const Ledger::Outcome& outcome, const std::string& node) {
  const auto answers = answers_to(outcome, node);
  EXPECT_EQ(answers.size(), 1U);
  return answers.empty() ? LeaseAnswer{} : answers.front();
}

/// Ticks whenever the ledger asks for it, until `end_ns`; returns all outcomes.
inline Ledger::Outcome run_until(Ledger& ledger, Nanos end_ns) {
  Ledger::Outcome all;
  int ticks = 0;
  while (ledger.next_deadline() <= end_ns) {
    all.append(ledger.tick(ledger.next_deadline()));
    EXPECT_LT(++ticks, 100'000) << "the ledger spins";
    if (ticks >= 100'000) break;
  }
  all.append(ledger.tick(end_ns));
  return all;
}

}  // namespace weir::lease::test
