// Content-Type and Accept, as far as the check API needs them. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::net {

enum class MediaType : std::uint8_t { json, protobuf };

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kProtobufType = "application/x-protobuf";
inline constexpr std::string_view kProblemType = "application/problem+json";

/// The type of a body; JSON when the header is absent (empty), nothing for a type we do not speak.
/// Parameters (`; charset=utf-8`) are ignored.
std::optional<MediaType> media_type_of(std::string_view content_type);

struct Accepted {
  MediaType type = MediaType::json;
  bool problem = false;  ///< denials as application/problem+json
};

/// What an Accept header asks for (RFC 9110 section 12.5.1): of JSON and Protobuf the one with the
/// higher weight, `fallback` when it prefers neither. A type that we do not speak is not refused
/// but answered in `fallback`, which RFC 9110 allows and every client survives.
Accepted accepted_by(std::string_view accept, MediaType fallback);

}  // namespace weir::net
