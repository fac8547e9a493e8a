// A policy that comes from a peer piece by piece, and the pieces of one that a peer asks for. Each
// piece is asked for when the one before it has come, so that a long text never stands in front of
// heartbeats. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/policy/spread.h"

namespace weir::policy {

/// What to send next: the text of `stamp` from `offset` on. Stamp {}: whatever there is, from the
/// start.
struct PieceAsk {
  PolicyStamp stamp;
  std::uint64_t offset = 0;

  friend bool operator==(const PieceAsk&, const PieceAsk&) = default;
};

struct Piece {
  PolicyStamp stamp;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  ///< bytes of the whole text
  std::string_view text;
};

/// The piece that answers `ask`, of at most `most` bytes: from the start when another policy is in
/// force by now.
Piece piece_of(const PolicyText& own, const PieceAsk& ask, std::size_t most);

class Assembly {
 public:
  /// `longest`: no text of more bytes is taken.
  explicit Assembly(std::size_t longest) : longest_(longest) {}

  /// From now on `peer` is asked, for what follows: a text is the same wherever its stamp is, and
  /// nothing is lost when a piece takes longer than whoever asks waits.
  void begin(std::string peer);
  PieceAsk next() const { return {stamp_, text_.size()}; }

  enum class Came : std::uint8_t {
    ignored,   ///< unasked, another policy of another peer, or once more
    more,      ///< ask for `next`
    whole,     ///< `take` it
    unusable,  ///< longer than may be, or not what it says
  };
  Came add(const std::string& peer, const Piece& piece);
  PolicyText take();

 private:
  std::size_t longest_;
  std::string peer_;  ///< empty: nobody is asked
  PolicyStamp stamp_;
  std::string text_;
};

}  // namespace weir::policy
