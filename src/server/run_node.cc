#include "src/server/run_node.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "src/base/system_clock.h"
#include "src/server/memory.h"
#include "src/server/notifier.h"
#include "src/server/server.h"
#include "src/server/version.h"
#include "src/store/acknowledged.h"
#include "src/store/memory_store.h"
#include "src/store/rocks_store.h"

namespace weir::server {
namespace {

namespace json = boost::json;

/// The signals that a node obeys, blocked in every thread and taken one by one in main's.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGHUP, SIGTERM, SIGINT}) ::sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
  }
  /// The next signal, or 0 when none came for `patience_ns`.
  int wait(Nanos patience_ns) const {
    const timespec patience{patience_ns / kSecond, patience_ns % kSecond};
    const int signal = ::sigtimedwait(&set_, nullptr, &patience);
    return signal > 0 ? signal : 0;
  }

 private:
  sigset_t set_{};
};

/// Connections and the store's files share the process's descriptors, of which many systems give
/// 1,024 unless asked: a store that cannot open its next file takes no writes until a restart.
void raise_descriptor_limit() {
  constexpr rlim_t kWanted = 64 * 1024;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWanted);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Ends the process when kDrainNs is over, whoever still waits for a disk or a name server then.
/// Nothing is lost: what was answered is on the disk, what is out on lease counts as spent.
void bound_the_end() {
  struct sigaction action {};
  action.sa_handler = [](int) { ::_exit(0); };
  ::sigaction(SIGALRM, &action, nullptr);
  ::alarm(static_cast<unsigned>(kDrainNs / kSecond));
}

telemetry::Level level_of(config::LogLevel level) {
  return telemetry::level_from(config::to_string(level)).value_or(telemetry::Level::info);
}

Result<std::unique_ptr<store::Store>> open_store(const config::NodeConfig& config,
                                                 const Clock& clock, SeedSource& seeds,
                                                 telemetry::Log& log) {
  if (!config.roles.owner) return std::unique_ptr<store::Store>();
  if (config.authority == config::Authority::memory) {
    return std::make_unique<store::MemoryStore>(clock, system_boot_id(), config.max_clock_error_ns,
                                                seeds.next_seed());
  }
  store::RocksOptions options;
  options.folder = config.data;
  options.clock = &clock;
  options.seeds = &seeds;
  options.boot_id = system_boot_id();
  options.max_clock_error_ns = config.max_clock_error_ns;
  options.fsync = config.fsync;
  auto store = store::open_rocks_store(options);
  const bool ours =
      std::filesystem::exists(std::filesystem::path(config.data) / store::kAcknowledgedFile);
  if (!store && store.error().code == ErrorCode::corrupt && ours) {
    // Amnesia (PROTOCOL C1): its peers teach it everything again; alone, every bucket starts empty.
    log.error("the store is damaged; it is moved aside, and an empty one begins",
              {{"data", config.data},
               {"kept_as", config.data + ".damaged"},
               {"error", store.error().message}});
    store = store::replace_rocks_store(options);
  }
  if (store && (*store)->amnesic()) {
    log.warn(
        "the store has lost what it had acknowledged: it votes again when its peers have "
        "taught it; alone, every bucket starts empty",
        {{"data", config.data}});
  }
  return store;
}

std::string text_of(const std::optional<Endpoint>& endpoint) {
  return endpoint ? to_string(*endpoint) : std::string("none");
}

json::value json_of(const std::optional<Endpoint>& endpoint) {
  return endpoint ? json::value(to_string(*endpoint)) : json::value(nullptr);
}

/// Says to whoever waits at the other end that the node serves, and where.
void write_ready_line(int fd, const config::NodeConfig& config, const Server::Addresses& at) {
  if (fd < 0) return;
  const std::string line = json::serialize(json::object{{"node", config.node},
                                                        {"http", json_of(at.http)},
                                                        {"admin", json_of(at.admin)},
                                                        {"cluster", at.cluster_port},
                                                        {"pid", ::getpid()}}) +
                           "\n";
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t size = ::write(fd, line.data() + written, line.size() - written);
    if (size <= 0) break;  // nobody waits any more
    written += static_cast<std::size_t>(size);
  }
  ::close(fd);
}

void serve_until_told(Server& server, const Signals& signals, telemetry::Log& log,
                      Notifier& notifier, const std::string& summary) {
  MemoryTrimmer trimmer;
  while (true) {
    const int signal = signals.wait(kHousekeepingNs);
    if (signal == SIGHUP) {
      notifier.reloading();
      (void)server.reload();  // the server has logged the outcome and shows it in its status
      notifier.ready(summary);
    } else if (signal != 0) {
      log.info("stopping", {{"signal", signal == SIGINT ? "SIGINT" : "SIGTERM"}});
      return;
    }
    server.housekeep();
    if (trimmer.trim_if_worthwhile()) log.debug("memory given back");
  }
}

}  // namespace

Status run_node(config::NodeConfig config, const RunOptions& options) {
  limit_arenas();
  raise_descriptor_limit();
  const Signals signals;
  const SystemClock clock;
  SystemSeedSource seeds;
  const auto format = config.log.format == config::LogFormat::json ? telemetry::Format::json
                                                                   : telemetry::Format::text;
  const auto log = telemetry::make_log(level_of(config.log.level), format);
  telemetry::Metrics metrics;
  auto store = open_store(config, clock, seeds, *log);
  if (!store) return tl::unexpected(std::move(store).error());

  const Server::World world{&clock, &seeds, store->get(), log.get(), &metrics};
  auto started = Server::start(std::move(config), world);
  if (!started) return tl::unexpected(std::move(started).error());
  std::unique_ptr<Server> server = *std::move(started);

  const Server::Addresses at = server->addresses();
  const config::NodeConfig& running = server->config();
  if (!running.fsync && running.authority == config::Authority::owner) {
    log->warn(
        "fsync is off: after a stop of the machine this store votes only when it was taught anew");
  }
  log->info("serving", {{"node", running.node},
                        {"region", running.region},
                        {"checks", text_of(at.http)},
                        {"admin", text_of(at.admin)},
                        {"cluster_port", at.cluster_port},
                        {"authority", config::to_string(running.authority)},
                        {"data", running.roles.owner ? running.data : std::string("none")},
                        {"policy", running.policy},
                        {"version", version()},
                        {"pid", ::getpid()}});
  Notifier notifier;
  const std::string summary = "checks on " + text_of(at.http) + ", admin on " + text_of(at.admin);
  notifier.ready(summary);
  write_ready_line(options.ready_fd, running, at);

  serve_until_told(*server, signals, *log, notifier, summary);
  notifier.stopping();
  bound_the_end();
  server->drain();
  server.reset();
  log->info("stopped");
  return {};
}

}  // namespace weir::server
