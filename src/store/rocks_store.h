// The store on disk: RocksDB in one folder, owned by one process. Its keys are those of
// record_key.h, its values those of src/codec/record.h; both are for ever.
//
// Thread rule: that of Store. Reads also run while a write does.
#pragma once

#include <memory>
#include <string>

#include "src/base/random.h"
#include "src/base/result.h"
#include "src/base/time.h"
#include "src/store/store.h"

namespace weir::store {

struct RocksOptions {
  std::string folder;            ///< made, with its parents, when it is not there
  const Clock* clock = nullptr;  ///< outlives the store
  SeedSource* seeds = nullptr;   ///< used during the opening of a new folder only
  std::string boot_id;           ///< system_boot_id()
  Nanos max_clock_error_ns = 0;
  /// Sync the write-ahead log before a write returns. Without it a kill of the process loses
  /// nothing, a stop of the machine may lose the last writes: after one the store is amnesic (C5).
  bool fsync = true;
};

/// Opens or makes the store. Errors name the folder: `unavailable` when another process has it
/// open, `corrupt` when what is there is no store of Weir or is damaged, `io` otherwise. Nothing is
/// repaired, and nothing that is there is taken for new.
///
/// After a failed write (`io`) every later write fails as well, until the store is opened anew:
/// what the disk then holds is not known before it has been read back.
Result<std::unique_ptr<Store>> open_rocks_store(const RocksOptions& options);

/// For a folder that open_rocks_store has called `corrupt`: moves it aside, to `FOLDER.damaged`
/// (one that is there already is removed), and opens an empty, amnesic store that remembers the
/// number of the damaged one where it can be read.
Result<std::unique_ptr<Store>> replace_rocks_store(const RocksOptions& options);

}  // namespace weir::store
