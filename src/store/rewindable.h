// What only a twin can do: lose what it has acknowledged. faulty_store.h asks for it; a real disk
// is cut with other tools (the WAL of a stopped process).
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/base/result.h"

namespace weir::store {

class Rewindable {
 public:
  virtual ~Rewindable() = default;

  /// Undoes the last `batches` writes. Fails, and changes nothing, when that many are not
  /// remembered.
  virtual Status rewind(std::size_t batches) = 0;

  /// Forgets everything and becomes a new store.
  virtual void wipe(std::uint64_t new_incarnation) = 0;
};

}  // namespace weir::store
