// The inside of a Limiter, shared by its source files. Internal to src/edge.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "src/edge/evaluation.h"
#include "src/edge/limiter.h"
#include "src/edge/stripe.h"

namespace weir::edge {

class Limiter::Impl {
 public:
  Impl(LimiterConfig config, const Clock& clock, std::uint64_t seed, std::function<void()> wake);

  void set_policy(std::shared_ptr<const policy::Policy> policy);
  Result<bool> decide(const Check& check, Decision& decision);
  void decide_later(const Check& check, Completion done);
  Nanos collect(std::vector<LeaseRequest>& out);
  void on_answer(const LeaseAnswer& answer);
  void ask_again_now(const LeaseAnswer& answer);
  void grantors_gone(const std::set<RegisterId>& registers);
  void set_live_edges(std::uint32_t count) { live_edges_.store(count, std::memory_order_relaxed); }
  void set_round_trip(const RegisterId& reg, Nanos round_trip_ns);
  void begin_return();
  bool all_returned() const;
  std::vector<BucketUsage> usage(const std::string& customer) const;
  std::vector<CustomerActivity> busiest(std::size_t most);
  std::vector<CheckCount> check_counts() const;
  std::vector<LimitGauges> gauges() const;
  std::vector<LeaseView> leases() const;
  std::vector<Degradation> take_degradations();
  std::size_t bucket_count() const;
  std::size_t waiting_count() const { return waiting_count_.load(std::memory_order_relaxed); }

 private:
  class Locked;
  struct Part {
    Stripe stripe;
    std::unique_ptr<Evaluation> evaluation;
  };

  Part* part_of_bucket(std::string_view bucket);
  Part& part_of(std::string_view customer) { return parts_[slot_of(customer) % kStripes]; }
  Evaluation& evaluation_of(Part& part);
  static Result<bool> too_many();

  lease::Holder::Demand demand(Stripe& stripe, const Entry& entry, Nanos now_ns, bool leave) const;
  bool leaves(const Entry& entry, Nanos now_ns) const;
  static void schedule(Stripe& stripe, Entry& entry, Nanos at_ns);
  static void unschedule(Stripe& stripe, Entry& entry);
  Nanos share_full_ns(const Entry& entry, Nanos now_ns) const;
  void reschedule(Stripe& stripe, Entry& entry, Nanos now_ns);
  void after_run(Stripe& stripe, const Evaluation& evaluation, Nanos now_ns);
  void evict_one(Stripe& stripe, Nanos now_ns);
  void park(Stripe& stripe, const Evaluation& evaluation, std::shared_ptr<Waiter> waiter,
            bool at_front);
  void unpark(Waiter& waiter);
  void run_queue(Part& part, Entry& entry, Nanos now_ns, Stripe::Finished& finished);
  void time_out(Part& part, Nanos now_ns, Stripe::Finished& finished);
  void process(Stripe& stripe, Entry& entry, Nanos now_ns, std::vector<LeaseRequest>& out);
  Nanos collect_stripe(Part& part, std::vector<LeaseRequest>& out);
  void note_open(Stripe& stripe, Entry& entry, bool was_open, Nanos now_ns);
  static void close_one(Health& health, Nanos now_ns);
  bool erase_if_done(Stripe& stripe, Entry& entry, bool unanswered, Nanos now_ns);
  void wake_at(Stripe& stripe, Nanos at_ns);
  Nanos wait_ns(const Stripe& stripe, const Entry& entry) const;
  static void complete(Stripe::Finished& finished);

  LimiterConfig config_;
  const Clock& clock_;
  std::function<void()> wake_;
  Nanos idle_ns_ = 0;
  std::array<Part, kStripes> parts_;
  SharedBuckets shared_;
  std::atomic<std::uint32_t> live_edges_{1};
  std::atomic<std::size_t> waiting_count_{0};
  std::atomic<bool> returning_{false};
  /// The earliest instant for which `wake` was called or `collect` will come by itself.
  std::atomic<Nanos> next_wake_ns_{kForever};
  /// Names by LimitId. The mutex is for set_policy against the scrapes.
  mutable std::mutex names_mutex_;
  std::vector<std::string> names_;
};

}  // namespace weir::edge
