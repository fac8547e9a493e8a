#include "src/net/media_type.h"

#include <algorithm>

#include "src/net/http_message.h"

namespace weir::net {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Takes the part before the next `separator` off the front of `text`.
std::string_view take(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), part.size() + 1));
  return trimmed(part);
}

bool is_protobuf(std::string_view type) {
  return equal_ignoring_case(type, kProtobufType) ||
         equal_ignoring_case(type, "application/protobuf");
}

/// A weight `q=0.5` in thousandths; anything that is none counts as 1.
int weight_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = take(parameters, ';');
    if (parameter.size() < 3 || (parameter[0] != 'q' && parameter[0] != 'Q') ||
        parameter[1] != '=' || parameter[2] != '0') {
      continue;
    }
    int weight = 0;
    int unit = 100;
    for (const char c : parameter.substr(std::min<std::size_t>(4, parameter.size()))) {
      if (c < '0' || c > '9') break;
      weight += (c - '0') * unit;
      unit /= 10;
    }
    return weight;
  }
  return 1000;
}

}  // namespace

std::optional<MediaType> media_type_of(std::string_view content_type) {
  const std::string_view type = take(content_type, ';');
  if (type.empty() || equal_ignoring_case(type, kJsonType)) return MediaType::json;
  if (is_protobuf(type)) return MediaType::protobuf;
  return std::nullopt;
}

Accepted accepted_by(std::string_view accept, MediaType fallback) {
  int json = -1;
  int protobuf = -1;
  Accepted accepted{fallback, false};
  while (!accept.empty()) {
    std::string_view range = take(accept, ',');
    const std::string_view type = take(range, ';');
    const int weight = weight_of(range);
    if (equal_ignoring_case(type, kJsonType)) {
      json = weight;
    } else if (is_protobuf(type)) {
      protobuf = weight;
    } else if (equal_ignoring_case(type, kProblemType)) {
      accepted.problem = weight > 0;
    }
  }
  if (json > 0 && json > protobuf) accepted.type = MediaType::json;
  if (protobuf > 0 && protobuf > json) accepted.type = MediaType::protobuf;
  return accepted;
}

}  // namespace weir::net
