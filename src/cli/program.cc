#include "src/cli/program.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "src/cli/cluster_files.h"
#include "src/model/activity.h"
#include "src/server/version.h"

namespace weir::cli {
namespace {

/// `--log-level` -> `WEIR_LOG_LEVEL`.
std::string environment_name(const std::string& flag) {
  std::string name = "WEIR_";
  for (const char c : flag.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

/// A flag of `serve` that beats one member of node.yaml; its value has the file's notation.
struct Override {
  const char* flag;
  const char* type;  ///< empty: a switch, whose value is `true`
  const char* help;
};

constexpr std::array<Override, 22> kOverrides{{
    {"--policy", "FILE", "the policy"},
    {"--node", "NAME", "this node's name (default: the host's)"},
    {"--region", "NAME", "its region (default: `local`, or what the topology says)"},
    {"--role", "LIST", "edge, owner, or edge,owner (default)"},
    {"--http", "HOST:PORT", "where checks are answered (default 127.0.0.1:8080)"},
    {"--admin", "HOST:PORT", "metrics, status, explain (default 127.0.0.1:9090)"},
    {"--cluster", "HOST:PORT", "where other nodes connect (default 127.0.0.1:7070)"},
    {"--probe", "HOST:PORT|none", "a further port for /metrics, /healthz and /readyz"},
    {"--data", "DIR", "where the records are kept (default ./weir-data)"},
    {"--topology", "FILE", "the cluster's shape; without one, a cluster of one"},
    {"--authority", "owner|memory", "where the record lives (default owner: on disk)"},
    {"--lease-ttl", "DURATION", "how long a lease lasts (default 5s)"},
    {"--wait", "DURATION", "the longest wait for a first lease (default 50ms)"},
    {"--expected-edges", "N", "the floor of static_share (default 1)"},
    {"--max-clock-error", "DURATION", "how wrong a wall clock may be (default 5s)"},
    {"--clock-slew", "PERCENT", "how fast a clock may be slewed (default 10%)"},
    {"--fsync", "true|false", "sync each commit to disk (default true)"},
    {"--headers", "KIND", "draft11 (default), draft03, legacy or none"},
    {"--log-level", "LEVEL", "debug, info (default), warn or error"},
    {"--log-format", "text|json", "how log lines look (default text)"},
    {"--chaos", "", "allow POST /v1/chaos/..."},
    {"--insecure", "", "allow listeners beyond loopback without TLS and tokens"},
}};

/// Keeps what the parser writes into until the command runs.
struct Options {
  ServeOptions serve;
  std::array<std::string, kOverrides.size()> override_values;
  std::array<bool, kOverrides.size()> override_switches{};
  std::array<CLI::Option*, kOverrides.size()> override_options{};
  ValidateOptions validate;
  CheckOptions check;
  ExplainOptions explain;
  StatusOptions status;
  TopOptions top;
  TopologyOptions topology;
  ClusterUpOptions cluster_up;
};

/// Options as `--flag TYPE`, with the default; the rule for the variables' names is in the footer.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_type_size() != 0 && !option->get_type_name().empty()) {
      text += " " + option->get_type_name();
    }
    if (!option->get_default_str().empty()) text += " [" + option->get_default_str() + "]";
    return text;
  }
};

class Program {
 public:
  explicit Program(Console console)
      : console_(console),
        app_("Weir limits requests: one quota per customer, exact over many nodes.", "weir") {
    app_.set_version_flag("--version", std::string("weir ") + server::version());
    app_.require_subcommand(1);
    const auto formatter = std::make_shared<HelpFormatter>();
    formatter->column_width(34);
    app_.formatter(formatter);
    app_.footer(
        "Every flag also has an environment variable: --log-level is WEIR_LOG_LEVEL. A flag beats\n"
        "the environment, which beats the file. Exit status: 0 fine, 1 the answer is no, 2 wrong\n"
        "usage, 3 cannot reach.\n\n"
        "Examples:\n"
        "  weir serve --policy policy.yaml\n"
        "  weir check acme -a route='GET /v1/items'\n"
        "  weir COMMAND --help");
    add_serve();
    add_validate();
    add_check();
    add_explain();
    add_status();
    add_top();
    add_topology();
    add_cluster();
  }

  int run(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      // Help and version end here too, with status 0; everything else is wrong usage.
      return app_.exit(error, console_.out, console_.err) == 0 ? kFine : kWrongUsage;
    }
    for (const auto& [command, action] : actions_) {
      if (command->parsed()) return action();
    }
    return kWrongUsage;
  }

