#include "src/cli/client.h"

#include <boost/json.hpp>
#include <set>

#include "src/config/scalars.h"
#include "src/net/http_client.h"

namespace weir::cli {
namespace {

Result<Reply> exchange(std::string_view method, const Endpoint& endpoint, const std::string& target,
                       const net::HttpHeaders& headers, const std::string& body, Nanos timeout_ns) {
  auto response = net::http_request(method, "http://" + to_string(endpoint) + target, headers, body,
                                    timeout_ns);
  if (!response) return tl::unexpected(std::move(response).error());
  return Reply{response->status, std::move(response->body)};
}

}  // namespace

Result<Reply> http_get(const Endpoint& endpoint, const std::string& target, Nanos timeout_ns) {
  return exchange("GET", endpoint, target, {}, {}, timeout_ns);
}

Result<Reply> http_post(const Endpoint& endpoint, const std::string& target,
                        const std::string& json, Nanos timeout_ns) {
  return exchange("POST", endpoint, target, {{"Content-Type", "application/json"}}, json,
                  timeout_ns);
}

Result<Endpoint> parse_target(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    return failure(ErrorCode::unsupported, "",
                   "`" + std::string(url) + "`: this version speaks plain http:// only");
  }
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  auto endpoint = config::parse_endpoint(rest);
  if (!endpoint) {
    return failure(
        ErrorCode::invalid_argument, "",
        "`" + std::string(url) + "` is no http://host:port: " + endpoint.error().message);
  }
  return endpoint;
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
