#include "src/server/security_keeper.h"

#include <utility>

#include "src/server/certificate_copy.h"
#include "src/server/token_keeper.h"
#include "src/telemetry/names.h"

namespace weir::server {

SecurityKeeper::SecurityKeeper(const config::NodeConfig& config, const Clock& clock,
                               telemetry::Log& log)
    : config_(config), clock_(clock), log_(log) {
  if (tokens() != nullptr) {
    keep("tokens", [this]() -> Result<Nanos> {
      auto digests = read_tokens(config_.tokens);
      if (!digests) return tl::unexpected(std::move(digests).error());
      token_book_.replace(*std::move(digests));
      return 0;
    });
  }
  if (http_tls() != nullptr) {
    keep("tls.http", [this]() -> Result<Nanos> {
      const config::TlsFiles& files = *config_.tls.http;
      auto context = net::TlsContext::load({files.certificate, files.key, files.ca});
      if (!context) return tl::unexpected(std::move(context).error());
      const Nanos not_after_ns = (*context)->not_after_ns();
      http_book_.replace(*std::move(context));
      return not_after_ns;
    });
  }
  if (config_.tls.cluster) {
    keep("tls.cluster", [this] { return copy_certificates(*config_.tls.cluster, config_.data); });
  }
}

void SecurityKeeper::keep(const char* name, std::function<Result<Nanos>()> read) {
  Source& source = sources_.emplace_back();
  source.part.name = name;
  source.read = std::move(read);
}

net::TokenBook* SecurityKeeper::tokens() {
  const config::TokenConfig& tokens = config_.tokens;
  const bool any = !tokens.check.empty() || !tokens.read.empty() || !tokens.admin.empty();
  return any ? &token_book_ : nullptr;
}

const net::TlsBook* SecurityKeeper::http_tls() const {
  return config_.tls.http ? &http_book_ : nullptr;
}

Status SecurityKeeper::read(Source& source) {
  Result<Nanos> result = source.read();
  const Nanos now_ns = clock_.wall_ns();
  const std::lock_guard lock(mutex_);
  if (!result) {
    source.part.last_error = result.error().message;
    Error error = std::move(result).error();
    if (error.field.empty()) error.field = source.part.name;
    return tl::unexpected(std::move(error));
  }
  source.part.last_error.reset();
  source.part.loaded_wall_ns = now_ns;
  source.part.not_after_wall_ns = *result;
  return {};
}

Status SecurityKeeper::start() {
  for (Source& source : sources_) {
    if (Status good = read(source); !good) return good;
  }
  return {};
}

Status SecurityKeeper::reload() {
  Status first;
  for (Source& source : sources_) {
    Status good = read(source);
    {
      const std::lock_guard lock(mutex_);
      ++(good ? source.reloaded : source.failed);
    }
    if (good) {
      log_.info("read again", {{"what", source.part.name}});
      continue;
    }
    log_.error("not read again; what was good stays",
               {{"what", source.part.name}, {"error", good.error().message}});
    if (first) first = std::move(good);
  }
  return first;
}

void SecurityKeeper::housekeep() {
  const net::TokenBook::Refusals now = token_book_.refusals();
  if (now.all() == logged_.all()) return;
  log_.warn("requests refused for their token",
            {{"missing", now.missing - logged_.missing},
             {"unknown", now.unknown - logged_.unknown},
             {"insufficient", now.insufficient - logged_.insufficient}});
  logged_ = now;
}

void SecurityKeeper::collect(telemetry::MetricSink& sink) const {
  const auto& metric = telemetry::metric::kTokenRefusals;
  const net::TokenBook::Refusals now = token_book_.refusals();
  const std::pair<const char*, std::uint64_t> reasons[] = {
      {"missing", now.missing}, {"unknown", now.unknown}, {"insufficient", now.insufficient}};
  for (const auto& [reason, count] : reasons) {
    sink.counter(metric.name, metric.help, {{"reason", reason}}, static_cast<double>(count));
  }
  const auto& reload = telemetry::metric::kSecurityReload;
  const std::lock_guard lock(mutex_);
  for (const Source& source : sources_) {
    const std::pair<const char*, std::uint64_t> results[] = {{"replaced", source.reloaded},
                                                             {"failed", source.failed}};
    for (const auto& [result, count] : results) {
      sink.counter(reload.name, reload.help, {{"what", source.part.name}, {"result", result}},
                   static_cast<double>(count));
    }
  }
}

std::vector<SecurityKeeper::Part> SecurityKeeper::state() const {
  const std::lock_guard lock(mutex_);
  std::vector<Part> parts;
  for (const Source& source : sources_) parts.push_back(source.part);
  return parts;
}

}  // namespace weir::server
