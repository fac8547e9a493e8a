#include "src/base/system_clock.h"

#include <sys/random.h>
#include <time.h>

#include <cerrno>
#include <fstream>

#include "src/base/assert.h"

namespace weir {
namespace {

Nanos read_clock(clockid_t id) {
  timespec now{};
  WEIR_ASSERT(clock_gettime(id, &now) == 0);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace

Nanos SystemClock::boot_ns() const { return read_clock(CLOCK_BOOTTIME); }

Nanos SystemClock::wall_ns() const { return read_clock(CLOCK_REALTIME); }

std::uint64_t SystemSeedSource::next_seed() {
  std::uint64_t seed = 0;
  ssize_t filled = 0;
  // Early in a boot the kernel may still be gathering randomness, and a signal ends that wait.
  do {
    filled = getrandom(&seed, sizeof seed, 0);
  } while (filled < 0 && errno == EINTR);
  WEIR_ASSERT(filled == static_cast<ssize_t>(sizeof seed));
  return seed;
}

std::string system_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace weir
