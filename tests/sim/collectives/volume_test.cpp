// The bytes that each scheme is known to put on the wire.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "cases.hpp"
#include "sim/collectives/allreduce.hpp"

namespace ganymede {
namespace {

struct Volume {
  std::vector<std::int64_t> sent, received, reduced;  ///< bytes, one entry a rank

  explicit Volume(const Schedule& schedule)
      : sent(static_cast<std::size_t>(schedule.ranks())), received(sent), reduced(sent) {
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

// No scheme that moves whole contributions can do with less: each of n - 1 contributions is added somewhere once, which
// takes (n-1) S reduced bytes; the sum then has to reach the n - 1 ranks that lack it.
TEST(Volume, OfEverySchemeIsTheLeastThatBringsAllContributionsTogetherAndBack) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    for (const auto& [topology, bytes] : all_cases()) {
      const Volume volume(scheme.plan(topology, bytes));
      const std::int64_t others = topology.ranks - 1;
      EXPECT_EQ(sum(volume.sent), 2 * others * bytes) << scheme.name << " " << topology.ranks;
      EXPECT_EQ(sum(volume.received), 2 * others * bytes) << scheme.name << " " << topology.ranks;
      EXPECT_EQ(sum(volume.reduced), others * bytes) << scheme.name << " " << topology.ranks;
    }
  }
}

// Each rank sends each chunk twice but the two that end their ways at it: 2(n-1)/n S, to the byte where n divides S.
TEST(Volume, OfRingIsTheSameForEveryRank) {
  for (const auto& [topology, bytes] : all_cases()) {
    const std::int64_t ranks = topology.ranks, whole = bytes / ranks * ranks;
    const Volume volume(plan_ring(topology, whole));
    for (int rank = 0; rank < topology.ranks; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      EXPECT_EQ(volume.sent[i], 2 * (ranks - 1) * (whole / ranks));
      EXPECT_EQ(volume.received[i], 2 * (ranks - 1) * (whole / ranks));
      EXPECT_EQ(volume.reduced[i], (ranks - 1) * (whole / ranks));
    }
  }
}

TEST(Volume, OfReduceToOnePassesThroughTheFirstRank) {
  for (const auto& [topology, bytes] : all_cases()) {
    const Volume volume(plan_reduce_to_one(topology, bytes));
    const std::int64_t others = topology.ranks - 1;
    EXPECT_EQ(volume.received[0], others * bytes);
    EXPECT_EQ(volume.reduced[0], others * bytes);
    EXPECT_EQ(volume.sent[0], others * bytes);
    for (std::size_t rank = 1; rank < volume.sent.size(); ++rank) {
      EXPECT_EQ(volume.sent[rank], bytes);
      EXPECT_EQ(volume.received[rank], bytes);
      EXPECT_EQ(volume.reduced[rank], 0);
    }
  }
}

// Three nodes of four: a main receives from its three members and, if it is not the first, sends to the first, which
// receives two.
TEST(Volume, OfHierarchicalCopyPassesThroughTheMains) {
  constexpr std::int64_t kBytes = 1000;
  const Volume volume(plan_hierarchical_copy({12, 4}, kBytes));
  for (int rank = 0; rank < 12; ++rank) {
    const std::int64_t buffers = rank == 0 ? 3 + 2 : rank % 4 == 0 ? 3 + 1 : 1;
    EXPECT_EQ(volume.sent[static_cast<std::size_t>(rank)], buffers * kBytes) << rank;
    EXPECT_EQ(volume.received[static_cast<std::size_t>(rank)], buffers * kBytes) << rank;
    EXPECT_EQ(volume.reduced[static_cast<std::size_t>(rank)], rank == 0 ? 5 * kBytes : rank % 4 == 0 ? 3 * kBytes : 0);
  }
}

}  // namespace
}  // namespace ganymede
