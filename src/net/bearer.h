// Bearer tokens (RFC 6750): what a request shows, and whether it is enough. Of a token nothing is
// kept but its digest.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "src/net/http_message.h"

namespace weir::net {

/// SHA-256.
using TokenDigest = std::array<std::uint8_t, 32>;

TokenDigest digest_of(std::string_view token);
/// Of 64 hexadecimal digits.
std::optional<TokenDigest> parse_digest(std::string_view hex);

/// What a port's request needs. `admin` implies `read`; `check` stands for itself.
enum class Access : std::uint8_t { check, read, admin };
const char* to_string(Access access);

struct TokenDigests {
  std::vector<TokenDigest> check;
  std::vector<TokenDigest> read;
  std::vector<TokenDigest> admin;

  /// Whether requests that need `access` must show a token: the check API is open without check
  /// tokens, the admin API without read and admin tokens.
  bool guards(Access access) const;

  friend bool operator==(const TokenDigests&, const TokenDigests&) = default;
};

enum class Verdict : std::uint8_t { granted, missing, unknown, insufficient };

/// Judges the value of an `Authorization` header. Takes as long whichever known token is shown, and
/// how long says nothing of how much of a wrong one was right.
Verdict judge(const TokenDigests& tokens, Access needed, std::string_view authorization);

/// The tokens in force and the count of what they refused. Thread-safe.
class TokenBook {
 public:
  void replace(TokenDigests tokens);

  /// What a thread keeps, so that requests take no lock.
  struct Copy {
    std::shared_ptr<const TokenDigests> tokens;
    std::uint64_t edition = 0;
  };
  /// Brings `copy` up to date.
  void refresh(Copy& copy) const;

  struct Refusals {
    std::uint64_t missing = 0;
    std::uint64_t unknown = 0;
    std::uint64_t insufficient = 0;
    std::uint64_t all() const { return missing + unknown + insufficient; }
  };
  void count(Verdict verdict);
  Refusals refusals() const;

 private:
  // Requests look only when the edition has changed; reloads write.
  mutable std::mutex mutex_;
  std::shared_ptr<const TokenDigests> tokens_ = std::make_shared<const TokenDigests>();
  std::atomic<std::uint64_t> edition_{1};
  std::atomic<std::uint64_t> missing_{0};
  std::atomic<std::uint64_t> unknown_{0};
  std::atomic<std::uint64_t> insufficient_{0};
};

/// Which port a handler answers for, and so which access its requests need.
enum class Port : std::uint8_t { check, admin };

/// Lets to `inner` only what shows a token that is good enough; answers the rest with 401 or 403.
class GuardedRoutes final : public RequestHandler {
 public:
  /// `book` outlives this object.
  GuardedRoutes(Port port, TokenBook& book, std::unique_ptr<RequestHandler> inner);

  std::size_t max_body_bytes(std::string_view target) const override;
  bool handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) override;
  void refuse(const HttpRequest& request, int status, const Error& error,
              HttpResponse& response) override;

 private:
  Access needed(const HttpRequest& request) const;

  const Port port_;
  TokenBook& book_;
  const std::unique_ptr<RequestHandler> inner_;
  TokenBook::Copy copy_;
};

}  // namespace weir::net
