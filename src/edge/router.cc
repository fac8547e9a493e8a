#include "src/edge/router.h"

#include <algorithm>

namespace weir::edge {
namespace {

/// Redirects in a row that are followed at once; after that the request waits for its repetition.
constexpr int kMaxRedirects = 4;

}  // namespace

void Router::next_in_rank(const RegisterId& reg, Route& route) const {
  const std::vector<std::string>& nodes = replicas_(reg);
  if (nodes.empty()) return;
  const auto at = std::find(nodes.begin(), nodes.end(), route.node);
  route.node = at == nodes.end() || at + 1 == nodes.end() ? nodes.front() : *(at + 1);
}

const std::string& Router::target(const RegisterId& reg, Nanos now_ns) {
  Route& route = routes_[reg];
  if (route.node.empty()) next_in_rank(reg, route);
  if (route.silent_since_ns == 0) {
    route.silent_since_ns = now_ns;
  } else if (now_ns - route.silent_since_ns >= std::max(kRouteSilenceNs, 2 * slowest_ns_)
                                                   << route.silences) {
    next_in_rank(reg, route);
    route.silent_since_ns = now_ns;
    route.redirects = 0;
    route.silences = std::min(route.silences + 1, kMaxSilenceDoublings);
  }
  return route.node;
}

void Router::answered(Route& route, Nanos now_ns) {
  if (route.silent_since_ns != 0) {
    slowest_ns_ = std::max(now_ns - route.silent_since_ns, slowest_ns_ - slowest_ns_ / 8);
  }
  route.silent_since_ns = 0;
  route.silences = 0;
}

void Router::heard(const RegisterId& reg, const std::string& from, Nanos now_ns) {
  Route& route = routes_[reg];
  answered(route, now_ns);
  route.node = from;
  route.redirects = 0;
}

bool Router::redirected(const RegisterId& reg, const std::string& from, const std::string& hint,
                        Nanos now_ns) {
  Route& route = routes_[reg];
  // Another bucket's answer has changed the route already.
  if (route.node != from) return true;
  answered(route, now_ns);
  if (hint.empty() || hint == from) {
    next_in_rank(reg, route);
    return false;
  }
  route.node = hint;
  return ++route.redirects <= kMaxRedirects;
}

void Router::reset(Replicas replicas) {
  replicas_ = std::move(replicas);
  routes_.clear();
}

}  // namespace weir::edge
