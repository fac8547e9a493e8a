#include "src/codec/common_message.h"

#include <utility>

#include "src/base/limits.h"
#include "src/codec/envelope.h"
#include "weir/v1/cluster.pb.h"

namespace weir::codec {

void fill(const RegisterId& from, v1::RegisterId& to) {
  to.set_kind(static_cast<std::uint32_t>(from.kind));
  to.set_region(from.region);
  to.set_slot(from.slot);
}

void fill(const Epoch& from, v1::Epoch& to) {
  to.set_counter(from.counter);
  to.set_node(from.node);
  to.set_incarnation(from.incarnation);
}

RegisterId take(v1::RegisterId& from) {
  return {static_cast<RegisterId::Kind>(from.kind()), std::move(*from.mutable_region()),
          static_cast<Slot>(from.slot())};
}

Epoch take(v1::Epoch& from) {
  return {from.counter(), std::move(*from.mutable_node()), from.incarnation()};
}

tl::unexpected<Error> corrupt(const char* field, const char* what) {
  return failure(ErrorCode::corrupt, field, std::string("cluster frame: ") + what);
}

Status check_name(const char* field, const std::string& name, bool may_be_empty) {
  if (name.empty() && !may_be_empty) return corrupt(field, "must not be empty");
  if (name.size() > kMaxNameBytes) return corrupt(field, "is longer than 64 bytes");
  return {};
}

Status check_bucket(const std::string& bucket) {
  if (bucket.size() > kMaxBucketBytes) return corrupt("bucket", "is longer than 16 KiB");
  auto key = decode_bucket_key(bucket);
  if (!key) return tl::unexpected(key.error());
  return {};
}

Status check(const v1::RegisterId& reg) {
  if (reg.kind() < 1 || reg.kind() > 4) return corrupt("reg.kind", "is unknown");
  if (reg.slot() >= kSlotCount) return corrupt("reg.slot", "must be below 4096");
  const auto kind = static_cast<RegisterId::Kind>(reg.kind());
  const bool placed = kind == RegisterId::Kind::region || kind == RegisterId::Kind::pin;
  if (placed == reg.region().empty()) {
    return corrupt("reg.region", "must be empty but for a region's and a pin's register");
  }
  return check_name("reg.region", reg.region(), true);
}

}  // namespace weir::codec
