#include "src/config/problems.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace weir::config {

void Problems::add(Kept& to, Place place, std::string message) {
  if (to.kept.size() >= kMaxDiagnosticsPerFile) {
    ++to.dropped;
    return;
  }
  to.kept.push_back({file_, place.line, place.column, std::move(message)});
}

std::vector<Diagnostic> Problems::take(Kept& from) {
  std::stable_sort(from.kept.begin(), from.kept.end(), [](const auto& a, const auto& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (from.dropped > 0) {
    from.kept.push_back(
        {file_, 0, 0, "and " + std::to_string(from.dropped) + " more; mend the first ones"});
  }
  from.dropped = 0;
  return std::exchange(from.kept, {});
}

}  // namespace weir::config
