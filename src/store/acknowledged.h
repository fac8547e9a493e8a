// The second file (PROTOCOL C1): how many writes of a store have been acknowledged, kept beside
// RocksDB's own files. A store whose own count is behind it has lost writes that it had
// acknowledged: RocksDB opens a log whose end was cut without a complaint.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/result.h"

namespace weir::store {

/// The file's name in the store's folder.
inline constexpr const char* kAcknowledgedFile = "ACKNOWLEDGED";

class Acknowledged {
 public:
  /// What the file says: the count, and the number of the store incarnation (C2).
  struct Content {
    std::uint64_t count = 0;
    std::uint32_t number = 0;
  };
  enum class Found : std::uint8_t { nothing, content, unreadable };

  Acknowledged() = default;
  ~Acknowledged();
  Acknowledged(const Acknowledged&) = delete;
  Acknowledged& operator=(const Acknowledged&) = delete;

  /// Opens or makes the file in `folder`; fails with `io`.
  Status open(const std::string& folder);
  Found found() const { return found_; }
  const Content& content() const { return content_; }
  /// Replaces the content; `sync`: durable when it returns. Called after the write it counts is
  /// durable and before that is acknowledged.
  Status advance(const Content& content, bool sync);

 private:
  int descriptor_ = -1;
  std::string path_;
  Found found_ = Found::nothing;
  Content content_;
};

}  // namespace weir::store
