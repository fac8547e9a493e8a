// The `weir` program. Everything that a command needs is built by the command (program.cc).
#include <unistd.h>

#include <exception>
#include <iostream>

#include "src/cli/program.h"

int main(int argc, char** argv) {
  try {
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    return weir::cli::run_program(argc, argv, weir::cli::Console{std::cout, std::cerr, terminal});
  } catch (const std::exception& error) {
    // What no module has turned into an Error: memory is short, or a bug.
    std::cerr << "weir: " << error.what() << "\n";
    return weir::cli::kUnreachable;
  }
}
