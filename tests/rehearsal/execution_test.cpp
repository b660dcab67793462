#include "rehearsal/execution.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_network.hpp"

namespace ganymede::rehearsal {
namespace {

std::string name_of_rank(int rank) { return "rank " + std::to_string(rank); }

using testing::HasSubstr;

/// Executes a schedule on all ranks in turn and returns their buffers; `most` steps are far more than it needs.
std::vector<std::vector<float>> execute(const sim::Schedule& schedule, unsigned seed, std::string* stuck = nullptr) {
  FakeNetwork network(seed);
  std::vector<RankPlan> plans;
  std::vector<std::unique_ptr<FakeMessenger>> messengers;
  std::vector<std::vector<float>> buffers;
  std::vector<std::unique_ptr<Execution>> executions;
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    plans.emplace_back(schedule, rank);
    messengers.push_back(std::make_unique<FakeMessenger>(network, rank, schedule.ranks()));
    buffers.emplace_back(plans.back().floats());
    fill(buffers.back(), rank);
  }
  for (std::size_t rank = 0; rank < plans.size(); ++rank)
    executions.push_back(std::make_unique<Execution>(plans[rank], *messengers[rank], buffers[rank], 5));
  for (int most = 0; most < 1'000'000; ++most) {
    bool all = true;
    for (const auto& execution : executions) {
      if (network.chance()) execution->progress();
      all = all && execution->done();
    }
    if (all) {
      if (stuck) *stuck = "";
      return buffers;
    }
  }
  if (stuck) *stuck = executions[0]->waits_for(name_of_rank);
  return buffers;
}

TEST(Execution, OfEverySchemeSumsOnEveryRank) {
  int executed = 0;
  for (const sim::AllReduceScheme& row : sim::allreduce_schemes()) {
    const sim::Scheme scheme = sim::parse_scheme(row.name);
    for (const int ranks : {2, 3, 4, 6, 8})
      for (const std::int64_t bytes : {4, 100, 5000}) {
        const sim::PlanRequest request{sim::clustered(ranks, 2), bytes, sim::Collective::all_reduce, ""};
        if (row.why_not(request)) continue;
        sim::Schedule schedule(ranks, 0, {});
        try {
          schedule = plan_for_processes(scheme, request.topology, bytes);
        } catch (const sim::SchemeRefused&) {
          continue;  // needs switches
        }
        EXPECT_TRUE(schedule.cost().eager);
        EXPECT_GE(schedule.bytes(), bytes);
        const auto buffers = execute(schedule, static_cast<unsigned>(ranks));
        for (std::size_t rank = 0; rank < buffers.size(); ++rank)
          EXPECT_EQ(fault_in_sum(buffers[rank], ranks), "") << row.name << " " << ranks << " " << bytes << " " << rank;
        ++executed;
      }
  }
  EXPECT_GT(executed, 100);
}

/// An exchange of whole buffers by two ranks, which both send and change all bytes in its only round.
sim::Stage exchange(bool reduce) {
  return {.expand = [reduce](std::int64_t, std::vector<sim::Transfer>& transfers) {
    transfers.push_back({0, 1, 0, 4096, reduce, 0});
    transfers.push_back({1, 0, 0, 4096, reduce, 0});
  }};
}

TEST(Execution, SendsWhatItHeldOnEnteringTheRound) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    for (const auto& buffer : execute(sim::Schedule(2, 4096, {exchange(true)}), seed))
      EXPECT_EQ(fault_in_sum(buffer, 2), "");
    const auto swapped = execute(sim::Schedule(2, 4096, {exchange(false)}), seed);
    std::vector<float> first(1024), second(1024);
    fill(first, 0);
    fill(second, 1);
    EXPECT_EQ(swapped[0], second);
    EXPECT_EQ(swapped[1], first);
  }
}

TEST(Execution, OfAWrongScheduleIsFound) {
  // A rank gets the other's numbers in place of the sum, or twice.
  EXPECT_THAT(fault_in_sum(execute(sim::Schedule(2, 4096, {exchange(false)}), 1)[0], 2),
              HasSubstr("of 1024 are wrong"));
  EXPECT_THAT(fault_in_sum(execute(sim::Schedule(2, 4096, {exchange(true), exchange(true)}), 1)[1], 2),
              HasSubstr("expected"));
}

TEST(Execution, SaysWhatItWaitsFor) {
  FakeNetwork network(1);
  FakeMessenger messenger(network, 1, 2);
  const RankPlan plan(sim::Schedule(2, 4096, {exchange(true)}), 1);
  std::vector<float> buffer(plan.floats());
  Execution execution(plan, messenger, buffer, 5);
  EXPECT_EQ(execution.waits_for(name_of_rank), "round 0: from rank 0, to rank 0");
  EXPECT_FALSE(execution.done());
}

}  // namespace
}  // namespace ganymede::rehearsal
