#include "src/server/probe_service.h"

#include <utility>

namespace weir::server {

void ProbeService::handle(const net::AdminRequest& request, Completion done) {
  const std::string& path = request.path;
  if (path == "/metrics" || path == "/healthz" || path == "/readyz") {
    admin_.handle(request, std::move(done));
    return;
  }
  net::AdminResponse response;
  response.status = 404;
  response.body = R"({"error":{"code":"not_found",)"
                  R"("message":"this port answers /metrics, /healthz and /readyz"}})";
  done(std::move(response));
}

}  // namespace weir::server
