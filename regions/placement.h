// Which nodes store and own a register: a pure function of (register, topology) (PROTOCOL A2-A4).
// Every node of a cluster computes it for itself and must come to the same answer on every machine
// and in every later version: integers only, and golden values in its test. Immutable once built:
// any thread may ask.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/model/ids.h"
#include "src/model/topology.h"

namespace weir::regions {

/// One of those that a key chooses from. Names are unique.
struct Candidate {
  std::string name;
  std::uint32_t weight = 1;  ///< 0: after all others
};

/// Weighted rendezvous (Schindelhauer, Schomaker: "Weighted distributed hash tables", SPAA 2005):
/// the names, best first, by the score -weight / ln(u) with u = hash_bytes(name, key) / 2^64. Each
/// candidate comes first for its share of all keys, and one that joins or leaves moves no key
/// between two others. The comparison is made in integers (see placement.cc); the candidates' order
/// does not matter.
std::vector<std::string> rank_by_rendezvous(std::uint64_t key, std::vector<Candidate> candidates);

/// The replica sets of a topology, all computed when it is built (each slot once per region), so
/// that the request path looks one up and allocates nothing.
///
/// With R = replica_count, made odd:
///   region:<name>, pin:<name>   the nodes of that region in the slot's rank order, different zones
///                               first, the first R; as `global` when it has no owner node (a
///                               region with edges only) or is not in the topology
///   global, place: region       the set of the home region: the slot's first choice by weight
///                               among the regions with R nodes and a weight above 0
///   global, place: spread       the slot's first node of each of its first R regions; the first is
///                               home. Regions of weight 0 come last: they store, but should not
///                               own
///
/// Where fewer than R fit (src/config reports it), the largest odd number that does; where no
/// region has a weight, all count alike. So every topology with a node places every register.
/// A slot ranks a region's nodes alike for all kinds: one node owns a customer's limits of both
/// scopes in its home region.
class Placement {
 public:
  explicit Placement(const Topology& topology);

  /// The replica set in rank order: the first should own (A4). Odd in number; empty only when the
  /// topology has no node at all.
  const std::vector<std::string>& replicas(const RegisterId& reg) const;

  /// The register that holds a leased limit of `customer`, as asked by an edge of `region`. Pins
  /// move limits of scope global only: a region's limits stay with the region.
  RegisterId register_for(Scope scope, std::string_view region, std::string_view customer) const;

  /// The nodes whose relays serve the edges of `region` (PROTOCOL F), in rank order: its owner
  /// nodes for that slot. Null: the region has none, its edges lease directly.
  const std::vector<std::string>* relays(const RegisterId& reg, std::string_view region) const;

  /// The region of the node that should own: for region and pin registers the named one, if it has
  /// owner nodes.
  const std::string& home(const RegisterId& reg) const;

 private:
  struct Set {
    std::string home;
    std::vector<std::string> nodes;
  };
  using Slots = std::vector<Set>;  ///< kSlotCount of them

  const Set& set_of(const RegisterId& reg) const;

  Slots global_;
  std::map<std::string, Slots, std::less<>> regions_;  ///< with an owner node, by name
  std::map<std::string, std::string, std::less<>> pins_;
};

}  // namespace weir::regions
