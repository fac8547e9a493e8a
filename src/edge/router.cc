#include "src/edge/router.h"

#include <algorithm>

namespace weir::edge {
namespace {

/// Redirects in a row that are followed at once; after that the request waits for its repetition.
constexpr int kMaxRedirects = 4;

}  // namespace

/// The first that is not gone, or the first of all.
const std::string& Router::first_of(const std::vector<std::string>& nodes) const {
  static const std::string nobody;
  const auto is_there = [this](const std::string& node) { return !gone_.contains(node); };
  const auto found = std::find_if(nodes.begin(), nodes.end(), is_there);
  if (found != nodes.end()) return *found;
  return nodes.empty() ? nobody : nodes.front();
}

bool Router::relays_are_gone(const Places& places) const {
  return places.relays != nullptr &&
         std::all_of(places.relays->begin(), places.relays->end(),
                     [this](const std::string& node) { return gone_.contains(node); });
}

/// Where the way begins.
Router::First Router::first(const RegisterId& reg) const {
  const Places places = places_(reg);
  const bool relay = places.relays_first && places.relays != nullptr && !relays_are_gone(places);
  const std::vector<std::string>& nodes = relay ? *places.relays : *places.replicas;
  return {first_of(nodes), relay ? LeaseHop::to_relay : LeaseHop::direct};
}

void Router::begin(const RegisterId& reg, Route& route, Nanos now_ns) const {
  const First at = first(reg);
  const Places places = places_(reg);
  const bool detour = places.relays_first && places.relays != nullptr && !places.relays->empty() &&
                      at.hop == LeaseHop::direct;
  route = {};
  route.to = {at.node, at.hop};
  if (detour) route.detour_ns = std::max<Nanos>(1, now_ns);
}

/// The relay after this one, the first after an owner. False: there is none.
bool Router::next_relay(const Places& places, Route& route) const {
  if (places.relays == nullptr || places.relays->empty()) return false;
  const std::vector<std::string>& relays = *places.relays;
  const bool at_relay = route.to.hop == LeaseHop::to_relay;
  auto next = relays.begin();
  if (at_relay) {
    next = std::find(relays.begin(), relays.end(), route.to.node);
    if (next != relays.end()) ++next;
  }
  while (next != relays.end() && gone_.contains(*next)) ++next;
  if (next == relays.end()) return false;
  route.to = {*next, LeaseHop::to_relay};
  return true;
}

/// A relay that is silent is followed by the next one, the last by the owner; an owner by the next
/// in its rank.
void Router::next(const RegisterId& reg, Route& route, Nanos now_ns) const {
  const Places places = places_(reg);
  const std::vector<std::string>& nodes = *places.replicas;
  if (route.to.hop == LeaseHop::to_relay) {
    if (route.detour_ns == 0) route.detour_ns = std::max<Nanos>(1, now_ns);
    if (next_relay(places, route)) return;
    route.to = {first_of(nodes), LeaseHop::direct};
    return;
  }
  if (nodes.empty()) return;
  auto at = std::find(nodes.begin(), nodes.end(), route.to.node);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    at = at == nodes.end() || at + 1 == nodes.end() ? nodes.begin() : at + 1;
    if (!gone_.contains(*at)) break;
  }
  route.to.node = *at;
}

std::set<RegisterId> Router::lost(const std::string& node, Nanos now_ns) {
  gone_.insert(node);
  std::set<RegisterId> moved;
  for (auto& [reg, route] : routes_) {
    if (route.to.node != node) continue;
    next(reg, route, now_ns);
    route.silent_since_ns = 0;
    route.silences = route.redirects = 0;
    moved.insert(reg);
  }
  return moved;
}

const Router::Target& Router::target(const RegisterId& reg, Nanos now_ns) {
  Route& route = routes_[reg];
  const bool over = route.detour_ns != 0 && now_ns - route.detour_ns >= kDetourNs;
  if (route.to.node.empty() || over) begin(reg, route, now_ns);
  if (route.silent_since_ns == 0) {
    route.silent_since_ns = now_ns;
  } else if (now_ns - route.silent_since_ns >= std::max(kRouteSilenceNs, 2 * slowest_ns_)
                                                   << route.silences) {
    next(reg, route, now_ns);
    route.silent_since_ns = now_ns;
    route.redirects = 0;
    route.silences = std::min(route.silences + 1, kMaxSilenceDoublings);
  }
  return route.to;
}

void Router::answered(Route& route, Nanos now_ns) {
  if (route.silent_since_ns != 0) {
    slowest_ns_ = std::max(now_ns - route.silent_since_ns, slowest_ns_ - slowest_ns_ / 8);
  }
  route.silent_since_ns = 0;
  route.silences = 0;
}

void Router::heard(const RegisterId& reg, const std::string& from, LeaseHop hop, Nanos now_ns) {
  Route& route = routes_[reg];
  // A late word of a way that has been left: the one taken now may be silent all the same.
  const bool relayed = route.to.hop == LeaseHop::to_relay || hop == LeaseHop::to_relay;
  if (relayed && (hop != route.to.hop || from != route.to.node)) return;
  answered(route, now_ns);
  route.to.node = from;
  route.redirects = 0;
}

bool Router::redirected(const RegisterId& reg, const std::string& from, LeaseHop hop,
                        const std::string& hint, Nanos now_ns) {
  Route& route = routes_[reg];
  // Another bucket's answer has changed the route already.
  if (route.to.node != from || route.to.hop != hop) return true;
  answered(route, now_ns);
  if (hop == LeaseHop::to_relay) {
    next(reg, route, now_ns);
    return ++route.redirects <= kMaxRedirects;
  }
  if (hint.empty() || hint == from || gone_.contains(hint)) {
    next(reg, route, now_ns);
    return false;
  }
  route.to.node = hint;
  return ++route.redirects <= kMaxRedirects;
}

bool Router::crowded(const RegisterId& reg, const std::string& from, LeaseHop hop, Nanos now_ns) {
  Route& route = routes_[reg];
  if (route.to.node != from || route.to.hop != hop) return false;
  const Places places = places_(reg);
  if (!next_relay(places, route)) {
    // All are full: from the front again, after a while.
    if (hop == LeaseHop::to_relay) begin(reg, route, now_ns);
    return false;
  }
  if (route.detour_ns == 0) route.detour_ns = std::max<Nanos>(1, now_ns);
  answered(route, now_ns);
  return ++route.redirects <= kMaxRedirects;
}

bool Router::learn(const RegisterId& reg, const std::string& from, const LeaseAnswer& answer,
                   Nanos now_ns) {
  // Whoever is no relay of this router's spoke as the owner.
  const LeaseHop hop = answer.hop == LeaseHop::to_relay ? LeaseHop::to_relay : LeaseHop::direct;
  if (answer.status == LeaseStatus::not_owner) {
    return redirected(reg, from, hop, answer.owner_hint, now_ns);
  }
  heard(reg, from, hop, now_ns);
  return answer.status == LeaseStatus::crowded && crowded(reg, from, hop, now_ns);
}

const std::string& Router::guess(const RegisterId& reg) const {
  const auto known = routes_.find(reg);
  if (known != routes_.end() && !known->second.to.node.empty()) return known->second.to.node;
  return first(reg).node;
}

void Router::reset(PlacesOf places) {
  places_ = std::move(places);
  routes_.clear();
}

}  // namespace weir::edge
