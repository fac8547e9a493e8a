#include "src/net/admin_routes.h"

#include <utility>

#include "src/codec/query.h"
#include "src/net/check_answer.h"

namespace weir::net {

bool AdminRoutes::handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) {
  AdminRequest admin;
  switch (request.method) {
    case Method::get:
    case Method::head:  // the session leaves the body out
      admin.method = "GET";
      break;
    case Method::put:
      admin.method = "PUT";
      break;
    case Method::post:
      admin.method = "POST";
      break;
    case Method::remove:
      admin.method = "DELETE";
      break;
    case Method::other:
      write_method_not_allowed("GET, HEAD, PUT, POST, DELETE", MediaType::json, response);
      return true;
  }
  auto query = codec::parse_query(request.query);
  if (!query) {
    write_error(400, query.error(), MediaType::json, response);
    return true;
  }
  admin.path = request.path;
  admin.query = std::move(*query);
  admin.body = request.body;
  service_.handle(admin, [later = deferral.defer()](AdminResponse answer) {
    HttpResponse late;
    late.status = answer.status;
    if (!answer.allow.empty()) late.headers += "Allow: " + answer.allow + "\r\n";
    if (answer.status == 503) late.headers += "Retry-After: 1\r\n";
    late.headers += "Content-Type: " + answer.content_type + "\r\nCache-Control: no-store\r\n";
    late.body = std::move(answer.body);
    later(std::move(late));
  });
  return false;
}

void AdminRoutes::refuse(const HttpRequest&, int status, const Error& error,
                         HttpResponse& response) {
  write_error(status, error, MediaType::json, response);
}

}  // namespace weir::net
