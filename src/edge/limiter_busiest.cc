// Who asks a Limiter most: counts gathered beside the decisions, read once a second.

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "src/edge/activity_table.h"
#include "src/edge/limiter_impl.h"

namespace weir::edge {
namespace {

/// Most entries that one scan reads in one stripe. The counts of those used longest ago stay for
/// the next.
constexpr std::size_t kMaxScannedPerStripe = 64 * 1024;

/// Counts taken out of a stripe while it was locked; names lie in one buffer, so that little is
/// allocated meanwhile.
struct Taken {
  struct Item {
    std::size_t name_at = 0;
    std::size_t name_size = 0;
    CheckTally tally;
  };
  std::string names;
  std::vector<Item> items;

  void add(std::string_view customer, CheckTally& tally) {
    items.push_back({names.size(), customer.size(), std::exchange(tally, CheckTally{})});
    names += customer;
  }
};

/// The customer that an encoded BucketKey begins with.
std::string_view customer_of(std::string_view key) {
  const auto length = take_varint(key);
  return length ? key.substr(0, *length) : std::string_view();
}

/// What was decided since the last scan. Entries used since then are the last of the idle order,
/// among those whose eviction has put them there.
void take_counts(Stripe& stripe, Taken& taken) {
  std::size_t left = kMaxScannedPerStripe;
  for (auto entry = stripe.idle_order.rbegin(); entry != stripe.idle_order.rend(); ++entry) {
    if (entry->used_ns < stripe.scanned_ns && !entry->evicted) break;
    if (left-- == 0) break;
    if (entry->tally.decided > 0) taken.add(customer_of(entry->key), entry->tally);
  }
  for (auto& [customer, tally] : stripe.others) {
    if (tally.decided > 0) taken.add(customer, tally);
  }
}

std::int64_t per_second(std::int64_t count, Nanos span_ns) {
  if (count == 0) return 0;
  return (multiply_saturating(count, kSecond) - 1) / span_ns + 1;
}

}  // namespace

std::vector<CustomerActivity> Limiter::Impl::busiest(std::size_t most) {
  std::vector<CustomerActivity> first;
  Taken taken;
  for (Part& part : parts_) {
    taken.names.clear();
    taken.items.clear();
    Nanos span_ns = 0;
    {
      const std::lock_guard lock(part.stripe.mutex);
      const Nanos now_ns = clock_.boot_ns();
      span_ns = now_ns - part.stripe.scanned_ns;
      if (span_ns <= 0) continue;
      erase_if(part.stripe.others, [](const auto& other) { return other.second.decided == 0; });
      take_counts(part.stripe, taken);
      part.stripe.scanned_ns = now_ns;
    }
    // All of a customer's entries lie in one stripe.
    struct Sum {
      std::int64_t decided = 0;
      std::int64_t denied = 0;
    };
    std::unordered_map<std::string_view, Sum> sums;
    for (const Taken::Item& item : taken.items) {
      Sum& sum = sums[std::string_view(taken.names).substr(item.name_at, item.name_size)];
      sum.decided += item.tally.decided;
      sum.denied += item.tally.denied;
    }
    std::vector<CustomerActivity> here;
    here.reserve(sums.size());
    for (const auto& [customer, sum] : sums) {
      here.push_back({std::string(customer), per_second(sum.decided, span_ns),
                      per_second(sum.denied, span_ns)});
    }
    here = most_active(here, most);
    std::move(here.begin(), here.end(), std::back_inserter(first));
  }
  return most_active(first, most);
}

std::vector<CustomerActivity> Limiter::busiest(std::size_t most) { return impl_->busiest(most); }

}  // namespace weir::edge
