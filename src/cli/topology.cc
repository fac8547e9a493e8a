// `topology`: the cluster's shape, what a change would move, and the change itself.
#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <optional>
#include <ostream>
#include <utility>

#include "regions/plan.h"
#include "src/cli/answer.h"
#include "src/cli/client.h"
#include "src/cli/commands.h"
#include "src/cli/table.h"
#include "src/config/load.h"
#include "src/config/parse.h"
#include "src/config/print_topology.h"

namespace weir::cli {
namespace {

namespace json = boost::json;

constexpr auto kPollEvery = std::chrono::milliseconds(500);

/// What a node says of the topology, see GET /v1/topology.
struct Current {
  std::string body;
  Topology finished;
  std::uint64_t under_way = 0;  ///< the version under way; 0: none
  std::int64_t left = 0;        ///< registers at that node that have not moved yet
  bool committed = false;
  std::uint64_t generation = 0;
};

class Command {
 public:
  Command(const TopologyOptions& options, Console console) : options_(options), console_(console) {}

  int show() {
    const auto current = fetch();
    if (!current) return exit_;
    if (options_.json) {
      console_.out << current->body << "\n";
      return kFine;
    }
    const Topology& t = current->finished;
    console_.out << "version " << t.version << (current->committed ? "" : " (by the node's file)")
                 << ", " << t.replica_count << " replicas, place "
                 << (t.place == ReplicaPlace::spread ? "spread" : "region");
    if (current->generation > 0) console_.out << ", generation " << current->generation;
    console_.out << "\n";
    if (current->under_way != 0) {
      console_.out << "version " << current->under_way
                   << " is under way: " << format_count(current->left)
                   << " registers left at this node\n";
    }
    std::vector<std::vector<std::string>> rows{{"NODE", "REGION", "ZONE", "CLUSTER"}};
    for (const TopologyRegion& region : t.regions) {
      for (const TopologyNode& node : region.nodes) {
        rows.push_back({node.name, region.name, node.zone, to_string(node.cluster)});
      }
    }
    console_.out << "\n" << format_table(rows);
    return kFine;
  }

  int plan() {
    const auto current = fetch();
    if (!current) return exit_;
    const auto next = read_file();
    if (!next) return exit_;
    if (next->version <= current->finished.version) {
      return wrong("version: must be above " + std::to_string(current->finished.version));
    }
    print(regions::plan_change(current->finished, *next), current->finished.version, next->version);
    return kFine;
  }

  int apply() {
    const auto next = read_file();
    return next ? apply(*next) : exit_;
  }

  int drain() {
    const auto current = fetch();
    if (!current) return exit_;
    Topology next = current->finished;
    ++next.version;
    std::size_t removed = 0;
    for (TopologyRegion& region : next.regions) {
      removed += std::erase_if(
          region.nodes, [&](const TopologyNode& node) { return node.name == options_.node; });
    }
    if (removed == 0) return wrong("the topology has no node " + options_.node);
    const std::string text = config::print_topology(next);
    const auto parsed = config::parse_topology(text, "the topology without " + options_.node);
    if (!parsed) return wrong(to_string(parsed.errors.front()));
    return apply(*parsed.value);
  }

  int recover() {
    const auto current = fetch();
    if (!current) return exit_;
    const auto next = read_file();
    if (!next) return exit_;
    for (const TopologyRegion& region : current->finished.regions) {
      for (const TopologyNode& node : region.nodes) {
        const bool named =
            std::find(options_.lost.begin(), options_.lost.end(), node.name) != options_.lost.end();
        if (named != (next->find_node(node.name) == nullptr)) {
          return wrong(named ? "--lost: " + node.name + " is still in the file"
                             : node.name + " is not in the file and not named by --lost");
        }
      }
    }
    if (!send("/v1/topology:recover", *next)) return exit_;
    console_.out << "a new generation begins with version " << next->version
                 << "; every bucket starts empty\n";
    return kFine;
  }

 private:
  int apply(const Topology& next) {
    const auto before = fetch();
    if (!before) return exit_;
    print(regions::plan_change(before->finished, next), before->finished.version, next.version);
    if (!send("/v1/topology", next)) return exit_;
    return wait_for(next.version);
  }

  int wait_for(std::uint64_t version) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options_.timeout_s);
    std::int64_t told = -1;
    boost::asio::io_context context;
    while (std::chrono::steady_clock::now() < end) {
      const auto now = fetch();
      if (now && now->finished.version >= version) {
        console_.out << "version " << version << " is finished\n";
        return kFine;
      }
      if (now && now->under_way == version && now->left != told) {
        told = now->left;
        console_.out << "version " << version << " is under way: " << format_count(told)
                     << " registers left at this node\n"
                     << std::flush;
      }
      // The event is the cluster's: it is asked again and again.
      boost::asio::steady_timer(context, kPollEvery).wait();
    }
    console_.err << "weir: version " << version << " is not finished after " << options_.timeout_s
                 << " s; `weir topology show` says how far it is\n";
    return kNo;
  }

