// One node's part in owning one register: when to try, how to win it, and the commits of its epoch
// (PROTOCOL B1, B4, B7-B9, C2, C3). A pure state machine; host.h gives it messages and carries its
// effects.
//
//   idle -> polling -> preparing (-> starting, for a register that never was) -> active
//   active -> idle   by a higher epoch, or by hand-over
//
// Failure detection decides who tries and when; what is true is decided by majorities of promises.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/base/random.h"
#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/ids.h"
#include "src/model/register.h"

namespace weir::ownership {

/// Who replicates a register. In the joint phase of a topology change there are two sets, and a
/// majority of each is needed (J2). Ranked: the first of `sets.front()` should own.
struct Quorums {
  std::vector<std::vector<std::string>> sets;

  bool contains(const std::string& node) const;
  std::vector<std::string> members() const;  ///< each once, in rank order
  /// True when `nodes` holds more than half of each set.
  bool majority(const std::set<std::string>& nodes) const;

  friend bool operator==(const Quorums&, const Quorums&) = default;
};

/// Where a register lives, by the topology versions that a node knows (PROTOCOL J2).
struct Layout {
  std::uint64_t stage = 0;   ///< see RegisterState::stage
  std::uint64_t target = 0;  ///< the stage once everything has moved; `stage` when nothing moves
  Quorums quorums;           ///< one set, or the old and the new
  std::vector<StoreMark> listed;  ///< stores of the version under way, or of a recovery
  bool recovers = false;          ///< the listed stores vote, whatever they have (C4)
  std::uint64_t generation = 0;   ///< epochs of a later one are above all of an earlier one

  bool joint() const { return target > stage; }

  friend bool operator==(const Layout&, const Layout&) = default;
};

struct SeatConfig {
  Nanos suspicion_ns = 500 * kMillisecond;  ///< without a claim for this long an owner is missed
  Nanos stagger_ns = 150 * kMillisecond;    ///< each rank waits so much longer before it tries
  Nanos retry_ns = 100 * kMillisecond;      ///< unanswered messages are repeated
  Nanos attempt_ns =
      400 * kMillisecond;  ///< an attempt without a majority ends; the next comes later
  Nanos longest_attempt_ns = 4 * kSecond;  ///< to which a slow disk stretches one
  Nanos hand_over_every_ns = 1 * kSecond;
  /// A register that nobody uses waits so much longer: those in use first, when an owner of
  /// thousands dies.
  Nanos dormant_ns = 100 * kMillisecond;
  Nanos settled_ns = 2 * kSecond;   ///< a better rank asks for a hand-over after being up so long
  std::size_t max_gathered = 4096;  ///< records that wait for the next commit; more is refused
};

class Seat {
 public:
  enum class Phase : std::uint8_t { idle, polling, preparing, starting, active };

  /// What the surroundings know of the register's owner.
  struct Claim {
    std::string node;  ///< empty: nobody has claimed it yet
    std::uint64_t counter = 0;
    Nanos renewed_ns = 0;
  };

  struct Loaded {
    std::uint64_t ticket = 0;
    Result<std::optional<AgedRecord>> record;
  };
  /// A page of records in key order, as a majority has them.
  struct Listed {
    std::uint64_t ticket = 0;
    std::vector<AgedRecord> records;
    std::string reach;  ///< the place of the next page
    bool last = false;
  };
  struct Effects {
    std::vector<std::pair<std::string, RegisterMessage>> send;
    bool activated = false;                ///< epoch() may grant from now on
    bool deposed = false;                  ///< everything granted but not committed is void
    std::vector<std::uint64_t> committed;  ///< tickets of submit
    std::vector<Loaded> loaded;            ///< tickets of load
    std::vector<Listed> listed;            ///< tickets of list
    std::uint64_t behind = 0;  ///< a replica knows this later stage: set_layout is due; 0: none
  };

  Seat(RegisterId reg, std::string self, std::uint64_t incarnation, SeatConfig config,
       Random random, Nanos now_ns);

  /// How long the next attempts may take; see SeatConfig.
  void set_attempt(Nanos attempt_ns) { config_.attempt_ns = attempt_ns; }
  /// Somebody waits for its owner, or it was committed to lately.
  void set_in_use(bool in_use) { in_use_ = in_use; }
  /// Another stage. An owner whose replica set changes needs new promises, and a new epoch for
  /// them.
  void set_layout(Layout layout, Nanos now_ns, Effects& out);
  /// The newest claim of any node, and the numbers of stores known here.
  void tick(const Claim& claim, const std::vector<StoreMark>& known, Nanos now_ns, Effects& out);
  /// kForever: not before the surroundings change, see `wake`.
  Nanos next_deadline() const { return deadline_ns_; }
  /// Something that `tick` is told has changed: another claim or none, a claim that is as old as
  /// the suspicion time, another store number, a peer that is heard again.
  void wake(Nanos now_ns) { deadline_ns_ = std::min(deadline_ns_, now_ns); }

