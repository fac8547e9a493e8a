// The `weir` program. Everything that a command needs is built by the command (program.cc).
#include <iostream>

#include "src/cli/program.h"

int main(int argc, char** argv) {
  return weir::cli::run_program(argc, argv, weir::cli::Console{std::cout, std::cerr});
}
