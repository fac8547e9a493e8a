#include "src/cli/local_cluster.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "src/base/limits.h"
#include "src/base/random.h"
#include "src/base/system_clock.h"
#include "src/cli/client.h"
#include "src/cli/process.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kPollNs = 20 * kMillisecond;
/// Longest ready line of a child. What is longer is not one.
constexpr std::size_t kMaxReadyLineBytes = 4096;
/// How much of a log an error quotes.
constexpr std::size_t kQuotedLogLines = 5;

Nanos now_ns() { return SystemClock().boot_ns(); }

void pause_briefly() { ::poll(nullptr, 0, static_cast<int>(kPollNs / kMillisecond)); }

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return failure(ErrorCode::io, path, "cannot be written");
  return {};
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string last_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  std::string quoted;
  const std::size_t first = lines.size() > kQuotedLogLines ? lines.size() - kQuotedLogLines : 0;
  for (std::size_t i = first; i < lines.size(); ++i) quoted += "\n  | " + lines[i];
  return quoted;
}

/// The nodes that the node behind `admin` does not see among those in `wanted`.
std::vector<std::string> unseen_members(const Endpoint& admin,
                                        const std::vector<std::string>& wanted) {
  std::vector<std::string> unseen = wanted;
  const auto reply = http_get({.endpoint = admin}, "/v1/status", kSecond);
  if (!reply || reply->status != 200) return unseen;
  boost::system::error_code error;
  const boost::json::value status = boost::json::parse(reply->body, error);
  const auto* object = error ? nullptr : status.if_object();
  const auto* members = object == nullptr ? nullptr : object->if_contains("members");
  if (members == nullptr || !members->is_array()) return unseen;
  for (const auto& member : members->get_array()) {
    const auto* fields = member.if_object();
    if (fields == nullptr) continue;
    const auto* name = fields->if_contains("node");
    const auto* alive = fields->if_contains("alive");
    if (name == nullptr || !name->is_string() || alive == nullptr) continue;
    if (!alive->is_bool() || !alive->get_bool()) continue;
    std::erase(unseen, std::string(name->get_string()));
  }
  return unseen;
}

/// Slots of scope global that the node behind `admin` owns; 0 when it does not say.
std::int64_t slots_owned(const Endpoint& admin) {
  const auto reply = http_get({.endpoint = admin}, "/v1/status", kSecond);
  if (!reply || reply->status != 200) return 0;
  boost::system::error_code error;
  const boost::json::value status = boost::json::parse(reply->body, error);
  const auto* object = error ? nullptr : status.if_object();
  const auto* slots = object == nullptr ? nullptr : object->if_contains("slots_owned");
  return slots != nullptr && slots->is_int64() ? slots->get_int64() : 0;
}

}  // namespace

Result<std::unique_ptr<LocalCluster>> LocalCluster::start(ClusterShape shape) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(std::move(shape)));
  const Nanos deadline_ns = now_ns() + kClusterReadyNs;
  Status started = cluster->prepare();
  std::vector<std::size_t> all(cluster->nodes_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (std::size_t i = 0; started && i < all.size(); ++i) started = cluster->spawn(i);
  if (started) started = cluster->wait_until_ready(all, deadline_ns);
  if (started) started = cluster->wait_until_connected(deadline_ns);
  if (started) started = cluster->wait_until_owned(deadline_ns);
  if (!started) {
    cluster->keep_folder_ = true;
    return tl::unexpected(std::move(started).error());
  }
  return cluster;
}

LocalCluster::~LocalCluster() {
  for (const Child& child : children_) {
    if (child.pid > 0) ::kill(child.pid, SIGKILL);
    if (child.ready_fd >= 0) ::close(child.ready_fd);
  }
  for (const Child& child : children_) {
    if (child.pid > 0) ::waitpid(child.pid, nullptr, 0);
  }
  std::error_code ignored;
  if (temporary_ && !keep_folder_) fs::remove_all(folder_, ignored);
}

