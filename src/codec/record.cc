#include "src/codec/record.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/base/limits.h"
#include "src/codec/ledger_message.h"
#include "src/codec/parse_protobuf.h"
#include "src/codec/seal.h"
#include "weir/v1/record.pb.h"

namespace weir::codec {
namespace {

constexpr std::uint32_t kRecordFormat = 1;

tl::unexpected<Error> corrupt(const char* field, const char* what) {
  return failure(ErrorCode::corrupt, field, std::string("stored record: ") + what);
}

Status check_numbers(const v1::LimitNumbers& numbers, std::uint64_t fraction) {
  if (numbers.capacity() < 1) return corrupt("numbers.capacity", "must be at least 1");
  const bool window = numbers.rate_count() == 0 && numbers.rate_period_ns() == 0;
  if (!window && numbers.rate_count() < 1) {
    return corrupt("numbers.rate_count", "must be at least 1");
  }
  if (!window && (numbers.rate_period_ns() < kMillisecond || numbers.rate_period_ns() > kYear)) {
    return corrupt("numbers.rate_period_ns", "must be 1 ms to 1 year");
  }
  if (window ? fraction != 0 : fraction >= static_cast<std::uint64_t>(numbers.rate_period_ns())) {
    return corrupt("fraction", "must be less than a token");
  }
  return {};
}

Status check_lessee(const v1::LesseeRecord& lessee) {
  if (lessee.node().empty() || lessee.node().size() > kMaxNameBytes) {
    return corrupt("lessees.node", "must have 1 to 64 bytes");
  }
  if (lessee.outstanding() < 0) return corrupt("lessees.outstanding", "must not be negative");
  if (lessee.spent_total() < 0) return corrupt("lessees.spent_total", "must not be negative");
  if (lessee.given_back() < 0) return corrupt("lessees.given_back", "must not be negative");
  if (lessee.ttl_remaining_ns() < 0) {
    return corrupt("lessees.ttl_remaining_ns", "must not be negative");
  }
  return {};
}

Status check_lessees(const v1::LedgerRecord& stored) {
  if (static_cast<std::size_t>(stored.lessees_size()) > kMaxLesseesPerRecord) {
    return corrupt("lessees", "are more than a ledger may have");
  }
  std::int64_t outstanding = 0;
  for (int i = 0; i < stored.lessees_size(); ++i) {
    const auto& lessee = stored.lessees(i);
    if (auto status = check_lessee(lessee); !status) return status;
    if (__builtin_add_overflow(outstanding, lessee.outstanding(), &outstanding)) {
      return corrupt("lessees.outstanding", "add up to more than an integer holds");
    }
    for (int j = 0; j < i; ++j) {
      const auto& other = stored.lessees(j);
      if (other.incarnation() == lessee.incarnation() && other.node() == lessee.node()) {
        return corrupt("lessees", "contain one twice");
      }
    }
  }
  const std::int64_t room =
      std::max<std::int64_t>(0, subtract_saturating(stored.numbers().capacity(), outstanding));
  if (stored.level() < 0 || stored.level() > room) {
    return corrupt("level", "must lie between 0 and what the capacity leaves beside the leases");
  }
  return {};
}

Status check_window(const v1::LedgerRecord& stored) {
  if (stored.used() < 0) return corrupt("used", "must not be negative");
  const bool none = stored.window_start_ns() == 0 && stored.window_end_ns() == 0;
  if (none && stored.used() != 0) return corrupt("used", "needs a window");
  if (!none && stored.window_end_ns() <= stored.window_start_ns()) {
    return corrupt("window_end_ns", "must lie after the window's start");
  }
  return {};
}

Status check_document(const v1::LedgerRecord& stored) {
  if (stored.document().size() > kMaxDocumentBytes) return corrupt("document", "is too long");
  const bool ledger = stored.level() != 0 || stored.fraction() != 0 || stored.lessees_size() != 0 ||
                      stored.numbers().capacity() != 0 || stored.used() != 0;
  if (ledger) return corrupt("document", "stands beside a ledger");
  return {};
}

}  // namespace

Status check_ledger(const v1::LedgerRecord& stored) {
  if (stored.format() != kRecordFormat) return corrupt("format", "unknown; this build knows 1");
  if (!stored.has_version() || !stored.version().has_epoch()) {
    return corrupt("version", "is missing");
  }
  if (stored.version().epoch().node().size() > kMaxNameBytes) {
    return corrupt("version.epoch.node", "is longer than 64 bytes");
  }
  if (stored.boot_id().size() > kMaxBootIdBytes) return corrupt("boot_id", "is too long");
  if (stored.wall_ns() < 0) return corrupt("wall_ns", "must not be negative");
  if (!stored.document().empty()) return check_document(stored);
  if (auto status = check_numbers(stored.numbers(), stored.fraction()); !status) return status;
  if (auto status = check_window(stored); !status) return status;
  return check_lessees(stored);
}

std::string encode_record(const StoredRecord& record, const RecordStamp& stamp) {
  v1::LedgerRecord stored;
  fill(record, stored);
  stored.set_boot_id(stamp.boot_id);
  stored.set_boot_ns(stamp.boot_ns);
  stored.set_wall_ns(stamp.wall_ns);
  std::string bytes = stored.SerializeAsString();
  append_seal(bytes);
  return bytes;
}

void fill(const StoredRecord& record, v1::LedgerRecord& stored) {
  stored.set_format(kRecordFormat);
  auto& epoch = *stored.mutable_version()->mutable_epoch();
  epoch.set_counter(record.version.epoch.counter);
  epoch.set_node(record.version.epoch.node);
  epoch.set_incarnation(record.version.epoch.incarnation);
  stored.mutable_version()->set_sequence(record.version.sequence);
  const LedgerRecord& ledger = record.ledger;
  stored.set_level(ledger.level);
  stored.set_fraction(ledger.fraction);
  auto& numbers = *stored.mutable_numbers();
  numbers.set_capacity(ledger.numbers.capacity);
  numbers.set_rate_count(ledger.numbers.rate_count);
  numbers.set_rate_period_ns(ledger.numbers.rate_period_ns);
  stored.set_policy_version(ledger.policy_version);
  stored.set_window_start_ns(ledger.window_start_ns);
  stored.set_window_end_ns(ledger.window_end_ns);
  stored.set_used(ledger.used);
  stored.set_document(ledger.document);
  stored.set_generation(ledger.generation);
  stored.set_moved_under(ledger.moved_under);
  for (const LesseeRecord& lessee : ledger.lessees) {
    auto& out = *stored.add_lessees();
    out.set_node(lessee.lessee.node);
    out.set_incarnation(lessee.lessee.incarnation);
    out.set_sequence(lessee.sequence);
    out.set_outstanding(lessee.outstanding);
    out.set_spent_total(lessee.spent_total);
    out.set_given_back(lessee.given_back);
    out.set_ttl_remaining_ns(lessee.ttl_remaining_ns);
    out.set_relay(lessee.relay);
  }
}

Result<DecodedRecord> decode_record(std::string_view bucket, std::string_view bytes) {
  const auto content = unseal(bytes);
  if (!content) return corrupt("seal", "the bytes were cut or altered");
  v1::LedgerRecord stored;
  if (!parse_protobuf(stored, *content)) return corrupt("", "not a weir.v1.LedgerRecord");
  if (auto status = check_ledger(stored); !status) return tl::unexpected(status.error());

  DecodedRecord decoded;
  decoded.stamp = {stored.boot_id(), stored.boot_ns(), stored.wall_ns()};
  decoded.record = take_record(std::string(bucket), stored);
  return decoded;
}

StoredRecord take_record(std::string bucket, const v1::LedgerRecord& stored) {
  StoredRecord record;
  record.bucket = std::move(bucket);
  const auto& epoch = stored.version().epoch();
  record.version = {{epoch.counter(), epoch.node(), epoch.incarnation()},
                    stored.version().sequence()};
  LedgerRecord& ledger = record.ledger;
  ledger.level = stored.level();
  ledger.fraction = stored.fraction();
  ledger.numbers = {stored.numbers().capacity(), stored.numbers().rate_count(),
                    stored.numbers().rate_period_ns()};
  ledger.policy_version = stored.policy_version();
  ledger.window_start_ns = stored.window_start_ns();
  ledger.window_end_ns = stored.window_end_ns();
  ledger.used = stored.used();
  ledger.document = stored.document();
  ledger.generation = stored.generation();
  ledger.moved_under = stored.moved_under();
  ledger.lessees.reserve(static_cast<std::size_t>(stored.lessees_size()));
  for (const auto& lessee : stored.lessees()) {
    ledger.lessees.push_back({{lessee.node(), lessee.incarnation()},
                              lessee.sequence(),
                              lessee.outstanding(),
                              lessee.spent_total(),
                              lessee.given_back(),
                              lessee.ttl_remaining_ns(),
                              lessee.relay()});
  }
  return record;
}

}  // namespace weir::codec
