// The command line of `weir`: flags and environment -> options of a command -> exit status.
#pragma once

#include "src/cli/commands.h"

namespace weir::cli {

/// Parses and runs. Returns the exit status; never exits the process itself.
int run_program(int argc, const char* const* argv, Console console);

}  // namespace weir::cli