const LocalNode* LocalCluster::find(std::string_view name) const {
  const auto index = index_of(name);
  return index ? &nodes_[*index] : nullptr;
}

std::optional<std::size_t> LocalCluster::index_of(std::string_view name) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == name) return i;
  }
  return std::nullopt;
}

Status LocalCluster::prepare() {
  auto planned = plan_nodes(shape_.regions, shape_.nodes, shape_.spread, shape_.relays);
  if (!planned) return tl::unexpected(std::move(planned).error());
  nodes_ = *std::move(planned);
  std::set<std::pair<std::string, std::string>> pairs;
  for (const RegionLatency& latency : shape_.latencies) {
    if (latency.from == latency.to || !pairs.insert(std::minmax(latency.from, latency.to)).second) {
      return failure(
          ErrorCode::invalid_argument, "--latency",
          "`" + latency.from + ":" + latency.to + "` is one region, or two that are named already");
    }
    for (const std::string& region : {latency.from, latency.to}) {
      if (std::any_of(nodes_.begin(), nodes_.end(),
                      [&](const LocalNode& node) { return node.region == region; })) {
        continue;
      }
      return failure(ErrorCode::invalid_argument, "--latency", "no region `" + region + "` here");
    }
  }
  children_.resize(nodes_.size());
  if (shape_.executable.empty()) {
    auto own = own_executable();
    if (!own) return tl::unexpected(std::move(own).error());
    shape_.executable = *std::move(own);
  }
  std::error_code error;
  if (shape_.data.empty()) {
    std::string pattern = (fs::temp_directory_path(error) / "weir-cluster-XXXXXX").string();
    if (error || ::mkdtemp(pattern.data()) == nullptr) {
      return failure(ErrorCode::io, pattern, "cannot make a temporary folder");
    }
    folder_ = pattern;
    temporary_ = true;
  } else {
    fs::create_directories(shape_.data, error);
    if (!error) folder_ = fs::canonical(shape_.data, error).string();
    if (error) return failure(ErrorCode::io, "--data", shape_.data + ": " + error.message());
  }
  if (Status chosen = choose_ports(); !chosen) return chosen;
  return write_files();
}

/// Free ports, or, in a folder that an earlier cluster has left, the ports of that one: its records
/// and topology stay valid.
Status LocalCluster::choose_ports() {
  const std::string path = folder_ + "/ports";
  std::istringstream earlier(read_file(path));
  Random random(SystemSeedSource().next_seed());
  std::string text;
  const bool again = fs::exists(path);
  for (LocalNode& node : nodes_) {
    std::array<Endpoint*, 3> endpoints{&node.http, &node.admin, &node.cluster};
    std::string name;
    if (again && (!(earlier >> name) || name != node.name)) {
      return failure(ErrorCode::invalid_argument, "--data",
                     folder_ +
                         " holds a cluster of another shape: give its --regions and --nodes, "
                         "or another folder");
    }
    text += node.name;
    for (Endpoint* endpoint : endpoints) {
      std::uint16_t port = 0;
      if (again && !(earlier >> port)) return failure(ErrorCode::corrupt, path, "cannot be read");
      auto reserved = again ? PortReservation::again(port) : PortReservation::any(random);
      if (!reserved) return tl::unexpected(std::move(reserved).error());
      *endpoint = Endpoint{"127.0.0.1", reserved->port()};
      text += " " + std::to_string(reserved->port());
      ports_.push_back(*std::move(reserved));
    }
    text += "\n";
  }
  std::string rest;
  if (again && (earlier >> rest)) {
    return failure(ErrorCode::invalid_argument, "--data",
                   folder_ +
                       " holds a cluster of more nodes: give its --regions and --nodes, or "
                       "another folder");
  }
  return write_file(path, text);
}

