// The least steps of allocations count what every run takes, and no run takes less.

#include "plan/least_steps.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plans.hpp"

namespace ganymede::plan {
namespace {

class LeastStepsOf : public Plans {
 protected:
  LeastStepsOf() {
    content["search"]["markets"] = {"on-demand"};
    content["search"]["mixed"] = false;
  }
};

// One node of one GPU trains without waiting, so its run takes as long as its bound, up to the last step of a stage.
TEST_F(LeastStepsOf, AGrowingModelHasTheStagesThatItsSeedDraws) {
  traces::StepTrace trace = constant_trace(40);
  trace.batches.push_back(constant_trace(40, 4e-3).batches.front());
  trace.batches[0].stage = "8x8";
  trace.batches[1].stage = "16x16";
  folder_.add("t.json", traces::write_step_trace(trace));
  content["search"]["max_gpus"] = 1;
  content["search"]["instances"] = {"one"};
  content["search"]["seeds"] = 1;
  std::vector<double> times;
  for (const int seed : {1, 2, 3}) {
    content["seed"] = seed;
    const Request of = request();
    ASSERT_GT(of.stage_variation, 0);
    const Plan all = plan(/*exhaustive=*/true);
    ASSERT_EQ(all.runs.size(), 1U);
    times.push_back(all.runs[0].time_s.median);
    EXPECT_NEAR(all.candidates.all[0].bounds.time_s, times.back(), 0.1);
    EXPECT_LE(all.candidates.all[0].bounds.time_s, times.back());
  }
  EXPECT_NE(times[0], times[1]);
  // The least of several seeds.
  content["seed"] = 1;
  content["search"]["seeds"] = 3;
  EXPECT_NEAR(enumerate(request(), false).all[0].bounds.time_s, std::ranges::min(times), 0.1);
}

// Each of 4 nodes receives 1.5 times 16 MB of gradients in a step at 10 Gbit/s, where GPUs add them; that alone takes
// 19.2 ms, longer than all work on a GPU. Where a switch may add them, as far as is known, only once.
TEST_F(LeastStepsOf, NodesExchangeTheirGradientsOnceTheyAreReady) {
  content["search"].update({{"instances", {"other"}}, {"min_gpus", 4}, {"max_gpus", 4}, {"schemes", {"nccl"}}});
  const auto bound = [&] { return enumerate(request(), false).all.at(0).bounds.time_s; };
  const double steps = 23'040'000 / (64.0 * 4), start_s = 90;
  const Plan all = plan(/*exhaustive=*/true);
  ASSERT_EQ(all.runs.size(), 1U);
  EXPECT_GT(bound() - start_s, steps * 0.0192);
  EXPECT_LE(bound(), all.runs[0].time_s.median);
  EXPECT_GT(bound(), 0.7 * all.runs[0].time_s.median);
  const double by_gpus = bound();
  content["search"]["schemes"] = {"nccl", "in-network"};
  EXPECT_LT(bound(), by_gpus);
  EXPECT_GT(bound() - start_s, steps * 0.0128);
}

}  // namespace
}  // namespace ganymede::plan