 private:
  CLI::App* add_command(CLI::App& parent, const char* name, const char* description,
                        const char* footer) {
    CLI::App* command = parent.add_subcommand(name, description);
    command->footer(footer);
    // With this the parser reads the environment and checks types for the command that was given,
    // and for no other.
    command->parse_complete_callback([] {});
    return command;
  }

  template <typename T>
  CLI::Option* add_flag(CLI::App* command, const std::string& names, T& value,
                        const std::string& help) {
    const std::string flag = names.substr(names.find("--"));
    if constexpr (std::is_same_v<T, bool>) {
      return command->add_flag(names, value, help)->envname(environment_name(flag));
    } else {
      return command->add_option(names, value, help)->envname(environment_name(flag));
    }
  }
  void add_json(CLI::App* command, bool& json) {
    add_flag(command, "--json", json, "print the result as one JSON document");
  }
  void add_credentials(CLI::App* command, Credentials& credentials) {
    add_flag(command, "--token", credentials.token,
             "bearer token to show; rather WEIR_TOKEN or a file: other users see flags")
        ->type_name("TOKEN");
    add_flag(command, "--token-file", credentials.token_file, "a file that holds the token")
        ->type_name("FILE");
    add_flag(command, "--ca", credentials.ca,
             "for https: PEM of who has signed the node's certificate (default: the system's)")
        ->type_name("FILE");
    CLI::Option* certificate = add_flag(command, "--certificate", credentials.certificate,
                                        "for https: PEM to show to a node that asks for one");
    certificate->type_name("FILE");
    CLI::Option* key =
        add_flag(command, "--key", credentials.key, "for https: PEM of the certificate's key");
    key->type_name("FILE")->needs(certificate);
    certificate->needs(key);
    // A flag beats the environment between these two as well.
    command->parse_complete_callback([&credentials] {
      const char* variable = std::getenv("WEIR_TOKEN");
      if (credentials.token_file.empty() || variable == nullptr) return;
      if (credentials.token == variable) credentials.token.clear();
    });
  }
  void add_attributes(CLI::App* command, std::vector<std::string>& attributes) {
    add_flag(command, "-a,--attribute", attributes,
             "an attribute of the check, as route='GET /v1/items'; may be repeated")
        ->type_name("KEY=VALUE")
        ->expected(1, -1)
        ->allow_extra_args(false);
  }

  void add_serve() {
    CLI::App* command = add_command(
        app_, "serve", "Run a node",
        "SIGHUP re-reads policy, tokens and certificates; a bad file keeps the last good one\n"
        "and says so in /v1/status. SIGTERM drains: leases go back, then the node stops. Tokens\n"
        "and certificates are named in node.yaml. Every flag is also an environment variable:\n"
        "--lease-ttl is WEIR_LEASE_TTL.\n\n"
        "Examples:\n"
        "  weir serve --policy policy.yaml\n"
        "  weir serve --config node.yaml --log-format json");
    add_flag(command, "--config", options_.serve.config, "node.yaml; flags beat what it says")
        ->type_name("FILE");
    for (std::size_t i = 0; i < kOverrides.size(); ++i) {
      const Override& o = kOverrides[i];
      options_.override_options[i] =
          *o.type == 0
              ? add_flag(command, o.flag, options_.override_switches[i], o.help)
              : add_flag(command, o.flag, options_.override_values[i], o.help)->type_name(o.type);
    }
    add_flag(command, "--ready-fd", options_.serve.ready_fd,
             "write one line of JSON with the bound addresses to this descriptor when ready")
        ->type_name("N")
        ->check(CLI::Range(3, 1'000'000).description(""));
    actions_[command] = [this] {
      for (std::size_t i = 0; i < kOverrides.size(); ++i) {
        if (options_.override_options[i]->count() == 0) continue;
        const bool is_switch = *kOverrides[i].type == 0;
        options_.serve.overrides.emplace_back(kOverrides[i].flag,
                                              !is_switch ? options_.override_values[i]
                                              : options_.override_switches[i] ? "true"
                                                                              : "false");
      }
      return run_serve(options_.serve, console_);
    };
  }

  void add_validate() {
    CLI::App* command =
        add_command(app_, "validate", "Check node, policy and topology files",
                    "What a file is, is told from its contents. Prints each mistake as\n"
                    "file:line:column: what is wrong, what would be right.\n\n"
                    "Examples:\n"
                    "  weir validate policy.yaml\n"
                    "  weir validate node.yaml topology.yaml policy.yaml --json");
    command->add_option("FILE", options_.validate.files, "files to check")->required();
    add_json(command, options_.validate.json);
    actions_[command] = [this] { return run_validate(options_.validate, console_); };
  }

