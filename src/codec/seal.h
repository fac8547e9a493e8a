// The end mark of stored records and cluster frames. Protobuf alone accepts a message that was cut
// between two fields and takes most flipped bits for other values; sealed bytes end with field 15,
// a fixed32 checksum over everything before, so that neither goes unnoticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/hash.h"

namespace weir::codec {

inline constexpr std::size_t kSealBytes = 5;
inline constexpr char kSealTag = (15 << 3) | 5;  ///< field 15, wire type fixed32

inline std::uint32_t seal_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(hash_bytes(bytes));
}

/// Appends the seal of all that is in `bytes`.
inline void append_seal(std::string& bytes) {
  const std::uint32_t seal = seal_of(bytes);
  bytes.push_back(kSealTag);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(seal >> shift));
  }
}

/// The bytes before the seal, or nothing when the seal is missing or wrong.
inline std::optional<std::string_view> unseal(std::string_view bytes) {
  if (bytes.size() < kSealBytes) return std::nullopt;
  const std::string_view content = bytes.substr(0, bytes.size() - kSealBytes);
  const std::string_view mark = bytes.substr(content.size());
  if (mark[0] != kSealTag) return std::nullopt;
  std::uint32_t seal = 0;
  for (unsigned i = 0; i < 4; ++i) {
    seal |= static_cast<std::uint32_t>(static_cast<unsigned char>(mark[1 + i])) << (8 * i);
  }
  if (seal != seal_of(content)) return std::nullopt;
  return content;
}

}  // namespace weir::codec
