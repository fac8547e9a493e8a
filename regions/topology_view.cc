#include "regions/topology_view.h"

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/limits.h"

namespace weir::regions {
namespace {

bool same_members(std::vector<std::string> a, std::vector<std::string> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

}  // namespace

View::Version::Version(const Topology& of) : topology(of), placement(of) {
  for (const TopologyRegion& region : topology.regions) {
    for (const TopologyNode& node : region.nodes) owners.push_back(node.name);
  }
  std::sort(owners.begin(), owners.end());
}

/// The voters of the register `topology` are all owner nodes (J1).
std::vector<std::string> View::Version::set(const RegisterId& reg) const {
  return reg.kind == RegisterId::Kind::topology ? owners : placement.replicas(reg);
}

std::vector<RegisterId> View::Version::registers() const {
  std::vector<RegisterId> result;
  result.push_back(kTopologyRegister);
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    const auto at = static_cast<Slot>(slot);
    result.push_back({RegisterId::Kind::global, {}, at});
    for (const TopologyRegion& region : topology.regions) {
      if (!region.nodes.empty()) {
        result.push_back({RegisterId::Kind::region, region.name, at});
      }
    }
  }
  for (const auto& [customer, region] : topology.pins) {
    result.push_back({RegisterId::Kind::pin, region, slot_of(customer)});
  }
  return result;
}

View::View(const TopologyState& state, const Topology& finished,
           const std::optional<Topology>& next)
    : state_(state), finished_(finished) {
  if (next) next_.emplace(*next);
}

ownership::Layout View::layout(const RegisterId& reg, std::uint64_t known) const {
  const std::uint64_t before = 2 * state_.finished.version;
  std::vector<std::string> old = finished_.set(reg);
  const TopologyVersion& finished = state_.finished;
  if (!next_ && finished.generation > 0 && finished.generation_began == finished.version) {
    return {before, before, {{std::move(old)}}, finished.listed, true, finished.generation};
  }
  if (!next_) return {before, before, {{std::move(old)}}, {}, false, finished.generation};
  const std::uint64_t after = state_.last_stage();
  std::vector<std::string> now = next_->set(reg);
  if (known >= after || same_members(old, now)) {
    return {after, after, {{std::move(now)}}, {}, false, finished.generation};
  }
  return {before + 1,          after, {{std::move(old), std::move(now)}},
          state_.next->listed, false, finished.generation};
}

std::vector<RegisterId> View::registers(const std::string& node) const {
  std::set<RegisterId> result;
  const auto add = [&](const Version& version) {
    for (RegisterId& reg : version.registers()) {
      const auto set = version.set(reg);
      if (std::find(set.begin(), set.end(), node) != set.end()) result.insert(std::move(reg));
    }
  };
  add(finished_);
  if (next_) add(*next_);
  return {result.begin(), result.end()};
}

std::vector<RegisterId> View::all() const {
  std::vector<RegisterId> result = finished_.registers();
  if (next_) {
    for (RegisterId& reg : next_->registers()) result.push_back(std::move(reg));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<ownership::TopologyView::Repin> View::repinned() const {
  std::vector<Repin> result;
  if (!next_) return result;
  std::set<std::string> customers;
  for (const Version* version : {&finished_, &*next_}) {
    for (const auto& [customer, region] : version->topology.pins) customers.insert(customer);
  }
  for (const std::string& customer : customers) {
    RegisterId from = finished_.placement.register_for(Scope::global, {}, customer);
    RegisterId to = next_->placement.register_for(Scope::global, {}, customer);
    if (from != to) result.push_back({customer, std::move(from), std::move(to)});
  }
  return result;
}

std::vector<std::string> View::owner_nodes() const {
  std::set<std::string> result(finished_.owners.begin(), finished_.owners.end());
  if (next_) result.insert(next_->owners.begin(), next_->owners.end());
  return {result.begin(), result.end()};
}

Result<std::shared_ptr<const View>> make_view(const TopologyState& state,
                                              const ParseTopology& parse) {
  auto finished = parse(state.finished.document);
  if (!finished) return tl::unexpected(finished.error());
  std::optional<Topology> next;
  if (state.next) {
    auto parsed = parse(state.next->document);
    if (!parsed) return tl::unexpected(parsed.error());
    next = std::move(*parsed);
  }
  auto view = std::make_shared<const View>(state, *finished, next);
  if (view->repinned().size() > kMaxMovedCustomers) {
    return failure(ErrorCode::invalid_argument, "pins",
                   "change for more than " + std::to_string(kMaxMovedCustomers) +
                       " customers; use several versions");
  }
  return view;
}

}  // namespace weir::regions
