// Ctrl-C and its like, for commands that go on until then. One thread.
#pragma once

#include <signal.h>

#include <ctime>

#include "src/base/time.h"

namespace weir::cli {

/// The signals that end the command, blocked while it lives so that none is lost.
class StopSignals {
 public:
  StopSignals() {
    ::sigemptyset(&set_);
    ::sigaddset(&set_, SIGINT);
    ::sigaddset(&set_, SIGTERM);
    // The terminal has gone; under nohup that is no reason to stop.
    struct sigaction hangup {};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) ::sigaddset(&set_, SIGHUP);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  }
  ~StopSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// True when one has come and waits to be taken.
  bool pending() const {
    sigset_t waiting;
    ::sigpending(&waiting);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      if (::sigismember(&set_, signal) == 1 && ::sigismember(&waiting, signal) == 1) return true;
    }
    return false;
  }

  /// True when one came within this time.
  bool wait(Nanos patience_ns) const {
    const timespec patience{patience_ns / kSecond, patience_ns % kSecond};
    return ::sigtimedwait(&set_, nullptr, &patience) > 0;
  }

 private:
  sigset_t set_{};
  sigset_t before_{};
};

}  // namespace weir::cli
