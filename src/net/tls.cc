#include "src/net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "src/base/assert.h"

namespace weir::net {
namespace {

/// The first reason in OpenSSL's queue of errors, which is emptied.
std::string take_reason() {
  std::string reason;
  while (const unsigned long code = ERR_get_error()) {
    if (!reason.empty()) continue;
    const char* text = ERR_SYSTEM_ERROR(code) ? std::strerror(ERR_GET_REASON(code))
                                              : ERR_reason_error_string(code);
    reason = text == nullptr ? "error " + std::to_string(code) : text;
  }
  return reason.empty() ? "unknown error" : reason;
}

tl::unexpected<Error> wrong(const std::string& path, const std::string& what) {
  return failure(ErrorCode::invalid_argument, "", path + ": " + what);
}

/// Encrypted keys are refused rather than asked for at a terminal.
int no_password(char*, int, int, void*) { return -1; }

Nanos nanos_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return static_cast<Nanos>(timegm(&parts)) * kSecond;
}

/// Whether the CAs of `context` have signed its own certificate, as its peers will ask.
bool signed_by_own_ca(SSL_CTX* context) {
  X509_STORE_CTX* check = X509_STORE_CTX_new();
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  const bool good = check != nullptr &&
                    X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(context),
                                        SSL_CTX_get0_certificate(context), chain) == 1 &&
                    X509_verify_cert(check) == 1;
  X509_STORE_CTX_free(check);
  return good;
}

/// Whether it may be shown by either end; one without extended key usage may.
bool serves_both_ends(X509* certificate) {
  return X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, 0) == 1 &&
         X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) == 1;
}

Status fill(SSL_CTX* context, const TlsPaths& paths, bool mutual) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // Clients keep their sessions themselves, in tickets: here strangers would fill the memory.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(context, no_password);
  std::error_code ignored;
  for (const std::string& path : {paths.certificate, paths.key, paths.ca}) {
    if (!path.empty() && !std::filesystem::exists(path, ignored)) return wrong(path, "not found");
  }
  if (SSL_CTX_use_certificate_chain_file(context, paths.certificate.c_str()) != 1) {
    return wrong(paths.certificate, "no certificate in PEM: " + take_reason());
  }
  if (X509_cmp_current_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context))) < 0) {
    return wrong(paths.certificate, "the certificate has expired");
  }
  if (SSL_CTX_use_PrivateKey_file(context, paths.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return wrong(paths.key, "no unencrypted key in PEM of that certificate: " + take_reason());
  }
  if (paths.ca.empty()) return {};
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(paths.ca.c_str());
  if (names == nullptr || SSL_CTX_load_verify_locations(context, paths.ca.c_str(), nullptr) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return wrong(paths.ca, "no CA certificates in PEM: " + take_reason());
  }
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Without it OpenSSL refuses to resume sessions of clients that have shown a certificate.
  constexpr unsigned char kSessions[] = "weir";
  SSL_CTX_set_session_id_context(context, kSessions, sizeof kSessions - 1);
  if (!mutual) return {};
  if (!signed_by_own_ca(context)) {
    return wrong(paths.certificate, "not signed by the CA in " + paths.ca);
  }
  if (!serves_both_ends(SSL_CTX_get0_certificate(context))) {
    return wrong(paths.certificate,
                 "its extended key usage must have both serverAuth and clientAuth");
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsPaths& paths, bool mutual) {
  ERR_clear_error();
  SSL_CTX* native = SSL_CTX_new(TLS_server_method());
  if (native == nullptr) return failure(ErrorCode::io, "", "OpenSSL: " + take_reason());
  const std::shared_ptr<TlsContext> context(new TlsContext(native));
  if (Status filled = fill(native, paths, mutual); !filled) {
    ERR_clear_error();
    return tl::unexpected(std::move(filled).error());
  }
  context->not_after_ns_ = nanos_of(X509_get0_notAfter(SSL_CTX_get0_certificate(native)));
  return context;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

void TlsBook::replace(std::shared_ptr<const TlsContext> context) {
  const std::lock_guard lock(mutex_);
  context_ = std::move(context);
}

std::shared_ptr<const TlsContext> TlsBook::current() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

TlsStream::TlsStream(const TlsContext& context, int descriptor) : ssl_(SSL_new(context.native())) {
  WEIR_ASSERT(ssl_ != nullptr);
  SSL_set_fd(ssl_, descriptor);
  SSL_set_accept_state(ssl_);
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

TlsStream::Step TlsStream::step_of(int result) {
  const int system_error = errno;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {Outcome::wants_read};
    case SSL_ERROR_WANT_WRITE:
      return {Outcome::wants_write};
    case SSL_ERROR_ZERO_RETURN:
      return {Outcome::ended};
    case SSL_ERROR_SYSCALL:
      reason_ = system_error == 0 ? "the connection was cut off" : std::strerror(system_error);
      return {Outcome::failed};
    default:
      reason_ = take_reason();
      return {Outcome::failed};
  }
}

TlsStream::Step TlsStream::handshake() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_);
  return result == 1 ? Step{} : step_of(result);
}

TlsStream::Step TlsStream::read(char* buffer, std::size_t size) {
  ERR_clear_error();
  errno = 0;
  const int most = static_cast<int>(std::min<std::size_t>(size, INT_MAX));
  const int result = SSL_read(ssl_, buffer, most);
  return result > 0 ? Step{Outcome::done, static_cast<std::size_t>(result)} : step_of(result);
}

TlsStream::Step TlsStream::write(std::string_view bytes) {
  ERR_clear_error();
  errno = 0;
  const int most = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
  const int result = SSL_write(ssl_, bytes.data(), most);
  return result > 0 ? Step{Outcome::done, static_cast<std::size_t>(result)} : step_of(result);
}

void TlsStream::shutdown() {
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace weir::net
