#include "test/support/load.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "src/net/http_client.h"
#include "test/support/node_client.h"

namespace weir::test {
namespace {

constexpr std::size_t kMostComplaints = 8;
/// Between two attempts to reach a node that is not there.
constexpr Nanos kReconnectNs = 5 * kMillisecond;
/// On top of the time that a load takes by its own pace, for a machine that is busy.
constexpr Nanos kSlackNs = 4 * kMinute;

}  // namespace

LoadShape load_of(std::vector<Endpoint> nodes, std::int64_t rate_per_s, std::int64_t times,
                  Nanos duration_ns) {
  LoadShape shape;
  shape.nodes = std::move(nodes);
  shape.checks_per_s = rate_per_s * times;
  shape.checks = shape.checks_per_s * (duration_ns / kMillisecond) / 1000;
  return shape;
}

/// One client. Used by its own thread only.
class Load::Connection {
 public:
  Connection(const Endpoint& node, const LoadShape& shape) : node_(node) {
    for (int i = 0; i < shape.customers; ++i) {
      const std::string name =
          shape.customers == 1 ? shape.customer : shape.customer + "-" + std::to_string(i);
      bodies_.push_back(check_body(name, 1, shape.attributes));
    }
  }

  bool open() const { return client_ && client_->usable(); }

  Result<net::HttpClientResponse> check(int customer) {
    if (!open()) {
      client_.reset();
      auto connected = net::HttpClient::connect(node_, kAnswerPatienceNs);
      if (!connected) return tl::unexpected(std::move(connected).error());
      client_ = *std::move(connected);
    }
    return client_->request("POST", "/v1/check", kHeaders,
                            bodies_[static_cast<std::size_t>(customer)], kAnswerPatienceNs);
  }

 private:
  static inline const net::HttpHeaders kHeaders{{"Content-Type", "application/json"}};
  Endpoint node_;
  std::vector<std::string> bodies_;  ///< by customer
  std::optional<net::HttpClient> client_;
};

Load::Load(LoadShape shape) : shape_(std::move(shape)), began_ns_(now_ns()) {
  const auto connections =
      static_cast<std::int64_t>(shape_.nodes.size()) * shape_.connections_per_node;
  checks_each_ = (shape_.checks + connections - 1) / connections;
  planned_ = checks_each_ * connections;
  for (int i = 0; i < connections; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) {
      run(i % static_cast<int>(shape_.nodes.size()), i, stop);
    });
  }
}

Load::~Load() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Load::run(int node, int place, const std::stop_token& stop) {
  Connection connection(shape_.nodes[static_cast<std::size_t>(node)], shape_);
  const std::int64_t connections = planned_ / checks_each_;
  const Nanos interval_ns = kSecond * connections / shape_.checks_per_s;
  // Connections take turns within an interval.
  const Nanos first_ns = began_ns_ + interval_ns * place / connections;
  History history;
  history.reserve(static_cast<std::size_t>(checks_each_));
  const auto pause_until = [&](Nanos due_ns) {
    const Nanos wait_ns = due_ns - now_ns();
    if (wait_ns <= 0) return;
    std::mutex own;
    std::unique_lock lock(own);
    std::condition_variable_any never;
    never.wait_for(lock, stop, std::chrono::nanoseconds(wait_ns), [] { return false; });
  };
  for (std::int64_t i = 0; i < checks_each_ && !stop.stop_requested(); ++i) {
    pause_until(first_ns + i * interval_ns);
    const Nanos invoked_ns = now_ns();
    std::string complaint;
    const int customer = static_cast<int>((i * connections + place) % shape_.customers);
    CheckRecord record = record_of(connection.check(customer), complaint);
    record.customer = customer;
    record.invoked_ns = invoked_ns;
    record.returned_ns = now_ns();
    record.node = node;
    note(record, complaint, history);
    if (!connection.open()) pause_until(record.returned_ns + kReconnectNs);
  }
  const std::lock_guard lock(mutex_);
  history_.insert(history_.end(), history.begin(), history.end());
}

void Load::note(const CheckRecord& record, const std::string& complaint, History& history) {
  history.push_back(record);
  const std::int64_t ended = ended_.fetch_add(1) + 1;
  if (!complaint.empty()) {
    const std::lock_guard lock(mutex_);
    if (complaints_.size() < kMostComplaints) complaints_.push_back(complaint);
  }
  // Waiters look for permilles; waking them more often would cost the machine under test.
  if (ended == planned_ || ended % std::max<std::int64_t>(1, planned_ / 1000) == 0) {
    const std::lock_guard lock(mutex_);
    progress_.notify_all();
  }
}

bool Load::wait_for_permille(std::int64_t permille) const {
  const Nanos pace_ns = shape_.checks * kSecond / shape_.checks_per_s;
  std::unique_lock lock(mutex_);
  return progress_.wait_for(lock, std::chrono::nanoseconds(pace_ns + kSlackNs),
                            [&] { return ended() * 1000 >= planned_ * permille; });
}

History Load::finish() {
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  return history_;
}

}  // namespace weir::test
