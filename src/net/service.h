// What the HTTP side knows of Weir: two interfaces. src/net includes no actor and no limiter.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/model/check.h"

namespace weir::net {

enum class Readiness {
  serving,
  draining,
  no_policy,
  store_failed,  ///< checks are answered, by other nodes' owners; this one should be replaced
};

/// Answers checks. Thread-safe; called from every HTTP thread.
class CheckService {
 public:
  virtual ~CheckService() = default;

  using Completion = std::function<void(const Decision&)>;

  /// Decides at once when it can (`decision` is filled, true) without blocking. False: call
  /// `decide_later`. The check has been validated (weir::validate). An error (more limits match
  /// than kMaxLimitsPerCheck) is the caller's 400.
  virtual Result<bool> decide(const Check& check, Decision& decision) = 0;

  /// Calls `done` exactly once, now or later, on any thread, within `wait` (PROTOCOL I1).
  virtual void decide_later(const Check& check, Completion done) = 0;

  using UsageCompletion = std::function<void(Result<std::vector<BucketUsage>>)>;
  /// Every bucket of a customer that this edge or the owner knows; consumes nothing.
  virtual void usage(const std::string& customer, UsageCompletion done) = 0;

  virtual Readiness readiness() const = 0;
};

struct AdminRequest {
  std::string method;  ///< GET, PUT, POST, DELETE
  std::string path;    ///< percent-decoded segments stay encoded: compare with split_path
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded
  std::string body;
};

struct AdminResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::string allow;  ///< for 405: the methods that would do
};

/// Answers everything under the admin port. Thread-safe.
class AdminService {
 public:
  virtual ~AdminService() = default;
  using Completion = std::function<void(AdminResponse)>;
  /// Calls `done` exactly once, on any thread.
  virtual void handle(const AdminRequest& request, Completion done) = 0;
};

}  // namespace weir::net
