// Policies that choose between regions: cheapest-region and carbon-aware. The margins between moving and staying follow
// from `saving`, 0.1: what a move would cost or emit is divided by 0.9 before it is compared.

#include <gmock/gmock.h>

#include "common/units.hpp"
#include "policy_under_test.hpp"

namespace ganymede::policies {
namespace {

using testing::ElementsAre;

/// Two nodes train in region 0 for another 10 h; region 1 is to be had too.
Observation two_regions(double usd_here, double usd_there) {
  return training(
      {pool_of(platforms::Market::on_demand, 2, 2, usd_here), pool_of(platforms::Market::on_demand, 0, 2, usd_there)},
      0, 2, 1, 10);
}

// Staying costs 10 h x 2 nodes x 10 USD = 200 USD.
TEST(CheapestRegion, MovesIfItSavesEnough) {
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(two_regions(10, 8.9)), ElementsAre(0, 2)) << "178 / 0.9 = 198";
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(two_regions(10, 9.1)), ElementsAre(2, 0)) << "182 / 0.9 = 202";
  EXPECT_THAT(PolicyUnderTest("cheapest-region", {{"saving", 0}}).nodes(two_regions(10, 9.1)), ElementsAre(0, 2));
}

TEST(CheapestRegion, CountsWhatAMoveCosts) {
  Observation observation = two_regions(10, 8);
  observation.pools[1].usd_to_enter = 19;
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(observation), ElementsAre(0, 2)) << "(160 + 19) / 0.9 = 199";
  observation.pools[1].usd_to_enter = 21;
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(observation), ElementsAre(2, 0)) << "(160 + 21) / 0.9 = 201";
  observation.pools[1].usd_to_enter = 0;
  observation.restart = observation.boot = Seconds{kHour};
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(observation), ElementsAre(2, 0)) << "12 h x 16 USD / 0.9 = 213";
}

TEST(CheapestRegion, CountsSpeedAndRefusals) {
  Observation observation = two_regions(10, 16);
  observation.pools[1].speed = 2;  // 5 h x 2 x 16 USD / 0.9 = 178
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(observation), ElementsAre(0, 2));
  observation.pools[1].waiting = 1;
  observation.pools[1].refused_for = Seconds{601};  // more than ten minutes
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(observation), ElementsAre(2, 0));
}

TEST(CheapestRegion, BeginsInTheCheapest) {
  Observation observation;
  observation.pools = {pool_of(platforms::Market::on_demand, 2, 2, 10),
                       pool_of(platforms::Market::on_demand, 0, 2, 9.9)};
  EXPECT_THAT(PolicyUnderTest("cheapest-region").nodes(observation), ElementsAre(0, 2)) << "there is nothing to move";
}

Observation two_grids(double g_here, double g_there) {
  Observation observation = two_regions(1, 1);
  observation.pools[0].g_per_kwh = g_here;
  observation.pools[1].g_per_kwh = g_there;
  return observation;
}

TEST(CarbonAware, MovesToAGridThatIsCleanerByEnough) {
  EXPECT_THAT(PolicyUnderTest("carbon-aware").nodes(two_grids(400, 350)), ElementsAre(0, 2)) << "350 / 0.9 = 389";
  EXPECT_THAT(PolicyUnderTest("carbon-aware").nodes(two_grids(400, 370)), ElementsAre(2, 0)) << "370 / 0.9 = 411";
}

TEST(CarbonAware, CountsPowerAndSpeed) {
  Observation observation = two_grids(400, 700);
  observation.pools[1].speed = 2;  // 350 g for the same work
  EXPECT_THAT(PolicyUnderTest("carbon-aware").nodes(observation), ElementsAre(0, 2));
  observation.pools[0].gpu_watts = 300;
  observation.pools[1].gpu_watts = 400;  // 400 x 300 W against 700 x 400 W / 2 / 0.9
  EXPECT_THAT(PolicyUnderTest("carbon-aware").nodes(observation), ElementsAre(2, 0));
}

TEST(CarbonAware, StaysWhereNothingIsKnownOfTheOtherGrid) {
  Observation observation = two_grids(400, 1);
  observation.pools[1].g_per_kwh.reset();
  EXPECT_THAT(PolicyUnderTest("carbon-aware").nodes(observation), ElementsAre(2, 0));
}

// 10 h of work are left. It pauses while the time to spare is more than a tenth of that, 1 h.
TEST(CarbonAware, PausesOnADirtyGridWhileTheDeadlineAllows) {
  const auto nodes_with = [](double grams, double deadline_h) {
    Observation observation = two_grids(grams, grams);
    if (deadline_h > 0) observation.deadline = Seconds{deadline_h * kHour};
    return PolicyUnderTest("carbon-aware", {{"pause_above", 300}}).nodes(observation);
  };
  EXPECT_THAT(nodes_with(400, 11.1), ElementsAre(0, 0));
  EXPECT_THAT(nodes_with(400, 10.9), ElementsAre(2, 0));
  EXPECT_THAT(nodes_with(299, 11.1), ElementsAre(2, 0)) << "clean enough";
  EXPECT_THAT(nodes_with(400, 0), ElementsAre(2, 0)) << "no deadline";
}

}  // namespace
}  // namespace ganymede::policies
