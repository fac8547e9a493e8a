// One run of one scenario, internal to test/sim: the cluster, its load, its faults and its judges.
// run.cc builds and drives, load.cc issues checks, faults.cc breaks things, rest.cc asks at the
// end.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/sim/checkers.h"
#include "test/sim/cluster_checkers.h"
#include "test/sim/node.h"
#include "test/sim/run.h"
#include "test/sim/window_checker.h"

namespace weir::sim {

class Simulation final : public Observer {
 public:
  Simulation(const Scenario& scenario, std::uint64_t seed, bool keep_trace);
  Outcome go();

  void committed(const std::string& node, const ownership::OwnerKey& key,
                 const Epoch& epoch) override;
  void activated(const ownership::OwnerKey& key, const Version& loaded,
                 const ownership::BucketView& view) override;
  void spent_late(const std::string& edge, const std::string& bucket) override {
    conservation_.spent_late(edge, bucket, world_.now_ns());
  }
  void accepted(const std::string& node, const RegisterId& reg, const Version& version) override;
  void said(const std::string& node, const RegisterMessage& message) override;
  void misdirected(const std::string& edge, const RegisterId& reg) override;
  void found_owner(const std::string& edge, const RegisterId& reg) override;

 private:
  struct Tally {
    std::uint64_t issued = 0;
    std::uint64_t admitted = 0;
  };

  // run.cc
  std::string summary() const;
  void build();
  void build_nodes();
  TopologyVersion topology_of(std::uint64_t version, const std::vector<std::string>& nodes,
                              int replicas);
  std::vector<std::string> replicas_of(const RegisterId& reg) const;
  void add_node(NodeSettings settings);
  void use_policy();
  void disturbed();
  bool stable() const;
  /// Messages arrive, and soon enough for checks that wait.
  bool calm_weather() const;
  Nanos round_trip_ns() const;
  std::int64_t largest_cost() const;
  void schedule_sample();
  void sample();
  std::map<std::string, std::vector<LiveLease>> live_leases() const;
  std::map<std::string, std::vector<RelayLevel>> relay_levels() const;
  BucketCopies copies_of(const std::string& customer, const LimitDefinition& limit);
  Outcome finish();

  // load.cc
  void schedule_check(const std::string& edge);
  void issue(const std::string& edge);
  void answered(const std::string& edge, const Check& check, Nanos invoked_ns,
                const Decision& decision);
  void judge_admission(const std::string& edge, const Check& check, const LimitDefinition& limit);
  void judge_denial(const Check& check, const Decision& decision);
  std::string pick_customer();
  Nanos next_gap(const std::string& edge);
  LimitNumbers declared(const LimitDefinition& limit) const;

  // faults.cc
  void schedule_fault();
  bool inject(Fault fault);
  bool may_wipe(const std::string& name) const;
  bool inject_down(Fault fault, Node& node, Nanos span_ns);
  void tell_links(const std::string& name, bool up);
  bool inject_network(Fault fault, const std::string& name, Nanos span_ns);
  bool inject_disk(Fault fault, Node& node, Nanos span_ns);
  bool inject_clock(Fault fault, Node& node, Nanos span_ns);
  void change_policy();
  void adopted_policy() override;
  void settle_limits();
  bool change_topology();
  bool destroy_majority();
  void recover_at(const std::string& node, const std::vector<std::string>& lost);
  void redefine(LimitDefinition& limit, const LimitDefinition& first);
  void owner_ended(const std::string& node);
  void heal(const std::string& what, Nanos after_ns, std::function<void()> mend);
  std::string any_node();

  // rest.cc
  void measure_use();
  void check_progress();
  void check_at_rest();
  void look_everywhere();
  void probe_retries();
  void probe(const std::string& customer, int checks_left, Nanos told_ns);
  std::string living_edge() const;

  const Scenario& scenario_;
  World world_;
  Network network_;
  Shared shared_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::vector<std::string> owner_nodes_;
  std::vector<std::string> edges_;
  std::vector<std::string> customers_;
  std::vector<LimitDefinition> limits_;  ///< in force
  /// Those of earlier policies, and until when leases of them may live.
  struct OldLimits {
    std::uint64_t replaced_by = 0;  ///< version
    Nanos until_ns = kForever;
    std::vector<LimitDefinition> limits;
  };
  std::vector<OldLimits> old_limits_;
  std::uint64_t policy_version_ = 1;
  std::uint64_t topology_version_ = 1;
  std::uint64_t topology_drafts_ = 0;
  std::uint64_t proposed_version_ = 0;  ///< the last that anybody took
  std::map<RegisterId, std::string> owners_;
  std::map<RegisterId, Nanos> died_ns_;  ///< the owner of a register, not yet followed by another
  std::map<std::string, int> busy_;      ///< nodes under a fault
  std::map<std::string, Nanos> free_since_ns_;  ///< when one last ended
  int active_faults_ = 0;                       ///< that will be mended
  Nanos load_ends_ns_ = 0;
  Nanos faults_end_ns_ = 0;
  Nanos storm_ended_ns_ = INT64_MIN / 2;
  Nanos disturbed_ns_ = 0;  ///< when a fault last began or ended
  Nanos quiet_from_ns_ = 0;
  std::map<std::uint64_t, std::pair<Nanos, std::string>> open_;
  std::uint64_t check_id_ = 0;
  std::map<std::string, Tally> late_;                   ///< by customer, since quiet_from_ns_
  std::map<std::string, std::uint64_t> edge_admitted_;  ///< by edge
  Outcome outcome_;

  BoundChecker bound_;
  WindowChecker windows_;
  ConservationChecker conservation_;
  EpochChecker epochs_;
  PromiseChecker promises_;
  AgreementChecker agreement_;
  UseChecker use_;
  DenialChecker denial_;
  LeakChecker leak_;
  ProgressChecker progress_;
  RetryChecker retry_;
  FindingChecker finding_;
  BoundedChecker bounded_;
};

}  // namespace weir::sim
