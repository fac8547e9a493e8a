// Helpers of the codec tests: golden vectors as hex, and the damage that every decoder must
// survive.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "src/base/random.h"

namespace weir::codec::test {

inline std::string to_hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

inline std::string from_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

/// Reads `name hex` lines of test/vectors/FILE; `#` starts a comment.
inline std::map<std::string, std::string> read_vectors(const std::string& file) {
  std::ifstream in(std::string(WEIR_VECTORS_DIR) + "/" + file);
  if (!in) throw std::runtime_error("cannot open test/vectors/" + file);
  std::map<std::string, std::string> vectors;
  std::string line;
  while (std::getline(in, line)) {
    const auto space = line.find(' ');
    if (line.empty() || line[0] == '#' || space == std::string::npos) continue;
    vectors[line.substr(0, space)] = from_hex(std::string_view(line).substr(space + 1));
  }
  return vectors;
}

/// Calls `consume` with every proper prefix of `bytes`.
template <typename Consume>
void for_each_truncation(const std::string& bytes, Consume consume) {
  for (std::size_t size = 0; size < bytes.size(); ++size) consume(bytes.substr(0, size));
}

/// Calls `consume` with every copy of `bytes` that differs in one bit.
template <typename Consume>
void for_each_bit_flip(const std::string& bytes, Consume consume) {
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string flipped = bytes;
    flipped[i / 8] =
        static_cast<char>(static_cast<unsigned char>(flipped[i / 8]) ^ (1U << (i % 8)));
    consume(flipped);
  }
}

/// Calls `consume` with `rounds` copies of `bytes` that were cut, overwritten and spliced at
/// random.
template <typename Consume>
void for_each_mutation(const std::string& bytes, std::uint64_t seed, int rounds, Consume consume) {
  Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::string mutated = bytes;
    const auto edits = random.between(1, 6);
    for (std::int64_t edit = 0; edit < edits && !mutated.empty(); ++edit) {
      const std::size_t at = random.below(mutated.size());
      const auto byte = static_cast<char>(random.below(256));
      switch (random.below(4)) {
        case 0:
          mutated[at] = byte;
          break;
        case 1:
          mutated.erase(at, random.below(8) + 1);
          break;
        case 2:
          mutated.insert(at, 1, byte);
          break;
        default:
          mutated.insert(at, mutated.substr(random.below(mutated.size()), random.below(16)));
      }
    }
    consume(mutated);
  }
}

}  // namespace weir::codec::test
