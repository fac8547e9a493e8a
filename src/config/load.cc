#include "src/config/load.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "src/config/yaml.h"

namespace weir::config {
namespace {

Parsed<std::string> unreadable(const std::string& path, std::string message) {
  Parsed<std::string> parsed;
  parsed.errors.push_back({path, 0, 0, std::move(message)});
  return parsed;
}

template <typename T, typename Parse>
Parsed<T> load(const std::string& path, Parse parse) {
  Parsed<std::string> text = read_file(path);
  if (text) return parse(*text.value);
  Parsed<T> parsed;
  parsed.errors = std::move(text.errors);
  return parsed;
}

}  // namespace

Parsed<std::string> read_file(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (status.type() == std::filesystem::file_type::not_found) {
    return unreadable(path, "no such file, check the path");
  }
  if (code) return unreadable(path, "cannot be read: " + code.message());
  if (status.type() == std::filesystem::file_type::directory) {
    return unreadable(path, "is a directory, name a file in it");
  }
  if (status.type() != std::filesystem::file_type::regular) {
    return unreadable(path, "is no regular file, name one");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable(path, std::string("cannot be opened: ") + std::strerror(errno));
  // Read to the end instead of trusting the size: the file may be growing.
  std::string text;
  std::string chunk(64 * 1024, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    text.append(chunk, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > kMaxFileBytes) {
      return unreadable(path, too_large_message());
    }
  }
  if (file.bad()) return unreadable(path, std::string("cannot be read: ") + std::strerror(errno));
  Parsed<std::string> parsed;
  parsed.value = std::move(text);
  return parsed;
}

Parsed<PolicyDefinition> load_policy(const std::string& path, const LimitCheck& check_limit) {
  return load<PolicyDefinition>(
      path, [&](const std::string& text) { return parse_policy(text, path, check_limit); });
}

Parsed<Topology> load_topology(const std::string& path) {
  return load<Topology>(path, [&](const std::string& text) { return parse_topology(text, path); });
}

Parsed<NodeConfig> load_node(const std::string& path, NodeCheck check) {
  return load<NodeConfig>(path,
                          [&](const std::string& text) { return parse_node(text, path, check); });
}

}  // namespace weir::config