  void add_check() {
    CLI::App* command =
        add_command(app_, "check", "Ask a node whether a request may pass",
                    "Exit status 0: allowed, 1: denied.\n\n"
                    "Examples:\n"
                    "  weir check acme\n"
                    "  weir check acme -a route='POST /login' -a ip=203.0.113.9 --cost 3\n"
                    "  weir check acme --cost 0          # look without consuming");
    command->add_option("CUSTOMER", options_.check.customer, "whom the limit belongs to")
        ->required();
    add_attributes(command, options_.check.attributes);
    add_flag(command, "--cost", options_.check.cost,
             "tokens; 0 looks, a negative cost gives back (default 1)")
        ->type_name("N");
    add_flag(command, "--target", options_.check.target, "the node")
        ->type_name("URL")
        ->capture_default_str();
    add_credentials(command, options_.check.credentials);
    add_json(command, options_.check.json);
    actions_[command] = [this] { return run_check(options_.check, console_); };
  }

  void add_explain() {
    CLI::App* command = add_command(
        app_, "explain", "Which limits match a check and why, who owns them, when it passes again",
        "Consumes nothing. Exit status 0: the check would pass, 1: it would not.\n\n"
        "Examples:\n"
        "  weir explain acme\n"
        "  weir explain acme -a route='POST /login' --admin http://127.0.0.1:9090");
    command->add_option("CUSTOMER", options_.explain.customer, "whom the limit belongs to")
        ->required();
    add_attributes(command, options_.explain.attributes);
    add_flag(command, "--cost", options_.explain.cost,
             "tokens that the check would take (default 1)")
        ->type_name("N")
        ->check(CLI::Validator(CLI::NonNegativeNumber).description(""));
    add_admin(command, options_.explain.admin, options_.explain.credentials);
    add_json(command, options_.explain.json);
    actions_[command] = [this] { return run_explain(options_.explain, console_); };
  }

  void add_status() {
    CLI::App* command = add_command(app_, "status", "The cluster as one node sees it",
                                    "Exit status 0: the node serves, 1: it does not.\n\n"
                                    "Examples:\n"
                                    "  weir status\n"
                                    "  weir status --admin http://127.0.0.1:9091 --json");
    add_admin(command, options_.status.admin, options_.status.credentials);
    add_json(command, options_.status.json);
    actions_[command] = [this] { return run_status(options_.status, console_); };
  }

