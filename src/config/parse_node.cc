#include <filesystem>
#include <utility>

#include "src/config/from_document.h"
#include "src/config/reader.h"
#include "src/config/scalars.h"

namespace weir::config {
namespace {

constexpr const char* kNodeExample = "node: eu-1";

class NodeParser {
 public:
  NodeParser(const YamlDocument& document, Problems& problems, const std::string& file_name,
             FieldPlaces& places)
      : reader_(document, problems),
        problems_(problems),
        directory_(std::filesystem::path(file_name).parent_path()),
        places_(places) {}

  NodeConfig parse(const YamlNode& root, NodeCheck check) {
    root_ = &root;
    MapReader map(reader_, root, "node file", kNodeExample);
    if (!map.is_map()) return config_;
    read_identity(map);
    read_listen(map);
    read_files(map);
    read_redis(map);
    read_timing(map);
    read_tls(map);
    read_tokens(map);
    read_http(map);
    read_log(map);
    map.finish();
    if (check == NodeCheck::whole) report_contradictions();
    return config_;
  }

 private:
  /// The value of `key`, and a note of where `path` stands for errors found later.
  const YamlNode* take(MapReader& map, std::string_view key, std::string_view path) {
    const YamlNode* node = map.take(key);
    if (node != nullptr) places_.insert_or_assign(std::string(path), node->place());
    return node;
  }
  template <typename T>
  void assign(T& to, std::optional<T> value) {
    if (value) to = std::move(*value);
  }
  void boolean(MapReader& map, std::string_view key, bool& to) {
    if (const auto* node = take(map, key, key)) assign(to, reader_.boolean(*node, key));
  }
  void duration(MapReader& map, std::string_view key, const char* path, const char* example,
                Nanos& to) {
    if (const auto* node = take(map, key, path)) {
      assign(to, reader_.scalar<Nanos>(*node, path, example, parse_duration));
    }
  }
  void path(MapReader& map, std::string_view key, std::string_view field, const char* example,
            std::string& to) {
    const auto* node = take(map, key, field);
    if (node == nullptr) return;
    const auto text = reader_.text_value(*node, field, example);
    if (!text) return;
    if (text->empty()) {
      reader_.error(*node, std::string(field) + ": an empty path, write one such as " + example);
      return;
    }
    to = resolved(*text);
  }
  std::string resolved(const std::string& text) const {
    const std::filesystem::path path(text);
    if (path.is_absolute() || directory_.empty()) return text;
    return (directory_ / path).lexically_normal().string();
  }

  void read_identity(MapReader& map) {
    if (const auto* node = take(map, "node", "node")) {
      assign(config_.node, reader_.scalar<std::string>(*node, "node", "eu-1", parse_place_name));
    }
    if (const auto* node = take(map, "region", "region")) {
      assign(config_.region, reader_.scalar<std::string>(*node, "region", "eu", parse_place_name));
    }
    if (const auto* node = take(map, "role", "role")) read_roles(*node);
    if (const auto* node = take(map, "join", "join")) {
      const auto items = reader_.items(*node, "join", "[\"10.0.0.1:7070\"]");
      if (items) {
        for (const auto* item : *items) {
          const auto endpoint =
              reader_.scalar<Endpoint>(*item, "join", "10.0.0.1:7070", cluster_endpoint);
          if (endpoint) config_.join.push_back(*endpoint);
        }
      }
    }
  }

  void read_roles(const YamlNode& node) {
    const auto items = reader_.items(node, "role", "[edge, owner]");
    if (!items) return;
    Roles roles{false, false};
    for (const auto* item : *items) {
      const auto role = reader_.word<bool Roles::*>(
          *item, "role", {{"edge", &Roles::edge}, {"owner", &Roles::owner}});
      if (!role) return;
      if (roles.**role) reader_.error(*item, "role: named twice, name each role once");
      roles.** role = true;
    }
    config_.roles = roles;
  }

  static Result<Endpoint> cluster_endpoint(std::string_view text) { return parse_endpoint(text); }
  static Result<Endpoint> listen_endpoint(std::string_view text) { return parse_endpoint(text, 0); }

