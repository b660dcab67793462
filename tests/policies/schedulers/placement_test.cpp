#include "policies/schedulers/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ganymede::policies {
namespace {

using testing::ElementsAre;

std::vector<NodeShare> placed(const char* rule, const std::vector<int>& free, int gpus, int group = 0) {
  return find_placement(rule)->place({free, 8, group}, gpus);
}

TEST(Placement, ConsolidateTakesWholeNodesAndFillsTheBestOne) {
  EXPECT_THAT(placed("consolidate", {8, 3, 2, 8}, 2), ElementsAre(NodeShare{2, 2}));
  EXPECT_THAT(placed("consolidate", {8, 3, 2, 8}, 10), ElementsAre(NodeShare{0, 8}, NodeShare{2, 2}));
  EXPECT_THAT(placed("consolidate", {1, 3, 2, 1}, 7),
              ElementsAre(NodeShare{0, 1}, NodeShare{1, 3}, NodeShare{2, 2}, NodeShare{3, 1}));
}

TEST(Placement, SpreadTakesTheEmptiestNodeGpuByGpu) {
  EXPECT_THAT(placed("spread", {8, 8, 8}, 3), ElementsAre(NodeShare{0, 1}, NodeShare{1, 1}, NodeShare{2, 1}));
  EXPECT_THAT(placed("spread", {8, 6, 2}, 4), ElementsAre(NodeShare{0, 3}, NodeShare{1, 1}));
}

TEST(Placement, TopologyStaysBelowOneSwitchIfItCan) {
  // Two nodes below each switch: the second holds 12 GPUs and has the least to spare.
  EXPECT_THAT(placed("topology", {8, 8, 8, 4, 8, 2}, 12, 2), ElementsAre(NodeShare{2, 8}, NodeShare{3, 4}));
  EXPECT_THAT(placed("consolidate", {8, 8, 8, 4, 8, 2}, 12, 2), ElementsAre(NodeShare{0, 8}, NodeShare{3, 4}));
  EXPECT_THAT(placed("topology", {8, 8, 8, 4, 8, 2}, 20, 2),
              ElementsAre(NodeShare{0, 8}, NodeShare{1, 8}, NodeShare{4, 4}));
}

}  // namespace
}  // namespace ganymede::policies
