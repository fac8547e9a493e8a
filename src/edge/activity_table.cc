#include "src/edge/activity_table.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "src/base/time.h"

namespace weir::edge {
namespace {

using Rate = std::int64_t CustomerActivity::*;

std::vector<CustomerActivity> first_by(Rate rate, std::vector<CustomerActivity> all,
                                       std::size_t most) {
  std::erase_if(all, [&](const CustomerActivity& each) { return each.*rate == 0; });
  const auto before = [&](const CustomerActivity& a, const CustomerActivity& b) {
    return std::tie(b.*rate, a.customer) < std::tie(a.*rate, b.customer);
  };
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
  std::partial_sort(all.begin(), end, all.end(), before);
  all.erase(end, all.end());
  return all;
}

}  // namespace

std::vector<CustomerActivity> most_checked(std::vector<CustomerActivity> all, std::size_t most) {
  return first_by(&CustomerActivity::checks_per_s, std::move(all), most);
}

std::vector<CustomerActivity> most_denied(std::vector<CustomerActivity> all, std::size_t most) {
  return first_by(&CustomerActivity::denied_per_s, std::move(all), most);
}

std::vector<CustomerActivity> most_active(const std::vector<CustomerActivity>& all,
                                          std::size_t most) {
  std::vector<CustomerActivity> result = most_checked(all, most);
  const auto checked = static_cast<std::ptrdiff_t>(result.size());
  for (CustomerActivity& each : most_denied(all, most)) {
    if (std::find(result.begin(), result.begin() + checked, each) != result.begin() + checked) {
      continue;
    }
    result.push_back(std::move(each));
  }
  return result;
}

void ActivityTable::hear(const std::string& node, ActivityReport report, Nanos now_ns) {
  const std::lock_guard lock(mutex_);
  std::erase_if(heard_, [&](const auto& each) { return !lives(each.second, now_ns); });
  if (heard_.size() >= kMaxEdgesHeard && !heard_.contains(node)) return;
  heard_[node] = {now_ns, std::move(report)};
}

ActivityTable::Top ActivityTable::top(Nanos now_ns) const {
  Top top;
  std::unordered_map<std::string, CustomerActivity> sums;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [node, heard] : heard_) {
      if (!lives(heard, now_ns)) continue;
      ++top.edges;
      for (const CustomerActivity& each : heard.report.customers) {
        CustomerActivity& sum = sums[each.customer];
        sum.checks_per_s = add_saturating(sum.checks_per_s, each.checks_per_s);
        sum.denied_per_s = add_saturating(sum.denied_per_s, each.denied_per_s);
      }
    }
  }
  std::vector<CustomerActivity> all;
  all.reserve(sums.size());
  for (auto& [customer, sum] : sums) {
    sum.customer = customer;
    all.push_back(std::move(sum));
  }
  top.busiest = most_checked(all, kMostListed);
  top.denied = most_denied(std::move(all), kMostListed);
  return top;
}

}  // namespace weir::edge
