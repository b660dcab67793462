// Which regions need not be simulated, because another one is the same at lower prices.

#include "plan/dearer_regions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plans.hpp"

namespace ganymede::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Instance "one" in three regions, on demand and on spot, with the storage of the made-up platform.
class DearerRegions : public Plans {
 protected:
  DearerRegions() {
    content["search"]["instances"] = {"one"};
    content["search"]["max_gpus"] = 1;
    content["search"]["policies"] = {"fixed", "spot-first"};
    price("room-1", "on-demand", "4USD/h");
    price("room-2", "on-demand", "5USD/h");
    price("room-3", "on-demand", "3USD/h");
    price("room-1", "spot", "2USD/h");
    price("room-2", "spot", "2USD/h");
    price("room-3", "spot", "2.50USD/h");
  }
  void price(const char* region, const char* market, const char* per_hour) {
    prices_.push_back({{"region", region},
                       {"market", market},
                       {"per_hour", per_hour},
                       {"as_of", "2026-11-01"},
                       {"interrupted_per_month", 0.1}});
    if (std::string_view(market) == "on-demand") prices_.back().erase("interrupted_per_month");
  }
  /// "region market policy" of the candidates that are left out.
  std::set<std::string> left_out() {
    Json platform = Json::parse(made_up_platform());
    platform["instances"]["one"]["prices"] = prices_;
    folder_.add("lab.json", platform.dump());
    const Request of = request();
    const Candidates candidates = enumerate(of, false);
    const std::vector<bool> dearer = in_dearer_region(of, candidates);
    std::set<std::string> out;
    for (std::size_t i = 0; i < dearer.size(); ++i)
      if (const PlanCandidate& one = candidates.all[i]; dearer[i])
        out.insert(one.region + " " + std::string(to_string(one.market)) + " " + one.policy->name());
    return out;
  }
  Json prices_ = Json::array();
};

// On demand room-3 is the cheapest. On spot room-1 and room-2 cost the same, of which the first is kept, and room-3
// more; but spot-first may rent on demand too, where room-3 is cheaper.
TEST_F(DearerRegions, AreThoseWhereNothingThatThePolicyMayRentIsCheaper) {
  EXPECT_THAT(left_out(), ElementsAre("room-1 on-demand fixed", "room-2 on-demand fixed", "room-2 spot fixed",
                                      "room-2 spot spot-first", "room-3 spot fixed"));
}

TEST_F(DearerRegions, AreNotComparedWhereRunsMayDiffer) {
  prices_[5]["interrupted_per_month"] = 0.05;  // room-3
  EXPECT_EQ(left_out().count("room-3 spot fixed"), 0U);
  content["objective"] = "carbon";
  EXPECT_THAT(left_out(), IsEmpty());
}

TEST_F(DearerRegions, AreChosenByNoSearch) {
  content["search"]["seeds"] = 4;
  left_out();
  const Request of = request();
  PlanOptions options;
  const Plan quick = make_plan(of, options);
  options.exhaustive = true;
  const Plan whole = make_plan(of, options);
  ASSERT_TRUE(quick.best && whole.best);
  EXPECT_LT(quick.simulated, whole.simulated);
  const auto named = [](const Plan& found) {
    const PlanCandidate& best = found.candidates.all[*found.best];
    return best.region + " " + best.checkpoint + " " + best.policy->name();
  };
  EXPECT_EQ(named(quick), named(whole));
  EXPECT_EQ(quick.runs[*quick.best].usd.median, whole.runs[*whole.best].usd.median);
}

}  // namespace
}  // namespace ganymede::plan
