// Names of things that outlive a process: slots, registers, epochs, versions, lessees, bucket keys.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/limits.h"
#include "src/base/result.h"
#include "src/model/limit.h"

namespace weir {

using Slot = std::uint16_t;  ///< in [0, kSlotCount)

/// The slot of a customer: hash_bytes(customer) mod kSlotCount. For ever.
Slot slot_of(std::string_view customer);

/// A unit of ownership (PROTOCOL A1). `region` is empty for the kinds global and topology; the one
/// register of kind topology (slot 0) holds the cluster's shape (J1).
struct RegisterId {
  enum class Kind : std::uint8_t { global = 1, region = 2, pin = 3, topology = 4 };
  Kind kind = Kind::global;
  std::string region;
  Slot slot = 0;

  friend auto operator<=>(const RegisterId&, const RegisterId&) = default;
};
std::string to_string(const RegisterId& id);

/// The register of a leased limit's bucket. `scope` is region or global; `region` is the region of
/// the edge that asks.
RegisterId register_of(Scope scope, std::string_view region, std::string_view customer);

/// The ballot of an ownership (PROTOCOL B1): ordered by counter, then node, then incarnation.
struct Epoch {
  std::uint64_t counter = 0;
  std::string node;
  std::uint64_t incarnation = 0;  ///< of the process

  friend auto operator<=>(const Epoch&, const Epoch&) = default;
};
std::string to_string(const Epoch& epoch);

/// The version of a record (PROTOCOL B4).
struct Version {
  Epoch epoch;
  std::uint64_t sequence = 0;

  friend auto operator<=>(const Version&, const Version&) = default;
};

/// Who holds a lease: a node, and the incarnation of its holder for one bucket (PROTOCOL D1).
struct LesseeId {
  std::string node;
  std::uint64_t incarnation = 0;

  friend auto operator<=>(const LesseeId&, const LesseeId&) = default;
};

/// One limit applied to one customer and the other attributes it is keyed by. A tuple, never joined
/// text. Its encoding is the key in every map and store, is injective, starts with the customer,
/// and is for ever (golden bytes in test/vectors):
///
///   varint length, customer         empty for limits of scope `node` without `customer` in `by`
///   u8 scope
///   varint length, region           only for scope region
///   varint length, limit name
///   for each other attribute of `by`, in byte order of the names:
///     varint length, name, u8 0 (absent) | u8 1, varint length, value
///
/// varint is LEB128 as in Protobuf.
struct BucketKey {
  std::string customer;
  Scope scope = Scope::global;
  std::string region;
  std::string limit;
  std::vector<std::pair<std::string, std::optional<std::string>>> attributes;

  friend auto operator<=>(const BucketKey&, const BucketKey&) = default;
};

/// Appends the encoding of a key, part by part, into a caller's buffer: the hot path builds keys
/// without making a BucketKey.
class BucketKeyWriter {
 public:
  explicit BucketKeyWriter(std::string& out) : out_(out) {}
  /// `region` is written for scope region only. Attributes follow in byte order of their names.
  void begin(std::string_view customer, Scope scope, std::string_view region,
             std::string_view limit);
  void attribute(std::string_view name, const std::string* value);

 private:
  std::string& out_;
};

std::string encode(const BucketKey& key);
/// Refuses what `encode` could not have written.
Result<BucketKey> decode_bucket_key(std::string_view bytes);
/// What `encode` writes first for a customer: all its buckets share this prefix, and no other
/// customer's do.
std::string customer_prefix(std::string_view customer);

/// Appends `value` as LEB128.
void append_varint(std::string& out, std::uint64_t value);
/// Takes a LEB128 number off the front of `bytes`; refuses more than ten bytes and overlong forms.
std::optional<std::uint64_t> take_varint(std::string_view& bytes);

}  // namespace weir
