#include "src/server/token_keeper.h"

#include <fstream>
#include <string>
#include <utility>

namespace weir::server {
namespace {

constexpr std::string_view kDigestForm = "sha256:";
constexpr std::string_view kFileForm = "file:";
constexpr std::string_view kBlanks = " \t\r\n";

tl::unexpected<Error> wrong(const char* field, const std::string& what) {
  return failure(ErrorCode::invalid_argument, field, what);
}

}  // namespace

Result<std::string> read_token_file(const char* field, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxTokenFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) return wrong(field, path + ": cannot be read");
  if (text.size() > kMaxTokenFileBytes) return wrong(field, path + ": too large for a token");
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return wrong(field, path + ": holds no token");
  const std::size_t end = text.find_last_not_of(kBlanks) + 1;
  std::string token = text.substr(begin, end - begin);
  if (token.find_first_of(kBlanks) != std::string::npos) {
    return wrong(field, path + ": holds more than one word; a file holds one token");
  }
  return token;
}

namespace {

Status read_list(const char* field, const std::vector<std::string>& list,
                 std::vector<net::TokenDigest>& digests) {
  for (const std::string& entry : list) {
    if (entry.starts_with(kDigestForm)) {
      const auto digest = net::parse_digest(std::string_view(entry).substr(kDigestForm.size()));
      if (!digest) return wrong(field, "is no sha256:<64 hexadecimal digits>");
      digests.push_back(*digest);
      continue;
    }
    if (!entry.starts_with(kFileForm)) return wrong(field, "is neither sha256:... nor file:...");
    auto token = read_token_file(field, entry.substr(kFileForm.size()));
    if (!token) return tl::unexpected(std::move(token).error());
    digests.push_back(net::digest_of(*token));
  }
  return {};
}

}  // namespace

Result<net::TokenDigests> read_tokens(const config::TokenConfig& config) {
  net::TokenDigests digests;
  for (const auto& [field, list, to] :
       {std::tuple{"tokens.check", &config.check, &digests.check},
        std::tuple{"tokens.read", &config.read, &digests.read},
        std::tuple{"tokens.admin", &config.admin, &digests.admin}}) {
    if (Status read = read_list(field, *list, *to); !read) {
      return tl::unexpected(std::move(read).error());
    }
  }
  return digests;
}

}  // namespace weir::server
