// Goal: every node computes the same replica sets for ever, the sets keep PROTOCOL A1-A4, the load
// follows the weights, and a change of the topology moves no more than it must.
// Method: golden values; a naive recomputation in floating point by another algorithm over random
// topologies; counts over all slots; every kind of odd topology by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regions/placement.h"
#include "src/base/hash.h"
#include "src/base/random.h"

namespace weir::regions {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = RegisterId::Kind;
using Names = std::vector<std::string>;

/// Nodes `<name>-1`, `<name>-2`, ... in the zones a, b, ... of `zones`, one letter each.
TopologyRegion region(const std::string& name, std::uint32_t weight, std::string_view zones) {
  TopologyRegion made{name, weight, {}};
  for (std::size_t i = 0; i < zones.size(); ++i) {
    made.nodes.push_back(
        {name + "-" + std::to_string(i + 1), std::string(1, zones[i]), {"127.0.0.1", 7070}});
  }
  return made;
}

Topology topology(std::uint32_t replica_count, std::vector<TopologyRegion> regions,
                  ReplicaPlace place = ReplicaPlace::region) {
  Topology made;
  made.version = 1;
  made.replica_count = replica_count;
  made.place = place;
  made.regions = std::move(regions);
  return made;
}

Topology three_regions(ReplicaPlace place = ReplicaPlace::region) {
  return topology(3, {region("ap", 1, "ab"), region("eu", 1, "abc"), region("us", 2, "aabbc")},
                  place);
}

RegisterId global(std::uint32_t slot) { return {Kind::global, "", static_cast<Slot>(slot)}; }
RegisterId in_region(const std::string& name, std::uint32_t slot) {
  return {Kind::region, name, static_cast<Slot>(slot)};
}
RegisterId pinned(const std::string& name, std::uint32_t slot) {
  return {Kind::pin, name, static_cast<Slot>(slot)};
}

std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) text += name + " ";
  return text;
}

/// All that a placement says about all slots, as one number.
std::uint64_t fingerprint(const Placement& placement, const Topology& of) {
  std::string text;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    text += placement.home(global(slot)) + ": " + joined(placement.replicas(global(slot))) + "\n";
    for (const auto& entry : of.regions) {
      text += joined(placement.replicas(in_region(entry.name, slot))) + "\n";
    }
  }
  return hash_bytes(text);
}

// --- The ranking ---

long double score(std::string_view name, std::uint32_t weight, std::uint64_t key) {
  const long double u = std::ldexp(static_cast<long double>(hash_bytes(name, key)), -64);
  return -static_cast<long double>(weight) / std::log(u);
}

TEST(Rendezvous, AgreesWithTheFormulaInFloatingPoint) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t key = random.next();
    std::vector<Candidate> candidates;
    for (std::uint64_t i = 0; i < 1 + random.below(20); ++i) {
      const std::uint64_t widest = std::uint64_t{1} << (1 + random.below(32));
      candidates.push_back(
          {"node-" + std::to_string(i), static_cast<std::uint32_t>(1 + random.below(widest - 1))});
    }
    auto expected = candidates;
    std::sort(expected.begin(), expected.end(), [&](const auto& a, const auto& b) {
      return score(a.name, a.weight, key) > score(b.name, b.weight, key);
    });
    Names names;
    for (const auto& candidate : expected) names.push_back(candidate.name);
    ASSERT_EQ(rank_by_rendezvous(key, candidates), names) << "round " << round;
  }
}

TEST(Rendezvous, EqualWeightsRankByTheHashAlone) {
  // The closest two of so many differ by 2^-24 of the range or less: a coarse logarithm ties them.
  std::vector<Candidate> candidates;
  for (int i = 0; i < 20'000; ++i) candidates.push_back({"n" + std::to_string(i), 7});
  const auto names = rank_by_rendezvous(11, candidates);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return hash_bytes(a, 11) > hash_bytes(b, 11);
  }));
}

TEST(Rendezvous, TheCandidatesOrderDoesNotMatter) {
  std::vector<Candidate> candidates = {{"a", 3}, {"b", 0}, {"c", 7}, {"d", 0}, {"e", UINT32_MAX}};
  const auto expected = rank_by_rendezvous(5, candidates);
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    std::swap(candidates[random.below(5)], candidates[random.below(5)]);
    ASSERT_EQ(rank_by_rendezvous(5, candidates), expected);
  }
}

