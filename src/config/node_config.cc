#include "src/config/node_config.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "src/config/scalars.h"

namespace weir::config {
namespace {

constexpr Nanos kMinLeaseTtl = 100 * kMillisecond;
constexpr Nanos kMaxLeaseTtl = kHour;
constexpr Nanos kMinWait = kMillisecond;
constexpr Nanos kMaxWait = kMinute;
constexpr Nanos kMaxClockError = kHour;
constexpr int kMaxClockSlewPermille = 500;
constexpr std::uint32_t kMaxExpectedEdges = 100'000;
constexpr std::size_t kMaxJoin = 64;
constexpr std::size_t kMaxTokens = 64;
/// Longer ones would be partitions: heartbeats stay away for too long.
constexpr Nanos kMaxChaosDelayNs = 10 * kSecond;

/// Collects errors of one configuration.
class Checker {
 public:
  explicit Checker(const NodeConfig& config) : config_(config) {}

  std::vector<Error> run() {
    names();
    roles();
    listeners();
    exposure();
    ranges();
    secrets();
    chaos();
    return std::move(errors_);
  }

 private:
  void wrong(std::string field, std::string message) {
    errors_.push_back({ErrorCode::invalid_argument, std::move(field), std::move(message)});
  }
  template <typename T>
  void form(const std::string& field, const Result<T>& result) {
    if (!result) wrong(field, result.error().message);
  }

  void chaos() {
    if (!config_.chaos && !config_.chaos_delay_ns.empty()) {
      wrong("chaos_delay", "only for tests: write `chaos: true`, too, or remove it");
    }
    for (const auto& [region, delay_ns] : config_.chaos_delay_ns) {
      form("chaos_delay", parse_place_name(region));
      if (delay_ns < 0 || delay_ns > kMaxChaosDelayNs) {
        wrong("chaos_delay", "at most 10s, a delay is what one way takes longer");
      }
    }
  }

  void names() {
    if (!config_.node.empty()) form("node", parse_place_name(config_.node));
    if (!config_.region.empty()) form("region", parse_place_name(config_.region));
    form("customer_header", parse_header_name(config_.customer_header));
    if (config_.data.empty()) wrong("data", "an empty path, write a directory such as ./weir-data");
  }

  void roles() {
    const bool alone = config_.topology.empty();
    const bool owner = config_.roles.owner;
    if (!config_.roles.edge && !owner) {
      wrong("role", "no role is left, write [edge, owner], [edge] or [owner]");
    }
    if (config_.join.size() > kMaxJoin) {
      wrong("join", "more than " + std::to_string(kMaxJoin) + " addresses, a few are enough");
    }
    if (owner && alone && !config_.join.empty()) {
      wrong("join",
            "an owner finds its peers in `topology`, name that file; `join` alone is for "
            "`role: [edge]`");
    }
    if (config_.roles.edge && !owner && alone) {
      if (config_.join.empty()) {
        wrong("role",
              "an edge alone needs owners: name `topology`, or cluster addresses in `join` "
              "such as [\"10.0.0.1:7070\"]");
      } else if (config_.region.empty()) {
        wrong("join", "an edge without topology must say where it is, write `region: us` or alike");
      }
    }
    if (owner && !alone && !config_.listen.cluster) {
      wrong("listen.cluster", "an owner with peers must be reachable, write host:port");
    }
  }

  void listeners() {
    if (config_.roles.edge && !config_.listen.http) {
      wrong("listen.http", "an edge answers checks over HTTP, write host:port");
    }
    const std::array<std::pair<const char*, const std::optional<Endpoint>*>, 4> all{
        {{"listen.http", &config_.listen.http},
         {"listen.admin", &config_.listen.admin},
         {"listen.cluster", &config_.listen.cluster},
         {"listen.probe", &config_.listen.probe}}};
    std::set<Endpoint> seen;
    for (const auto& [field, endpoint] : all) {
      if (!*endpoint) continue;
      if ((*endpoint)->port != 0 && !seen.insert(**endpoint).second) {
        wrong(field, to_string(**endpoint) + " is taken by another listener, choose another port");
      }
    }
  }

  /// What others can reach must be protected, or the operator says that it need not be.
  void exposure() {
    if (config_.insecure) return;
    const auto& cluster = config_.listen.cluster;
    if (cluster && !is_loopback(*cluster) && !config_.tls.cluster) {
      wrong("listen.cluster", to_string(*cluster) +
                                  " is reachable by others without `tls.cluster`: configure it, "
                                  "listen on 127.0.0.1, or say `insecure: true`");
    }
    const auto& admin = config_.listen.admin;
    const TokenConfig& tokens = config_.tokens;
    const bool guarded = !tokens.read.empty() || !tokens.admin.empty() || config_.tls.http;
    if (admin && !is_loopback(*admin) && !guarded) {
      wrong("listen.admin", to_string(*admin) +
                                " is reachable by others without `tokens.admin` or `tls.http`: "
                                "configure one, listen on 127.0.0.1, or say `insecure: true`");
    }
  }

