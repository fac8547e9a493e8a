// Asserts that stay on in every build. For what only a bug in Weir can do; input, disks and peers
// answer with a Result instead.
#pragma once

namespace weir {

/// Prints the failed condition with its place to stderr and aborts.
[[noreturn]] void assert_failed(const char* condition, const char* file, int line);

}  // namespace weir

#define WEIR_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::weir::assert_failed(#condition, __FILE__, __LINE__))
