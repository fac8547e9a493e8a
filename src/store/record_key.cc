#include "src/store/record_key.h"

namespace weir::store {

std::string register_prefix(const RegisterId& reg) {
  std::string key;
  key.push_back(kRecordPrefix);
  key.push_back(static_cast<char>(reg.kind));
  append_varint(key, reg.region.size());
  key += reg.region;
  key.push_back(static_cast<char>(reg.slot >> 8));
  key.push_back(static_cast<char>(reg.slot & 0xFF));
  return key;
}

std::string record_key(const RegisterId& reg, std::string_view bucket) {
  std::string key = register_prefix(reg);
  key += bucket;
  return key;
}

std::string meta_key(std::string_view name) {
  std::string key(1, kMetaPrefix);
  key += name;
  return key;
}

std::optional<std::size_t> customer_prefix_bytes(std::string_view key) {
  constexpr std::size_t kPrefixAndKindBytes = 2;
  constexpr std::size_t kSlotBytes = 2;
  if (key.size() < kPrefixAndKindBytes || key.front() != kRecordPrefix) return std::nullopt;
  std::string_view rest = key.substr(kPrefixAndKindBytes);
  const auto region_bytes = take_varint(rest);
  if (!region_bytes || rest.size() < kSlotBytes || *region_bytes > rest.size() - kSlotBytes) {
    return std::nullopt;
  }
  rest.remove_prefix(static_cast<std::size_t>(*region_bytes) + kSlotBytes);
  const auto customer_bytes = take_varint(rest);
  if (!customer_bytes || *customer_bytes > rest.size()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(*customer_bytes));
  return key.size() - rest.size();
}

std::string describe_bucket(std::string_view bucket) {
  if (const auto key = decode_bucket_key(bucket)) {
    return "limit " + key->limit + " of customer " + key->customer;
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::size_t kMostBytesShown = 64;
  std::string text = "bucket 0x";
  for (const char c : bucket.substr(0, kMostBytesShown)) {
    text.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    text.push_back(kDigits[static_cast<unsigned char>(c) & 0xF]);
  }
  if (bucket.size() > kMostBytesShown) text += "...";
  return text;
}

}  // namespace weir::store
