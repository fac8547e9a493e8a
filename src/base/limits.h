// Every limit on size and count that more than one module knows, with what happens there.
// A limit that one module alone knows stands in that module.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir {

/// Longest customer id and attribute value, bytes of UTF-8. Longer is refused with 400.
inline constexpr std::size_t kMaxKeyBytes = 1024;
/// Longest attribute name, bytes. Longer is refused with 400.
inline constexpr std::size_t kMaxAttributeNameBytes = 128;
/// Most attributes of one check. More is refused with 400.
inline constexpr std::size_t kMaxAttributes = 32;
/// Most limits of one policy. More is an error in `weir validate`.
inline constexpr std::size_t kMaxLimitsPerPolicy = 256;
/// Most limits that may match one check; `weir validate` cannot know, so a check that matches more
/// is refused with 400.
inline constexpr std::size_t kMaxLimitsPerCheck = 64;
/// Most attributes in one `by`.
inline constexpr std::size_t kMaxByAttributes = 8;
/// Longest name of a limit, plan, node, region or zone.
inline constexpr std::size_t kMaxNameBytes = 64;
/// Most checks of one batch. More is refused with 413.
inline constexpr std::size_t kMaxChecksPerBatch = 1000;
/// Largest body of one check. Larger is refused with 413.
inline constexpr std::size_t kMaxCheckBodyBytes = 64 * 1024;
/// Largest body of a batch. Larger is refused with 413.
inline constexpr std::size_t kMaxBatchBodyBytes = 1024 * 1024;
/// Most lessees of one ledger record (PROTOCOL D9). A further one is answered `crowded`.
inline constexpr std::size_t kMaxLesseesPerRecord = 64;
/// Of these, places that edges leave to relays (PROTOCOL D9). A further edge is answered `crowded`.
inline constexpr std::size_t kRelayPlacesPerRecord = 8;
/// Slots that customers hash to (PROTOCOL A1). For ever.
inline constexpr std::uint32_t kSlotCount = 4096;

}  // namespace weir
