#include "src/server/memory.h"

#include <malloc.h>

#include <algorithm>

namespace weir::server {
namespace {

constexpr int kArenas = 4;
/// A trim holds each arena's lock while it walks its free lists: not for less than this.
constexpr std::size_t kWorthwhileBytes = 16 * 1024 * 1024;

}  // namespace

void limit_arenas() { ::mallopt(M_ARENA_MAX, kArenas); }

bool MemoryTrimmer::trim_if_worthwhile() {
  const std::size_t free_bytes = ::mallinfo2().fordblks;
  // What a trim has given back stays in this count, so the reference is the count after it.
  free_after_trim_ = std::min(free_after_trim_, free_bytes);
  if (free_bytes - free_after_trim_ < kWorthwhileBytes) return false;
  ::malloc_trim(0);
  free_after_trim_ = ::mallinfo2().fordblks;
  return true;
}

}  // namespace weir::server
