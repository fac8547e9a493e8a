// The times that bind both ends of a lease (PROTOCOL E3), computed in one place so that they cannot
// disagree.
#pragma once

#include <cstdint>

#include "src/base/mutants.h"
#include "src/base/time.h"

namespace weir::lease {

/// Added by the grantor on top of the drift margin (PROTOCOL E3).
inline constexpr Nanos kGuardNs = 250 * kMillisecond;

/// How long leases last and how wrong clocks may run.
struct LeaseTerms {
  Nanos ttl_ns = 5 * kSecond;
  /// A clock may run up to this much off the true rate; 1 + rho = 1 / (1 - slew).
  std::uint32_t slew_permille = 100;

  /// TTL / (1 + rho): how long after the first send of its request a lessee may spend.
  static constexpr Nanos lessee_ns(Nanos ttl_ns, std::uint32_t slew_permille) {
    return ttl_ns / 1000 * (1000 - slew_permille);
  }
  /// TTL x (1 + rho) + guard: how long after the grant the grantor counts the tokens as out.
  static Nanos grantor_ns(Nanos ttl_ns, std::uint32_t slew_permille) {
    if (WEIR_MUTANT(no_drift_margin)) return ttl_ns;
    const Nanos room = 1000 - static_cast<Nanos>(slew_permille);
    return (ttl_ns + room - 1) / room * 1000 + kGuardNs;
  }
  /// The longest TTL whose grantor_ns fits into `span_ns`; negative when none does.
  Nanos ttl_within(Nanos span_ns) const {
    return (span_ns - kGuardNs) / 1000 * (1000 - static_cast<Nanos>(slew_permille)) - 1000;
  }
  Nanos lessee_ns() const { return lessee_ns(ttl_ns, slew_permille); }
  Nanos grantor_ns() const { return grantor_ns(ttl_ns, slew_permille); }

  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

}  // namespace weir::lease
