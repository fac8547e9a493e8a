#include "src/cli/client.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "src/config/scalars.h"
#include "src/server/token_keeper.h"

namespace weir::cli {
namespace {

Result<Reply> exchange(std::string_view method, const Target& target, const std::string& path,
                       net::HttpHeaders headers, const std::string& body, Nanos timeout_ns) {
  if (!target.token.empty()) headers.emplace_back("Authorization", "Bearer " + target.token);
  const std::string scheme = target.tls ? "https://" : "http://";
  auto response = net::http_request(method, scheme + to_string(target.endpoint) + path, headers,
                                    body, timeout_ns, target.with);
  if (!response) return tl::unexpected(std::move(response).error());
  return Reply{response->status, std::move(response->body)};
}

/// What a header may hold: anything else would be another header, or none.
bool is_token(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace

Result<Reply> http_get(const Target& target, const std::string& path, Nanos timeout_ns) {
  return exchange("GET", target, path, {}, {}, timeout_ns);
}

Result<Reply> http_post(const Target& target, const std::string& path, const std::string& json,
                        Nanos timeout_ns) {
  return exchange("POST", target, path, {{"Content-Type", "application/json"}}, json, timeout_ns);
}

Result<Target> parse_target(std::string_view url) {
  constexpr std::string_view kPlain = "http://";
  constexpr std::string_view kSecure = "https://";
  Target target;
  std::string_view rest = url;
  target.tls = rest.starts_with(kSecure);
  if (target.tls) rest.remove_prefix(kSecure.size());
  if (rest.starts_with(kPlain) && !target.tls) rest.remove_prefix(kPlain.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  auto endpoint = config::parse_endpoint(rest);
  if (!endpoint) {
    return failure(ErrorCode::invalid_argument, "",
                   "`" + std::string(url) + "` is no http://host:port or https://host:port: " +
                       endpoint.error().message);
  }
  target.endpoint = *std::move(endpoint);
  return target;
}

Result<Target> parse_target(const char* flag, std::string_view url,
                            const Credentials& credentials) {
  auto target = parse_target(url);
  if (!target) return failure(target.error().code, flag, target.error().message);
  target->token = credentials.token;
  if (target->token.empty() && !credentials.token_file.empty()) {
    auto token = server::read_token_file("--token-file", credentials.token_file);
    if (!token) return tl::unexpected(std::move(token).error());
    target->token = *std::move(token);
  }
  if (!is_token(target->token)) {
    return failure(ErrorCode::invalid_argument, "--token", "has a blank or control character");
  }
  target->with = {credentials.ca, credentials.certificate, credentials.key};
  return target;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_attributes(
    const std::vector<std::string>& attributes) {
  std::vector<std::pair<std::string, std::string>> parsed;
  std::set<std::string> names;
  for (const std::string& attribute : attributes) {
    const std::size_t equals = attribute.find('=');
    if (equals == std::string::npos || equals == 0) {
      return failure(ErrorCode::invalid_argument, "--attribute",
                     "`" + attribute + "` is no key=value");
    }
    std::string name = attribute.substr(0, equals);
    if (!names.insert(name).second) {
      return failure(ErrorCode::invalid_argument, "--attribute", "`" + name + "` is given twice");
    }
    parsed.emplace_back(std::move(name), attribute.substr(equals + 1));
  }
  return parsed;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 0xf];
  }
  return encoded;
}

std::string describe_error(const Reply& reply) {
  boost::system::error_code parse_error;
  const boost::json::value body = boost::json::parse(reply.body, parse_error);
  const auto* object = parse_error ? nullptr : body.if_object();
  const auto* error = object == nullptr ? nullptr : object->if_contains("error");
  if (error == nullptr || !error->is_object()) return reply.body;
  std::string text;
  for (const char* member : {"code", "field", "message"}) {
    const auto* value = error->get_object().if_contains(member);
    if (value == nullptr || !value->is_string()) continue;
    text += text.empty() ? "" : ": ";
    text += value->get_string();
  }
  return text;
}

}  // namespace weir::cli
