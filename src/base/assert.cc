#include "src/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace weir {

void assert_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "weir: %s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace weir
