#include "src/server/certificate_copy.h"

#include <filesystem>
#include <utility>

namespace weir::server {
namespace {

namespace fs = std::filesystem;

// In `data`: two folders by turns, and a link to the one in force, which is renamed over.
constexpr const char* kFolder = "cluster-tls";
constexpr const char* kInForce = "current";
constexpr const char* kTurns[] = {"a", "b"};

config::TlsFiles files_in(const fs::path& folder) {
  return {(folder / "certificate.pem").string(), (folder / "key.pem").string(),
          (folder / "ca.pem").string()};
}

Result<Nanos> check(const config::TlsFiles& files) {
  const auto context = net::TlsContext::load({files.certificate, files.key, files.ca}, true);
  if (!context) return tl::unexpected<Error>(context.error());
  return (*context)->not_after_ns();
}

void copy_file(const std::string& from, const std::string& to) {
  fs::remove(to);
  fs::copy_file(from, to);
  fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace

config::TlsFiles certificate_copy(const std::string& data) {
  return files_in(fs::absolute(data) / kFolder / kInForce);
}

Result<Nanos> copy_certificates(const config::TlsFiles& files, const std::string& data) {
  if (auto good = check(files); !good) return good;
  try {
    const fs::path folder = fs::absolute(data) / kFolder;
    const fs::path in_force = folder / kInForce;
    const bool first = fs::is_symlink(in_force) && fs::read_symlink(in_force) == kTurns[0];
    const char* turn = kTurns[first ? 1 : 0];
    fs::create_directories(folder / turn);
    fs::permissions(folder, fs::perms::owner_all);
    const config::TlsFiles copy = files_in(folder / turn);
    copy_file(files.certificate, copy.certificate);
    copy_file(files.key, copy.key);
    copy_file(files.ca, copy.ca);
    // Who wrote them may have been at it.
    const auto not_after_ns = check(copy);
    if (!not_after_ns) return not_after_ns;
    const fs::path next = folder / "next";
    fs::remove(next);
    fs::create_directory_symlink(turn, next);
    fs::rename(next, in_force);
    return not_after_ns;
  } catch (const fs::filesystem_error& problem) {
    return failure(ErrorCode::io, "", problem.what());
  }
}

}  // namespace weir::server
