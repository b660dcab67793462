// Collectives that are sends and receives, and those with a root: who sends what to whom.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "sim/collectives/allreduce.hpp"
#include "verify.hpp"

namespace ganymede::sim {
namespace {

/// The bytes that each rank sends to each other one.
std::map<std::pair<int, int>, std::int64_t> bytes_sent(Collective collective, int ranks, std::int64_t bytes,
                                                       const char* scheme = "nccl") {
  const Schedule schedule = parse_scheme(scheme).plan({clustered(ranks, 4), bytes, collective, ""});
  EXPECT_TRUE(is_complete(schedule, collective));
  std::map<std::pair<int, int>, std::int64_t> out;
  std::vector<Transfer> transfers;
  for (std::int64_t round = 0; round < schedule.rounds(); ++round) {
    schedule.round(round, transfers);
    for (const Transfer& transfer : transfers) {
      out[{transfer.source, transfer.destination}] += transfer.length;
      EXPECT_LE(transfer.offset + transfer.length, schedule.bytes());
    }
  }
  return out;
}

TEST(PointToPoint, AnAllToAllSendsAPartToEachOther) {
  const auto all = bytes_sent(Collective::all_to_all, 6, 600);
  EXPECT_EQ(all.size(), 30u);
  for (const auto& [pair, bytes] : all) EXPECT_TRUE(bytes == 100 && pair.first != pair.second);
}

TEST(PointToPoint, ASendReceiveGivesAllToTheNextRank) {
  using testing::Pair;
  EXPECT_THAT(bytes_sent(Collective::send_receive, 3, 600),
              testing::ElementsAre(Pair(std::pair(0, 1), 600), Pair(std::pair(1, 2), 600), Pair(std::pair(2, 0), 600)));
}

TEST(PointToPoint, RootsGatherAndScatterParts) {
  using testing::Pair;
  EXPECT_THAT(bytes_sent(Collective::gather, 3, 600),
              testing::ElementsAre(Pair(std::pair(1, 0), 200), Pair(std::pair(2, 0), 200)));
  EXPECT_THAT(bytes_sent(Collective::scatter, 3, 600),
              testing::ElementsAre(Pair(std::pair(0, 1), 200), Pair(std::pair(0, 2), 200)));
}

// Each rank but the root sends its sum once, over a tree: n - 1 messages of all bytes.
TEST(PointToPoint, AReduceIsTheWayUpOfATree) {
  const auto up = bytes_sent(Collective::reduce, 8, 800, "tree:1");
  EXPECT_EQ(up.size(), 7u);
  for (const auto& [pair, bytes] : up) {
    EXPECT_EQ(bytes, 800);
    EXPECT_NE(pair.first, 0);
  }
}

// NCCL's go along rings: each rank but the last one of a ring hands all bytes on, and no rank sends to the root.
TEST(PointToPoint, NcclsBroadcastAndReduceAreChains) {
  for (const Collective collective : {Collective::broadcast, Collective::reduce}) {
    std::map<int, std::int64_t> received, given;
    for (const auto& [pair, bytes] : bytes_sent(collective, 8, 64 << 20)) {
      received[pair.second] += bytes, given[pair.first] += bytes;
      EXPECT_NE(collective == Collective::broadcast ? pair.second : pair.first, 0);
    }
    auto& seven = collective == Collective::broadcast ? received : given;
    EXPECT_EQ(seven.size(), 7U);
    for (const auto& [rank, bytes] : seven) EXPECT_NEAR(static_cast<double>(bytes), 64 << 20, 1 << 16) << rank;
  }
}

TEST(PointToPoint, ForcedAlgorithmsAreOfReductionsAlone) {
  EXPECT_EQ(parse_scheme("nccl:2.18.3/tree").plan({clustered(4, 4), 64, Collective::all_to_all, ""}).messages(), 12);
}

}  // namespace
}  // namespace ganymede::sim