Status LocalCluster::write_files() {
  std::error_code error;
  if (shape_.policy.empty()) {
    policy_ = folder_ + "/policy.yaml";
    if (!fs::exists(policy_)) {
      if (Status written = write_file(policy_, sample_policy_yaml()); !written) return written;
    }
  } else {
    policy_ = fs::absolute(shape_.policy, error).string();
    if (error) return failure(ErrorCode::io, "--policy", error.message());
  }
  const std::string topology = folder_ + "/topology.yaml";
  if (Status written = write_file(topology, topology_yaml(nodes_, shape_.spread)); !written)
    return written;
  for (LocalNode& node : nodes_) {
    const std::string own = folder_ + "/" + node.name;
    node.config = own + "/node.yaml";
    node.data = own + "/data";
    node.log = own + "/log";
    fs::create_directories(own, error);
    if (error) return failure(ErrorCode::io, own, error.message());
    std::vector<std::string> lines = shape_.node_lines;
    const std::string delay = delay_line(node.region, shape_.latencies);
    if (!delay.empty()) lines.push_back(delay);
    const std::string text = node_yaml(node, topology, policy_, shape_.chaos, lines);
    if (Status written = write_file(node.config, text); !written) return written;
  }
  return {};
}

Status LocalCluster::spawn(std::size_t index) {
  LocalNode& node = nodes_[index];
  auto spawned =
      spawn_process({shape_.executable,
                     {"serve", "--config", node.config, "--ready-fd", std::to_string(kReadyFd)},
                     node.log});
  if (!spawned) return tl::unexpected(std::move(spawned).error());
  children_[index] = Child{spawned->pid, spawned->ready_fd, {}, false};
  node.pid = spawned->pid;
  return {};
}

Status LocalCluster::check_given_up() const {
  if (!shape_.give_up || !shape_.give_up()) return {};
  return failure(ErrorCode::unavailable, "", "stopped before it was up");
}

Status LocalCluster::wait_until_ready(std::vector<std::size_t> indices, Nanos deadline_ns) {
  while (!indices.empty()) {
    if (Status go_on = check_given_up(); !go_on) return go_on;
    std::vector<pollfd> polled;
    for (const std::size_t i : indices) polled.push_back({children_[i].ready_fd, POLLIN, 0});
    if (now_ns() >= deadline_ns) {
      const LocalNode& node = nodes_[indices.front()];
      return failure(ErrorCode::unavailable, node.name,
                     "not ready in time; see " + node.log + last_lines(node.log));
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(kPollNs / kMillisecond));
    for (std::size_t at = 0; at < polled.size(); ++at) {
      if (polled[at].revents == 0) continue;
      const std::size_t i = indices[at];
      Child& child = children_[i];
      std::array<char, 512> buffer{};
      const ssize_t size = ::read(child.ready_fd, buffer.data(), buffer.size());
      if (size > 0) child.line.append(buffer.data(), static_cast<std::size_t>(size));
      if (size > 0 && child.line.back() != '\n' && child.line.size() < kMaxReadyLineBytes) continue;
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {
        return failure(ErrorCode::unavailable, nodes_[i].name,
                       "did not start; see " + nodes_[i].log + last_lines(nodes_[i].log));
      }
      ::close(std::exchange(child.ready_fd, -1));
    }
    std::erase_if(indices, [this](std::size_t i) { return children_[i].ready_fd < 0; });
  }
  return {};
}

Status LocalCluster::wait_until_connected(Nanos deadline_ns) {
  for (const LocalNode& node : nodes_) {
    std::vector<std::string> owners;
    for (const LocalNode& other : nodes_) {
      if (other.owner && other.name != node.name && other.pid != 0) owners.push_back(other.name);
    }
    while (!owners.empty()) {
      owners = unseen_members(node.admin, owners);
      if (owners.empty()) break;
      if (Status go_on = check_given_up(); !go_on) return go_on;
      if (now_ns() >= deadline_ns) {
        return failure(ErrorCode::unavailable, node.name,
                       "does not see " + owners.front() + "; see " + node.log);
      }
      pause_briefly();
    }
  }
  return {};
}

