#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cases.hpp"
#include "common/errors.hpp"
#include "sim/collectives/allreduce.hpp"
#include "sim/collectives/verify.hpp"

namespace ganymede {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(AllReduceSchemes, BringEveryContributionToEveryRankOnce) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    for (const auto& [topology, bytes] : all_cases()) {
      const Verdict verdict = is_complete(scheme.plan(topology, bytes));
      EXPECT_TRUE(verdict) << scheme.name << ", " << topology.ranks << " ranks, " << topology.gpus_per_node
                           << " a node, " << bytes << " bytes: " << verdict.violation;
    }
  }
}

TEST(AllReduceSchemes, DescribeTheBufferTheyWereGiven) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    for (const auto& [topology, bytes] : all_cases()) {
      const Schedule schedule = scheme.plan(topology, bytes);
      EXPECT_EQ(schedule.ranks(), topology.ranks) << scheme.name;
      EXPECT_EQ(schedule.bytes(), bytes) << scheme.name;
    }
  }
}

TEST(AllReduceSchemes, HaveNoRoundsWhereThereIsNothingToDo) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    EXPECT_EQ(scheme.plan(flat(1), 64 << 20).rounds(), 0) << scheme.name;
    EXPECT_EQ(scheme.plan(flat(8), 0).rounds(), 0) << scheme.name;
    EXPECT_GT(scheme.plan(flat(2), 1).rounds(), 0) << scheme.name;
  }
}

TEST(AllReduceSchemes, GiveTheSameRoundWhateverTheOrderOfAsking) {
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    const Schedule schedule = scheme.plan(Topology{7, 4}, 1000);
    std::vector<std::vector<Transfer>> forward(static_cast<std::size_t>(schedule.rounds()));
    for (std::int64_t i = 0; i < schedule.rounds(); ++i) schedule.round(i, forward[static_cast<std::size_t>(i)]);
    std::vector<Transfer> again = {Transfer{}};  // what was there before is replaced
    for (std::int64_t i = schedule.rounds() - 1; i >= 0; --i) {
      schedule.round(i, again);
      EXPECT_EQ(again, forward[static_cast<std::size_t>(i)]) << scheme.name << ", round " << i;
    }
  }
}

TEST(AllReduceSchemes, AreFoundByTheirNames) {
  std::set<std::string_view> names;
  for (const AllReduceScheme& scheme : allreduce_schemes()) {
    EXPECT_EQ(&find_scheme(scheme.name), &scheme);
    EXPECT_TRUE(names.insert(scheme.name).second) << scheme.name << " stands twice";
    EXPECT_FALSE(scheme.summary.empty()) << scheme.name;
  }
  EXPECT_THAT(allreduce_scheme_names(), ::testing::UnorderedElementsAreArray(names));
}

TEST(AllReduceSchemes, SayWhichThereAreWhenAskedForAnother) {
  EXPECT_THAT([] { find_scheme("rings"); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("\"rings\""), HasSubstr("hierarchical-copy"), HasSubstr("did you mean \"ring\""))));
}

// A chunk of a tebibyte among 65,536 ranks: the product of its number and the bytes would not fit 64 bits.
TEST(Ring, CutsChunksExactlyAtAnySize) {
  constexpr std::int64_t kBytes = (std::int64_t{1} << 40) + 65'535;
  constexpr int kRanks = 65'536;
  std::vector<Transfer> transfers;
  plan_ring(flat(kRanks), kBytes).round(0, transfers);
  ASSERT_EQ(transfers.size(), std::size_t{kRanks});
  std::int64_t next = 0;
  for (const Transfer& t : transfers) {  // in round 0 rank i sends chunk i
    EXPECT_EQ(t.offset, next);
    const auto expected = static_cast<std::int64_t>(static_cast<__float128>(kBytes) * (t.source + 1) / kRanks);
    next = t.offset + t.length;
    ASSERT_EQ(next, expected) << "end of chunk " << t.source;
  }
  EXPECT_EQ(next, kBytes);
}

TEST(HierarchicalCopy, GroupsAreTheNodesOrElseTheHalves) {
  const auto mains = [](const Topology& topology) {
    std::vector<Transfer> transfers;
    plan_hierarchical_copy(topology, 1).round(1, transfers);
    std::vector<int> sources;
    for (const Transfer& t : transfers) sources.push_back(t.source);
    return sources;
  };
  EXPECT_THAT(mains({12, 4}), ::testing::ElementsAre(4, 8));  // three nodes of four
  EXPECT_THAT(mains({8, 8}), ::testing::ElementsAre(4));      // one node: its halves
  EXPECT_THAT(mains({8, 1}), ::testing::ElementsAre(4));      // eight nodes of one: halves again
  EXPECT_THAT(mains({7, 7}), ::testing::ElementsAre(4));      // the first half is the larger
}

}  // namespace
}  // namespace ganymede
