#include "src/cli/process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace weir::cli {
namespace {

std::string errno_text(int error) {
  std::array<char, 128> buffer{};
  return strerror_r(error, buffer.data(), buffer.size());
}

/// The environment but for Weir's own variables.
std::vector<char*> child_environment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("WEIR_")) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

/// What runs between fork and exec: only calls that are safe after a fork in a threaded process.
[[noreturn]] void become(const char* executable, char* const* arguments, char* const* environment,
                         int log_fd, int null_fd, int ready_fd, pid_t parent) {
  constexpr int kCannotRun = 127;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kCannotRun);  // it went before the line above
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) {
    ::sigaction(signal, &by_default, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(null_fd, STDIN_FILENO);
  ::dup2(log_fd, STDOUT_FILENO);
  ::dup2(log_fd, STDERR_FILENO);
  if (ready_fd == kReadyFd) {
    ::fcntl(ready_fd, F_SETFD, 0);
  } else {
    ::dup2(ready_fd, kReadyFd);
  }
  ::execve(executable, arguments, environment);
  ::_exit(kCannotRun);
}

struct Descriptor {
  int fd = -1;
  Descriptor() = default;
  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<SpawnedProcess> spawn_process(const SpawnRequest& request) {
  const Descriptor log(
      ::open(request.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.fd < 0) return failure(ErrorCode::io, request.log, errno_text(errno));
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null.fd < 0) return failure(ErrorCode::io, "/dev/null", errno_text(errno));
  std::array<int, 2> pipe_fds{};
  if (::pipe2(pipe_fds.data(), O_CLOEXEC) != 0) {
    return failure(ErrorCode::io, "", "pipe: " + errno_text(errno));
  }
  const Descriptor write_end(pipe_fds[1]);

  std::vector<std::string> words{request.executable};
  words.insert(words.end(), request.arguments.begin(), request.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment = child_environment();

  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(request.executable.c_str(), arguments.data(), environment.data(), log.fd, null.fd,
           write_end.fd, parent);
  }
  if (pid < 0) {
    const int error = errno;
    ::close(pipe_fds[0]);
    return failure(ErrorCode::io, "", "fork: " + errno_text(error));
  }
  return SpawnedProcess{pid, pipe_fds[0]};
}

Result<std::string> own_executable() {
  std::string path(4096, '\0');
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return failure(ErrorCode::io, "/proc/self/exe", errno_text(errno));
  path.resize(static_cast<std::size_t>(size));
  return path;
}

std::string describe_wait_status(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    const char* name = ::sigdescr_np(signal);
    return "killed by signal " + std::to_string(signal) + " (" +
           (name == nullptr ? "unknown" : name) + ")";
  }
  return "exit status " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace weir::cli