  void add_top() {
    TopOptions& options = options_.top;
    CLI::App* command = add_command(
        app_, "top", "Who asks most and who is denied most, live",
        "Sums what the edges tell each second to the node that is asked. An owner node hears\n"
        "every edge, an edge itself and the owner nodes. On a terminal the table is redrawn\n"
        "until Ctrl-C, elsewhere one follows another.\n\n"
        "Examples:\n"
        "  weir top\n"
        "  weir top --interval 5s --rows 20 --admin http://127.0.0.1:9091\n"
        "  weir top --once --json");
    add_admin(command, options.admin, options.credentials);
    add_flag(command, "--interval", options.interval, "between two tables")
        ->type_name("DURATION")
        ->capture_default_str();
    add_flag(command, "--count", options.count, "how many tables (default: until Ctrl-C)")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000).description(""));
    add_flag(command, "--once", options.once, "one table, whatever --count says");
    add_flag(command, "--rows", options.rows, "customers in each table")
        ->type_name("N")
        ->check(CLI::Range(1, static_cast<int>(kMostListed)).description(""))
        ->capture_default_str();
    add_flag(command, "--json", options.json, "print one JSON document, in one line, each time");
    actions_[command] = [this] { return run_top(options_.top, console_); };
  }

  using TopologyAction = int (*)(const TopologyOptions&, Console);
  CLI::App* add_topology_command(CLI::App& group, const char* name, const char* description,
                                 const char* footer, TopologyAction action) {
    CLI::App* command = add_command(group, name, description, footer);
    add_admin(command, options_.topology.admin, options_.topology.credentials);
    actions_[command] = [this, action] { return action(options_.topology, console_); };
    return command;
  }

  void add_topology() {
    TopologyOptions& options = options_.topology;
    CLI::App* group =
        add_command(app_, "topology", "Show and change which nodes own and store",
                    "A changed file has a higher version. Nodes are added after they were started, "
                    "and stopped\n"
                    "after they were removed; while a version is under way everything goes on.\n\n"
                    "Examples:\n"
                    "  weir topology show\n"
                    "  weir topology plan topology.yaml\n"
                    "  weir topology apply topology.yaml");
    group->require_subcommand(1);
    CLI::App* show = add_topology_command(*group, "show", "The version in force",
                                          "Example:\n  weir topology show", run_topology_show);
    add_json(show, options.json);
    CLI::App* plan = add_topology_command(*group, "plan", "What a new version would move",
                                          "Changes nothing.\n\n"
                                          "Example:\n  weir topology plan topology.yaml",
                                          run_topology_plan);
    plan->add_option("FILE", options.file, "the new topology")->required();
    CLI::App* apply = add_topology_command(
        *group, "apply", "Start a new version and wait until everything has moved",
        "Exit status 1: not finished in time; it goes on all the same.\n\n"
        "Example:\n  weir topology apply topology.yaml",
        run_topology_apply);
    apply->add_option("FILE", options.file, "the new topology")->required();
    CLI::App* drain = add_topology_command(
        *group, "drain", "Move everything off a node, so that it can be stopped for good",
        "Applies the version in force without the node.\n\n"
        "Example:\n  weir topology drain eu-3",
        run_topology_drain);
    drain->add_option("NODE", options.node, "the node that leaves")->required();
    for (CLI::App* command : {apply, drain}) {
      add_flag(command, "--timeout", options.timeout_s, "seconds to wait for the end")
          ->type_name("S")
          ->check(CLI::Range(1, 86'400).description(""))
          ->capture_default_str();
    }
    CLI::App* recover = add_topology_command(
        *group, "recover", "Go on after registers have lost their majority for good",
        "You vouch that the lost nodes are destroyed: one that comes back goes on granting.\n"
        "Every bucket starts empty. Run it once, at one node that is left.\n\n"
        "Example:\n  weir topology recover topology.yaml --lost eu-2 --lost eu-3",
        run_topology_recover);
    recover->add_option("FILE", options.file, "the topology without them")->required();
    add_flag(recover, "--lost", options.lost, "a node that is destroyed; may be repeated")
        ->type_name("NODE")
        ->required();
  }

  void add_admin(CLI::App* command, std::string& admin, Credentials& credentials) {
    add_flag(command, "--admin", admin, "the node's admin address")
        ->type_name("URL")
        ->capture_default_str();
    add_credentials(command, credentials);
  }

  void add_cluster() {
    CLI::App* group = add_command(app_, "cluster", "A local cluster of real processes",
                                  "Example:\n  weir cluster up --regions 2 --nodes 5");
    group->require_subcommand(1);
    ClusterUpOptions& up = options_.cluster_up;
    CLI::App* command = add_command(
        *group, "up", "Start a cluster on loopback and keep it up until Ctrl-C",
        "The first region gets at least three owner nodes when it can; where two regions\n"
        "share five nodes, eu-1 to eu-3 own and us-1, us-2 are edges. A node that dies is\n"
        "reported and left alone; `weir serve --config DIR/NODE/node.yaml` brings it back.\n\n"
        "Examples:\n"
        "  weir cluster up --regions 2 --nodes 5\n"
        "  weir cluster up --nodes 3 --regions 1 --policy policy.yaml --data ./cluster --json");
    add_flag(command, "--regions", up.regions, "how many regions")
        ->type_name("N")
        ->check(CLI::Range(1, kMaxLocalRegions).description(""))
        ->capture_default_str();
    add_flag(command, "--nodes", up.nodes, "how many nodes in all")
        ->type_name("N")
        ->check(CLI::Range(1, kMaxLocalNodes).description(""))
        ->capture_default_str();
    add_flag(command, "--policy", up.policy, "the policy (default: a sample)")->type_name("FILE");
    add_flag(command, "--data", up.data,
             "where files, records and logs go (default: a temporary folder, removed at the end)")
        ->type_name("DIR");
    add_flag(command, "--spread", up.spread,
             "each record in three regions, all of whose nodes own; needs three regions");
    add_flag(command, "--latency", up.latency,
             "a round trip between two regions, such as eu:us=80ms; may be repeated; with --chaos")
        ->type_name("A:B=TIME");
    add_flag(command, "--chaos", up.chaos, "allow POST /v1/chaos/... on every node");
    add_json(command, up.json);
    actions_[command] = [this] { return run_cluster_up(options_.cluster_up, console_); };
  }

  Console console_;
  CLI::App app_;
  Options options_;
  std::map<CLI::App*, std::function<int()>> actions_;
};

}  // namespace

int run_program(int argc, const char* const* argv, Console console) {
  return Program(console).run(argc, argv);
}

}  // namespace weir::cli