TEST(Rendezvous, EachComesFirstForItsShareOfTheKeys) {
  constexpr int kKeys = 50'000;
  const std::vector<Candidate> candidates = {{"small", 1}, {"middle", 10}, {"large", 89}};
  std::map<std::string, int> first;
  Random random(3);
  for (int i = 0; i < kKeys; ++i) ++first[rank_by_rendezvous(random.next(), candidates).front()];
  EXPECT_NEAR(first["small"], 0.01 * kKeys, 0.001 * kKeys);
  EXPECT_NEAR(first["middle"], 0.10 * kKeys, 0.004 * kKeys);
  EXPECT_NEAR(first["large"], 0.89 * kKeys, 0.004 * kKeys);
}

TEST(Rendezvous, WeightZeroComesAfterAllOthersAndTheLargestWeightsDoNotOverflow) {
  Random random(4);
  int first_of_the_light = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto names = rank_by_rendezvous(
        random.next(), {{"none", 0}, {"x", UINT32_MAX}, {"never", 0}, {"y", UINT32_MAX}, {"l", 1}});
    ASSERT_THAT(names, SizeIs(5));
    const std::set<std::string> last(names.begin() + 3, names.end());
    ASSERT_EQ(last, (std::set<std::string>{"none", "never"}));
    if (names.front() == "l") ++first_of_the_light;
  }
  EXPECT_EQ(first_of_the_light, 0);
  EXPECT_THAT(rank_by_rendezvous(1, {}), IsEmpty());
}

TEST(Rendezvous, ALeavingCandidateMovesNobodyElse) {
  std::vector<Candidate> all;
  for (int i = 0; i < 9; ++i) {
    all.push_back({"n" + std::to_string(i), static_cast<std::uint32_t>(1 + i * i)});
  }
  auto fewer = all;
  fewer.erase(fewer.begin() + 4);
  for (std::uint64_t key = 0; key < 2000; ++key) {
    auto expected = rank_by_rendezvous(key, all);
    expected.erase(std::find(expected.begin(), expected.end(), "n4"));
    ASSERT_EQ(rank_by_rendezvous(key, fewer), expected);
  }
}

// --- Golden values: a change here moves every customer's records ---

TEST(PlacementGolden, TheRankingIsForEver) {
  const std::vector<Candidate> candidates = {{"ap", 1}, {"eu", 1}, {"us", 2}, {"sa", 0}};
  EXPECT_THAT(rank_by_rendezvous(0, candidates), ElementsAre("us", "ap", "eu", "sa"));
  EXPECT_THAT(rank_by_rendezvous(1, candidates), ElementsAre("us", "eu", "ap", "sa"));
  EXPECT_THAT(rank_by_rendezvous(UINT64_MAX, candidates), ElementsAre("us", "eu", "ap", "sa"));
}

TEST(PlacementGolden, TheSetsAreForEver) {
  const Placement placement(three_regions());
  EXPECT_EQ(joined(placement.replicas(global(0))), "us-1 us-4 us-5 ");
  EXPECT_EQ(joined(placement.replicas(global(1))), "eu-2 eu-3 eu-1 ");
  EXPECT_EQ(joined(placement.replicas(global(4095))), "eu-1 eu-3 eu-2 ");
  EXPECT_EQ(joined(placement.replicas(in_region("eu", 7))), "eu-3 eu-1 eu-2 ");
  EXPECT_EQ(joined(placement.replicas(pinned("us", 7))), "us-4 us-5 us-1 ");
  EXPECT_EQ(fingerprint(placement, three_regions()), 4193574583533928900U);

  const auto spread = three_regions(ReplicaPlace::spread);
  EXPECT_EQ(joined(Placement(spread).replicas(global(0))), "us-1 eu-3 ap-2 ");
  EXPECT_EQ(fingerprint(Placement(spread), spread), 7206279281756158254U);
}

// --- The whole, recomputed ---

std::size_t odd_at_most(std::size_t most) {
  std::size_t odd = 0;
  for (std::size_t i = 1; i <= most; i += 2) odd = i;
  return odd;
}

