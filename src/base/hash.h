// One stable 64-bit hash (XXH64, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md)
// for slots, placement and maps. Its values decide where customers live and are for ever:
// test/vectors holds golden ones.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir {

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed = 0);

/// For unordered maps that are asked with string_view and for keys hashed once.
struct StringHash {
  using is_transparent = void;
  using is_avalanching = void;
  std::size_t operator()(std::string_view text) const { return hash_bytes(text); }
};

}  // namespace weir
