#include "src/net/http_message.h"

#include <algorithm>
#include <charconv>

#include "src/codec/query.h"

namespace weir::net {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

void append_number(std::size_t value, std::string& out) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return {};
}

void HttpResponse::clear() {
  status = 200;
  content_type = {};
  headers.clear();
  body.clear();
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return 400;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::too_large:
      return 413;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::unsupported:
      return 501;
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::io:
    case ErrorCode::corrupt:
      break;
  }
  return 500;
}

void append_response(const HttpResponse& response, bool with_body, bool keep_alive, bool http_1_0,
                     std::string_view date, std::string& out) {
  out += "HTTP/1.1 ";
  append_number(static_cast<std::size_t>(response.status), out);
  out.push_back(' ');
  out += reason_of(response.status);
  out += "\r\nDate: ";
  out += date;
  if (!response.content_type.empty()) {
    out += "\r\nContent-Type: ";
    out += response.content_type;
  }
  if (response.status != 204) {
    out += "\r\nContent-Length: ";
    append_number(response.body.size(), out);
  }
  out += "\r\n";
  out += response.headers;
  if (!keep_alive) {
    out += "Connection: close\r\n";
  } else if (http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
  if (with_body && response.status != 204) out += response.body;
}

Result<std::vector<std::string>> split_path(std::string_view path) {
  if (!path.starts_with('/')) {
    return failure(ErrorCode::invalid_argument, "path", "must start with /");
  }
  std::vector<std::string> segments;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view segment = path.substr(0, path.find('/'));
    auto text = codec::decode_path_segment(segment);
    if (!text) return tl::unexpected(text.error());
    segments.push_back(std::move(*text));
    path.remove_prefix(segment.size());
  }
  return segments;
}

}  // namespace weir::net
