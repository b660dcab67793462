// Which regions need not be simulated, because another one is the same at lower prices.

#include "plan/dearer_regions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/json.hpp"
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
    if (!storage_.is_null()) platform["storage"] = {{"disk", storage_}};
    platform["regions"].update(regions_);
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
  Json prices_ = Json::array(), storage_, regions_ = Json::object();
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

// Nodes in room-3 are the cheapest on demand. A rate of storage that is higher there, or stated there alone, may make
// up for that, so that room-1 stays; lower rates do not.
TEST_F(DearerRegions, HaveNoCheaperStorage) {
  const Json of_all = {{"per_gb_month", "0.10USD"},
                       {"per_iops_month", "0.10USD"},
                       {"per_mbps_month", "0.10USD"},
                       {"per_1000_put", "0.10USD"},
                       {"per_1000_get", "0.10USD"}};
  const auto left_out_with = [&](const Json& everywhere, const Json& in_room_3) {
    storage_ = {{"read", "1GB/s"}, {"write", "1GB/s"}, {"regions", {{"room-3", in_room_3}}}};
    storage_.update(everywhere);
    return left_out();
  };
  const auto all = left_out_with(of_all, Json::object());
  EXPECT_THAT(all, ElementsAre("room-1 on-demand fixed", "room-2 on-demand fixed", "room-2 spot fixed",
                               "room-2 spot spot-first", "room-3 spot fixed"));
  for (const auto& [rate, amount] : of_all.items()) {
    EXPECT_EQ(left_out_with(of_all, {{rate, "0.05USD"}}).count("room-1 on-demand fixed"), 1U) << rate;
    EXPECT_EQ(left_out_with(of_all, {{rate, "0.11USD"}}).count("room-1 on-demand fixed"), 0U) << rate;
    Json without = of_all;
    without.erase(rate);
    EXPECT_EQ(left_out_with(without, {{rate, "0.01USD"}}).count("room-1 on-demand fixed"), 0U) << rate;
    EXPECT_EQ(left_out_with(without, {{rate, "0.01USD"}}).count("room-2 on-demand fixed"), 1U) << rate;  // as room-1
  }
  // A cheaper rate is not compared with one for another unit.
  EXPECT_EQ(left_out_with(of_all, {{"per_gib_month", "0.05USD"}}).count("room-1 on-demand fixed"), 0U);
  EXPECT_EQ(left_out_with(of_all, {{"per_mibps_month", "0.05USD"}}).count("room-1 on-demand fixed"), 0U);
}

TEST_F(DearerRegions, AreNotComparedWhereElectricityIsChargedOrAPriceIsDoubted) {
  for (const char* room : {"room-1", "room-3"}) {
    regions_ = {{room, {{"per_kwh", "0.01USD"}}}};
    EXPECT_EQ(left_out().count("room-1 on-demand fixed"), 0U) << room;
    EXPECT_EQ(left_out().count("room-2 spot fixed"), room == std::string_view("room-1") ? 0U : 1U) << room;
  }
  regions_ = Json::object();
  // The list price of room-3 is old: up to 98.32 / 55.04 = 1.79 times as much. Of 3 USD/h that is more than the 4 of
  // room-1, of 2 less.
  prices_[2]["as_of"] = "2020-01-01";
  EXPECT_EQ(left_out().count("room-1 on-demand fixed"), 0U);
  prices_[2]["per_hour"] = "2USD/h";
  EXPECT_EQ(left_out().count("room-1 on-demand fixed"), 1U);
  // That of room-1 is old: it may be as low as 4 / 1.79 = 2.24.
  prices_[2]["as_of"] = "2026-11-01";
  prices_[0]["as_of"] = "2020-01-01";
  EXPECT_EQ(left_out().count("room-1 on-demand fixed"), 1U);
  prices_[2]["per_hour"] = "3USD/h";
  EXPECT_EQ(left_out().count("room-1 on-demand fixed"), 0U);
}

// A policy that may rent on demand too needs both markets at the same prices or lower; a region without one of them is
// another thing. A question about one region compares none.
TEST_F(DearerRegions, AreCheaperOnNoMarketOfThePolicy) {
  prices_.erase(2);  // room-3 on demand
  EXPECT_THAT(left_out(), ElementsAre("room-2 on-demand fixed", "room-2 spot fixed", "room-2 spot spot-first",
                                      "room-3 spot fixed"));
  prices_.erase(1);  // room-2 on demand: both regions are sold on spot alone
  EXPECT_THAT(left_out(), ElementsAre("room-2 spot fixed", "room-3 spot fixed", "room-3 spot spot-first"));
  const Request of = request();
  Request about = of;
  about.what_if.region = "room-1";
  const Candidates candidates = enumerate(of, false);
  EXPECT_EQ(in_dearer_region(about, candidates), std::vector<bool>(candidates.all.size(), false));
}

// Policies that look at prices or go to other regions do something else in each region.
TEST_F(DearerRegions, AreLeftOutOnlyUnderPoliciesThatDecideTheSameAnywhere) {
  content["search"]["policies"] = {"fixed", "cheapest-region", "uniform-progress"};
  content["deadline"] = "100h";
  const std::set<std::string> found = left_out();
  EXPECT_EQ(found.count("room-2 spot fixed"), 1U);
  for (const std::string& one : found) EXPECT_TRUE(one.ends_with(" fixed")) << one;
  std::set<std::string> policies;
  const Request of = request();
  for (const PlanCandidate& one : enumerate(of, false).all) policies.insert(one.policy->name());
  EXPECT_THAT(policies, ElementsAre("cheapest-region", "fixed", "uniform-progress"));
}

TEST_F(DearerRegions, AreChosenByNoSearch) {
  content["search"]["seeds"] = 4;
  left_out();
  const Request of = request();
  PlanOptions options;
  const Plan quick = make_plan(of, options);
  options.effort = Effort::exhaustive;
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

/// The same with a trace of two batches, of which the larger one takes as long for a step of half as many images again.
class SlowerBatches : public DearerRegions {
 protected:
  SlowerBatches() {
    traces::StepTrace trace = constant_trace(40);
    traces::TraceBatch larger = trace.batches.front();
    larger.batch = trace.batches.front().batch * 3 / 2;
    trace.batches.push_back(larger);
    folder_.add("t.json", traces::write_step_trace(trace));
    content["search"]["policies"] = {"fixed"};
  }
  /// The markets of the smaller batch's candidates that are left out.
  std::set<std::string> markets(const char* free_within) {
    Json platform = Json::parse(made_up_platform());
    platform["instances"]["one"]["prices"] = prices_;
    platform["billing"]["free_if_interrupted_within"] = free_within;
    folder_.add("lab.json", platform.dump());
    const Request of = request();
    const Candidates candidates = enumerate(of, false);
    const std::vector<bool> slower = with_slower_batch(of, candidates);
    std::set<std::string> out;
    for (std::size_t i = 0; i < slower.size(); ++i)
      if (slower[i]) out.insert(std::string(to_string(candidates.all[i].market)));
    return out;
  }
};

// A training that lasts longer may have more of its nodes taken back while they are free, so that it costs less.
TEST_F(SlowerBatches, AreKeptWhereInterruptionsMayBeFreeAndWhereTheWorstRunsCount) {
  EXPECT_THAT(markets("0s"), ElementsAre("on-demand", "spot"));
  EXPECT_THAT(markets("100h"), ElementsAre("on-demand"));
  content["objective"] = "risk-averse";
  EXPECT_THAT(markets("0s"), ElementsAre("on-demand"));
}

}  // namespace
}  // namespace ganymede::plan
