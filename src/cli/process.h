// Child processes of a local cluster. Linux only.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "src/base/result.h"

namespace weir::cli {

struct SpawnRequest {
  std::string executable;
  std::vector<std::string> arguments;  ///< without the program's name
  std::string log;                     ///< file to which stdout and stderr are appended
};

struct SpawnedProcess {
  pid_t pid = 0;
  /// Reading end of a pipe whose writing end the child has as kReadyFd. The caller closes it.
  int ready_fd = -1;
};

/// The descriptor that a child gets for `--ready-fd`.
inline constexpr int kReadyFd = 3;

/// Starts a process in a group of its own (Ctrl-C at the terminal is the parent's business), with
/// no WEIR_ variable (they would beat the child's file) and with SIGKILL as its end when the
/// calling thread ends. Safe in a process with many threads.
Result<SpawnedProcess> spawn_process(const SpawnRequest& request);

/// The path of the running program.
Result<std::string> own_executable();

/// `exit status 1`, `killed by signal 9 (Killed)`; from waitpid's status.
std::string describe_wait_status(int wait_status);

}  // namespace weir::cli
