// Counts what a test allocates, on its own thread.
#pragma once

#include <cstddef>

namespace weir::policy {

/// Calls of operator new by this thread so far.
std::size_t allocations_so_far();

}  // namespace weir::policy