  std::optional<Target> target() {
    auto node = parse_target("--admin", options_.admin, options_.credentials);
    if (node) return *std::move(node);
    exit_ = wrong(node.error().field + ": " + node.error().message);
    return std::nullopt;
  }

  std::optional<Reply> answered(Result<Reply> reply, const Endpoint& endpoint) {
    if (!reply && reply.error().code == ErrorCode::invalid_argument) {
      exit_ = wrong_usage(console_, reply.error());
      return std::nullopt;
    }
    if (!reply) {
      exit_ = kUnreachable;
      console_.err << "weir: cannot reach " << to_string(endpoint) << ": " << reply.error().message
                   << "\n";
      return std::nullopt;
    }
    if (reply->status >= 200 && reply->status < 300) return *std::move(reply);
    exit_ = reply->status >= 500 ? kUnreachable : kWrongUsage;
    console_.err << "weir: " << to_string(endpoint) << " answered " << reply->status << ": "
                 << printable(describe_error(*reply)) << "\n";
    return std::nullopt;
  }

  std::optional<Current> fetch() {
    const auto node = target();
    if (!node) return std::nullopt;
    auto reply = answered(http_get(*node, "/v1/topology"), node->endpoint);
    if (!reply) return std::nullopt;
    boost::system::error_code error;
    const json::value value = json::parse(reply->body, error);
    const json::object* object = error ? nullptr : value.if_object();
    const json::value* document = object ? object->if_contains("document") : nullptr;
    if (document == nullptr || !document->is_string()) {
      exit_ = kUnreachable;
      console_.err << "weir: " << to_string(node->endpoint)
                   << " is in no cluster with a topology\n";
      return std::nullopt;
    }
    auto parsed = config::parse_topology(std::string(document->get_string()), "topology");
    if (!parsed) {
      exit_ = kUnreachable;
      console_.err << "weir: " << to_string(parsed.errors.front()) << "\n";
      return std::nullopt;
    }
    Current current;
    current.body = std::move(reply->body);
    current.finished = *std::move(parsed.value);
    const auto number = [&](const char* name) {
      const json::value* at = object->if_contains(name);
      boost::system::error_code not_a_number;
      return at == nullptr ? 0 : at->to_number<std::int64_t>(not_a_number);
    };
    current.under_way = static_cast<std::uint64_t>(number("under_way"));
    current.left = number("registers_left");
    current.generation = static_cast<std::uint64_t>(number("generation"));
    const json::value* committed = object->if_contains("committed");
    current.committed = committed != nullptr && committed->is_bool() && committed->get_bool();
    return current;
  }

  std::optional<Topology> read_file() {
    auto parsed = config::load_topology(options_.file);
    if (parsed) return *std::move(parsed.value);
    exit_ = kWrongUsage;
    for (const auto& error : parsed.errors) console_.err << to_string(error) << "\n";
    return std::nullopt;
  }

  bool send(const std::string& path, const Topology& topology) {
    const auto node = target();
    if (!node) return false;
    const std::string body =
        json::serialize(json::object{{"document", config::print_topology(topology)}});
    return answered(http_post(*node, path, body), node->endpoint).has_value();
  }

  int wrong(const std::string& what) {
    console_.err << "weir: " << what << "\n";
    return exit_ = kWrongUsage;
  }

  void print(const regions::Plan& plan, std::uint64_t from, std::uint64_t to) {
    console_.out << "version " << from << " -> " << to << ": of "
                 << format_count(as(plan.registers)) << " registers "
                 << format_count(as(plan.moved)) << " change their replicas, "
                 << format_count(as(plan.owners_moved)) << " their owner\n\n";
    std::vector<std::vector<std::string>> rows{
        {"NODE", "REGION", "", "STORES", "AFTER", "RECEIVES", "OWNS", "AFTER"}};
    for (const regions::NodePlan& node : plan.nodes) {
      rows.push_back({node.node, node.region,
                      node.added     ? "added"
                      : node.removed ? "removed"
                                     : "",
                      format_count(as(node.stores_before)), format_count(as(node.stores_after)),
                      format_count(as(node.receives)), format_count(as(node.owns_before)),
                      format_count(as(node.owns_after))});
    }
    console_.out << format_table(rows);
  }
  static std::int64_t as(std::size_t count) { return static_cast<std::int64_t>(count); }

  const TopologyOptions& options_;
  Console console_;
  int exit_ = kFine;
};

}  // namespace

int run_topology_show(const TopologyOptions& options, Console console) {
  return Command(options, console).show();
}
int run_topology_plan(const TopologyOptions& options, Console console) {
  return Command(options, console).plan();
}
int run_topology_apply(const TopologyOptions& options, Console console) {
  return Command(options, console).apply();
}
int run_topology_drain(const TopologyOptions& options, Console console) {
  return Command(options, console).drain();
}
int run_topology_recover(const TopologyOptions& options, Console console) {
  return Command(options, console).recover();
}

}  // namespace weir::cli