/// One region's set by picking, again and again, the best node of the zones used least so far.
Names naive_nodes(const TopologyRegion& of, std::uint32_t slot, std::size_t replica_count) {
  const std::uint64_t key = hash_bytes("node", slot);
  std::vector<TopologyNode> left = of.nodes;
  std::map<std::string, int> used;
  Names picked;
  const std::size_t count = odd_at_most(std::min(replica_count, of.nodes.size()));
  while (picked.size() < count) {
    const auto best = std::min_element(left.begin(), left.end(), [&](const auto& a, const auto& b) {
      if (used[a.zone] != used[b.zone]) return used[a.zone] < used[b.zone];
      return score(a.name, 1, key) > score(b.name, 1, key);
    });
    ++used[best->zone];
    picked.push_back(best->name);
    left.erase(best);
  }
  return picked;
}

std::vector<const TopologyRegion*> naive_ranked(std::vector<const TopologyRegion*> regions,
                                                std::uint32_t slot) {
  const std::uint64_t key = hash_bytes("region", slot);
  std::sort(regions.begin(), regions.end(), [&](const auto* a, const auto* b) {
    if (a->weight == 0 && b->weight == 0) return score(a->name, 1, key) > score(b->name, 1, key);
    return score(a->name, a->weight, key) > score(b->name, b->weight, key);
  });
  return regions;
}

Names naive_global(const Topology& of, std::uint32_t slot) {
  std::vector<const TopologyRegion*> staffed;
  std::size_t most = 0;
  bool weighted = false;
  for (const auto& entry : of.regions) {
    if (!entry.nodes.empty()) staffed.push_back(&entry);
    if (!entry.nodes.empty() && entry.weight > 0) weighted = true;
  }
  Names picked;
  if (of.place == ReplicaPlace::spread) {
    for (const auto* entry : naive_ranked(staffed, slot)) {
      picked.push_back(naive_nodes(*entry, slot, 1).front());
    }
    picked.resize(odd_at_most(std::min<std::size_t>(of.replica_count, picked.size())));
    return picked;
  }
  std::erase_if(staffed, [&](const auto* entry) { return weighted && entry->weight == 0; });
  for (const auto* entry : staffed) most = std::max(most, entry->nodes.size());
  const std::size_t needed = odd_at_most(std::min<std::size_t>(of.replica_count, most));
  std::erase_if(staffed, [&](const auto* entry) { return entry->nodes.size() < needed; });
  if (staffed.empty()) return {};
  return naive_nodes(*naive_ranked(staffed, slot).front(), slot, of.replica_count);
}

Topology random_topology(Random& random) {
  std::vector<TopologyRegion> regions;
  for (const char* name : {"ap", "eu", "sa", "us"}) {
    if (random.chance(200)) continue;
    std::string zones;
    for (std::uint64_t i = random.below(8); i > 0; --i) {
      zones.push_back(static_cast<char>('a' + random.below(3)));
    }
    const bool weightless = random.chance(250);
    regions.push_back(
        region(name, weightless ? 0 : static_cast<std::uint32_t>(random.between(1, 9)), zones));
  }
  const auto replica_count = static_cast<std::uint32_t>(1 + 2 * random.below(4));
  return topology(replica_count, std::move(regions),
                  random.chance(300) ? ReplicaPlace::spread : ReplicaPlace::region);
}

TEST(Placement, EqualsANaiveRecomputationOfRandomTopologies) {
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    Random random(seed);
    const Topology of = random_topology(random);
    const Placement placement(of);
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (std::uint32_t slot = 0; slot < kSlotCount; slot += 29) {
      const Names expected = naive_global(of, slot);
      ASSERT_EQ(placement.replicas(global(slot)), expected);
      const auto* home = expected.empty() ? nullptr : of.region_of(expected.front());
      ASSERT_EQ(placement.home(global(slot)), home == nullptr ? "" : home->name);
      for (const auto& entry : of.regions) {
        const bool staffed = !entry.nodes.empty();
        const Names local = staffed ? naive_nodes(entry, slot, of.replica_count) : expected;
        ASSERT_EQ(placement.replicas(in_region(entry.name, slot)), local);
        ASSERT_EQ(placement.replicas(pinned(entry.name, slot)), local);
        const std::string& seat = placement.home(in_region(entry.name, slot));
        ASSERT_EQ(seat, staffed ? entry.name : placement.home(global(slot)));
      }
    }
  }
}

TEST(Placement, TwoNodesThatReadTheRegionsInAnotherOrderAgree) {
  Topology shuffled = three_regions();
  std::swap(shuffled.regions[0], shuffled.regions[2]);
  std::swap(shuffled.regions[1].nodes[0], shuffled.regions[1].nodes[2]);
  const Placement ours(three_regions());
  const Placement theirs(shuffled);
  EXPECT_EQ(fingerprint(ours, three_regions()), fingerprint(theirs, three_regions()));
}

