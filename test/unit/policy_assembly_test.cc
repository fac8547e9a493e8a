// Goal: a policy in pieces is whole or not taken at all, whatever comes twice, late, from another
// peer or of another version.
// Method: an Assembly against piece_of, and pieces by hand.
#include <gtest/gtest.h>

#include "src/policy/assembly.h"

namespace weir::policy {
namespace {

constexpr std::size_t kLongest = 1000;
constexpr std::size_t kMost = 7;

PolicyText text_of(std::uint64_t version, std::size_t bytes) {
  PolicyText text{{version, version * 31}, {}};
  for (std::size_t i = 0; i < bytes; ++i) text.text += static_cast<char>('a' + (i + version) % 26);
  return text;
}

TEST(Assembly, AsksPieceAfterPieceUntilItIsWhole) {
  const PolicyText own = text_of(3, 100);
  Assembly assembly(kLongest);
  assembly.begin("eu-1");
  std::size_t pieces = 0;
  Assembly::Came came = Assembly::Came::more;
  while (came == Assembly::Came::more) {
    const Piece piece = piece_of(own, assembly.next(), kMost);
    EXPECT_LE(piece.text.size(), kMost);
    came = assembly.add("eu-1", piece);
    ++pieces;
  }
  EXPECT_EQ(came, Assembly::Came::whole);
  EXPECT_EQ(pieces, 15U);
  EXPECT_EQ(assembly.take(), own);
}

TEST(Assembly, APieceThatComesTwiceOrOfAnotherPolicyFromSomebodyElseIsIgnored) {
  const PolicyText own = text_of(3, 20);
  Assembly assembly(kLongest);
  EXPECT_EQ(assembly.add("eu-1", piece_of(own, {}, kMost)), Assembly::Came::ignored) << "unasked";
  assembly.begin("eu-1");
  EXPECT_EQ(assembly.add("eu-1", piece_of(own, {}, kMost)), Assembly::Came::more);
  EXPECT_EQ(assembly.add("eu-2", piece_of(text_of(4, 20), {}, kMost)), Assembly::Came::ignored);
  EXPECT_EQ(assembly.add("eu-1", piece_of(own, {}, kMost)), Assembly::Came::ignored);
  EXPECT_EQ(assembly.next(), (PieceAsk{own.stamp, kMost}));
}

TEST(Assembly, APieceThatComesWhenAnotherPeerIsAskedAlreadyIsNotLost) {
  const PolicyText own = text_of(3, 2 * kMost);
  Assembly assembly(kLongest);
  assembly.begin("eu-1");
  const PieceAsk first = assembly.next();
  assembly.begin("eu-2");
  EXPECT_EQ(assembly.next(), first);
  EXPECT_EQ(assembly.add("eu-1", piece_of(own, first, kMost)), Assembly::Came::more);
  assembly.begin("eu-1");
  EXPECT_EQ(assembly.next(), (PieceAsk{own.stamp, kMost}));
  EXPECT_EQ(assembly.add("eu-2", piece_of(own, first, kMost)), Assembly::Came::ignored);
  EXPECT_EQ(assembly.add("eu-2", piece_of(own, assembly.next(), kMost)), Assembly::Came::whole);
  EXPECT_EQ(assembly.take(), own);
}

TEST(Assembly, AnotherVersionInBetweenStartsAnew) {
  const PolicyText old = text_of(3, 20);
  const PolicyText young = text_of(4, 30);
  Assembly assembly(kLongest);
  assembly.begin("eu-1");
  assembly.add("eu-1", piece_of(old, assembly.next(), kMost));
  const Piece piece = piece_of(young, assembly.next(), kMost);
  EXPECT_EQ(piece.offset, 0U);
  EXPECT_EQ(assembly.add("eu-1", piece), Assembly::Came::more);
  EXPECT_EQ(assembly.next(), (PieceAsk{young.stamp, kMost}));
  // A straggler of the old one, from its middle.
  EXPECT_EQ(assembly.add("eu-1", piece_of(old, {old.stamp, kMost}, kMost)), Assembly::Came::more);
  EXPECT_EQ(assembly.next(), PieceAsk{});
}

TEST(Assembly, WhatIsTooLongOrNotWhatItSaysIsNotTaken) {
  const PolicyText own = text_of(3, kLongest + 1);
  Assembly assembly(kLongest);
  assembly.begin("eu-1");
  EXPECT_EQ(assembly.add("eu-1", piece_of(own, {}, kMost)), Assembly::Came::unusable);
  EXPECT_EQ(assembly.add("eu-1", piece_of(own, {}, kMost)), Assembly::Came::ignored);
  assembly.begin("eu-1");
  EXPECT_EQ(assembly.add("eu-1", {own.stamp, 0, 3, "abcd"}), Assembly::Came::unusable);
  assembly.begin("eu-1");
  EXPECT_EQ(assembly.add("eu-1", {own.stamp, 0, 3, ""}), Assembly::Came::unusable)
      << "it would be asked for for ever";
}

TEST(Assembly, AnAskBeyondTheEndIsAnsweredFromTheStart) {
  const PolicyText own = text_of(3, 10);
  EXPECT_EQ(piece_of(own, {own.stamp, 11}, kMost).offset, 0U);
  EXPECT_EQ(piece_of(own, {{2, 1}, 5}, kMost).offset, 0U);
}

}  // namespace
}  // namespace weir::policy
