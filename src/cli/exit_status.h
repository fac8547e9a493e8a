// What the program's exit status means to scripts (API.md). For ever.
#pragma once

namespace weir::cli {

enum ExitStatus : int {
  kFine = 0,
  kNo = 1,           ///< the answer is no: denied, invalid, violated
  kWrongUsage = 2,   ///< flags or files that cannot be meant
  kUnreachable = 3,  ///< nobody answers, or the node cannot start
};

}  // namespace weir::cli