// --- Rules ---

TEST(Placement, SetsAreOddDistinctAndOfOneRegionWhichHasEnoughNodes) {
  const Topology of = three_regions();
  const Placement placement(of);
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    const auto& nodes = placement.replicas(global(slot));
    ASSERT_THAT(nodes, SizeIs(3));
    ASSERT_EQ(std::set<std::string>(nodes.begin(), nodes.end()).size(), 3U);
    const std::string& home = placement.home(global(slot));
    ASSERT_NE(home, "ap") << "two nodes are no home for three replicas";
    std::set<std::string> zones;
    for (const auto& node : nodes) {
      ASSERT_EQ(of.region_of(node)->name, home);
      zones.insert(of.find_node(node)->zone);
    }
    ASSERT_THAT(zones, SizeIs(3)) << joined(nodes);
  }
}

TEST(Placement, FiveReplicasInThreeZonesNeverPutAMajorityInOne) {
  const Topology of = topology(5, {region("eu", 1, "aaaabbbc")});
  const Placement placement(of);
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    std::map<std::string, int> used;
    for (const auto& node : placement.replicas(global(slot))) ++used[of.find_node(node)->zone];
    ASSERT_EQ(used["a"], 2);
    ASSERT_EQ(used["b"], 2);
    ASSERT_EQ(used["c"], 1);
  }
}

TEST(Placement, SlotsFollowTheWeightsAndNodesShareThem) {
  const Topology of =
      topology(3, {region("ap", 1, "abc"), region("eu", 3, "abc"), region("us", 4, "aabbcc")});
  const Placement placement(of);
  std::map<std::string, int> homes;
  std::map<std::string, int> owned;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    ++homes[placement.home(global(slot))];
    ++owned[placement.replicas(global(slot)).front()];
  }
  EXPECT_NEAR(homes["ap"], kSlotCount / 8, kSlotCount * 0.02);
  EXPECT_NEAR(homes["eu"], kSlotCount * 3 / 8, kSlotCount * 0.02);
  EXPECT_NEAR(homes["us"], kSlotCount / 2, kSlotCount * 0.02);
  for (const auto& node : of.regions[1].nodes) {
    EXPECT_NEAR(owned[node.name], homes["eu"] / 3, homes["eu"] * 0.05) << node.name;
  }
  for (const auto& node : of.regions[2].nodes) {
    EXPECT_NEAR(owned[node.name], homes["us"] / 6, homes["us"] * 0.04) << node.name;
  }
}

std::size_t missing_in(const Names& before, const Names& after) {
  return static_cast<std::size_t>(std::count_if(before.begin(), before.end(), [&](const auto& n) {
    return std::find(after.begin(), after.end(), n) == after.end();
  }));
}

TEST(PlacementChange, ANewRegionTakesItsShareAndMovesNothingElse) {
  const auto eu = region("eu", 1, "abc");
  const auto us = region("us", 2, "abc");
  const Placement before(topology(3, {eu, us}));
  const Placement after(topology(3, {region("ap", 1, "abc"), eu, us}));
  int moved = 0;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    if (before.replicas(global(slot)) == after.replicas(global(slot))) continue;
    ASSERT_EQ(after.home(global(slot)), "ap");
    ++moved;
  }
  EXPECT_NEAR(moved, kSlotCount / 4, kSlotCount * 0.03);
}

TEST(PlacementChange, ANewNodeReplacesAtMostOneMemberOfASet) {
  for (const char* zones : {"aab", "abc", "aabbcd"}) {
    const std::string more = std::string(zones) + "a";
    const Topology of = topology(3, {region("eu", 1, more)});
    const Placement before(topology(3, {region("eu", 1, zones)}));
    const Placement after(of);
    const std::string added = of.regions[0].nodes.back().name;
    for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
      const auto& old_set = before.replicas(global(slot));
      const auto& new_set = after.replicas(global(slot));
      ASSERT_LE(missing_in(old_set, new_set), 1U) << joined(old_set) << "-> " << joined(new_set);
      for (const auto& node : new_set) {
        if (node != added) {
          ASSERT_EQ(std::count(old_set.begin(), old_set.end(), node), 1);
        }
      }
      if (new_set.front() != added) {
        ASSERT_EQ(new_set.front(), old_set.front());
      }
    }
  }
}

