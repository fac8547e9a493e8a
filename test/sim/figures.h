// The figures of test/sim/README.md: `weir_sim --figures`.
#pragma once

#include <cstdint>

namespace weir::sim {

/// Runs the scenarios that are measured with these seeds and prints a line for each. False: a
/// checker found something.
bool print_figures(std::uint64_t from, std::uint64_t to);

}  // namespace weir::sim