  void range(const char* field, Nanos value, Nanos min, Nanos max, const char* text) {
    if (value < min || value > max) {
      wrong(field, std::string("out of range, write a duration from ") + text);
    }
  }

  void ranges() {
    range("lease.ttl", config_.lease_ttl_ns, kMinLeaseTtl, kMaxLeaseTtl, "100ms to 1h");
    range("wait", config_.wait_ns, kMinWait, kMaxWait, "1ms to 1m");
    range("max_clock_error", config_.max_clock_error_ns, 0, kMaxClockError, "0s to 1h");
    range("redis.timeout", config_.redis.timeout_ns, kMinWait, kMaxWait, "1ms to 1m");
    form("redis.url", parse_redis_url(config_.redis.url));
    if (config_.clock_slew_permille < 0 || config_.clock_slew_permille > kMaxClockSlewPermille) {
      wrong("clock_slew", "out of range, write a percentage from 0% to 50%");
    }
    if (config_.expected_edges < 1 || config_.expected_edges > kMaxExpectedEdges) {
      wrong("expected_edges",
            "out of range, write a number from 1 to " + std::to_string(kMaxExpectedEdges));
    }
  }

  void secrets() {
    const auto files = [&](const std::string& field, const std::optional<TlsFiles>& tls, bool ca) {
      if (!tls) return;
      if (tls->certificate.empty()) wrong(field, "`certificate` is missing, name a PEM file");
      if (tls->key.empty()) wrong(field, "`key` is missing, name a PEM file");
      if (ca && tls->ca.empty()) wrong(field, "`ca` is missing, name a PEM file");
    };
    files("tls.cluster", config_.tls.cluster, true);
    files("tls.http", config_.tls.http, false);
    const auto tokens = [&](const std::string& field, const std::vector<std::string>& list) {
      if (list.size() > kMaxTokens) {
        wrong(field, "more than " + std::to_string(kMaxTokens) + " tokens, remove old ones");
      }
      for (const auto& token : list) form(field, parse_token(token));
    };
    tokens("tokens.check", config_.tokens.check);
    tokens("tokens.read", config_.tokens.read);
    tokens("tokens.admin", config_.tokens.admin);
  }

  const NodeConfig& config_;
  std::vector<Error> errors_;
};

Status first_of(std::vector<Error> errors) {
  if (errors.empty()) return {};
  return tl::unexpected<Error>(std::move(errors.front()));
}

}  // namespace

const char* to_string(Authority authority) {
  switch (authority) {
    case Authority::owner:
      return "owner";
    case Authority::redis:
      return "redis";
    case Authority::memory:
      return "memory";
  }
  return "unknown";
}

const char* to_string(HeaderStyle style) {
  switch (style) {
    case HeaderStyle::draft11:
      return "draft11";
    case HeaderStyle::draft03:
      return "draft03";
    case HeaderStyle::legacy:
      return "legacy";
    case HeaderStyle::none:
      return "none";
  }
  return "unknown";
}

const char* to_string(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warn:
      return "warn";
    case LogLevel::error:
      return "error";
  }
  return "unknown";
}

const char* to_string(LogFormat format) {
  switch (format) {
    case LogFormat::text:
      return "text";
    case LogFormat::json:
      return "json";
  }
  return "unknown";
}

std::vector<Error> node_config_errors(const NodeConfig& config) { return Checker(config).run(); }

Status check_node_config(const NodeConfig& config) { return first_of(node_config_errors(config)); }

std::vector<Error> topology_errors(const NodeConfig& config, const Topology& topology) {
  std::vector<Error> errors;
  const TopologyRegion* region = topology.region_of(config.node);
  const auto wrong = [&](const char* field, std::string message) {
    errors.push_back({ErrorCode::invalid_argument, field, std::move(message)});
  };
  if (region == nullptr) {
    if (config.roles.owner) {
      wrong("node", "owner `" + config.node +
                        "` is not in the topology, add it there or write `role: [edge]`");
    } else if (config.region.empty()) {
      wrong("region", "`" + config.node +
                          "` is not in the topology and must say where it is, write `region: us` "
                          "or alike");
    }
  } else if (!config.region.empty() && config.region != region->name) {
    wrong("region", "`" + config.node + "` stands in region `" + region->name +
                        "` of the topology, write `region: " + region->name + "`");
  }
  return errors;
}

Status check_node_in_topology(const NodeConfig& config, const Topology& topology) {
  return first_of(topology_errors(config, topology));
}

}  // namespace weir::config
