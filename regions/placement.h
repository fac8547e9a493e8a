// Which nodes store and own a register: a pure function of (register, topology) (PROTOCOL A2-A4).
#pragma once

#include <string>
#include <vector>

#include "src/model/ids.h"
#include "src/model/topology.h"

namespace weir::regions {

/// Weighted rendezvous (Schindelhauer, Schomaker: "Weighted distributed hash tables", SPAA 2005;
/// the score is -weight / ln(u), compared here through integers): the names ordered best first.
struct Candidate {
  std::string name;
  std::uint32_t weight = 1;
};
std::vector<std::string> rank_by_rendezvous(std::uint64_t key, std::vector<Candidate> candidates);

class Placement {
 public:
  explicit Placement(const Topology& topology);

  /// The replica set in rank order: the first should own (A4). Never empty for a valid topology.
  const std::vector<std::string>& replicas(const RegisterId& reg) const;

  /// The register that holds a leased limit of `customer`, as asked by an edge of `region`: pins
  /// included.
  RegisterId register_for(Scope scope, std::string_view region, std::string_view customer) const;

  /// The home region of a register: `eu`, or for region registers the region that serves it (itself
  /// when it has owner nodes).
  const std::string& home(const RegisterId& reg) const;

 private:
  struct Set {
    std::string home;
    std::vector<std::string> nodes;
  };
  Set compute(const RegisterId& reg) const;
  const Set& set_of(const RegisterId& reg) const;

  Topology topology_;
  /// Every register's set, computed once: kSlotCount for each kind and region.
  std::vector<std::vector<Set>> sets_;
};

}  // namespace weir::regions
