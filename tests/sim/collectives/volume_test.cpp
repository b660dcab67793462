// Compares the bytes that each scheme sends with the published volumes.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "cases.hpp"

namespace ganymede::sim {
namespace {

struct Volume {
  std::vector<std::int64_t> sent, received, reduced;  ///< bytes, one entry an endpoint

  explicit Volume(const Schedule& schedule)
      : sent(static_cast<std::size_t>(schedule.endpoints())), received(sent), reduced(sent) {
    std::vector<Transfer> transfers;
    for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
      schedule.round(round, transfers);
      for (const Transfer& t : transfers) {
        const auto source = static_cast<std::size_t>(t.source), destination = static_cast<std::size_t>(t.destination);
        sent[source] += t.length;
        received[destination] += t.length;
        if (t.reduce) reduced[destination] += t.length;
      }
    }
  }
};

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

Volume of(const char* scheme, const Topology& topology, std::int64_t bytes) {
  return Volume(parse_scheme(scheme).plan({topology, bytes, Collective::all_reduce, ""}));
}

// Schemes that move whole contributions to one place and back: each of n - 1 contributions is added once, which takes
// (n-1) S reduced bytes, and the sum must then reach the n - 1 ranks that lack it. No scheme needs fewer bytes.
TEST(Volume, IsTheLeastWhereEachContributionIsAddedOnce) {
  for (const Case& item : all_cases()) {
    const std::string name(item.scheme->name);
    if (name == "recursive-doubling" || name == "in-network" || name == "mixed") continue;
    if (name == "hierarchical-parameter-server") continue;  // a server's own node sends its sums to the server too
    if (name == "torus" && item.request.topology.ranks == 1) continue;
    const Schedule schedule = item.schedule();
    const Volume volume(schedule);
    const std::int64_t others = item.request.topology.ranks - 1;
    const std::int64_t bytes = schedule.rounds() == 0 ? 0 : schedule.bytes();
    EXPECT_EQ(sum(volume.sent), 2 * others * bytes) << item.name();
    EXPECT_EQ(sum(volume.received), 2 * others * bytes) << item.name();
    EXPECT_EQ(sum(volume.reduced), others * bytes) << item.name();
  }
}

// With bandwidth-optimal schemes, every rank sends and receives 2(n-1)/n S bytes.
TEST(Volume, OfBalancedSchemesIsTheSameForEveryRank) {
  constexpr std::int64_t kBytes = 16 * 5 * 1024;
  for (const char* scheme :
       {"ring", "multi-ring", "halving-doubling", "parameter-server", "torus:4x4", "two-level:sharded"}) {
    const Volume volume = of(scheme, flat(16), kBytes);
    for (std::size_t rank = 0; rank < 16; ++rank) {
      EXPECT_EQ(volume.sent[rank], 2 * 15 * (kBytes / 16)) << scheme;
      EXPECT_EQ(volume.received[rank], 2 * 15 * (kBytes / 16)) << scheme;
      EXPECT_EQ(volume.reduced[rank], 15 * (kBytes / 16)) << scheme;
    }
  }
}

TEST(Volume, OfRecursiveDoublingIsEverythingInEachRound) {
  const Volume volume = of("recursive-doubling", flat(16), 1000);
  for (std::size_t rank = 0; rank < 16; ++rank) EXPECT_EQ(volume.sent[rank], 4 * 1000);
  EXPECT_EQ(sum(of("recursive-doubling", flat(5), 1000).sent), (4 * 2 + 2) * 1000);
}

TEST(Volume, OfReduceToOnePassesThroughTheFirstRank) {
  const Volume volume = of("reduce-to-one", flat(9), 1000);
  EXPECT_EQ(volume.received[0], 8000);
  EXPECT_EQ(volume.reduced[0], 8000);
  EXPECT_EQ(volume.sent[0], 8000);
  for (std::size_t rank = 1; rank < 9; ++rank) {
    EXPECT_EQ(volume.sent[rank], 1000);
    EXPECT_EQ(volume.received[rank], 1000);
    EXPECT_EQ(volume.reduced[rank], 0);
  }
}

// Half of a ring's volume: a rank sends its bytes once and receives the sum once, because the switches add.
TEST(Volume, OfReductionInTheNetworkIsOnceUpAndOnceDown) {
  Topology topology = clustered(6, 2);
  topology.node_switch = topology.fabric_switch = true;
  const Volume volume = of("in-network", topology, 1000);
  for (std::size_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(volume.sent[rank], 1000);
    EXPECT_EQ(volume.received[rank], 1000);
    EXPECT_EQ(volume.reduced[rank], 0);
  }
  for (std::size_t node = 6; node < 9; ++node) EXPECT_EQ(volume.reduced[node], 2000);
  EXPECT_EQ(volume.reduced[9], 3000);
}

// Three nodes of four: a main receives from its three members and, if it is not the first, sends to the first, which
// receives two.
TEST(Volume, OfHierarchicalCopyPassesThroughTheMains) {
  constexpr std::int64_t kBytes = 1000;
  const Volume volume = of("hierarchical-copy", clustered(12, 4), kBytes);
  for (int rank = 0; rank < 12; ++rank) {
    const std::int64_t buffers = rank == 0 ? 3 + 2 : rank % 4 == 0 ? 3 + 1 : 1;
    EXPECT_EQ(volume.sent[static_cast<std::size_t>(rank)], buffers * kBytes) << rank;
    EXPECT_EQ(volume.received[static_cast<std::size_t>(rank)], buffers * kBytes) << rank;
    EXPECT_EQ(volume.reduced[static_cast<std::size_t>(rank)], rank == 0 ? 5 * kBytes : rank % 4 == 0 ? 3 * kBytes : 0);
  }
}

// Only the heads of nodes exchange bytes between nodes. Each head is the server of one share of every other head's
// bytes.
TEST(Volume, OfTheMixedSchemeCrossesNodesBetweenHeads) {
  Topology topology = clustered(9, 4);
  topology.node_sizes = {4, 4, 1};
  const Schedule schedule = parse_scheme("mixed").plan({topology, 12 * 64, Collective::all_reduce, ""});
  std::vector<Transfer> transfers;
  std::int64_t across = 0;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    for (const Transfer& t : transfers) {
      if (topology.node_of(t.source) == topology.node_of(t.destination)) continue;
      EXPECT_TRUE(t.source % 4 == 0 && t.destination % 4 == 0);
      across += t.length;
    }
  }
  EXPECT_EQ(across, 2 * 3 * 2 * (schedule.bytes() / 3));
}

}  // namespace
}  // namespace ganymede::sim
