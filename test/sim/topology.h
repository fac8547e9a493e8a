// Topologies of simulated clusters: their documents are names, and the registers are those that the
// workload touches.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "regions/topology_view.h"

namespace weir::sim {

class Topologies {
 public:
  void add(const std::string& document, Topology topology) {
    documents_[document] = std::move(topology);
  }
  void set_registers(std::vector<RegisterId> registers) { registers_ = std::move(registers); }
  const std::vector<RegisterId>& registers() const { return registers_; }
  /// What a node makes of a state: a regions::View of the touched registers.
  Result<std::shared_ptr<const ownership::TopologyView>> view(const TopologyState& state) const;
  std::shared_ptr<const regions::View> whole_view(const TopologyState& state) const;

 private:
  Result<Topology> parse(const std::string& document) const;

  std::map<std::string, Topology> documents_;
  mutable std::map<std::string, std::shared_ptr<const regions::View>> views_;  ///< by state
  std::vector<RegisterId> registers_;
};

}  // namespace weir::sim
