#include <gtest/gtest.h>

#include "common/units.hpp"
#include "policies/policy.hpp"

namespace ganymede::policies {
namespace {

/// Eight nodes of one GPU are asked for, on spot or on demand, to be done within 20 hours. Boot and restart take no
/// time.
class UniformProgress : public testing::Test {
 protected:
  static constexpr double kHour = 3600;

  UniformProgress() {
    seen.deadline = Seconds{20 * kHour};
    seen.pools.resize(2);
    for (PoolView& pool : seen.pools) pool.most = 8;
    seen.pools[0].market = platforms::Market::spot;
    seen.pools[0].requested = 8;
    seen.pools[0].usd_per_hour = 1;
    seen.pools[1].usd_per_hour = 3;
  }
  /// So many nodes train, at so many units an hour together; nobody waits for the others.
  void trains(int nodes, double rate_per_hour) {
    seen.training = true;
    seen.training_gpus = nodes;
    seen.rate = rate_per_hour / kHour;
    seen.step_s = 1;
    seen.pools[0].ready = nodes;
    seen.pools[0].waiting = 8 - nodes;
    seen.pools[0].refused_for = Seconds{nodes < 8 ? kHour : 0};
  }
  void at(double hours, double done, double left) {
    seen.now = Seconds{hours * kHour};
    seen.done = done;
    seen.left = left;
  }
  std::vector<int> decide() {
    const double margin = 0.05;
    return find_policy("uniform-progress")->decide({seen, {&margin, 1}, memory, random}).nodes;
  }
  Observation seen;
  PolicyMemory memory;
  RandomStream random{1, "test"};
};

// Half of the nodes train at 4 units an hour and would take 20 hours for the other 80. All of them on demand would take
// 10: there is time until 20 - 1.05 x 10 hours have passed. Then they are asked for, and what there is goes on till
// then.
TEST_F(UniformProgress, TakesThePartThatSpotGivesForNoMoreThanAPart) {
  trains(4, 4);
  at(2, 20, 80);
  EXPECT_EQ(decide(), (std::vector{8, 0}));
  memory.clear();
  at(9.4, 80, 80);
  EXPECT_EQ(decide(), (std::vector{8, 0}));
  memory.clear();
  at(9.6, 80, 80);
  EXPECT_EQ(decide(), (std::vector{4, 8}));
  seen.pools[1].ready = 8;
  EXPECT_EQ(decide(), (std::vector{0, 8}));
}

// The same at 9.4 hours, where it looks again a quarter of an hour later: then it would be too late.
TEST_F(UniformProgress, LeavesTimeForItsNextLook) {
  trains(4, 4);
  seen.every = Seconds{kHour / 4};
  at(9.15, 80, 80);
  EXPECT_EQ(decide(), (std::vector{8, 0}));
  at(9.4, 80, 80);
  EXPECT_EQ(decide(), (std::vector{4, 8}));
}

// 48 of 100 units are left at 4 an hour: 12.6 hours with the margin, while 15 are left. It has been twice as fast: over
// the 52 a unit's time grew by half of what it is now, and over the rest it may by 0.5 x 48 / 52, half of that on
// average, which makes 15.5 hours. Without such a past, or once it is as fast again, spot will do.
TEST_F(UniformProgress, ForeseesThatTrainingBecomesSlowerAsItHasBefore) {
  trains(8, 8);
  at(5, 50, 50);
  EXPECT_EQ(decide(), (std::vector{8, 0}));
  trains(8, 4);
  at(5, 52, 48);
  EXPECT_EQ(decide(), (std::vector{8, 8}));
  trains(8, 8);
  EXPECT_EQ(decide(), (std::vector{8, 0}));
  memory.clear();
  trains(8, 4);
  EXPECT_EQ(decide(), (std::vector{8, 0}));
}

// A quarter of the time has passed, a fifth of the work is done: three nodes are missing, a further one is asked for.
TEST_F(UniformProgress, FillsUpOnDemandWhatSpotDoesNotGive) {
  trains(5, 5);
  at(5, 20, 80);
  EXPECT_EQ(decide(), (std::vector{6, 3}));
  at(5, 26, 74);
  EXPECT_EQ(decide(), (std::vector{8, 0}));
}

}  // namespace
}  // namespace ganymede::policies
