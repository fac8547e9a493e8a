// What may be asked without a token, on `listen.probe`: /metrics, /healthz, /readyz. Thread-safe.
#pragma once

#include "src/net/service.h"

namespace weir::server {

class ProbeService final : public net::AdminService {
 public:
  /// `admin` answers, and outlives this.
  explicit ProbeService(net::AdminService& admin) : admin_(admin) {}

  void handle(const net::AdminRequest& request, Completion done) override;

 private:
  net::AdminService& admin_;
};

}  // namespace weir::server
