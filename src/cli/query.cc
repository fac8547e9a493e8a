// `check`, `explain` and `status`: one request to a node, shown to a person or passed on as it is.
#include <boost/json.hpp>
#include <ostream>
#include <sstream>
#include <utility>

#include "src/cli/answer.h"
#include "src/cli/client.h"
#include "src/cli/commands.h"
#include "src/cli/table.h"

namespace weir::cli {
namespace {

namespace json = boost::json;
using Rows = std::vector<std::vector<std::string>>;

std::string retry_text(std::int64_t retry_ms) {
  return retry_ms == 0 ? "-" : format_milliseconds(retry_ms);
}

void print_check(const std::string& customer, const json::object& answer, std::ostream& out) {
  out << (flag_of(answer, "allowed") ? "allowed" : "denied") << "  " << printable(customer);
  const std::string name = text_of(answer, "name", "");
  if (!name.empty()) out << ", decided by limit " << printable(name);
  out << " (source: " << printable(text_of(answer, "source")) << ")\n";
  Rows rows{{"LIMIT", "SCOPE", "VERDICT", "OF", "REMAINING", "RETRY AFTER", "FULL IN"}};
  for (const json::value& item : array_of(answer, "limits")) {
    if (!item.is_object()) continue;
    const json::object& limit = item.get_object();
    std::string verdict = flag_of(limit, "allowed") ? "allowed" : "denied";
    if (flag_of(limit, "shadow")) verdict += " (shadow)";
    rows.push_back({text_of(limit, "name"), text_of(limit, "scope"), verdict,
                    format_count(number_of(limit, "limit")),
                    format_count(number_of(limit, "remaining")),
                    retry_text(number_of(limit, "retry_after_ms")),
                    format_milliseconds(number_of(limit, "reset_ms"))});
  }
  out << "\n" << (rows.size() > 1 ? format_table(rows) : "No limit matches.\n");
}

std::string attributes_text(const json::object& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    text += text.empty() ? "" : " ";
    text += std::string(name) + "=";
    if (value.is_null()) {
      text += "(absent)";
    } else {
      text += value.is_string() ? std::string(value.get_string()) : json::serialize(value);
    }
  }
  return text;
}

void print_explained_limit(const json::object& limit, std::ostream& out) {
  Rows rows;
  const std::string kind = text_of(limit, "kind");
  rows.push_back({"  matches", text_of(limit, "match")});
  rows.push_back({"  numbers from", text_of(limit, "numbers_from")});
  if (kind == "numbers") {
    rows.push_back({"  allows", text_of(limit, "rate") + ", at most " +
                                    format_count(number_of(limit, "limit")) + " at once"});
  } else {
    rows.push_back(
        {"  allows", kind == "blocked" ? "nothing (blocked)" : "everything (unlimited)"});
  }
  const std::string bucket = attributes_text(object_of(limit, "bucket"));
  if (!bucket.empty()) rows.push_back({"  bucket", bucket});
  if (kind == "numbers") {
    rows.push_back(
        {"  now", flag_of(limit, "allowed")
                      ? "would pass, " + format_count(number_of(limit, "remaining")) + " remaining"
                      : "would be denied; passes in " +
                            format_milliseconds(number_of(limit, "retry_after_ms"))});
    rows.push_back({"  full in", format_milliseconds(number_of(limit, "reset_ms"))});
  }
  const json::object& owner = object_of(limit, "owner");
  if (const std::string error = text_of(owner, "error", ""); !error.empty()) {
    rows.push_back({"  owner", "unknown: " + error});
  } else if (!owner.empty()) {
    std::string replicas;
    for (const json::value& replica : array_of(owner, "replicas")) {
      replicas += replicas.empty() ? "" : ", ";
      replicas +=
          replica.is_string() ? std::string(replica.get_string()) : json::serialize(replica);
    }
    rows.push_back({"  owner", text_of(owner, "node") + " in " + text_of(owner, "region") +
                                   ", epoch " + text_of(owner, "epoch") + ", replicas " +
                                   replicas});
    rows.push_back({"  at the owner", flag_of(owner, "asleep")
                                          ? "nobody has asked lately; its record is stored"
                                          : format_count(number_of(owner, "level")) + " free, " +
                                                format_count(number_of(owner, "outstanding")) +
                                                " out on lease"});
    for (const json::value& item : array_of(owner, "leases")) {
      if (!item.is_object()) continue;
      const json::object& lease = item.get_object();
      rows.push_back({"", format_count(number_of(lease, "outstanding")) + " at " +
                              (flag_of(lease, "relay") ? "the relay " : "") +
                              text_of(lease, "node") + " for " +
                              format_milliseconds(number_of(lease, "expires_in_ms"))});
    }
  }
  out << printable(text_of(limit, "name")) << "  (" << printable(text_of(limit, "scope")) << ", "
      << printable(text_of(limit, "algorithm")) << (flag_of(limit, "strict") ? ", strict" : "")
      << (flag_of(limit, "shadow") ? ", shadow" : "") << ")\n"
      << format_table(rows) << "\n";
}

void print_explain(const json::object& answer, std::ostream& out) {
  out << (flag_of(answer, "allowed") ? "would pass" : "would be denied") << "  "
      << printable(text_of(answer, "customer")) << ", plan " << printable(text_of(answer, "plan"))
      << ", policy version " << printable(text_of(answer, "policy_version")) << ", asked at "
      << printable(text_of(answer, "node")) << "\n\n";
  for (const json::value& limit : array_of(answer, "limits")) {
    if (limit.is_object()) print_explained_limit(limit.get_object(), out);
  }
  if (array_of(answer, "limits").empty()) out << "No limit matches.\n";
  Rows rows;
  for (const json::value& item : array_of(answer, "not_matching")) {
    if (!item.is_object()) continue;
    rows.push_back({text_of(item.get_object(), "name"), text_of(item.get_object(), "because")});
  }
  if (!rows.empty()) {
    rows.insert(rows.begin(), {"DOES NOT MATCH", "BECAUSE"});
    out << format_table(rows);
  }
}

void print_members(const json::object& status, std::ostream& out) {
  Rows rows{{"MEMBER", "REGION", "ROLE", "ALIVE", "HEARD", "ROUND TRIP"}};
  for (const json::value& item : array_of(status, "members")) {
    if (!item.is_object()) continue;
    const json::object& member = item.get_object();
    const std::int64_t heard_ms = number_of(member, "heard_ms_ago", -1);
    const std::int64_t round_trip_us = number_of(member, "round_trip_us");
    std::string role;
    for (const json::value& name : array_of(member, "role")) {
      role += role.empty() ? "" : ", ";
      role += name.is_string() ? std::string(name.get_string()) : json::serialize(name);
    }
    const bool self = flag_of(member, "self");
    rows.push_back({text_of(member, "node"), text_of(member, "region"), role,
                    flag_of(member, "alive") ? "yes" : "NO",
                    self           ? "this node"
                    : heard_ms < 0 ? "never"
                                   : format_milliseconds(heard_ms) + " ago",
                    round_trip_us == 0 ? "-" : format_count(round_trip_us) + " us"});
  }
  out << "\n" << format_table(rows);
}

void print_status(const json::object& status, std::ostream& out) {
  const json::object& policy = object_of(status, "policy");
  const json::object& topology = object_of(status, "topology");
  std::string role;
  for (const json::value& name : array_of(status, "role")) {
    role += role.empty() ? "" : ", ";
    role += name.is_string() ? std::string(name.get_string()) : json::serialize(name);
  }
  Rows rows{
      {"node", text_of(status, "node") + " in " + text_of(status, "region") + " (" + role + ")"},
      {"state", text_of(status, "state")},
      {"version", text_of(status, "version")},
      {"up for", format_milliseconds(number_of(status, "uptime_s") * 1000)},
      {"policy", "version " + text_of(policy, "version") + ", " + text_of(policy, "limits") +
                     " limits, from " + text_of(policy, "path")}};
  const std::string origin = text_of(policy, "origin");
  if (!origin.empty() && origin != "file") rows.back()[1] += ", told by " + origin;
  if (const auto wanted = number_of(policy, "wanted"); wanted > 0) {
    rows.push_back({"POLICY WANTED", "version " + std::to_string(wanted) +
                                         ", which peers have: no limit grants by an older one"});
  }
  for (const auto& [peer, hash] : object_of(policy, "conflicts")) {
    rows.push_back({"POLICY CONFLICT", printable(std::string(peer)) + " has another version " +
                                           text_of(policy, "version") + ": write a higher one"});
  }
  const json::object& reload = object_of(policy, "last_error");
  if (!reload.empty()) {
    rows.push_back({"RELOAD FAILED", "at " + text_of(reload, "at")});
    std::istringstream mistakes(text_of(reload, "message"));
    for (std::string line; std::getline(mistakes, line);) rows.push_back({"", line});
  }
  rows.push_back({"topology", "version " + text_of(topology, "version")});
  rows.push_back({"slots owned", format_count(number_of(status, "slots_owned"))});
  rows.push_back({"owners", format_count(number_of(status, "owners_active")) + " active, " +
                                format_count(number_of(status, "owners_dormant")) + " dormant"});
  rows.push_back({"buckets here", format_count(number_of(status, "buckets"))});
  out << format_table(rows);
  print_members(status, out);
  Rows degraded{{"DEGRADED LIMIT", "FAILURE POLICY IN FORCE"}};
  for (const json::value& item : array_of(status, "degraded")) {
    if (!item.is_object()) continue;
    degraded.push_back({text_of(item.get_object(), "limit"), text_of(item.get_object(), "policy")});
  }
  if (degraded.size() > 1) out << "\n" << format_table(degraded);
}

}  // namespace