  void read_listen(MapReader& map) {
    const auto* node = take(map, "listen", "listen");
    if (node == nullptr) return;
    MapReader listen(reader_, *node, "listen", "{http: 127.0.0.1:8080}");
    const auto read = [&](std::string_view key, const char* path, std::optional<Endpoint>& to) {
      const auto* value = take(listen, key, path);
      if (value == nullptr) return;
      if (value->is_scalar() && reader_.text(*value) == "none") {
        to.reset();
        return;
      }
      const auto endpoint =
          reader_.scalar<Endpoint>(*value, path, "\"127.0.0.1:8080\"", listen_endpoint);
      if (endpoint) to = *endpoint;
    };
    read("http", "listen.http", config_.listen.http);
    read("admin", "listen.admin", config_.listen.admin);
    read("cluster", "listen.cluster", config_.listen.cluster);
    read("probe", "listen.probe", config_.listen.probe);
    listen.finish();
  }

  void read_files(MapReader& map) {
    path(map, "data", "data", "./weir-data", config_.data);
    path(map, "topology", "topology", "topology.yaml", config_.topology);
    path(map, "policy", "policy", "policy.yaml", config_.policy);
    if (const auto* node = take(map, "authority", "authority")) {
      assign(config_.authority, reader_.word<Authority>(*node, "authority",
                                                        {{"owner", Authority::owner},
                                                         {"redis", Authority::redis},
                                                         {"memory", Authority::memory}}));
    }
    boolean(map, "fsync", config_.fsync);
  }

  void read_redis(MapReader& map) {
    const auto* node = take(map, "redis", "redis");
    if (node == nullptr) return;
    MapReader redis(reader_, *node, "redis", "{url: redis://127.0.0.1:6379}");
    if (const auto* url = take(redis, "url", "redis.url")) {
      assign(config_.redis.url, reader_.scalar<std::string>(
                                    *url, "redis.url", "redis://127.0.0.1:6379", parse_redis_url));
    }
    duration(redis, "timeout", "redis.timeout", "50ms", config_.redis.timeout_ns);
    redis.finish();
  }

