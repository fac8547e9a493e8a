// Hands the admin port's requests to an AdminService. One object per I/O thread.
#pragma once

#include "src/net/http_message.h"
#include "src/net/service.h"

namespace weir::net {

/// Largest body of an admin request (a customer's override is a few hundred bytes). Larger is
/// refused with 413.
inline constexpr std::size_t kMaxAdminBodyBytes = 256 * 1024;

class AdminRoutes final : public RequestHandler {
 public:
  explicit AdminRoutes(AdminService& service) : service_(service) {}

  std::size_t max_body_bytes(std::string_view) const override { return kMaxAdminBodyBytes; }
  bool handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) override;
  void refuse(const HttpRequest& request, int status, const Error& error,
              HttpResponse& response) override;

 private:
  AdminService& service_;
};

}  // namespace weir::net
