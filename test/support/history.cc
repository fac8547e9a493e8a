#include "test/support/history.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace weir::test {

Tally tally(const History& history) {
  Tally counts;
  for (const CheckRecord& record : history) {
    if (record.verdict == Verdict::allowed) ++counts.allowed;
    if (record.verdict == Verdict::denied) ++counts.denied;
    if (record.verdict == Verdict::failed) ++counts.failed;
    if (record.verdict == Verdict::denied && record.source == "timeout") ++counts.timed_out;
    if (record.source == "static_share" || record.source == "allow" || record.source == "deny") {
      ++counts.degraded;
    }
  }
  return counts;
}

History of_customer(const History& history, int customer) {
  History part;
  std::copy_if(history.begin(), history.end(), std::back_inserter(part),
               [customer](const CheckRecord& record) { return record.customer == customer; });
  return part;
}

std::string to_string(const Tally& tally) {
  std::ostringstream text;
  text << "allowed " << tally.allowed << ", denied " << tally.denied << " (timed out "
       << tally.timed_out << "), failed " << tally.failed << ", degraded " << tally.degraded;
  return text.str();
}

Nanos span_ns(const History& history) {
  if (history.empty()) return 0;
  Nanos first_ns = history.front().invoked_ns;
  Nanos last_ns = history.front().returned_ns;
  for (const CheckRecord& record : history) {
    first_ns = std::min(first_ns, record.invoked_ns);
    last_ns = std::max(last_ns, record.returned_ns);
  }
  return last_ns - first_ns;
}

Status write_history(const std::string& path, const History& history) {
  std::ofstream file(path, std::ios::trunc);
  for (const CheckRecord& record : history) {
    file << record.invoked_ns << ' ' << record.returned_ns << ' ' << record.node << ' '
         << record.cost << ' ' << static_cast<int>(record.verdict) << ' ' << record.remaining << ' '
         << record.retry_after_ms << ' ' << record.customer << ' ' << record.source << '\n';
  }
  file.close();
  if (!file) return failure(ErrorCode::io, path, "cannot be written");
  return {};
}

Result<History> read_history(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failure(ErrorCode::io, path, "cannot be read");
  History history;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    CheckRecord record;
    int verdict = 0;
    fields >> record.invoked_ns >> record.returned_ns >> record.node >> record.cost >> verdict >>
        record.remaining >> record.retry_after_ms >> record.customer;
    const bool known = verdict >= static_cast<int>(Verdict::allowed) &&
                       verdict <= static_cast<int>(Verdict::failed);
    if (!fields || !known) return failure(ErrorCode::corrupt, path, "not a record: " + line);
    record.verdict = static_cast<Verdict>(verdict);
    fields >> record.source;  // may be empty
    history.push_back(std::move(record));
  }
  return history;
}

}  // namespace weir::test
