#include "src/store/acknowledged.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "src/base/hash.h"

namespace weir::store {
namespace {

constexpr std::string_view kMagic = "WEIRACK1";
// Magic, u64 count, u32 number, u64 hash_bytes of all before it; little-endian. It is within one
// sector of a disk, which is written whole or not at all.
constexpr std::size_t kHashAt = 20;
constexpr std::size_t kBytes = 28;
using Bytes = std::array<char, kBytes>;

template <typename Number>
void put(Bytes& bytes, std::size_t at, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes[at + i] = static_cast<char>(number >> (8 * i) & 0xff);
  }
}

template <typename Number>
Number get(const Bytes& bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number |= static_cast<Number>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return number;
}

std::uint64_t hash_of(const Bytes& bytes) { return hash_bytes({bytes.data(), kHashAt}); }

tl::unexpected<Error> cannot(const std::string& what, const std::string& path) {
  return failure(ErrorCode::io, "data", "cannot " + what + " " + path + ": " + strerror(errno));
}

}  // namespace

Acknowledged::~Acknowledged() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status Acknowledged::open(const std::string& folder) {
  path_ = folder + "/" + kAcknowledgedFile;
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640);
  if (descriptor_ < 0) return cannot("open", path_);
  Bytes bytes{};
  const ssize_t read = ::pread(descriptor_, bytes.data(), bytes.size(), 0);
  if (read < 0) return cannot("read", path_);
  if (read == 0) return {};
  const bool whole = static_cast<std::size_t>(read) == kBytes &&
                     std::string_view(bytes.data(), kMagic.size()) == kMagic &&
                     get<std::uint64_t>(bytes, kHashAt) == hash_of(bytes);
  found_ = whole ? Found::content : Found::unreadable;
  if (whole) content_ = {get<std::uint64_t>(bytes, 8), get<std::uint32_t>(bytes, 16)};
  return {};
}

Status Acknowledged::advance(const Content& content, bool sync) {
  Bytes bytes{};
  kMagic.copy(bytes.data(), kMagic.size());
  put(bytes, 8, content.count);
  put(bytes, 16, content.number);
  put(bytes, kHashAt, hash_of(bytes));
  const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), 0);
  if (written != static_cast<ssize_t>(bytes.size())) return cannot("write", path_);
  if (sync && ::fdatasync(descriptor_) != 0) return cannot("sync", path_);
  content_ = content;
  return {};
}

}  // namespace weir::store
