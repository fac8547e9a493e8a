// tidy ROOT: prints what breaks Weir's style rules below ROOT, one line each; exit status 0 when
// nothing does, 1 when something does, 2 when ROOT cannot be read.
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "test/tidy/tidy.h"

namespace {

namespace fs = std::filesystem;

/// What git ignores (.gitignore), and git itself.
constexpr std::array<std::string_view, 4> kIgnored = {".git", "build", "weir-data",
                                                      "compile_commands.json"};

bool is_ignored(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const std::string_view ignored : kIgnored) {
    if (name == ignored) return true;
  }
  return name.ends_with(".swp");
}

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) throw std::runtime_error("cannot read " + path.string());
  return text;
}

std::vector<weir::tidy::File> read_tree(const fs::path& root) {
  std::vector<weir::tidy::File> files;
  for (fs::recursive_directory_iterator at(root), end; at != end; ++at) {
    if (is_ignored(at->path())) {
      if (at->is_directory()) at.disable_recursion_pending();
    } else if (at->is_regular_file()) {
      files.push_back({at->path().lexically_relative(root).generic_string(), read(at->path())});
    }
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tidy ROOT\n");
    return 2;
  }
  try {
    const std::vector<weir::tidy::File> files = read_tree(fs::path(argv[1]).lexically_normal());
    const std::vector<weir::tidy::Finding> findings = weir::tidy::check_tree(files);
    for (const weir::tidy::Finding& finding : findings) {
      std::printf("%s\n", weir::tidy::to_string(finding).c_str());
    }
    std::printf("tidy: %zu files, %zu findings\n", files.size(), findings.size());
    if (files.empty()) return 2;
    return findings.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tidy: %s\n", error.what());
    return 2;
  }
}
