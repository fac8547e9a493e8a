// The cluster's shape as this node follows it: set by the replication actor, at a node that only
// asks by the courier; read by everybody else. What was read stays as it is while it is held.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "regions/topology_view.h"
#include "src/model/register.h"

namespace weir::actors {

struct Shape {
  TopologyState state;
  bool committed = false;  ///< false: by the node's file, nobody has said that it is in force
  std::shared_ptr<const regions::View> view;

  const regions::Placement& placement() const { return view->placement(); }
};

/// The mutex is there because HTTP threads read while an actor writes; it is held for a copy of a
/// pointer.
class ShapeBoard {
 public:
  explicit ShapeBoard(std::shared_ptr<const Shape> first) : shape_(std::move(first)) {}
  std::shared_ptr<const Shape> read() const {
    const std::lock_guard lock(mutex_);
    return shape_;
  }
  void post(std::shared_ptr<const Shape> shape) {
    const std::lock_guard lock(mutex_);
    shape_ = std::move(shape);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Shape> shape_;
};

}  // namespace weir::actors
