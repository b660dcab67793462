#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/candidates.hpp"
#include "support/made_up_run.hpp"

namespace ganymede::report {
namespace {

/// Holdings as text: "10-20: 2+1" means that from 10 to 20 s 2 nodes are held and 1 is requested.
std::vector<std::string> written(const std::vector<Holding>& holdings) {
  std::vector<std::string> out;
  for (const Holding& h : holdings)
    out.push_back(fmt::format("{} {}-{}: {}+{}", h.pool, h.from_s, h.to_s, h.held, h.asked));
  return out;
}

using testing::ElementsAre;

TEST(Holdings, FollowRequestsLossesAndReleases) {
  EXPECT_THAT(written(holdings_of(
                  run_with({event(0, "requested", 2), event(10, "ready"), event(30, "notice", 1), event(32, "lost", 1),
                            event(32, "requested", 1), event(40, "provisioned", 1), event(60, "released", 2)},
                           100))),
              ElementsAre("p 0-10: 0+2", "p 10-32: 2+0", "p 32-40: 1+1", "p 40-60: 2+0"));
}

TEST(Holdings, WhoWaitsIsNotThere) {
  EXPECT_THAT(written(holdings_of(
                  run_with({event(0, "requested", 1), event(0, "requested", 2, "q"), event(0, "waiting", 2, "q"),
                            event(5, "ready"), event(9, "provisioned", 2, "q"), event(20, "crashed", 1, "q")},
                           50))),
              ElementsAre("p 0-5: 0+1", "q 0-9: 0+2", "p 5-50: 1+0", "q 9-20: 2+0", "q 20-50: 1+0"));
}

TEST(Holdings, WithoutEventsThereAreNone) { EXPECT_TRUE(holdings_of(run_with({}, 1)).empty()); }

}  // namespace
}  // namespace ganymede::report