TEST(PlacementChange, ARemovedRegionMovesOnlyItsOwnSlots) {
  const auto eu = region("eu", 1, "abc");
  const auto us = region("us", 2, "abc");
  const Placement before(topology(3, {region("ap", 1, "abc"), eu, us}));
  const Placement after(topology(3, {eu, us}));
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    if (before.home(global(slot)) == "ap") continue;
    ASSERT_EQ(before.replicas(global(slot)), after.replicas(global(slot)));
  }
}

TEST(PlacementSpread, OneNodePerRegionAndTheFirstIsHome) {
  const Topology of = topology(3,
                               {region("ap", 1, "a"), region("eu", 2, "abc"), region("sa", 1, ""),
                                region("us", 2, "ab"), region("za", 0, "ab")},
                               ReplicaPlace::spread);
  const Placement placement(of);
  std::map<std::string, int> homes;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    const auto& nodes = placement.replicas(global(slot));
    ASSERT_THAT(nodes, SizeIs(3));
    std::set<std::string> regions;
    for (const auto& node : nodes) regions.insert(of.region_of(node)->name);
    ASSERT_EQ(regions, (std::set<std::string>{"ap", "eu", "us"}));
    ASSERT_EQ(of.region_of(nodes.front())->name, placement.home(global(slot)));
    // Locally, a region still keeps its own limits, by as many nodes as it has.
    ASSERT_THAT(placement.replicas(in_region("eu", slot)), SizeIs(3));
    ASSERT_THAT(placement.replicas(in_region("us", slot)), SizeIs(1));
    ++homes[placement.home(global(slot))];
  }
  EXPECT_NEAR(homes["ap"], kSlotCount / 5, kSlotCount * 0.02);
  EXPECT_NEAR(homes["eu"], kSlotCount * 2 / 5, kSlotCount * 0.03);
}

TEST(PlacementSpread, ARegionOfWeightZeroStoresButComesLast) {
  const Placement placement(topology(
      3, {region("eu", 1, "a"), region("us", 1, "a"), region("za", 0, "a")}, ReplicaPlace::spread));
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    ASSERT_THAT(placement.replicas(global(slot)), SizeIs(3));
    ASSERT_EQ(placement.replicas(global(slot)).back(), "za-1");
  }
}

TEST(PlacementSpread, TwoRegionsForThreeReplicasFallBackToOne) {
  const Placement placement(
      topology(3, {region("eu", 1, "abc"), region("us", 1, "abc")}, ReplicaPlace::spread));
  EXPECT_THAT(placement.replicas(global(9)), SizeIs(1));
}

TEST(PlacementRegion, ARegionWithEdgesOnlyIsServedByTheSlotsHome) {
  const Placement placement(
      topology(3, {region("ap", 5, ""), region("eu", 1, "abc"), region("us", 1, "abc")}));
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    for (const std::string name : {"ap", "not-in-the-topology", ""}) {
      ASSERT_EQ(placement.replicas(in_region(name, slot)), placement.replicas(global(slot)));
      ASSERT_EQ(placement.home(in_region(name, slot)), placement.home(global(slot)));
      ASSERT_EQ(placement.replicas(pinned(name, slot)), placement.replicas(global(slot)));
    }
  }
}

TEST(PlacementRegion, ASmallRegionKeepsItsLimitsOnTheLargestOddNumberOfItsNodes) {
  const Placement placement(
      topology(5, {region("ap", 1, "ab"), region("eu", 1, "abca"), region("us", 1, "abcab")}));
  EXPECT_THAT(placement.replicas(in_region("ap", 3)), SizeIs(1));
  EXPECT_THAT(placement.replicas(in_region("eu", 3)), SizeIs(3));
  EXPECT_THAT(placement.replicas(in_region("us", 3)), SizeIs(5));
  EXPECT_EQ(placement.home(in_region("ap", 3)), "ap");
  EXPECT_EQ(placement.home(global(3)), "us");
}

TEST(PlacementRegion, OneOwnerHoldsBothScopesOfACustomerAtHome) {
  const Placement placement(three_regions());
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    const std::string home = placement.home(global(slot));
    ASSERT_EQ(placement.replicas(in_region(home, slot)), placement.replicas(global(slot)));
  }
}