/// Every customer has an owner.
Status LocalCluster::wait_until_owned(Nanos deadline_ns) {
  while (true) {
    std::int64_t owned = 0;
    for (const LocalNode& node : nodes_) {
      if (node.owner) owned += slots_owned(node.admin);
    }
    if (owned >= static_cast<std::int64_t>(kSlotCount)) return {};
    if (Status go_on = check_given_up(); !go_on) return go_on;
    if (now_ns() >= deadline_ns) {
      return failure(ErrorCode::unavailable, nodes_.front().name,
                     "not every customer has an owner in time; see " + nodes_.front().log);
    }
    pause_briefly();
  }
}

void LocalCluster::forget(std::size_t index, int wait_status) {
  Child& child = children_[index];
  deaths_.push_back({nodes_[index].name, describe_wait_status(wait_status), child.kill_expected});
  if (child.ready_fd >= 0) ::close(child.ready_fd);
  child = Child{};
  nodes_[index].pid = 0;
}

void LocalCluster::reap() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    int wait_status = 0;
    const pid_t pid = children_[i].pid;
    if (pid > 0 && ::waitpid(pid, &wait_status, WNOHANG) == pid) forget(i, wait_status);
  }
}

std::vector<NodeDeath> LocalCluster::take_deaths() {
  reap();
  return std::exchange(deaths_, {});
}

Status LocalCluster::kill(std::string_view name, int signal) {
  const auto index = index_of(name);
  if (!index) return failure(ErrorCode::not_found, std::string(name), "no such node");
  reap();
  Child& child = children_[*index];
  if (child.pid == 0) {
    return failure(ErrorCode::unavailable, std::string(name), "is not running");
  }
  if (signal == SIGKILL || signal == SIGTERM || signal == SIGINT) child.kill_expected = true;
  if (::kill(child.pid, signal) != 0) {
    return failure(ErrorCode::io, std::string(name), "cannot be signalled");
  }
  if (signal == SIGSTOP) {
    // One thread takes the signal and stops the others, which run on until it is scheduled.
    siginfo_t stopped{};
    ::waitid(P_PID, static_cast<id_t>(child.pid), &stopped, WSTOPPED | WEXITED | WNOWAIT);
  }
  if (signal != SIGKILL) return {};
  return wait_for_exit(name, kClusterStopNs);
}

Status LocalCluster::wait_for_exit(std::string_view name, Nanos timeout_ns) {
  const auto index = index_of(name);
  if (!index) return failure(ErrorCode::not_found, std::string(name), "no such node");
  const Nanos deadline_ns = add_saturating(now_ns(), timeout_ns);
  while (true) {
    reap();
    if (children_[*index].pid == 0) return {};
    if (now_ns() >= deadline_ns) {
      return failure(ErrorCode::unavailable, std::string(name), "is still running");
    }
    pause_briefly();
  }
}

Status LocalCluster::restart(std::string_view name) {
  const auto index = index_of(name);
  if (!index) return failure(ErrorCode::not_found, std::string(name), "no such node");
  reap();
  if (children_[*index].pid != 0) {
    return failure(ErrorCode::unavailable, std::string(name), "is still running");
  }
  if (Status spawned = spawn(*index); !spawned) return spawned;
  return wait_until_ready({*index}, now_ns() + kClusterReadyNs);
}

void LocalCluster::stop() {
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (children_[i].pid == 0) continue;
    children_[i].kill_expected = true;
    ::kill(children_[i].pid, SIGTERM);
    ::kill(children_[i].pid, SIGCONT);  // a paused child could not obey
  }
  const Nanos deadline_ns = now_ns() + kClusterStopNs;
  const auto running = [this] {
    reap();
    return std::any_of(children_.begin(), children_.end(),
                       [](const Child& c) { return c.pid != 0; });
  };
  while (running() && now_ns() < deadline_ns) pause_briefly();
  for (Child& child : children_) {
    if (child.pid != 0) ::kill(child.pid, SIGKILL);
  }
  while (running()) pause_briefly();
}

}  // namespace weir::cli
