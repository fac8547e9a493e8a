// Topology versions as the protocol sees them (PROTOCOL J2): the replica sets of the finished
// version, of the one under way, or of both.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regions/placement.h"
#include "src/base/result.h"
#include "src/model/topology.h"
#include "src/ownership/topology_view.h"

namespace weir::regions {

/// Reads the text of a topology file.
using ParseTopology = std::function<Result<Topology>(const std::string& document)>;

class View final : public ownership::TopologyView {
 public:
  View(const TopologyState& state, const Topology& finished, const std::optional<Topology>& next);

  ownership::Layout layout(const RegisterId& reg, std::uint64_t known) const override;
  RegisterId register_for(const BucketKey& bucket) const override {
    return placement().register_for(bucket.scope, bucket.region, bucket.customer);
  }
  std::vector<RegisterId> registers(const std::string& node) const override;
  std::vector<RegisterId> all() const override;
  std::vector<std::string> owner_nodes() const override;
  std::vector<Repin> repinned() const override;

  /// The placement that edges go by: the finished version's.
  const Placement& placement() const { return finished_.placement; }
  const Topology& topology() const { return finished_.topology; }
  const std::optional<Topology> next() const {
    return next_ ? std::optional(next_->topology) : std::nullopt;
  }

 private:
  struct Version {
    explicit Version(const Topology& of);
    std::vector<std::string> set(const RegisterId& reg) const;
    std::vector<RegisterId> registers() const;

    Topology topology;
    Placement placement;
    std::vector<std::string> owners;  ///< in byte order
  };

  TopologyState state_;
  Version finished_;
  std::optional<Version> next_;
};

/// Fails when a document is no topology, or when the version under way changes what no version may.
Result<std::shared_ptr<const View>> make_view(const TopologyState& state,
                                              const ParseTopology& parse);

}  // namespace weir::regions
