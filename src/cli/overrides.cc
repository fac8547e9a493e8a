#include "src/cli/overrides.h"

#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "src/base/limits.h"
#include "src/config/scalars.h"

namespace weir::cli {
namespace {

using config::NodeConfig;
using Apply = std::function<Status(NodeConfig&, const std::string&)>;

/// `value` parsed into `target`.
template <typename T, typename U>
Status store(Result<T> value, U& target) {
  if (!value) return tl::unexpected(std::move(value).error());
  target = static_cast<U>(*std::move(value));
  return {};
}

template <typename E>
Status choose(const std::string& value, std::initializer_list<E> all, E& target) {
  std::string names;
  for (const E candidate : all) {
    if (value == config::to_string(candidate)) {
      target = candidate;
      return {};
    }
    names += names.empty() ? "" : ", ";
    names += config::to_string(candidate);
  }
  return failure(ErrorCode::invalid_argument, "", "`" + value + "` is none of: " + names);
}

Status set_bool(const std::string& value, bool& target) {
  if (value != "true" && value != "false") {
    return failure(ErrorCode::invalid_argument, "", "`" + value + "` is neither true nor false");
  }
  target = value == "true";
  return {};
}

Status set_endpoint(const std::string& value, std::optional<Endpoint>& target) {
  if (value == "none") {
    target.reset();
    return {};
  }
  return store(config::parse_endpoint(value, 0), target);
}

Status set_roles(const std::string& value, config::Roles& target) {
  config::Roles roles{false, false};
  std::string_view rest = value;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view role = rest.substr(0, comma);
    bool* flag = role == "edge" ? &roles.edge : role == "owner" ? &roles.owner : nullptr;
    if (flag == nullptr || *flag) {
      return failure(ErrorCode::invalid_argument, "",
                     "`" + value + "` is none of: edge; owner; edge,owner");
    }
    *flag = true;
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  target = roles;
  return {};
}

Status set_path(const std::string& value, std::string& target) {
  if (value.empty()) return failure(ErrorCode::invalid_argument, "", "the path is empty");
  target = value;
  return {};
}

const std::map<std::string, Apply, std::less<>>& appliers() {
  using config::Authority;
  using config::HeaderStyle;
  using config::LogFormat;
  using config::LogLevel;
  constexpr std::int64_t kMaxEdges = 1'000'000;
  static const std::map<std::string, Apply, std::less<>> all{
      {"--policy", [](auto& c, auto& v) { return set_path(v, c.policy); }},
      {"--node", [](auto& c, auto& v) { return store(config::parse_place_name(v), c.node); }},
      {"--region", [](auto& c, auto& v) { return store(config::parse_place_name(v), c.region); }},
      {"--role", [](auto& c, auto& v) { return set_roles(v, c.roles); }},
      {"--http", [](auto& c, auto& v) { return set_endpoint(v, c.listen.http); }},
      {"--admin", [](auto& c, auto& v) { return set_endpoint(v, c.listen.admin); }},
      {"--cluster", [](auto& c, auto& v) { return set_endpoint(v, c.listen.cluster); }},
      {"--probe", [](auto& c, auto& v) { return set_endpoint(v, c.listen.probe); }},
      {"--data", [](auto& c, auto& v) { return set_path(v, c.data); }},
      {"--topology", [](auto& c, auto& v) { return set_path(v, c.topology); }},
      {"--authority",
       [](auto& c, auto& v) {
         return choose(v, {Authority::owner, Authority::redis, Authority::memory}, c.authority);
       }},
      {"--lease-ttl",
       [](auto& c, auto& v) { return store(config::parse_duration(v), c.lease_ttl_ns); }},
      {"--wait", [](auto& c, auto& v) { return store(config::parse_duration(v), c.wait_ns); }},
      {"--expected-edges",
       [](auto& c, auto& v) {
         return store(config::parse_integer(v, 1, kMaxEdges), c.expected_edges);
       }},
      {"--max-clock-error",
       [](auto& c, auto& v) { return store(config::parse_duration(v), c.max_clock_error_ns); }},
      {"--clock-slew",
       [](auto& c, auto& v) { return store(config::parse_percent(v), c.clock_slew_permille); }},
      {"--fsync", [](auto& c, auto& v) { return set_bool(v, c.fsync); }},
      {"--headers",
       [](auto& c, auto& v) {
         return choose(
             v,
             {HeaderStyle::draft11, HeaderStyle::draft03, HeaderStyle::legacy, HeaderStyle::none},
             c.headers);
       }},
      {"--log-level",
       [](auto& c, auto& v) {
         return choose(v, {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error},
                       c.log.level);
       }},
      {"--log-format",
       [](auto& c, auto& v) {
         return choose(v, {LogFormat::text, LogFormat::json}, c.log.format);
       }},
      {"--chaos", [](auto& c, auto& v) { return set_bool(v, c.chaos); }},
      {"--insecure", [](auto& c, auto& v) { return set_bool(v, c.insecure); }},
  };
  return all;
}

}  // namespace

Status apply_override(NodeConfig& config, const std::string& flag, const std::string& value) {
  const auto found = appliers().find(flag);
  if (found == appliers().end()) {
    return failure(ErrorCode::invalid_argument, flag, "no such flag");
  }
  Status applied = found->second(config, value);
  if (!applied) applied.error().field = flag;
  return applied;
}

}  // namespace weir::cli
