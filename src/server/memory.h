// Keeps the allocator's free memory from staying resident after a flood of customers has passed.
// glibc only. One thread.
#pragma once

#include <cstddef>

namespace weir::server {

/// Call first in main: few arenas, so that freed memory is found again by other threads.
void limit_arenas();

class MemoryTrimmer {
 public:
  /// Gives free pages back to the system when much more has been freed than after the last trim.
  /// Returns whether it did.
  bool trim_if_worthwhile();

 private:
  std::size_t free_after_trim_ = 0;
};

}  // namespace weir::server
