// What a state of the topology means for registers; regions/ knows how (it is above this module).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/model/ids.h"
#include "src/model/register.h"
#include "src/ownership/seat.h"

namespace weir::ownership {

/// Immutable.
class TopologyView {
 public:
  virtual ~TopologyView() = default;
  /// How a register is replicated; `known` is the highest stage that anybody has shown for it.
  virtual Layout layout(const RegisterId& reg, std::uint64_t known) const = 0;
  /// Where a bucket lives by the finished version.
  virtual RegisterId register_for(const BucketKey& bucket) const = 0;
  /// The registers that a node has a part in, under the finished version or the one under way.
  virtual std::vector<RegisterId> registers(const std::string& node) const = 0;
  /// Every register that exists from the start.
  virtual std::vector<RegisterId> all() const = 0;
  /// A customer whose register changes with the version under way (J3).
  struct Repin {
    std::string customer;
    RegisterId from;
    RegisterId to;
  };
  virtual std::vector<Repin> repinned() const { return {}; }
  /// The owner nodes of both versions, in byte order.
  virtual std::vector<std::string> owner_nodes() const = 0;
};

/// Fails when a document is no topology.
using MakeView =
    std::function<Result<std::shared_ptr<const TopologyView>>(const TopologyState& state)>;

}  // namespace weir::ownership