  void on(const std::string& from, const Promise& reply, Nanos now_ns, Effects& out);
  void on(const std::string& from, const ReadReply& reply, Nanos now_ns, Effects& out);
  void on(const std::string& from, const Accepted& reply, Nanos now_ns, Effects& out);
  void on(const std::string& from, const PollReply& reply, Nanos now_ns, Effects& out);
  void on(const std::string& from, const ScanReply& reply, Nanos now_ns, Effects& out);
  void on(const std::string& from, const Installed& reply, Nanos now_ns, Effects& out);
  void on(const std::string& from, const HandOver& request, Nanos now_ns, Effects& out);
  void on(const std::string& from, const Release& release, Nanos now_ns, Effects& out);

  /// Stores records under this epoch; `committed` or `deposed` answers. False: too much waits
  /// already.
  bool submit(std::uint64_t ticket, std::vector<std::pair<std::string, LedgerRecord>> records,
              Nanos now_ns, Effects& out);
  /// Reads a bucket's newest record from a majority (B3, B9).
  void load(std::uint64_t ticket, const std::string& bucket, Nanos now_ns, Effects& out);
  /// Reads the page of records after `after` from a majority; only while active.
  void list(std::uint64_t ticket, const std::string& after, Nanos now_ns, Effects& out);
  /// Gives the register up to this member (shutdown), and wants it no more; empty: to nobody.
  void retire(const std::string& successor, Nanos now_ns, Effects& out);
  /// Gives it up at once and for good, whatever is being committed (C5).
  void resign(Effects& out);

  const RegisterId& reg() const { return reg_; }
  Phase phase() const { return phase_; }
  std::uint64_t stage() const { return layout_.stage; }
  const Epoch& epoch() const { return epoch_; }
  const Quorums& quorums() const { return quorums_; }
  bool active() const { return phase_ == Phase::active; }
  /// Gives the register up as soon as nothing is being committed.
  bool releasing() const { return active() && !release_to_.empty(); }
  /// Every member has promised and votes: there is nothing left to ask of it.
  bool complete() const;
  bool trying() const { return phase_ != Phase::active && phase_ != Phase::idle; }
  /// Replicas that do not vote yet, for `status`.
  std::vector<std::string> learners() const;

 private:
  struct Commit {
    std::uint64_t id = 0;
    std::vector<StoredRecord> records;
    std::vector<std::uint64_t> tickets;
    std::set<std::string> accepted;
    Nanos sent_ns = 0;
  };
  /// What one `submit` brought; it waits whole for the next commit.
  struct Gathered {
    std::uint64_t ticket = 0;
    std::vector<std::pair<std::string, LedgerRecord>> records;
  };
  struct Reading {
    std::uint64_t ticket = 0;
    std::string bucket;
    std::map<std::string, std::pair<std::optional<AgedRecord>, Nanos>>
        replies;  ///< and when received
    Nanos sent_ns = 0;
  };
  /// A store that learns: a scan of everything that a majority has, and what was committed
  /// meanwhile (C2).
  struct Learner {
    StoreMark store;
    std::string after;  ///< the scan's place
    bool scanned = false;
    bool wants_vote = false;  ///< everything is there: admit it before the next commit
    std::uint64_t scan_token = 0;
    std::map<std::string, ScanReply> page;                          ///< at this place, by voter
    std::map<std::string, std::pair<StoredRecord, Nanos>> touched;  ///< committed since it began
    std::optional<Install> install;                                 ///< under way
    Nanos sent_ns = 0;
    Nanos began_ns = 0;
  };
  /// The joint phase: everything that majorities have is copied to a majority of the new set, page
  /// by page, beside the commits; then the mark, beside none (J2).
  struct Move {
    std::string after;  ///< the scan's place
    bool scanned = false;
    bool marking = false;
    std::uint64_t token = 0;                ///< of the scan, or of the install under way
    std::map<std::string, ScanReply> page;  ///< at this place, by voter
    std::vector<AgedRecord> records;        ///< being copied
    bool copying = false;
    std::set<std::string> done;  ///< members that have the page, or the mark
    Nanos sent_ns = 0;
  };
  struct Listing {
    std::uint64_t ticket = 0;
    std::string after;
    std::map<std::string, ScanReply> page;
    Nanos sent_ns = 0;
  };
  struct Page {
    std::vector<AgedRecord> records;
    std::string reach;
    bool last = false;
  };

