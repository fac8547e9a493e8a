// The real clocks and the real source of seeds. Built in main (and in tests of whole processes)
// only; pure modules may not include this file (test/tidy).
#pragma once

#include <string>

#include "src/base/random.h"
#include "src/base/time.h"

namespace weir {

class SystemClock final : public Clock {
 public:
  Nanos boot_ns() const override;
  Nanos wall_ns() const override;
};

/// Seeds from the kernel's random source.
class SystemSeedSource final : public SeedSource {
 public:
  std::uint64_t next_seed() override;
};

/// The kernel's id of this boot (/proc/sys/kernel/random/boot_id), or an empty string when there is
/// none: then every restart counts as a reboot.
std::string system_boot_id();

}  // namespace weir
