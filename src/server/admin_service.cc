#include "src/server/admin_service.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <memory>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "src/config/parse.h"
#include "src/net/http_message.h"
#include "src/server/explain.h"
#include "src/server/status.h"

namespace weir::server {
namespace {

namespace json = boost::json;
using net::AdminRequest;
using net::AdminResponse;

constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kPlainText = "text/plain; charset=utf-8";

AdminResponse error_response(int status, const char* code, std::string field, std::string message) {
  json::object error{{"code", code}};
  if (!field.empty()) error["field"] = std::move(field);
  error["message"] = std::move(message);
  AdminResponse response;
  response.status = status;
  response.body = json::serialize(json::object{{"error", std::move(error)}});
  return response;
}

AdminResponse error_response(const Error& error) {
  // What is not supported here is a wrong request to the admin API.
  const int status = error.code == ErrorCode::unsupported ? 400 : net::status_of(error.code);
  return error_response(status, to_string(error.code), error.field, error.message);
}

AdminResponse wrong_method(const char* allowed) {
  AdminResponse response =
      error_response(405, "method_not_allowed", "", std::string("use ") + allowed);
  response.allow = allowed;
  return response;
}

AdminResponse plain(int status, std::string body) {
  return {status, kPlainText, std::move(body), {}};
}

/// The check that a query asks about: `customer`, `cost` (default 1), all else attributes.
Result<Check> check_of(const AdminRequest& request) {
  Check check;
  for (const auto& [name, value] : request.query) {
    if (name == "customer") {
      check.customer = value;
    } else if (name == "cost") {
      const char* end = value.data() + value.size();
      const auto parsed = std::from_chars(value.data(), end, check.cost);
      if (parsed.ec != std::errc() || parsed.ptr != end || check.cost < 0) {
        return failure(ErrorCode::invalid_argument, "cost", "must be a number, 0 or more");
      }
    } else {
      check.attributes.emplace_back(name, value);
    }
  }
  if (Status valid = validate(check); !valid) return tl::unexpected(std::move(valid).error());
  return check;
}

}  // namespace

NodeAdminService::NodeAdminService(Parts parts)
    : parts_(std::move(parts)), started_ns_(parts_.clock->boot_ns()) {}

AdminResponse NodeAdminService::healthz() const { return plain(200, "alive\n"); }

AdminResponse NodeAdminService::readyz() const {
  const net::Readiness readiness = parts_.readiness();
  const bool serving = readiness == net::Readiness::serving;
  return plain(serving ? 200 : 503, std::string(to_string(readiness)) + "\n");
}

AdminResponse NodeAdminService::metrics() const {
  return {200, kPrometheusText, parts_.metrics->scrape(), {}};
}

AdminResponse NodeAdminService::status() const {
  StatusFacts facts;
  facts.config = parts_.config;
  const auto shape = parts_.node->shape();
  facts.topology = &shape->view->topology();
  facts.readiness = parts_.readiness();
  facts.now_boot_ns = parts_.clock->boot_ns();
  facts.uptime_ns = facts.now_boot_ns - started_ns_;
  facts.policy_path = parts_.policy->path();
  facts.policy = parts_.policy->state();
  facts.security = parts_.security->state();
  facts.node = parts_.node->state();
  facts.http = parts_.http;
  if (parts_.store != nullptr) facts.owners_dormant = parts_.store->approximate_records();
  if (parts_.limiter != nullptr) {
    facts.buckets = parts_.limiter->bucket_count();
    facts.waiting = parts_.limiter->waiting_count();
    facts.gauges = parts_.limiter->gauges();
  }
  AdminResponse response;
  response.body = status_json(facts);
  return response;
}

AdminResponse NodeAdminService::top() const {
  const auto list = [](const std::vector<CustomerActivity>& customers) {
    json::array array;
    for (const CustomerActivity& each : customers) {
      array.push_back(json::object{{"customer", each.customer},
                                   {"checks_per_s", each.checks_per_s},
                                   {"denied_per_s", each.denied_per_s}});
    }
    return array;
  };
  const auto now = parts_.node->activity();
  AdminResponse response;
  response.body = json::serialize(json::object{{"node", parts_.config->node},
                                               {"edges", now.edges},
                                               {"customers", list(now.busiest)},
                                               {"denied", list(now.denied)}});
  return response;
}

void NodeAdminService::owners(const std::string& customer, Completion done) const {
  Check check;
  check.customer = customer;
  if (Status valid = validate(check); !valid) {
    done(error_response(valid.error()));
    return;
  }
  const RegisterId reg = parts_.node->shape()->placement().register_for(
      Scope::global, parts_.config->region, customer);
  parts_.node->describe(
      reg, customer,
      [customer, done = std::move(done)](const Result<actors::OwnerDescription>& owner) {
        if (!owner) {
          done(error_response(owner.error()));
          return;
        }
        json::array replicas;
        for (const std::string& replica : owner->replicas) replicas.emplace_back(replica);
        AdminResponse response;
        response.body = json::serialize(json::object{{"customer", customer},
                                                     {"node", owner->node},
                                                     {"region", owner->region},
                                                     {"epoch", to_string(owner->epoch)},
                                                     {"replicas", std::move(replicas)}});
        done(std::move(response));
      });
}

void NodeAdminService::explain(const AdminRequest& request, Completion done) const {
  auto facts = std::make_shared<ExplainFacts>();
  auto check = check_of(request);
  if (!check) {
    done(error_response(check.error()));
    return;
  }
  facts->check = *std::move(check);
  facts->node = parts_.config->node;
  facts->region = parts_.config->region;
  facts->policy = parts_.policy->policy();
  if (facts->policy == nullptr) {
    done(error_response(503, "unavailable", "", "no policy yet"));
    return;
  }
  auto then_ask_owners = [this, facts, shape = parts_.node->shape(), done = std::move(done)] {
    ask_owners(*parts_.node, shape->placement(), *facts->policy, facts->region,
               facts->check.customer, [facts, shape, done](const OwnerAnswers& answers) {
                 facts->owners = answers;
                 AdminResponse response;
                 response.body = explain_json(*facts, shape->placement());
                 done(std::move(response));
               });
  };
  if (parts_.limiter == nullptr) {
    then_ask_owners();
    return;
  }
  Check look = facts->check;
  look.cost = 0;
  Decision decision;
  const auto decided = parts_.limiter->decide(look, decision);
  if (!decided) {
    // More limits match than one check may have: there is no standing, but the reasons are there.
    then_ask_owners();
    return;
  }
  if (*decided) {
    facts->look = std::move(decision);
    then_ask_owners();
    return;
  }
  parts_.limiter->decide_later(look, [facts, then_ask_owners](const Decision& late) {
    facts->look = late;
    then_ask_owners();
  });
}

void NodeAdminService::kill_owner(const AdminRequest& request, Completion done) const {
  if (!parts_.config->chaos) {
    done(error_response(403, "forbidden", "chaos",
                        "this node takes no chaos: set `chaos: true` in its file, or --chaos"));
    return;
  }
  auto check = check_of(request);
  if (!check) {
    done(error_response(check.error()));
    return;
  }
  parts_.node->kill_owner(
      check->customer, [customer = check->customer, done = std::move(done)](Status killed) {
        if (!killed && killed.error().code == ErrorCode::unsupported) {
          return done(error_response(403, "forbidden", "chaos", killed.error().message));
        }
        if (!killed) return done(error_response(killed.error()));
        AdminResponse response;
        response.body = json::serialize(json::object{{"customer", customer}, {"killed", true}});
        done(std::move(response));
      });
}

/// `?nodes=eu-1,eu-2`: no frame to or from them until the next call; none: all are heard.
void NodeAdminService::cut_off(const AdminRequest& request, Completion done) const {
  if (!parts_.config->chaos) {
    done(error_response(403, "forbidden", "chaos",
                        "this node takes no chaos: set `chaos: true` in its file, or --chaos"));
    return;
  }
  std::set<std::string> nodes;
  json::array named;
  for (const auto& [name, value] : request.query) {
    if (name != "nodes") {
      return done(error_response(400, "invalid_argument", name, "only `nodes` may be named"));
    }
    std::istringstream list(value);
    for (std::string node; std::getline(list, node, ',');) {
      if (!node.empty() && nodes.insert(node).second) named.emplace_back(node);
    }
  }
  parts_.node->cut_off(std::move(nodes));
  AdminResponse response;
  response.body = json::serialize(json::object{{"cut", std::move(named)}});
  done(std::move(response));
}

AdminResponse NodeAdminService::topology() const {
  const auto shape = parts_.node->shape();
  const TopologyState& state = shape->state;
  AdminResponse response;
  response.body = json::serialize(
      json::object{{"version", state.finished.version},
                   {"committed", shape->committed},
                   {"generation", state.finished.generation},
                   {"under_way", state.next ? state.next->version : 0},
                   {"registers_left", state.next ? parts_.node->state().registers_unmarked : 0},
                   {"document", state.finished.document}});
  return response;
}

/// The topology in a body `{"document": TEXT}`: its text and its version.
Result<std::pair<std::uint64_t, std::string>> NodeAdminService::topology_of(
    const AdminRequest& request) const {
  boost::system::error_code error;
  const json::value value = json::parse(request.body, error);
  const json::object* object = error ? nullptr : value.if_object();
  const json::value* document = object == nullptr ? nullptr : object->if_contains("document");
  if (document == nullptr || !document->is_string() || object->size() != 1) {
    return failure(ErrorCode::invalid_argument, "document",
                   "the body must be {\"document\": \"...\"} with a topology file's text");
  }
  std::string text(document->get_string());
  if (text.size() > kMaxDocumentBytes) {
    return failure(ErrorCode::too_large, "document",
                   "longer than " + std::to_string(kMaxDocumentBytes) + " bytes");
  }
  auto parsed = config::parse_topology(text, "document");
  if (!parsed) {
    return failure(ErrorCode::invalid_argument, "document", config::to_string(parsed.errors));
  }
  return std::pair(parsed.value->version, std::move(text));
}

void NodeAdminService::change_topology(const AdminRequest& request, bool recover,
                                       Completion done) const {
  auto wanted = topology_of(request);
  if (!wanted) return done(error_response(wanted.error()));
  if (parts_.config->topology.empty()) {
    return done(error_response(400, "unsupported", "", "a node on its own has no topology"));
  }
  const auto answered = [version = wanted->first, done = std::move(done)](const Status& begun) {
    if (!begun) return done(error_response(begun.error()));
    AdminResponse response;
    response.status = 202;
    response.body = json::serialize(json::object{{"version", version}});
    done(std::move(response));
  };
  if (recover) {
    parts_.node->recover(wanted->first, wanted->second, answered);
  } else {
    parts_.node->propose(wanted->first, wanted->second, answered);
  }
}

void NodeAdminService::handle(const AdminRequest& request, Completion done) {
  const bool get = request.method == "GET";
  const auto segments = net::split_path(request.path);
  if (!segments) return done(error_response(segments.error()));
  const std::vector<std::string>& path = *segments;
  const auto is = [&path](std::initializer_list<const char*> wanted) {
    return std::equal(path.begin(), path.end(), wanted.begin(), wanted.end());
  };
  using Answer = AdminResponse (NodeAdminService::*)() const;
  Answer answer = nullptr;
  if (is({"metrics"})) answer = &NodeAdminService::metrics;
  if (is({"healthz"})) answer = &NodeAdminService::healthz;
  if (is({"readyz"})) answer = &NodeAdminService::readyz;
  if (is({"v1", "status"})) answer = &NodeAdminService::status;
  if (is({"v1", "top"})) answer = &NodeAdminService::top;
  const bool recovers = is({"v1", "topology:recover"});
  if (recovers || (is({"v1", "topology"}) && !get)) {
    if (request.method != "POST") return done(wrong_method(recovers ? "POST" : "GET, POST"));
    return change_topology(request, recovers, std::move(done));
  }
  if (is({"v1", "topology"})) answer = &NodeAdminService::topology;
  const bool is_owners = path.size() == 3 && path[0] == "v1" && path[1] == "owners";
  const bool is_explain = is({"v1", "explain"});
  const bool cuts = is({"v1", "chaos", "cut"});
  if (cuts || is({"v1", "chaos", "kill-owner"})) {
    if (request.method != "POST") return done(wrong_method("POST"));
    return cuts ? cut_off(request, std::move(done)) : kill_owner(request, std::move(done));
  }
  if (answer == nullptr && !is_owners && !is_explain) {
    return done(error_response(404, "not_found", "", "nothing is here; see API.md, Admin API"));
  }
  if (!get) return done(wrong_method("GET"));
  if (is_owners) return owners(path[2], std::move(done));
  if (is_explain) return explain(request, std::move(done));
  done((this->*answer)());
}

}  // namespace weir::server
