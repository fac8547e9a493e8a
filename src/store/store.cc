#include "src/store/store.h"

#include <algorithm>

#include "src/base/mutants.h"

namespace weir::store {

AcceptanceStamp before(AcceptanceStamp stamp, Nanos age_ns) {
  stamp.boot_ns = subtract_saturating(stamp.boot_ns, age_ns);
  // Records keep no wall clock before 1970; a later stamp only makes the age smaller.
  stamp.wall_ns = std::max<Nanos>(0, subtract_saturating(stamp.wall_ns, age_ns));
  return stamp;
}

Nanos age_of(const AcceptanceStamp& accepted, const AcceptanceStamp& now,
             Nanos max_clock_error_ns) {
  // An unknown boot id equals no other: the boot clock may have started anew in between.
  const bool same_boot = !accepted.boot_id.empty() && accepted.boot_id == now.boot_id;
  if (same_boot) return std::max<Nanos>(0, subtract_saturating(now.boot_ns, accepted.boot_ns));
  // The clock may have been that much ahead now and that much behind then.
  const std::int64_t errors = WEIR_MUTANT(clock_error_once) ? 1 : 2;
  const Nanos margin_ns = multiply_saturating(errors, std::max<Nanos>(0, max_clock_error_ns));
  const Nanos passed_ns = subtract_saturating(now.wall_ns, accepted.wall_ns);
  return std::max<Nanos>(0, subtract_saturating(passed_ns, margin_ns));
}

}  // namespace weir::store
