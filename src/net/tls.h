// TLS for sockets that are asked directly: a connection is an SSL object on a non-blocking
// descriptor, and says what it waits for. OpenSSL stays in the .cc. It writes to sockets with
// write(2): the process ignores SIGPIPE.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/base/time.h"

struct ssl_ctx_st;
struct ssl_st;

namespace weir::net {

/// Paths of PEM files. Keys are not encrypted.
struct TlsPaths {
  std::string certificate;  ///< the chain, the server's own first
  std::string key;
  std::string ca;  ///< who may have signed the other side's; empty: it shows none
};

/// Certificates that have been read and fit together. A value that is shared, never changed.
class TlsContext {
 public:
  /// TLS 1.2 or later, for the accepting side. The error names the file and what is wrong with it:
  /// not PEM, a key of another certificate, expired. `mutual`: both sides show such a certificate,
  /// so `ca` must have signed it for servers and for clients.
  static Result<std::shared_ptr<const TlsContext>> load(const TlsPaths& paths, bool mutual = false);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// When the certificate ends, in nanoseconds since 1970.
  Nanos not_after_ns() const { return not_after_ns_; }
  ssl_ctx_st* native() const { return context_; }

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}

  ssl_ctx_st* context_;
  Nanos not_after_ns_ = 0;
};

/// The certificates that new connections get. Thread-safe.
class TlsBook {
 public:
  void replace(std::shared_ptr<const TlsContext> context);
  std::shared_ptr<const TlsContext> current() const;

 private:
  // Acceptors look, reloads write.
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsContext> context_;
};

/// The accepting end of one TLS connection. One thread at a time.
class TlsStream {
 public:
  enum class Outcome { done, wants_read, wants_write, ended, failed };
  struct Step {
    Outcome outcome = Outcome::done;
    std::size_t size = 0;  ///< bytes taken or given
  };

  /// The descriptor stays the caller's.
  TlsStream(const TlsContext& context, int descriptor);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  /// To be called again when what it wants is there, until `done`.
  Step handshake();
  Step read(char* buffer, std::size_t size);
  Step write(std::string_view bytes);
  /// Says that nothing more comes, as far as the socket takes it now.
  void shutdown();
  /// Why the last step failed, for a log.
  const std::string& reason() const { return reason_; }

 private:
  Step step_of(int result);

  ssl_st* ssl_;
  std::string reason_;
};

}  // namespace weir::net