TEST(PlacementPin, APinnedCustomerHasARegisterOfItsOwnAtItsHome) {
  Topology of = three_regions();
  of.pins = {{"acme", "us"}, {"bolt", "gone"}};
  const Placement placement(of);
  const Slot slot = slot_of("acme");
  EXPECT_EQ(placement.register_for(Scope::global, "eu", "acme"), pinned("us", slot));
  EXPECT_EQ(placement.home(pinned("us", slot)), "us");
  EXPECT_THAT(placement.replicas(pinned("us", slot)), SizeIs(3));
  EXPECT_EQ(placement.register_for(Scope::region, "eu", "acme"), in_region("eu", slot));
  EXPECT_EQ(placement.register_for(Scope::global, "eu", "acm"), global(slot_of("acm")));
  EXPECT_EQ(placement.register_for(Scope::global, "eu", "acme2"), global(slot_of("acme2")));
  // A pin to a region that is not there: still one register, and a home.
  const RegisterId lost = placement.register_for(Scope::global, "eu", "bolt");
  EXPECT_EQ(lost, pinned("gone", slot_of("bolt")));
  EXPECT_THAT(placement.replicas(lost), SizeIs(3));
}

TEST(PlacementPin, APinHoldsEvenForARegionOfWeightZero) {
  const Placement placement(topology(3, {region("eu", 1, "abc"), region("us", 0, "abc")}));
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    ASSERT_EQ(placement.home(global(slot)), "eu");
    ASSERT_EQ(placement.home(pinned("us", slot)), "us");
  }
}

TEST(PlacementTotal, TooFewNodesEverywhereFallBackToTheLargestOddNumberThatFits) {
  const Placement placement(
      topology(5, {region("ap", 1, "a"), region("eu", 1, "abca"), region("us", 1, "abc")}));
  std::set<std::string> homes;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    ASSERT_THAT(placement.replicas(global(slot)), SizeIs(3));
    homes.insert(placement.home(global(slot)));
  }
  EXPECT_EQ(homes, (std::set<std::string>{"eu", "us"}));
}

TEST(PlacementTotal, ClusterOfOneAndOfTwo) {
  const Placement one(topology(1, {region("local", 1, "a")}));
  EXPECT_THAT(one.replicas(global(1)), ElementsAre("local-1"));
  EXPECT_THAT(one.replicas(in_region("local", 1)), ElementsAre("local-1"));
  EXPECT_EQ(one.home(global(1)), "local");
  const Placement two(topology(3, {region("local", 1, "ab")}));
  EXPECT_THAT(two.replicas(global(1)), SizeIs(1));
}

TEST(PlacementTotal, NoWeightAnywhereCountsAllAlike) {
  const Placement placement(topology(3, {region("eu", 0, "abc"), region("us", 0, "abc")}));
  int at_eu = 0;
  for (std::uint32_t slot = 0; slot < kSlotCount; ++slot) {
    if (placement.home(global(slot)) == "eu") ++at_eu;
  }
  EXPECT_NEAR(at_eu, kSlotCount / 2, kSlotCount * 0.03);
}

TEST(PlacementTotal, NonsenseIsPlacedToo) {
  const Placement nowhere(topology(3, {}));
  EXPECT_THAT(nowhere.replicas(global(0)), IsEmpty());
  EXPECT_EQ(nowhere.home(pinned("eu", 0)), "");
  const Placement edges_only(topology(3, {region("eu", 1, "")}, ReplicaPlace::spread));
  EXPECT_THAT(edges_only.replicas(in_region("eu", 4095)), IsEmpty());
  const Placement even(topology(4, {region("eu", 1, "abcab")}));
  EXPECT_THAT(even.replicas(global(0)), SizeIs(3));
  const Placement none(topology(0, {region("eu", 1, "abcab")}));
  EXPECT_THAT(none.replicas(global(0)), SizeIs(1));
  // A slot out of range, as a peer might send it.
  EXPECT_EQ(even.replicas(global(UINT16_MAX)), even.replicas(global(UINT16_MAX % kSlotCount)));
}

TEST(Placement, RelaysAreTheOwnerNodesOfTheEdgesRegionByRank) {
  const Topology topology = three_regions();
  const Placement placement(topology);
  for (Slot slot = 0; slot < 50; ++slot) {
    const auto* relays = placement.relays(global(slot), "us");
    ASSERT_NE(relays, nullptr);
    EXPECT_EQ(*relays, placement.replicas(in_region("us", slot)));
  }
  EXPECT_EQ(placement.relays(global(0), "nowhere"), nullptr);
}

}  // namespace
}  // namespace weir::regions
