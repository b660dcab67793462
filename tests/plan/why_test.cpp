// What a choice hangs on: each threshold is checked by planning again with the value just below and just above it.

#include "plan/why.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "plans.hpp"
#include "support/when.hpp"

namespace ganymede::plan {
namespace {

using testing::HasSubstr;

/// One instance "one" (3,600 s of training and 90 s of boot at 3.60 USD/h: 3.69 USD) and another with a faster GPU.
class Whys : public Plans {
 protected:
  Whys() {
    platform = Json::parse(made_up_platform());
    content["search"]["max_gpus"] = 1;
    content["search"]["markets"] = {"on-demand"};
    content["search"]["instances"] = {"one", "other"};
    content["search"]["policies"] = {"fixed"};
  }
  Json planned() {
    folder_.add("lab.json", platform.dump());
    return json();
  }
  KnobAnswer turned_up(Knob knob) {
    const KnownPlan known = read_plan(JsonNode::load(folder_.add("plan.json", planned().dump())));
    const auto answers = why(known, 2);
    return *std::find_if(answers.begin(), answers.end(), [&](const KnobAnswer& one) { return one.knob == knob; });
  }
  /// What is chosen if the first price of "one" has these members.
  std::string chosen_with(const Json& members) {
    const Json before = platform;
    platform["instances"]["one"]["prices"][0].update(members);
    const Json plan = planned();
    platform = before;
    return plan["chosen"].is_null() ? "nothing" : plan["chosen"]["instance"].get<std::string>();
  }
  std::string unplanned(const Json& plan) {
    return message_of<ConfigError>([&] { read_plan(JsonNode::load(folder_.add("plan.json", plan.dump()))); });
  }
  Json platform;
};

std::string per_hour(double usd) { return fmt::format("{:.6f}USD/h", usd); }

TEST_F(Whys, APriceUpToWhereTheOtherIsAsCheap) {
  NOT_SANITIZED("repeats whole plans, which other tests make once");
  ASSERT_EQ(planned()["chosen"]["instance"], "one");
  const double other = [&] {
    content["search"]["instances"] = {"other"};
    const auto usd = planned()["chosen"]["usd"]["at_worst_prices"].get<double>();
    content["search"]["instances"] = {"one", "other"};
    return usd;
  }();
  const KnobAnswer answer = turned_up(Knob::price);
  EXPECT_DOUBLE_EQ(answer.now, 3.6);
  ASSERT_TRUE(answer.threshold);
  EXPECT_NEAR(*answer.threshold, other * 3600 / 3690, 3e-4 * *answer.threshold);
  EXPECT_EQ(answer.next["instance"], "other");
  EXPECT_EQ(chosen_with({{"per_hour", per_hour(*answer.threshold * 0.999)}}), "one");
  EXPECT_EQ(chosen_with({{"per_hour", per_hour(*answer.threshold * 1.001)}}), "other");
  EXPECT_THAT(turned_up(Knob::prices).without, HasSubstr("one region"));
  EXPECT_THAT(turned_up(Knob::interruptions).without, HasSubstr("nobody takes"));
}

// At 3.60 USD/h, 90 s and 3,600 s times a factor cost as much as the other.
TEST_F(Whys, StepsUpToWhereTheOtherIsAsCheap) {
  content["search"]["instances"] = {"other"};
  const auto other = planned()["chosen"]["usd"]["at_worst_prices"].get<double>();
  content["search"]["instances"] = {"one", "other"};
  const KnobAnswer answer = turned_up(Knob::step_time);
  ASSERT_TRUE(answer.threshold);
  EXPECT_NEAR(*answer.threshold, (other / 3.6 * 3600 - 90) / 3600, 1e-3);
  EXPECT_EQ(answer.next["instance"], "other");
}

// Nothing else is searched. With 90 % of the probability, the time may grow up to the deadline and no further.
TEST_F(Whys, WithoutAnAlternativeNothingMeetsTheGoals) {
  content["search"]["instances"] = {"one"};
  content["deadline"] = "2h";
  const KnobAnswer steps = turned_up(Knob::step_time);
  ASSERT_TRUE(steps.threshold);
  EXPECT_TRUE(steps.next.is_null());
  EXPECT_GT(*steps.threshold, 1.5);
  EXPECT_LT(*steps.threshold, (7200 - 90) / 3600.0);
  const KnobAnswer boot = turned_up(Knob::boot);
  EXPECT_EQ(boot.now, 90);
  ASSERT_TRUE(boot.threshold);
  EXPECT_TRUE(boot.next.is_null());
  // Verified with the boot time in the request.
  content["provisioning"] = {{"boot", fmt::format("{}s", *boot.threshold - 2)}};
  EXPECT_FALSE(planned()["chosen"].is_null());
  content["provisioning"] = {{"boot", fmt::format("{}s", *boot.threshold + 2)}};
  EXPECT_TRUE(planned()["chosen"].is_null());
}

// Four hundred hours on a spot node for 3.5985 USD/h of which half are taken back in a month, beside on demand for 3.60
// USD/h, which is 0.60 USD more. A loss is announced in time for a checkpoint and costs the boot of another node, 0.09
// USD, so a few of them cost as much as on demand. A share of p is a mean life of a month / -ln(1 - p).
TEST_F(Whys, InterruptionsUpToWhereOnDemandIsCheaper) {
  content["search"]["instances"] = {"one"};
  content["search"]["markets"] = {"on-demand", "spot"};
  content["search"]["seeds"] = 10;
  content["workload"]["images"] = 9'216'000'000;
  content["search"]["mixed"] = false;
  content["search"]["checkpoints"] = {"1h"};
  Json& prices = platform["instances"]["one"]["prices"];
  std::swap(prices[0], prices[1]);
  prices[0].update({{"per_hour", "3.5985USD/h"}, {"interrupted_per_month", 0.5}});
  ASSERT_EQ(planned()["chosen"]["market"], "spot");
  const KnobAnswer answer = turned_up(Knob::interruptions);
  ASSERT_TRUE(answer.threshold);
  EXPECT_EQ(answer.next["market"], "on-demand");
  const auto market_at = [&](double factor) {
    prices[0]["interrupted_per_month"] = 1 - std::pow(0.5, factor);
    return planned()["chosen"]["market"].get<std::string>();
  };
  EXPECT_EQ(market_at(*answer.threshold * 0.995), "spot");
  EXPECT_EQ(market_at(*answer.threshold * 1.005), "on-demand");
}

TEST_F(Whys, APlanThatCannotBeAskedAgainIsRefused) {
  Json plan = planned();
  plan.erase("asked");
  EXPECT_THAT(unplanned(plan), HasSubstr("\"asked\" is missing; plan again"));
  plan = planned();
  plan["chosen"] = nullptr;
  EXPECT_THAT(unplanned(plan), HasSubstr("/chosen: the plan has chosen nothing"));
  plan = planned();
  plan["simulated"][0]["time_s"]["median"] = -1;
  EXPECT_THAT(unplanned(plan), HasSubstr("/simulated/0/time_s/median: found -1"));
  plan = planned();
  plan["simulated"][0]["instance"] = "none";
  EXPECT_THAT(unplanned(plan), HasSubstr("/simulated/0: the catalogs do not offer this any more"));
  plan = planned();
  platform["instances"]["one"]["prices"][0]["per_hour"] = "3.61USD/h";
  folder_.add("lab.json", platform.dump());
  EXPECT_THAT(unplanned(plan), HasSubstr("the plan was made at 3.60 USD/h, and the catalog now says 3.61"));
  EXPECT_THAT(unplanned(Json{{"schema", "ganymede.scenario/1"}}), HasSubstr("ganymede.plan/1"));
}

}  // namespace
}  // namespace ganymede::plan
