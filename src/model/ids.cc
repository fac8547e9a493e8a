#include "src/model/ids.h"

#include "src/base/assert.h"
#include "src/base/hash.h"

namespace weir {
namespace {

void append_text(std::string& out, std::string_view text) {
  append_varint(out, text.size());
  out.append(text);
}

std::optional<std::string> take_text(std::string_view& bytes) {
  const auto length = take_varint(bytes);
  if (!length || *length > bytes.size()) return std::nullopt;
  std::string text(bytes.substr(0, *length));
  bytes.remove_prefix(*length);
  return text;
}

std::optional<unsigned> take_byte(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  const unsigned value = static_cast<unsigned char>(bytes.front());
  bytes.remove_prefix(1);
  return value;
}

tl::unexpected<Error> bad_key(const char* what) {
  return failure(ErrorCode::corrupt, "bucket", std::string("not a bucket key: ") + what);
}

}  // namespace

Slot slot_of(std::string_view customer) {
  return static_cast<Slot>(hash_bytes(customer) % kSlotCount);
}

std::string to_string(const RegisterId& id) {
  const std::string slot = std::to_string(id.slot);
  switch (id.kind) {
    case RegisterId::Kind::global:
      return "global/" + slot;
    case RegisterId::Kind::region:
      return "region:" + id.region + "/" + slot;
    case RegisterId::Kind::pin:
      return "pin:" + id.region + "/" + slot;
    case RegisterId::Kind::topology:
      return "topology";
  }
  return "unknown/" + slot;
}

RegisterId register_of(Scope scope, std::string_view region, std::string_view customer) {
  WEIR_ASSERT(scope != Scope::node);
  if (scope == Scope::region) {
    return {RegisterId::Kind::region, std::string(region), slot_of(customer)};
  }
  return {RegisterId::Kind::global, {}, slot_of(customer)};
}

std::string to_string(const Epoch& epoch) {
  return std::to_string(epoch.counter) + "." + epoch.node + "." + std::to_string(epoch.incarnation);
}

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto byte = take_byte(bytes);
    if (!byte) return std::nullopt;
    if (shift == 63 && *byte > 1) return std::nullopt;
    value |= static_cast<std::uint64_t>(*byte & 0x7F) << shift;
    if ((*byte & 0x80) == 0) {
      if (*byte == 0 && shift > 0) return std::nullopt;
      return value;
    }
  }
  return std::nullopt;
}

void BucketKeyWriter::begin(std::string_view customer, Scope scope, std::string_view region,
                            std::string_view limit) {
  append_text(out_, customer);
  out_.push_back(static_cast<char>(scope));
  if (scope == Scope::region) append_text(out_, region);
  append_text(out_, limit);
}

void BucketKeyWriter::attribute(std::string_view name, const std::string* value) {
  append_text(out_, name);
  out_.push_back(value == nullptr ? '\0' : '\1');
  if (value != nullptr) append_text(out_, *value);
}

std::string encode(const BucketKey& key) {
  std::string out;
  BucketKeyWriter writer(out);
  writer.begin(key.customer, key.scope, key.region, key.limit);
  for (const auto& [name, value] : key.attributes) {
    writer.attribute(name, value ? &*value : nullptr);
  }
  return out;
}

Result<BucketKey> decode_bucket_key(std::string_view bytes) {
  BucketKey key;
  auto customer = take_text(bytes);
  if (!customer) return bad_key("the customer is cut off");
  key.customer = std::move(*customer);
  const auto scope = take_byte(bytes);
  if (!scope || *scope < 1 || *scope > 3) return bad_key("unknown scope");
  key.scope = static_cast<Scope>(*scope);
  if (key.scope == Scope::region) {
    auto region = take_text(bytes);
    if (!region) return bad_key("the region is cut off");
    key.region = std::move(*region);
  }
  auto limit = take_text(bytes);
  if (!limit || limit->empty()) return bad_key("the limit's name is cut off or empty");
  key.limit = std::move(*limit);
  while (!bytes.empty()) {
    auto name = take_text(bytes);
    if (!name || name->empty()) return bad_key("an attribute's name is cut off or empty");
    if (!key.attributes.empty() && key.attributes.back().first >= *name) {
      return bad_key("attributes are not in order");
    }
    const auto present = take_byte(bytes);
    if (!present || *present > 1) return bad_key("an attribute's presence is neither 0 nor 1");
    std::optional<std::string> value;
    if (*present == 1) {
      value = take_text(bytes);
      if (!value) return bad_key("an attribute's value is cut off");
    }
    key.attributes.emplace_back(std::move(*name), std::move(value));
  }
  return key;
}

std::string customer_prefix(std::string_view customer) {
  std::string out;
  append_text(out, customer);
  return out;
}

}  // namespace weir