int run_check(const CheckOptions& options, Console console) {
  const auto node = parse_target("--target", options.target, options.credentials);
  if (!node) return wrong_usage(console, node.error());
  const auto attributes = parse_attributes(options.attributes);
  if (!attributes) return wrong_usage(console, attributes.error());
  json::object members;
  for (const auto& [name, value] : *attributes) members[name] = value;
  const std::string body = json::serialize(json::object{
      {"customer", options.customer}, {"attributes", std::move(members)}, {"cost", options.cost}});
  int status = kFine;
  const auto answer =
      expect_object(http_post(*node, "/v1/check", body), node->endpoint, console, status);
  if (!answer) return status;
  if (options.json) {
    console.out << answer->body << "\n";
  } else {
    print_check(options.customer, answer->object, console.out);
  }
  console.out << std::flush;
  return flag_of(answer->object, "allowed") ? kFine : kNo;
}

int run_explain(const ExplainOptions& options, Console console) {
  const auto node = parse_target("--admin", options.admin, options.credentials);
  if (!node) return wrong_usage(console, node.error());
  const auto attributes = parse_attributes(options.attributes);
  if (!attributes) return wrong_usage(console, attributes.error());
  std::string target = "/v1/explain?customer=" + percent_encode(options.customer) +
                       "&cost=" + std::to_string(options.cost);
  for (const auto& [name, value] : *attributes) {
    target += "&" + percent_encode(name) + "=" + percent_encode(value);
  }
  int status = kFine;
  const auto answer = expect_object(http_get(*node, target), node->endpoint, console, status);
  if (!answer) return status;
  if (options.json) {
    console.out << answer->body << "\n";
  } else {
    print_explain(answer->object, console.out);
  }
  console.out << std::flush;
  return flag_of(answer->object, "allowed") ? kFine : kNo;
}

int run_status(const StatusOptions& options, Console console) {
  const auto node = parse_target("--admin", options.admin, options.credentials);
  if (!node) return wrong_usage(console, node.error());
  int status = kFine;
  const auto answer = expect_object(http_get(*node, "/v1/status"), node->endpoint, console, status);
  if (!answer) return status;
  if (options.json) {
    console.out << answer->body << "\n";
  } else {
    print_status(answer->object, console.out);
  }
  console.out << std::flush;
  return text_of(answer->object, "state") == "serving" ? kFine : kNo;
}

}  // namespace weir::cli
