// One node's share in every register it replicates: promises kept, records accepted, answers only
// after the store has them (PROTOCOL B1-B5, C2, C3). A pure state machine over a Store's contents.
//
// What must be durable before an answer leaves goes out as `Effects::write` with a token; the
// answer is released by `stored(token)`. Writes are handed over in order and the store applies them
// in order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/result.h"
#include "src/base/time.h"
#include "src/model/ids.h"
#include "src/model/register.h"

namespace weir::ownership {

/// Most records of one scan page or one install, so that heartbeats pass between them.
inline constexpr std::size_t kScanPage = 256;

/// The records as the replica reads them; a thin view over the store, in the simulator and in the
/// actors.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  virtual Result<std::optional<AgedRecord>> read_record(const RegisterId& reg,
                                                        const std::string& bucket) const = 0;
  virtual Result<std::vector<AgedRecord>> read_register(const RegisterId& reg,
                                                        const std::string& after,
                                                        std::size_t most) const = 0;
};

class Replica {
 public:
  /// One durable step: a register's state, records to accept (stamped now) and records to copy
  /// (their age kept).
  struct Write {
    std::uint64_t token = 0;
    RegisterId reg;
    std::optional<RegisterState> state;
    std::vector<StoredRecord> records;
    std::vector<AgedRecord> copies;
  };
  struct Answer {
    std::string to;
    RegisterMessage message;
  };
  struct Effects {
    std::vector<Answer> answers;
    std::vector<Write> writes;
  };

  /// `own` is this store with its number (0: not numbered yet, votes nowhere). `states` is what the
  /// store holds.
  Replica(StoreMark own, std::map<RegisterId, RegisterState> states, const RecordReader& records);

  void prepare(const std::string& from, const Prepare& message, Effects& out);
  void read(const std::string& from, const Read& message, Effects& out);
  void accept(const std::string& from, const Accept& message, Effects& out);
  void scan(const std::string& from, const Scan& message, Effects& out);
  void install(const std::string& from, const Install& message, Effects& out);

  /// The write with this token is durable: its answers leave.
  void stored(std::uint64_t token, Effects& out);
  /// The write failed: it is a refusal, and nothing of it is believed (C5). The caller resigns what
  /// it owns.
  void failed(std::uint64_t token);

  /// From now on no register is served under a stage below `floor`, and none is started below
  /// `starts` (J2): what is started while a version is under way is known to both sets.
  void set_floor(std::uint64_t floor, std::uint64_t starts) {
    floor_ = floor;
    starts_ = starts;
  }

  /// This store got its number from its peers (C2).
  void set_number(std::uint32_t number) { own_.number = number; }
  const StoreMark& own() const { return own_; }
  bool votes_anywhere() const;
  const RegisterState& state(const RegisterId& reg) const;
  const std::map<RegisterId, RegisterState>& states() const { return states_; }

 private:
  /// An answer that waits for a write; a read looks at the store when its turn has come.
  struct Pending {
    std::uint64_t token = 0;
    RegisterId reg;
    Answer answer;
  };

  template <typename Message>
  bool may_promise(const RegisterState& state, const Message& message) const;
  std::uint64_t stage_of(const RegisterState& state) const;
  void refuse(const std::string& from, RegisterMessage message, Effects& out) const;
  /// Hands over what must be durable, and queues the answer behind it.
  void answer_after(Write write, const std::string& to, RegisterMessage message, Effects& out);
  void fill(RegisterMessage& message) const;
  /// The newest version of a bucket, stored or on its way; nothing when it cannot be read.
  std::optional<Version> newest(const RegisterId& reg, const std::string& bucket) const;
  bool follows(const RegisterState& state, const Prepare& message) const;
  template <typename Message>
  void keep_promise(const RegisterState& held, const Message& message, Write& write) const;

  StoreMark own_;
  std::uint64_t floor_ = 0;
  std::uint64_t starts_ = 0;
  std::map<RegisterId, RegisterState> states_;
  const RecordReader& records_;
  std::uint64_t next_token_ = 1;
  std::deque<Pending> pending_;
  /// Versions handed over but not yet stored, so that an older one does not slip past a newer (B5).
  struct Accepting {
    std::uint64_t token = 0;
    Version version;
  };
  std::map<std::pair<RegisterId, std::string>, Accepting> accepting_;
  /// Registers whose last write failed: their state goes with the next one, changed or not.
  std::set<RegisterId> unsure_;
};

/// Raises the numbers in `known` to those in `other`; never lowers one.
void merge_marks(std::vector<StoreMark>& known, const std::vector<StoreMark>& other);
/// The number of `node` in `marks`; 0 when there is none.
std::uint32_t number_of(const std::vector<StoreMark>& marks, const std::string& node);

}  // namespace weir::ownership
