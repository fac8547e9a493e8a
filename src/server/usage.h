// What the edge and the owners know of one customer's buckets, put together.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/node.h"
#include "regions/placement.h"
#include "src/base/result.h"
#include "src/model/check.h"
#include "src/ownership/owner.h"
#include "src/policy/policy.h"

namespace weir::server {

/// By register: what its owner says, or why it does not.
using OwnerAnswers = std::map<RegisterId, Result<actors::OwnerDescription>>;

/// Asks the owner of every register that the policy's leased limits use for `customer`; calls
/// `done` once, on the calling thread when there is none to ask, else on any.
void ask_owners(actors::Node& node, const regions::Placement& placement,
                const policy::Policy& policy, const std::string& region,
                const std::string& customer, std::function<void(const OwnerAnswers&)> done);

/// One entry for each bucket that the edge or an owner knows and the policy still has, in byte
/// order of (limit, attributes). Where both know a bucket the smaller `remaining` is shown: each
/// may lack what other edges have spent. Pure.
std::vector<BucketUsage> merge_usage(std::vector<BucketUsage> at_edge,
                                     const std::vector<ownership::BucketView>& at_owners,
                                     const policy::Policy& policy, const std::string& region);

}  // namespace weir::server
