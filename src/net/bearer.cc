#include "src/net/bearer.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <string>
#include <utility>

#include "src/base/assert.h"
#include "src/net/check_answer.h"

namespace weir::net {
namespace {

constexpr std::string_view kScheme = "Bearer";

/// The token of `Bearer TOKEN` (RFC 6750 section 2.1; the scheme in any case, RFC 9110), or nothing
/// when the header holds none.
std::optional<std::string_view> token_of(std::string_view authorization) {
  if (authorization.size() <= kScheme.size() || authorization[kScheme.size()] != ' ' ||
      !equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  std::string_view token = authorization.substr(kScheme.size());
  while (token.starts_with(' ')) token.remove_prefix(1);
  while (token.ends_with(' ')) token.remove_suffix(1);
  if (token.empty()) return std::nullopt;
  return token;
}

/// Looks at all of them, found or not.
bool contains(const std::vector<TokenDigest>& digests, const TokenDigest& digest) {
  unsigned found = 0;
  for (const TokenDigest& each : digests) {
    found |= static_cast<unsigned>(CRYPTO_memcmp(each.data(), digest.data(), digest.size()) == 0);
  }
  return found != 0;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void write_refusal(Verdict verdict, Access needed, MediaType type, HttpResponse& response) {
  std::string challenge = "Bearer realm=\"weir\"";
  Error error{ErrorCode::unauthenticated, "Authorization", ""};
  if (verdict == Verdict::missing) {
    error.message = "show a token: `Authorization: Bearer TOKEN`";
  } else if (verdict == Verdict::unknown) {
    challenge += ", error=\"invalid_token\"";
    error.message = "this token is not known here";
  } else {
    const std::string scope = to_string(needed);
    challenge += ", error=\"insufficient_scope\", scope=\"" + scope + "\"";
    error.code = ErrorCode::forbidden;
    error.message = "this token is not enough, it takes one of scope `" + scope + "`";
  }
  response.headers += "WWW-Authenticate: " + challenge + "\r\nCache-Control: no-store\r\n";
  write_error(status_of(error.code), error, type, response);
}

}  // namespace

TokenDigest digest_of(std::string_view token) {
  TokenDigest digest;
  static_assert(std::tuple_size_v<TokenDigest> == SHA256_DIGEST_LENGTH);
  // Fetched once: SHA256() looks the algorithm up by its name each time, under locks that all
  // threads share.
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  const int done = EVP_Digest(token.data(), token.size(), digest.data(), nullptr, sha256, nullptr);
  WEIR_ASSERT(done == 1);
  return digest;
}

std::optional<TokenDigest> parse_digest(std::string_view hex) {
  TokenDigest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = hex_value(hex[2 * i]);
    const int low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return digest;
}

const char* to_string(Access access) {
  switch (access) {
    case Access::check:
      return "check";
    case Access::read:
      return "read";
    case Access::admin:
      return "admin";
  }
  return "unknown";
}

bool TokenDigests::guards(Access access) const {
  return access == Access::check ? !check.empty() : !read.empty() || !admin.empty();
}

Verdict judge(const TokenDigests& tokens, Access needed, std::string_view authorization) {
  if (!tokens.guards(needed)) return Verdict::granted;
  const auto token = token_of(authorization);
  if (!token) return Verdict::missing;
  const TokenDigest digest = digest_of(*token);
  const bool check = contains(tokens.check, digest);
  const bool admin = contains(tokens.admin, digest);
  const bool read = contains(tokens.read, digest) || admin;
  const bool enough = needed == Access::check ? check : needed == Access::read ? read : admin;
  if (enough) return Verdict::granted;
  return check || read ? Verdict::insufficient : Verdict::unknown;
}

void TokenBook::replace(TokenDigests tokens) {
  auto next = std::make_shared<const TokenDigests>(std::move(tokens));
  const std::lock_guard lock(mutex_);
  tokens_ = std::move(next);
  edition_.fetch_add(1, std::memory_order_release);
}

void TokenBook::refresh(Copy& copy) const {
  if (copy.edition == edition_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  copy = {tokens_, edition_.load(std::memory_order_relaxed)};
}

void TokenBook::count(Verdict verdict) {
  auto& counter = verdict == Verdict::missing   ? missing_
                  : verdict == Verdict::unknown ? unknown_
                                                : insufficient_;
  counter.fetch_add(1, std::memory_order_relaxed);
}

TokenBook::Refusals TokenBook::refusals() const {
  return {missing_.load(std::memory_order_relaxed), unknown_.load(std::memory_order_relaxed),
          insufficient_.load(std::memory_order_relaxed)};
}

GuardedRoutes::GuardedRoutes(Port port, TokenBook& book, std::unique_ptr<RequestHandler> inner)
    : port_(port), book_(book), inner_(std::move(inner)) {}

std::size_t GuardedRoutes::max_body_bytes(std::string_view target) const {
  return inner_->max_body_bytes(target);
}

Access GuardedRoutes::needed(const HttpRequest& request) const {
  if (port_ == Port::check) return Access::check;
  const bool looks = request.method == Method::get || request.method == Method::head;
  return looks ? Access::read : Access::admin;
}

bool GuardedRoutes::handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) {
  book_.refresh(copy_);
  const Access access = needed(request);
  const Verdict verdict = judge(*copy_.tokens, access, request.header("Authorization"));
  if (verdict == Verdict::granted) return inner_->handle(request, response, deferral);
  book_.count(verdict);
  const MediaType fallback =
      media_type_of(request.header("Content-Type")).value_or(MediaType::json);
  const MediaType type =
      port_ == Port::check ? accepted_by(request.header("Accept"), fallback).type : MediaType::json;
  write_refusal(verdict, access, type, response);
  return true;
}

void GuardedRoutes::refuse(const HttpRequest& request, int status, const Error& error,
                           HttpResponse& response) {
  inner_->refuse(request, status, error, response);
}

}  // namespace weir::net
