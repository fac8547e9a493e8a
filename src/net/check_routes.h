// The check API's routes (API.md): /v1/check, /v1/checks, /v1/usage. One object per I/O thread,
// called by that thread; the CheckService behind it is shared.
#pragma once

#include <vector>

#include "src/base/random.h"
#include "src/base/time.h"
#include "src/net/check_answer.h"
#include "src/net/http_message.h"
#include "src/net/service.h"
#include "src/telemetry/metrics.h"

namespace weir::net {

struct CheckApiOptions {
  HeaderStyle headers = HeaderStyle::draft11;
  std::uint64_t jitter_seed = 0;  ///< for Retry-After
  /// Time from a parsed request to its decision, each check of a batch for itself; may be null. It
  /// must outlive the CheckService, which may complete a check late.
  telemetry::DurationHistogram* check_duration = nullptr;
};

class CheckRoutes final : public RequestHandler {
 public:
  /// `service` outlives this object; `clock` outlives `service`.
  CheckRoutes(const CheckApiOptions& options, CheckService& service, const Clock& clock);

  std::size_t max_body_bytes(std::string_view target) const override;
  bool handle(const HttpRequest& request, HttpResponse& response, Deferral& deferral) override;
  void refuse(const HttpRequest& request, int status, const Error& error,
              HttpResponse& response) override;

 private:
  bool handle_check(const HttpRequest& request, HttpResponse& response, Deferral& deferral);
  bool handle_batch(const HttpRequest& request, HttpResponse& response, Deferral& deferral);
  bool handle_usage(const HttpRequest& request, HttpResponse& response, Deferral& deferral);
  /// Fills in 503 and returns false while no check can be answered.
  bool serving(MediaType type, HttpResponse& response) const;
  bool fail(const Error& error, MediaType type, HttpResponse& response) const;
  bool decide(const AnswerForm& form, HttpResponse& response, Deferral& deferral);
  void start_batch(const std::vector<Result<Check>>& checks, MediaType type, Nanos began_ns,
                   std::vector<Result<Decision>> results, const std::vector<std::size_t>& waiting,
                   Deferral& deferral);
  void observe(Nanos began_ns) const;

  const CheckApiOptions options_;
  CheckService& service_;
  const Clock& clock_;
  Random random_;
  Check check_;        ///< reused
  Decision decision_;  ///< reused
};

}  // namespace weir::net
