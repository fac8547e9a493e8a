// Parses one Protobuf message from bytes. Included by .cc files of src/codec only.
#pragma once

#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>

#include <climits>
#include <mutex>
#include <string_view>

namespace weir::codec {

/// False for truncated bytes, bad wire types and strings that are not UTF-8. libprotobuf would
/// print a line to stderr for each of those; input must not be able to write our log, so its
/// handler is taken away once.
inline bool parse_protobuf(google::protobuf::MessageLite& message, std::string_view bytes) {
  static std::once_flag silenced;
  std::call_once(silenced, [] { google::protobuf::SetLogHandler(nullptr); });
  if (bytes.size() > INT_MAX) return false;
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace weir::codec