  void read_timing(MapReader& map) {
    if (const auto* node = take(map, "lease", "lease")) {
      MapReader lease(reader_, *node, "lease", "{ttl: 5s}");
      duration(lease, "ttl", "lease.ttl", "5s", config_.lease_ttl_ns);
      lease.finish();
    }
    duration(map, "wait", "wait", "50ms", config_.wait_ns);
    duration(map, "max_clock_error", "max_clock_error", "5s", config_.max_clock_error_ns);
    if (const auto* node = take(map, "clock_slew", "clock_slew")) {
      assign(config_.clock_slew_permille,
             reader_.scalar<int>(*node, "clock_slew", "10%", parse_percent));
    }
    if (const auto* node = take(map, "expected_edges", "expected_edges")) {
      const auto edges = reader_.integer(*node, "expected_edges", 1, 100'000);
      if (edges) config_.expected_edges = static_cast<std::uint32_t>(*edges);
    }
  }

  void read_tls(MapReader& map) {
    const auto* node = take(map, "tls", "tls");
    if (node == nullptr) return;
    MapReader tls(reader_, *node, "tls", "{cluster: {certificate: c.pem, key: k.pem, ca: a.pem}}");
    const auto read = [&](std::string_view key, const std::string& field,
                          std::optional<TlsFiles>& to) {
      const auto* value = take(tls, key, field);
      if (value == nullptr) return;
      MapReader files(reader_, *value, field, "{certificate: c.pem, key: k.pem}");
      TlsFiles read_files;
      path(files, "certificate", field + ".certificate", "node.pem", read_files.certificate);
      path(files, "key", field + ".key", "node.key", read_files.key);
      path(files, "ca", field + ".ca", "ca.pem", read_files.ca);
      files.finish();
      if (files.is_map()) to = std::move(read_files);
    };
    read("cluster", "tls.cluster", config_.tls.cluster);
    read("http", "tls.http", config_.tls.http);
    tls.finish();
  }

  void read_tokens(MapReader& map) {
    const auto* node = take(map, "tokens", "tokens");
    if (node == nullptr) return;
    MapReader tokens(reader_, *node, "tokens", "{admin: [\"file:admin.token\"]}");
    const auto read = [&](std::string_view key, const char* field, std::vector<std::string>& to) {
      const auto* value = take(tokens, key, field);
      if (value == nullptr) return;
      const auto items = reader_.items(*value, field, "[\"file:admin.token\"]");
      if (!items) return;
      for (const auto* item : *items) {
        auto token = reader_.scalar<std::string>(*item, field, "file:admin.token", parse_token);
        if (!token) continue;
        if (token->starts_with("file:")) *token = "file:" + resolved(token->substr(5));
        to.push_back(std::move(*token));
      }
    };
    read("check", "tokens.check", config_.tokens.check);
    read("read", "tokens.read", config_.tokens.read);
    read("admin", "tokens.admin", config_.tokens.admin);
    tokens.finish();
  }

  void read_http(MapReader& map) {
    if (const auto* node = take(map, "headers", "headers")) {
      assign(config_.headers, reader_.word<HeaderStyle>(*node, "headers",
                                                        {{"draft11", HeaderStyle::draft11},
                                                         {"draft03", HeaderStyle::draft03},
                                                         {"legacy", HeaderStyle::legacy},
                                                         {"none", HeaderStyle::none}}));
    }
    if (const auto* node = take(map, "customer_header", "customer_header")) {
      assign(config_.customer_header,
             reader_.scalar<std::string>(*node, "customer_header", "X-API-Key", parse_header_name));
    }
    boolean(map, "insecure", config_.insecure);
    boolean(map, "chaos", config_.chaos);
    if (const auto* node = take(map, "chaos_delay", "chaos_delay")) read_delays(*node);
  }

  void read_delays(const YamlNode& node) {
    const auto entries = reader_.entries(node, "chaos_delay", "{us: 40ms}");
    if (!entries) return;
    for (const auto& entry : *entries) {
      const auto delay = reader_.scalar<Nanos>(*entry.value, "chaos_delay", "40ms", parse_duration);
      if (delay) config_.chaos_delay_ns.emplace(entry.key, *delay);
    }
  }

  void read_log(MapReader& map) {
    const auto* node = take(map, "log", "log");
    if (node == nullptr) return;
    MapReader log(reader_, *node, "log", "{level: info, format: text}");
    if (const auto* level = take(log, "level", "log.level")) {
      assign(config_.log.level, reader_.word<LogLevel>(*level, "log.level",
                                                       {{"debug", LogLevel::debug},
                                                        {"info", LogLevel::info},
                                                        {"warn", LogLevel::warn},
                                                        {"error", LogLevel::error}}));
    }
    if (const auto* format = take(log, "format", "log.format")) {
      assign(config_.log.format,
             reader_.word<LogFormat>(*format, "log.format",
                                     {{"text", LogFormat::text}, {"json", LogFormat::json}}));
    }
    log.finish();
  }

  /// What only the whole shows, each at its field, or at the file's first line when the field is a
  /// default.
  void report_contradictions() {
    for (const auto& error : node_config_errors(config_)) {
      const auto place = places_.find(error.field);
      problems_.error(place != places_.end() ? place->second : root_->place(),
                      error.field + ": " + error.message);
    }
  }

  Reader reader_;
  Problems& problems_;
  std::filesystem::path directory_;
  const YamlNode* root_ = nullptr;
  NodeConfig config_;
  FieldPlaces& places_;
};

}  // namespace

NodeConfig node_from(const YamlDocument& document, const YamlNode& root,
                     const std::string& file_name, NodeCheck check, Problems& problems,
                     FieldPlaces& places) {
  return NodeParser(document, problems, file_name, places).parse(root, check);
}

Parsed<NodeConfig> parse_node(std::string_view text, const std::string& file_name,
                              NodeCheck check) {
  Problems problems(file_name);
  const YamlDocument document(text, problems);
  const YamlNode* root = document.root();
  if (root == nullptr) return problems.finish(NodeConfig());
  FieldPlaces places;
  return problems.finish(node_from(document, *root, file_name, check, problems, places));
}

}  // namespace weir::config
