#include "regions/placement.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <set>
#include <utility>

#include "src/base/hash.h"
#include "src/base/limits.h"

namespace weir::regions {
namespace {

__extension__ using Wide = unsigned __int128;

/// -log2(hash / 2^64) in units of 2^-48, rounded up; in [1, 64 * 2^48]. The bits of the logarithm
/// come one by one from squaring the mantissa (Turner: "A fast binary logarithm algorithm", IEEE
/// Signal Processing Magazine 27, 2010): integers, because std::log may differ in its last bit from
/// one machine to the next. The base of the logarithm does not change who wins.
std::uint64_t rendezvous_cost(std::uint64_t hash) {
  constexpr unsigned kFractionBits = 48;
  hash = std::max<std::uint64_t>(hash, 1);
  const auto shift = static_cast<unsigned>(std::countl_zero(hash));
  std::uint64_t mantissa = hash << shift;  // in [1, 2), 63 bits after the point
  std::uint64_t logarithm = 63 - shift;
  for (unsigned bit = 0; bit < kFractionBits; ++bit) {
    const Wide square = static_cast<Wide>(mantissa) * mantissa;  // in [1, 4), 126 bits after it
    const bool two_or_more = (square >> 127) != 0;
    logarithm = logarithm << 1 | (two_or_more ? 1 : 0);
    mantissa = static_cast<std::uint64_t>(square >> (two_or_more ? 64 : 63));
  }
  return (std::uint64_t{64} << kFractionBits) - logarithm;
}

/// Keys of a slot's rankings, for ever. Regions and nodes rank apart, so that a node called like a
/// region does not share its luck.
std::uint64_t region_key(Slot slot) { return hash_bytes("region", slot); }
std::uint64_t node_key(Slot slot) { return hash_bytes("node", slot); }

std::size_t largest_odd(std::size_t most) { return most % 2 == 0 && most > 0 ? most - 1 : most; }

/// `ranked`, reordered so that each round takes one node per zone, as long as a zone has any.
std::vector<std::string> spread_over_zones(
    std::vector<std::string> ranked,
    const std::map<std::string_view, std::string_view>& zone_of_node) {
  std::vector<std::string> spread;
  spread.reserve(ranked.size());
  while (!ranked.empty()) {
    std::set<std::string_view> zones_of_round;
    std::vector<std::string> later;
    for (auto& node : ranked) {
      const bool first_of_zone = zones_of_round.insert(zone_of_node.at(node)).second;
      (first_of_zone ? spread : later).push_back(std::move(node));
    }
    ranked = std::move(later);
  }
  return spread;
}

std::vector<std::string> nodes_of_region(const TopologyRegion& region, Slot slot,
                                         std::size_t replica_count) {
  std::vector<Candidate> candidates;
  std::map<std::string_view, std::string_view> zone_of_node;
  for (const auto& node : region.nodes) {
    candidates.push_back({node.name, 1});
    zone_of_node.emplace(node.name, node.zone);
  }
  auto nodes =
      spread_over_zones(rank_by_rendezvous(node_key(slot), std::move(candidates)), zone_of_node);
  nodes.resize(largest_odd(std::min(replica_count, nodes.size())));
  return nodes;
}

/// The regions that can be home (A3), or those that come nearest to it.
std::vector<Candidate> home_candidates(const Topology& topology) {
  const auto& regions = topology.regions;
  const bool weighted = std::any_of(regions.begin(), regions.end(), [](const auto& region) {
    return region.weight > 0 && !region.nodes.empty();
  });
  const auto may_be_home = [&](const TopologyRegion& region) {
    return !region.nodes.empty() && (region.weight > 0 || !weighted);
  };
  std::size_t most = 0;
  for (const auto& region : regions) {
    if (may_be_home(region)) most = std::max(most, region.nodes.size());
  }
  const std::size_t needed = largest_odd(std::min<std::size_t>(topology.replica_count, most));
  std::vector<Candidate> candidates;
  for (const auto& region : regions) {
    if (may_be_home(region) && region.nodes.size() >= needed) {
      candidates.push_back({region.name, region.weight});
    }
  }
  return candidates;
}

std::vector<Candidate> spread_candidates(const Topology& topology) {
  std::vector<Candidate> candidates;
  for (const auto& region : topology.regions) {
    if (!region.nodes.empty()) candidates.push_back({region.name, region.weight});
  }
  return candidates;
}

}  // namespace

std::vector<std::string> rank_by_rendezvous(std::uint64_t key, std::vector<Candidate> candidates) {
  struct Scored {
    std::uint64_t cost;
    Candidate candidate;
  };
  std::vector<Scored> scored;
  scored.reserve(candidates.size());
  for (auto& candidate : candidates) {
    const std::uint64_t cost = rendezvous_cost(hash_bytes(candidate.name, key));
    scored.push_back({cost, std::move(candidate)});
  }
  // The greatest -weight / log(u) is the least cost / weight, compared crosswise.
  std::sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
    const Wide left = static_cast<Wide>(a.cost) * b.candidate.weight;
    const Wide right = static_cast<Wide>(b.cost) * a.candidate.weight;
    if (left != right) return left < right;
    if (a.cost != b.cost) return a.cost < b.cost;
    return a.candidate.name < b.candidate.name;
  });
  std::vector<std::string> names;
  names.reserve(scored.size());
  for (auto& entry : scored) names.push_back(std::move(entry.candidate.name));
  return names;
}

