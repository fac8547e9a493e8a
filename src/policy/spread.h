// How the highest policy version reaches every node (PROTOCOL J4): which stamps a node and its
// peers have, whom to ask, what to store, what is refused. A pure state machine; text is opaque to
// it.
//
// A node tells its stamp to whoever it talks to, by heartbeats and with each request and answer.
// Whoever hears of a higher version asks one peer that has it for the text, and another one when no
// answer comes. The higher version is put in force and stored at once; a node that restarts before
// it is stored meets it again in records, requests and answers, and grants nothing before it has it
// (D8).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/policy/reload.h"

namespace weir::policy {

/// An unanswered question for a policy goes to another peer after this.
inline constexpr Nanos kAskPolicyAgainNs = 500 * kMillisecond;
/// Most peers whose stamps are remembered; of further ones nothing is learnt.
inline constexpr std::size_t kMaxPolicyPeers = 4096;

/// A policy as it travels and is stored. Whoever makes one has parsed the text and computed the
/// stamp from it.
struct PolicyText {
  PolicyStamp stamp;
  std::string text;

  friend bool operator==(const PolicyText&, const PolicyText&) = default;
};

class Spread {
 public:
  struct Effects {
    std::vector<std::string> ask;     ///< peers to be asked for their policy
    std::optional<PolicyText> adopt;  ///< put in force, and store
  };

  /// What the node's store holds: it beats an older file (J4).
  explicit Spread(std::optional<PolicyText> stored);

  /// A file was read. Refused: an older version, or this one with other content.
  Result<Reload> read(PolicyText file, Effects& out);
  /// A peer said which policy it has. `content_hash` 0: it said the version alone. Version 0: it
  /// has none, or is gone.
  void heard(const std::string& peer, const PolicyStamp& stamp, Nanos now_ns, Effects& out);
  /// A peer's policy came.
  void received(const std::string& peer, PolicyText policy, Nanos now_ns, Effects& out);
  /// Part of the answer has come: whoever is asked is not silent.
  void progressed(const std::string& peer, Nanos now_ns);
  /// What a peer sent cannot be read or is not served here: it is not asked for that stamp again.
  void unreadable(const std::string& peer, Nanos now_ns, Effects& out);
  void tick(Nanos now_ns, Effects& out);
  /// When to tick next; kForever: not before another event.
  Nanos next_deadline() const;

  /// What is in force, for peers that ask; version 0: nothing.
  const PolicyText& own() const { return own_; }
  const PolicyStamp& stamp() const { return own_.stamp; }
  /// The highest version that a peer has and this node has not; 0: none.
  std::uint64_t wanted() const;
  /// Peers that have this version with other content, to be shown: whoever wrote it has to write a
  /// higher one.
  std::map<std::string, PolicyStamp> refused() const;

 private:
  struct Peer {
    PolicyStamp stamp;
    bool unreadable = false;
  };

  void adopt(PolicyText policy, Effects& out);
  void ask(Nanos now_ns, Effects& out);

  PolicyText own_;
  std::map<std::string, Peer> peers_;
  std::string asking_;  ///< empty: nobody
  std::string last_asked_;
  Nanos asked_ns_ = 0;
};

}  // namespace weir::policy
