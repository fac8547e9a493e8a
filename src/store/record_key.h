// How records are ordered: the keys of RocksDB and of the memory twin. FOR EVER: a byte changed
// here loses every record on every disk (test/unit/store_key_test.cc holds golden bytes).
//
//   'r' | u8 kind of register | varint length, region | u16 slot, big-endian | bucket
//                                            one record; the value is codec::encode_record
//   'm' | name                               a value of WriteBatch::meta
//   's' | name                               the store's own: format, incarnation, count, unsynced
//
// A bucket (BucketKey, src/model/ids.h) starts with its customer, so a register's records and a
// customer's records are each one range of keys.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "src/model/ids.h"

namespace weir::store {

inline constexpr char kRecordPrefix = 'r';
inline constexpr char kMetaPrefix = 'm';
inline constexpr char kOwnPrefix = 's';

/// What the keys of all records of a register start with, and no other key.
std::string register_prefix(const RegisterId& reg);

std::string record_key(const RegisterId& reg, std::string_view bucket);

std::string meta_key(std::string_view name);

/// How many bytes of a record's key, register and customer included, all records of one customer
/// share; nothing when `key` does not reach that far.
std::optional<std::size_t> customer_prefix_bytes(std::string_view key);

/// A bucket for people: its customer and limit, or its bytes in hex when it cannot be read.
std::string describe_bucket(std::string_view bucket);

}  // namespace weir::store
