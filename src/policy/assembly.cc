#include "src/policy/assembly.h"

#include <algorithm>
#include <utility>

namespace weir::policy {

Piece piece_of(const PolicyText& own, const PieceAsk& ask, std::size_t most) {
  const std::uint64_t size = own.text.size();
  const std::uint64_t offset = ask.stamp == own.stamp && ask.offset <= size ? ask.offset : 0;
  return {own.stamp, offset, size, std::string_view(own.text).substr(offset, most)};
}

void Assembly::begin(std::string peer) { peer_ = std::move(peer); }

Assembly::Came Assembly::add(const std::string& peer, const Piece& piece) {
  if (peer_.empty()) return Came::ignored;
  if (piece.stamp != stamp_) {
    if (peer != peer_ && !text_.empty()) return Came::ignored;
    stamp_ = {};
    text_.clear();
    if (piece.offset != 0) return Came::more;
    stamp_ = piece.stamp;
  }
  if (piece.offset != text_.size()) return Came::ignored;
  const std::uint64_t size = text_.size() + piece.text.size();
  if (piece.total > longest_ || size > piece.total || piece.text.empty()) {
    peer_.clear();
    stamp_ = {};
    text_.clear();
    return Came::unusable;
  }
  text_ += piece.text;
  return size == piece.total ? Came::whole : Came::more;
}

PolicyText Assembly::take() {
  peer_.clear();
  return {std::exchange(stamp_, {}), std::exchange(text_, {})};
}

}  // namespace weir::policy
