#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "rehearsal/execution.hpp"
#include "rehearsal/real_allreduce.hpp"

namespace ganymede::rehearsal {
namespace {

TEST(PlanForProcesses, DividesBetweenFloats) {
  // 3 ranks x 4 bytes divide no power of two; the next multiple of 12 from 65,536 on is 12 x 5,462.
  const sim::Scheme ring = sim::parse_scheme("ring");
  EXPECT_EQ(plan_for_processes(ring, sim::flat(3), 65536).bytes(), 12 * 5462);
  EXPECT_EQ(plan_for_processes(ring, sim::flat(4), 65536).bytes(), 65536);
  EXPECT_EQ(plan_for_processes(ring, sim::flat(2), 1).bytes() % 8, 0);
}

TEST(PlanForProcesses, RefusesSwitches) {
  sim::Topology topology = sim::flat(4);
  topology.fabric_switch = true;
  EXPECT_THROW(plan_for_processes(sim::parse_scheme("in-network"), topology, 4096), sim::SchemeRefused);
}

TEST(RankPlan, HoldsTheRanksOwnTransfersOfARing) {
  const sim::Schedule schedule = plan_for_processes(sim::parse_scheme("ring"), sim::flat(4), 4096);
  std::int64_t received = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const RankPlan plan(schedule, rank);
    ASSERT_EQ(plan.lanes().size(), 1U);
    EXPECT_EQ(plan.lanes()[0].size(), 6U);  // 2 (n - 1) rounds
    EXPECT_EQ(plan.floats(), 1024U);
    for (const RankPlan::Round& round : plan.lanes()[0]) {
      ASSERT_EQ(round.sends.size(), 1U);
      ASSERT_EQ(round.receives.size(), 1U);
      EXPECT_EQ(round.sends[0].source, rank);
      EXPECT_EQ(round.receives[0].destination, rank);
      received += round.receives[0].length;
    }
  }
  EXPECT_EQ(received, 4 * 6 * 1024);
}

TEST(GpuRounds, HoldAllLanesOfARoundTogether) {
  // Round 0: both lanes; rounds 1 and 2: one lane each, in which rank 0 only receives and only sends.
  sim::Schedule schedule(2, 64, {{.rounds = 3, .expand = [](std::int64_t round, std::vector<sim::Transfer>& all) {
                                    if (round == 0) all.push_back({0, 1, 0, 8, true, 0});
                                    if (round == 0) all.push_back({1, 0, 32, 16, true, 1});
                                    if (round == 1) all.push_back({1, 0, 0, 8, false, 0});
                                    if (round == 2) all.push_back({0, 1, 32, 16, false, 1});
                                  }}});
  schedule.set_lanes(2);
  const RankPlan plan(schedule, 0);
  ASSERT_EQ(plan.lanes().size(), 2U);
  const auto is = [](std::size_t offset, std::size_t floats, bool reduce) {
    return testing::AllOf(
        testing::Field(&kernel::GpuTransfer::offset, offset), testing::Field(&kernel::GpuTransfer::floats, floats),
        testing::Field(&kernel::GpuTransfer::peer, 1), testing::Field(&kernel::GpuTransfer::reduce, reduce));
  };
  const std::vector<kernel::GpuRound> rounds = gpu_rounds(plan);
  ASSERT_EQ(rounds.size(), 3U);
  EXPECT_THAT(rounds[0].sends, testing::ElementsAre(is(0, 2, true)));
  EXPECT_THAT(rounds[0].receives, testing::ElementsAre(is(8, 4, true)));
  EXPECT_THAT(rounds[1].sends, testing::IsEmpty());
  EXPECT_THAT(rounds[1].receives, testing::ElementsAre(is(0, 2, false)));
  EXPECT_THAT(rounds[2].sends, testing::ElementsAre(is(8, 4, false)));
  EXPECT_THAT(rounds[2].receives, testing::IsEmpty());
}

TEST(RankPlan, IsNotMadeOfTooManyMessages) {
  const sim::Schedule many(
      2, 8, {{.rounds = RankPlan::kMaxMessages + 1, .expand = [](std::int64_t, std::vector<sim::Transfer>& transfers) {
                transfers.push_back({0, 1, 0, 4, true, 0});
              }}});
  EXPECT_THROW(RankPlan(many, 0), ConfigError);
}

TEST(Contributions, AreCheckedExactly) {
  std::vector<float> sum(1000), other(1000);
  fill(sum, 0);
  fill(other, 1);
  EXPECT_NE(fault_in_sum(sum, 2), "");
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  EXPECT_EQ(fault_in_sum(sum, 2), "");
  sum[17] += 1;
  EXPECT_THAT(fault_in_sum(sum, 2),
              testing::AllOf(testing::StartsWith("float 17 is"), testing::HasSubstr("1 of 1000")));
}

}  // namespace
}  // namespace ganymede::rehearsal