  std::size_t rank_of(const std::string& node) const;
  Nanos missed_at(const Claim& claim) const;
  void tick_idle(const Claim& claim, Nanos now_ns, Effects& out);
  void tick_active(Nanos now_ns, Effects& out);
  void become_idle(Nanos not_before_ns, Effects& out);
  void note_higher(const Epoch& highest, Nanos now_ns, Effects& out);
  void start_poll(Nanos now_ns, Effects& out);
  void send_poll(Nanos now_ns, Effects& out);
  void conclude_poll(Nanos now_ns, Effects& out);
  void start_prepare(Nanos now_ns, Effects& out);
  void send_prepare(Nanos now_ns, Effects& out);
  void conclude_promises(Nanos now_ns, Effects& out);
  void try_first_start(Nanos now_ns, Effects& out);
  bool all_joined() const;
  bool bound(const Promise& promise) const;
  bool bound_by_majority() const;
  void send_begin(Effects& out);
  std::set<std::string> voters() const;
  void become_active(Nanos now_ns, Effects& out);
  void flush(Nanos now_ns, Effects& out);
  void send_commit(Nanos now_ns, Effects& out);
  void conclude_commit(Nanos now_ns, Effects& out);
  void send_read(std::uint64_t token, Reading& reading, Nanos now_ns, Effects& out);
  void find_learners(Nanos now_ns, Effects& out);
  void send_scan(Learner& learner, Nanos now_ns, Effects& out);
  static ScanReply since_boot(ScanReply page, Nanos now_ns);
  static Page merge(const std::map<std::string, ScanReply>& pages, Nanos now_ns);
  void conclude_page(Learner& learner, Nanos now_ns);
  void send_install(const std::string& node, Learner& learner, Nanos now_ns, Effects& out);
  void admit(const std::string& node, Learner& learner, Nanos now_ns, Effects& out);
  bool admitting() const;
  void send_list(std::uint64_t token, Listing& listing, Nanos now_ns, Effects& out);
  void enlist(Effects& out) const;
  bool newly_joins(const std::string& node) const;
  bool listed(const StoreMark& store) const;
  bool old_set_bound() const;
  bool teaches_early() const;
  bool answered_by_enough(const std::set<std::string>& nodes) const;
  void find_learners_early(Nanos now_ns, Effects& out);
  void teach(Nanos now_ns, Effects& out);
  void tick_move(Nanos now_ns, Effects& out);
  void scan_for_move(Nanos now_ns, Effects& out);
  void copy_for_move(Nanos now_ns, Effects& out);
  void moved_page(const std::string& from, Nanos now_ns, Effects& out);
  void mark_moved(Nanos now_ns, Effects& out);
  void marked(const std::string& from, Nanos now_ns, Effects& out);
  void note_refusal(const Epoch& highest, std::uint64_t stage, Nanos now_ns, Effects& out);
  void renew(Nanos now_ns, Effects& out);
  void release_if_drained(Nanos now_ns, Effects& out);
  void set_deadline(Nanos now_ns);
  bool counts(const StoreMark& store) const;
  void to_all(const RegisterMessage& message, Effects& out) const;

  RegisterId reg_;
  std::string self_;
  std::uint64_t incarnation_;
  SeatConfig config_;
  Random random_;
  Layout layout_;
  Quorums quorums_;  ///< of the layout
  Phase phase_ = Phase::idle;
  Epoch epoch_;
  std::uint64_t highest_counter_ = 0;
  Nanos up_since_ns_ = 0;
  Nanos unclaimed_since_ns_ = 0;  ///< no other node has claimed the register since
  bool claimed_ = false;
  Nanos attempt_ends_ns_ = 0;
  Nanos not_before_ns_ = 0;
  Nanos sent_ns_ = 0;
  Nanos asked_hand_over_ns_ = INT64_MIN / 2;
  Nanos deadline_ns_ = 0;
  Nanos idle_until_ns_ = 0;  ///< when to look again while idle
  std::uint64_t token_ = 0;
  std::map<std::string, PollReply> poll_;
  std::map<std::string, Promise> promises_;
  std::vector<StoreMark> first_start_;  ///< being joined, or by which the stores of this epoch vote
  std::vector<StoreMark> known_;
  std::vector<StoreMark> announced_;  ///< the numbers that our prepare carried (C2)

  std::uint64_t sequence_ = 0;
  std::uint64_t commit_id_ = 0;
  std::optional<Commit> commit_;
  std::deque<Gathered> gathered_;
  std::size_t gathered_records_ = 0;
  std::map<std::uint64_t, Reading> readings_;
  std::map<std::string, Learner> learners_;
  std::optional<Move> move_;
  std::map<std::uint64_t, Listing> listings_;  ///< by token
  bool renews_ = false;  ///< a new epoch is prepared as soon as nothing is being committed
  bool retiring_ = false;
  bool in_use_ = true;
  std::string release_to_;
};

}  // namespace weir::ownership
