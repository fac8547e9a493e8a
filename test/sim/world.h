// The simulated world: one thread, one queue of events in true time, one seed. Nothing here knows
// Weir.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/base/time.h"

namespace weir::sim {

/// The time of day when a run begins, the start of an hour; scenarios may add to it.
inline constexpr Nanos kEpochWallNs = 1'800'000'000 * kSecond;
static_assert(kEpochWallNs % kHour == 0);

/// What happened, as lines; the hash of all of them shows whether two runs were the same.
class Trace {
 public:
  explicit Trace(bool keep_all = false) : keep_all_(keep_all) {}
  void add(Nanos true_ns, const std::string& line);
  void note(Nanos true_ns, const std::string& line);
  bool keeps_all() const { return keep_all_; }
  std::uint64_t hash() const { return hash_; }
  const std::deque<std::string>& lines() const { return lines_; }

 private:
  bool keep_all_;
  std::uint64_t hash_ = 0;
  std::deque<std::string> lines_;
};

class World {
 public:
  World(std::uint64_t seed, bool keep_trace) : random(seed), trace(keep_trace) {}

  Nanos now_ns() const { return now_ns_; }
  /// Runs `what` at a true time, not before now; the same time in the order of the calls.
  void at(Nanos true_ns, std::function<void()> what);
  void after(Nanos span_ns, std::function<void()> what) { at(now_ns_ + span_ns, std::move(what)); }
  /// Runs events until the true time is `end_ns`.
  void run_until(Nanos end_ns);
  void log(const std::string& line) { trace.add(now_ns_, line); }
  /// A line for readers of a whole trace, made only for them and not part of the hash.
  template <typename Line>
  void detail(const Line& line) {
    if (trace.keeps_all()) trace.note(now_ns_, line());
  }

  Random random;
  Trace trace;

 private:
  struct Event {
    Nanos at_ns;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
    }
  };
  Nanos now_ns_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<Event> queue_;
};

/// A machine's clocks: the boot clock starts anew with each boot and runs off the true rate by
/// `drift_ppm`; the wall clock may be stepped.
class SimClock final : public Clock {
 public:
  SimClock(const World& world, std::int64_t drift_ppm, Nanos wall_offset_ns);
  Nanos boot_ns() const override;
  Nanos wall_ns() const override;

  void set_drift(std::int64_t drift_ppm);
  void set_wall_offset(Nanos offset_ns) { wall_offset_ns_ = offset_ns; }
  void reboot();
  /// The process stops for `span_ns` right after its next read of the boot clock: later reads see
  /// the end of the stop, until `end_stall`. Whoever calls this stops the process for real then.
  void begin_stall(Nanos span_ns);
  void end_stall() { stall_ns_ = 0; }
  /// The true span in which this clock advances by `span_ns`, rounded up.
  Nanos true_span(Nanos span_ns) const;

 private:
  const World& world_;
  std::int64_t drift_ppm_;
  Nanos wall_offset_ns_;
  Nanos base_true_ns_ = 0;
  Nanos base_boot_ns_ = 0;
  Nanos stall_ns_ = 0;
  mutable int reads_ = 0;
};

}  // namespace weir::sim
