#include "test/sim/topology.h"

#include <algorithm>

namespace weir::sim {
namespace {

class TouchedView final : public ownership::TopologyView {
 public:
  TouchedView(std::shared_ptr<const regions::View> whole, std::vector<RegisterId> touched)
      : whole_(std::move(whole)), touched_(std::move(touched)) {
    touched_.push_back(kTopologyRegister);
  }
  ownership::Layout layout(const RegisterId& reg, std::uint64_t known) const override {
    return whole_->layout(reg, known);
  }
  RegisterId register_for(const BucketKey& bucket) const override {
    return whole_->register_for(bucket);
  }
  std::vector<RegisterId> registers(const std::string& node) const override {
    std::vector<RegisterId> result;
    for (const RegisterId& reg : touched_) {
      if (whole_->layout(reg, 0).quorums.contains(node)) result.push_back(reg);
    }
    return result;
  }
  std::vector<RegisterId> all() const override { return touched_; }
  std::vector<Repin> repinned() const override { return whole_->repinned(); }
  std::vector<std::string> owner_nodes() const override { return whole_->owner_nodes(); }

 private:
  std::shared_ptr<const regions::View> whole_;
  std::vector<RegisterId> touched_;
};

}  // namespace

Result<Topology> Topologies::parse(const std::string& document) const {
  const auto found = documents_.find(document);
  if (found != documents_.end()) return found->second;
  return failure(ErrorCode::invalid_argument, "document", "no topology");
}

std::shared_ptr<const regions::View> Topologies::whole_view(const TopologyState& state) const {
  auto& view = views_[encode(state)];
  if (view) return view;
  const auto read = [this](const std::string& document) { return parse(document); };
  if (auto made = regions::make_view(state, read)) view = *made;
  return view;
}

Result<std::shared_ptr<const ownership::TopologyView>> Topologies::view(
    const TopologyState& state) const {
  auto whole = whole_view(state);
  if (!whole) return failure(ErrorCode::invalid_argument, "document", "no topology");
  return std::make_shared<const TouchedView>(std::move(whole), registers_);
}

}  // namespace weir::sim
