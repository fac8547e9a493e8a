// Writes records until it is killed: `store_crash_writer FOLDER FIRST`. Prints each record's number
// after its write has been acknowledged. store_rocks_test starts and kills it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "test/unit/store_support.h"

int main(int argc, char** argv) {
  using namespace weir::store;
  if (argc != 3) return 2;
  const ManualClock clock;
  FixedSeeds seeds(2);
  auto store = open_rocks_store(rocks_options(argv[1], clock, seeds));
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    return 1;
  }
  for (std::uint64_t i = std::strtoull(argv[2], nullptr, 10);; ++i) {
    const auto written = (*store)->write(batch_of({record_of("c" + std::to_string(i), i)}));
    if (!written) return 1;
    const std::string line = std::to_string(i) + "\n";
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return 1;
  }
}
