#include "test/sim/world.h"

#include <algorithm>

#include "src/base/hash.h"

namespace weir::sim {
namespace {

constexpr std::size_t kTail = 400;
constexpr Nanos kFirstBootNs = 1000 * kSecond;
constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

void Trace::add(Nanos true_ns, const std::string& line) {
  std::string text = std::to_string(true_ns / kMicrosecond) + "us " + line;
  hash_ = hash_bytes(text, hash_);
  lines_.push_back(std::move(text));
  if (!keep_all_ && lines_.size() > kTail) lines_.pop_front();
}

void Trace::note(Nanos true_ns, const std::string& line) {
  lines_.push_back(std::to_string(true_ns / kMicrosecond) + "us   " + line);
}

void World::at(Nanos true_ns, std::function<void()> what) {
  queue_.push({std::max(true_ns, now_ns_), order_++, std::move(what)});
}

void World::run_until(Nanos end_ns) {
  while (!queue_.empty() && queue_.top().at_ns <= end_ns) {
    Event event = queue_.top();
    queue_.pop();
    now_ns_ = event.at_ns;
    event.what();
  }
  now_ns_ = end_ns;
}

SimClock::SimClock(const World& world, std::int64_t drift_ppm, Nanos wall_offset_ns)
    : world_(world),
      drift_ppm_(drift_ppm),
      wall_offset_ns_(wall_offset_ns),
      base_true_ns_(world.now_ns()),
      base_boot_ns_(kFirstBootNs) {}

Nanos SimClock::boot_ns() const {
  const Nanos passed_ns = world_.now_ns() - base_true_ns_;
  const Nanos stalled_ns = stall_ns_ > 0 && reads_++ > 0 ? stall_ns_ : 0;
  return base_boot_ns_ + passed_ns + passed_ns / kMillion * drift_ppm_ +
         passed_ns % kMillion * drift_ppm_ / kMillion + stalled_ns;
}

Nanos SimClock::wall_ns() const { return kEpochWallNs + world_.now_ns() + wall_offset_ns_; }

void SimClock::set_drift(std::int64_t drift_ppm) {
  base_boot_ns_ = boot_ns();
  base_true_ns_ = world_.now_ns();
  drift_ppm_ = drift_ppm;
}

void SimClock::begin_stall(Nanos span_ns) {
  stall_ns_ = span_ns;
  reads_ = 0;
}

void SimClock::reboot() {
  base_boot_ns_ = kSecond;
  base_true_ns_ = world_.now_ns();
}

Nanos SimClock::true_span(Nanos span_ns) const {
  const Nanos rate = kMillion + drift_ppm_;
  return span_ns / rate * kMillion + span_ns % rate * kMillion / rate + 2;
}

}  // namespace weir::sim
