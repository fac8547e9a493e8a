// The shell around policy::Spread: which policy this node and its peers have, and the highest one's
// way here (PROTOCOL J4). It has a thread of its own, since reading a long policy takes seconds.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "actors/messages.h"
#include "src/base/result.h"
#include "src/base/time.h"
#include "src/policy/spread.h"
#include "src/telemetry/log.h"

namespace weir::actors {

/// What the herald last knew. The mutex is there because the server's threads read while the herald
/// writes; it is held for a copy.
class PolicyBoard {
 public:
  struct Posted {
    std::uint64_t wanted = 0;                            ///< policy::Spread::wanted
    std::map<std::string, policy::PolicyStamp> refused;  ///< policy::Spread::refused
  };
  void post(Posted posted);
  Posted read() const;

 private:
  mutable std::mutex mutex_;
  Posted posted_;
};

struct HeraldContext {
  policy::PolicyText own;  ///< in force at the start; version 0: none
  bool stored = false;     ///< the store has it
  PolicyPort port;
  const Clock* clock = nullptr;
  telemetry::Log* log = nullptr;
  std::shared_ptr<PolicyBoard> board;
  SharedLinks links;
};

HeraldActor spawn_herald(caf::actor_system& system, const HeraldContext& context);

}  // namespace weir::actors
