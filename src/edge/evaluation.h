// Decides one check inside its locked stripe: all limits or none (PROTOCOL E5). Internal to
// src/edge.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "src/edge/stripe.h"

namespace weir::edge {

enum class Verdict : std::uint8_t { decided, wait, too_many };

/// One for each stripe, used under its mutex; keeps its buffers.
class Evaluation {
 public:
  struct Surroundings {
    const LimiterConfig& config;
    const Clock& clock;
    SharedBuckets& shared;
    const std::atomic<std::uint32_t>& live_edges;
  };
  struct Options {
    bool first = true;        ///< the check's demand has not been counted yet
    bool from_queue = false;  ///< it stands at the head of a queue and need not queue again
    bool last = false;        ///< its wait is over: what is missing is a denial
  };

  Evaluation(Surroundings around, Stripe& stripe);

  /// Fills `decision` and takes or gives back tokens when the verdict is `decided`; otherwise
  /// nothing has changed but for counted demand and the entries that were made.
  Verdict run(const Check& check, Options options, Nanos now_ns, Decision& decision);

  /// Whether the entry's failure policy is in force; true from the first call after the suspicion
  /// time on, until the owner speaks (I2).
  bool is_degraded(const Entry& entry, Nanos now_ns);

  /// After `wait`: the entries that lack tokens, in the order of the limits.
  const std::vector<Entry*>& lacking() const { return lacking_; }
  /// Entries that this check used: their next request may have come closer.
  const std::vector<Entry*>& touched() const { return touched_; }
  /// True when the last run made an entry beyond the stripe's share of max_buckets.
  bool crowded() const { return crowded_; }

 private:
  enum class State : std::uint8_t { fits, refused, lacks, blocked, unlimited };
  struct Item {
    const policy::MatchedLimit* matched = nullptr;
    State state = State::fits;
    Source source = Source::policy;
    Nanos retry_ns = 0;  ///< -1: never
    Entry* entry = nullptr;
    NodeBucket* node = nullptr;
    bool by_policy = false;  ///< under a failure policy: not out of the lease
  };

  void resolve(const Check& check, Nanos now_ns, Item& item);
  void resolve_node(const Check& check, Nanos now_ns, Item& item);
  Entry* find_or_make_entry(const Check& check, const Item& item, Nanos now_ns);
  void judge(const Check& check, Options options, Nanos now_ns, Item& item);
  void judge_leased(const Check& check, Options options, Nanos now_ns, Item& item);
  void judge_degraded(const Check& check, Nanos now_ns, Item& item);
  LocalCounter& static_share(Item& item, Nanos now_ns);
  LocalCounter::Now moment(const Item& item, Nanos now_ns) const;
  const limit::Calendar* calendar_of(const Item& item) const;
  bool take(const Check& check, Nanos now_ns);
  void take_item(std::int64_t cost, Nanos now_ns, Item& item);
  void undo_item(std::int64_t cost, Nanos now_ns, Item& item);
  void note_shadows(const Check& check);
  Verdict conclude(const Check& check, Nanos now_ns, Decision& decision);
  void describe(const Check& check, bool allowed, Nanos now_ns, Decision& decision);
  void describe_item(const Check& check, Nanos now_ns, const Item& item, LimitDecision& out);
  void count(const Decision& decision);
  void tally(const Check& check, bool allowed);

  Surroundings around_;
  Stripe& stripe_;
  std::unique_lock<std::mutex> shared_lock_;
  std::vector<policy::MatchedLimit> matched_;
  std::vector<Item> items_;
  std::vector<Entry*> lacking_;
  std::vector<Entry*> touched_;
  std::string key_;
  bool crowded_ = false;
};

}  // namespace weir::edge
