#include "test/support/bound.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <vector>

namespace weir::test {
namespace {

__extension__ using Wide = __int128;

/// Values of positions 0..n-1 under "add to the first k" and "greatest of the first k", each in
/// O(log n): a segment tree whose nodes keep what was added to all below them.
class PrefixTree {
 public:
  explicit PrefixTree(const std::vector<Wide>& values) {
    while (width_ < values.size()) width_ *= 2;
    nodes_.resize(2 * width_);
    for (std::size_t i = 0; i < width_; ++i) {
      nodes_[width_ + i] = {i < values.size() ? values[i] : kLowest, i, 0};
    }
    for (std::size_t at = width_ - 1; at > 0; --at) pull(at);
  }

  void add_to_first(std::size_t count, Wide amount) { add(1, 0, width_, count, amount); }

  struct Greatest {
    Wide value;
    std::size_t position;
  };
  Greatest greatest_of_first(std::size_t count) const { return greatest(1, 0, width_, count); }

 private:
  struct Node {
    Wide value;
    std::size_t position;
    Wide added;
  };
  static constexpr Wide kLowest = std::numeric_limits<std::int64_t>::min() * Wide{1'000'000'000};

  void pull(std::size_t at) {
    const Node& left = nodes_[2 * at];
    const Node& right = nodes_[2 * at + 1];
    const Node& best = right.value > left.value ? right : left;
    nodes_[at].value = best.value + nodes_[at].added;
    nodes_[at].position = best.position;
  }

  void add(std::size_t at, std::size_t first, std::size_t width, std::size_t count, Wide amount) {
    if (first >= count) return;
    if (first + width <= count) {
      nodes_[at].value += amount;
      nodes_[at].added += amount;
      return;
    }
    add(2 * at, first, width / 2, count, amount);
    add(2 * at + 1, first + width / 2, width / 2, count, amount);
    pull(at);
  }

  Greatest greatest(std::size_t at, std::size_t first, std::size_t width, std::size_t count) const {
    if (first >= count) return {kLowest, first};
    if (first + width <= count) return {nodes_[at].value, nodes_[at].position};
    Greatest left = greatest(2 * at, first, width / 2, count);
    const Greatest right = greatest(2 * at + 1, first + width / 2, width / 2, count);
    if (right.value > left.value) left = right;
    left.value += nodes_[at].added;
    return left;
  }

  std::size_t width_ = 1;
  std::vector<Node> nodes_;
};

std::vector<CheckRecord> admitted_by_return(const History& history) {
  std::vector<CheckRecord> admitted;
  for (const CheckRecord& record : history) {
    if (record.verdict == Verdict::allowed && record.cost > 0) admitted.push_back(record);
  }
  std::sort(admitted.begin(), admitted.end(), [](const CheckRecord& a, const CheckRecord& b) {
    return a.returned_ns < b.returned_ns;
  });
  return admitted;
}

}  // namespace

std::string to_string(const Breach& breach) {
  std::ostringstream text;
  text << breach.admitted << " admitted, " << breach.permitted << " permitted, in "
       << (breach.to_ns - breach.from_ns) / kMicrosecond << " us from " << breach.from_ns;
  return text.str();
}

// With N(s, t) the tokens of checks inside [s, t], the worst interval has the greatest
// N(s, t) x period - count x (t - s). Only invocations matter as s and returns as t. Sweeping t
// over the returns, position j holds N(s_j, t) x period + count x s_j, and a check that returns
// adds its cost to every s up to its invocation. The last check inside an interval to be added sees
// all of it, so its own prefix is enough to look at.
std::optional<Breach> find_breach(const History& history, const LimitNumbers& limit) {
  const std::vector<CheckRecord> admitted = admitted_by_return(history);
  if (admitted.empty()) return std::nullopt;
  std::vector<Nanos> starts;
  for (const CheckRecord& record : admitted) starts.push_back(record.invoked_ns);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const Nanos origin_ns = starts.front();
  const Wide period = limit.rate_period_ns;
  const Wide count = limit.rate_count;
  std::vector<Wide> values;
  for (const Nanos start_ns : starts) values.push_back(count * (start_ns - origin_ns));
  PrefixTree tree(values);

  Wide worst = Wide{limit.capacity} * period;
  std::optional<Breach> breach;
  for (const CheckRecord& record : admitted) {
    const auto after = std::upper_bound(starts.begin(), starts.end(), record.invoked_ns);
    const auto prefix = static_cast<std::size_t>(after - starts.begin());
    tree.add_to_first(prefix, Wide{record.cost} * period);
    const auto greatest = tree.greatest_of_first(prefix);
    const Wide spent = greatest.value - count * (record.returned_ns - origin_ns);
    if (spent <= worst) continue;
    worst = spent;
    breach = Breach{starts[greatest.position], record.returned_ns, 0, 0};
  }
  if (!breach) return std::nullopt;
  for (const CheckRecord& record : admitted) {
    const bool inside = record.invoked_ns >= breach->from_ns && record.returned_ns <= breach->to_ns;
    if (inside) breach->admitted += record.cost;
  }
  const Wide refilled = count * (breach->to_ns - breach->from_ns) / period;
  breach->permitted = limit.capacity + static_cast<std::int64_t>(refilled);
  return breach;
}

std::int64_t ideal_admissions(const History& history, const LimitNumbers& limit) {
  std::vector<CheckRecord> asked;
  for (const CheckRecord& record : history) {
    if (record.verdict != Verdict::failed && record.cost > 0) asked.push_back(record);
  }
  std::sort(asked.begin(), asked.end(),
            [](const CheckRecord& a, const CheckRecord& b) { return a.invoked_ns < b.invoked_ns; });
  const Wide full = Wide{limit.capacity} * limit.rate_period_ns;
  Wide level = full;
  Nanos as_of_ns = asked.empty() ? 0 : asked.front().invoked_ns;
  std::int64_t admitted = 0;
  for (const CheckRecord& record : asked) {
    level += Wide{limit.rate_count} * (record.invoked_ns - as_of_ns);
    level = std::min(level, full);
    as_of_ns = record.invoked_ns;
    const Wide price = Wide{record.cost} * limit.rate_period_ns;
    if (price > level) continue;
    level -= price;
    admitted += record.cost;
  }
  return admitted;
}

std::int64_t use_of_quota_permille(const History& history, const LimitNumbers& limit) {
  const std::int64_t ideal = ideal_admissions(history, limit);
  if (ideal == 0) return 1000;
  std::int64_t admitted = 0;
  for (const CheckRecord& record : history) {
    if (record.verdict == Verdict::allowed && record.cost > 0) admitted += record.cost;
  }
  return admitted * 1000 / ideal;
}

}  // namespace weir::test
