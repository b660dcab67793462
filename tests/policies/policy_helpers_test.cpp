// Helpers of several policies: the rate model and the choice of pools.

#include "policies/policy_helpers.hpp"

#include <gmock/gmock.h>

#include "policy_under_test.hpp"

namespace ganymede::policies {
namespace {

using testing::ElementsAre;

Observation at_rate(int gpus, double rate) {
  Observation observation;
  observation.training = true;
  observation.training_gpus = gpus;
  observation.rate = rate;
  observation.step_s = 1;
  return observation;
}

// One GPU does 1 unit a second, four do 4 / (1 + 3 c) = 2: c = 1/3. Then 2 do 2 / (4/3) and 8 do 8 / (10/3).
TEST(RateModel, FollowsFromTwoPoints) {
  PolicyMemory memory;
  EXPECT_EQ(predicted_rate(memory, 4), 0) << "nothing is known";
  learn_rate(at_rate(1, 1), memory);
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 4), 4) << "one GPU waits for nobody";
  learn_rate(at_rate(4, 2), memory);
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 1), 1);
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 2), 1.5);
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 8), 2.4);
}

// Half of a step of three GPUs is waiting: 2 c / (1 + 2 c) = 0.5, c = 0.5. One does 3 x (1 + 1) / 3 = 2.
TEST(RateModel, FollowsFromOnePointAndItsWaiting) {
  PolicyMemory memory;
  Observation observation = at_rate(3, 3);
  observation.exposed = 0.3;
  observation.straggler = 0.2;
  learn_rate(observation, memory);
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 3), 3);
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 1), 2);
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 2), 2 * 2 / 1.5);
}

TEST(RateModel, ForgetsWhatWasBeforeAChangeOfSpeed) {
  PolicyMemory memory;
  learn_rate(at_rate(1, 1), memory);
  learn_rate(at_rate(4, 2), memory);
  learn_rate(at_rate(4, 1), memory);  // half as fast, and waiting for nothing: another stage
  EXPECT_DOUBLE_EQ(predicted_rate(memory, 8), 2);
}

TEST(PolicyHelpers, ChooseAmongPools) {
  Observation observation;
  observation.pools = {pool_of(platforms::Market::on_demand, 2, 3, 4), pool_of(platforms::Market::spot, 0, 3, 2),
                       pool_of(platforms::Market::on_demand, 1, 3, 3)};
  EXPECT_EQ(total_requested_nodes(observation), 3);
  EXPECT_EQ(cheapest_pool(observation, true), 1);
  EXPECT_EQ(cheapest_pool(observation, false), 2);
  EXPECT_EQ(current_pool(observation), 0U);
  observation.pools[2].waiting = 1;
  EXPECT_EQ(current_pool(observation), 2U);
  EXPECT_THAT(rent_in_one_pool(observation, 1, 5).nodes, ElementsAre(0, 3, 0)) << "it may hold three";
  EXPECT_THAT(rent_in_one_pool(observation, -1, 5).nodes, ElementsAre(0, 0, 0));
  EXPECT_THAT(resize_first_pool(observation, 9).nodes, ElementsAre(3, 0, 1));
  EXPECT_THAT(resize_first_pool(observation, 0).nodes, ElementsAre(1, 0, 1));
}

}  // namespace
}  // namespace ganymede::policies