Placement::Placement(const Topology& topology) : pins_(topology.pins) {
  const std::size_t replica_count = std::max<std::size_t>(topology.replica_count, 1);
  for (const auto& region : topology.regions) {
    if (region.nodes.empty()) continue;
    Slots& slots = regions_[region.name];
    slots.clear();
    for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
      slots.push_back(
          {region.name, nodes_of_region(region, static_cast<Slot>(slot), replica_count)});
    }
  }
  const bool spread = topology.place == ReplicaPlace::spread;
  const auto candidates = spread ? spread_candidates(topology) : home_candidates(topology);
  const std::size_t count = spread ? largest_odd(std::min(replica_count, candidates.size())) : 1;
  global_.resize(kSlotCount);
  for (std::uint32_t slot = 0; slot < kSlotCount && !candidates.empty(); ++slot) {
    const auto ranked = rank_by_rendezvous(region_key(static_cast<Slot>(slot)), candidates);
    Set& set = global_[slot];
    set.home = ranked.front();
    if (!spread) {
      set.nodes = regions_.at(set.home)[slot].nodes;
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      set.nodes.push_back(regions_.at(ranked[i])[slot].nodes.front());
    }
  }
}

const std::vector<std::string>& Placement::replicas(const RegisterId& reg) const {
  return set_of(reg).nodes;
}

RegisterId Placement::register_for(Scope scope, std::string_view region,
                                   std::string_view customer) const {
  if (scope == Scope::global) {
    const auto pin = pins_.find(customer);
    if (pin != pins_.end()) return {RegisterId::Kind::pin, pin->second, slot_of(customer)};
  }
  return register_of(scope, region, customer);
}

const std::vector<std::string>* Placement::relays(const RegisterId& reg,
                                                  std::string_view region) const {
  const auto found = regions_.find(region);
  return found == regions_.end() ? nullptr : &found->second[reg.slot % kSlotCount].nodes;
}

const std::string& Placement::home(const RegisterId& reg) const { return set_of(reg).home; }

const Placement::Set& Placement::set_of(const RegisterId& reg) const {
  // A register may come from a peer: its slot may be anything.
  const std::size_t slot = reg.slot % kSlotCount;
  if (reg.kind != RegisterId::Kind::global) {
    const auto region = regions_.find(reg.region);
    if (region != regions_.end()) return region->second[slot];
  }
  return global_[slot];
}

}  // namespace weir::regions
