// Parses one Protobuf message from bytes. Included by .cc files of src/codec only.
#pragma once

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/stubs/common.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>

#include <climits>
#include <cstdint>
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

/// How often `field` stands in a message, up to the first broken byte; nothing is built.
inline std::size_t count_fields(std::string_view bytes, int field) {
  using google::protobuf::internal::WireFormatLite;
  if (bytes.size() > INT_MAX) return 0;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  std::size_t count = 0;
  for (auto tag = input.ReadTag(); tag != 0; tag = input.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) == field) ++count;
    if (!WireFormatLite::SkipField(&input, tag)) break;
  }
  return count;
}

}  // namespace weir::codec
