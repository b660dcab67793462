// Own or rent over made-up platforms, whose prices make the break-even a calculation by hand.

#include "plan/own_or_rent.hpp"

#include <gmock/gmock.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "plan/plans.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Machines to buy ("mine.json") that are those of the rented platform ("lab.json", 3.60 USD/h on demand).
class OwnOrRent : public Plans {
 protected:
  OwnOrRent() {
    platform = Json::parse(made_up_platform());
    platform["instances"] = {{"one", platform["instances"]["one"]}};
    platform["provisioning"]["boot"] = "0s";
    platform["regions"]["room-1"]["per_kwh"] = "0.20USD";
    ownership = {
        {"capital", "12000USD"}, {"life_years", 3}, {"space_per_year", "500USD"}, {"people_per_year", "1500USD"}};
    content["search"]["max_gpus"] = 1;
    content["search"]["instances"] = {"one"};
  }
  std::function<JsonNode(const std::vector<JsonOverride>&)> request() {
    return [file = folder_.add("request.json", content.dump())](const std::vector<JsonOverride>& more) {
      return JsonNode::load(file, more);
    };
  }
  Json answer() {
    platform["instances"]["one"]["prices"] = Json::array(
        {Json{{"region", "room-1"}, {"market", "on-demand"}, {"as_of", "2026-11-01"}, {"ownership", ownership}}});
    OwnQuestion question;
    question.platform = folder_.add("mine.json", platform.dump());
    question.instance = instance;
    question.request = request();
    question.now = kNow;
    return Json(documents::own_or_rent_json(own_or_rent(question, {.jobs = 2})));
  }
  static Json offer_of(const Json& answer, const std::string& market) {
    for (const Json& offer : answer["offers"])
      if (offer["market"] == market) return offer;
    return {};
  }
  Json platform, ownership;
  std::string instance;
};

// A training of 23,040,000 images in batches of 64 has 360,000 steps of 10 ms: an hour. GPUs work 9 of 10 ms: 50 + 0.9
// x 200 = 230 W, at a PUE of 1.5 0.345 kWh, for 0.069 USD. A year costs 12,000 / 3 + 500 + 1,500 = 6,000 USD. The
// rented node costs 3.60 USD for the hour and 0.09 USD for 90 s of boot.
TEST_F(OwnOrRent, BreaksEvenWhereAHandCalculationSays) {
  content["search"]["markets"] = {"on-demand"};
  const Json all = answer();
  const Json& own = all["own"];
  EXPECT_DOUBLE_EQ(own["usd_a_year"]["total"].get<double>(), 6'000);
  EXPECT_NEAR(own["training"]["hours"]["median"].get<double>(), 1, 1e-6);
  EXPECT_NEAR(own["training"]["kwh"].get<double>(), 0.345, 1e-4);
  EXPECT_NEAR(own["training"]["usd"].get<double>(), 0.069, 1e-4);
  ASSERT_EQ(all["offers"].size(), 1U);
  const Json& at = all["offers"][0]["break_even"];
  const double trainings = 6'000 / (3.69 - 0.069);
  EXPECT_EQ(at["owning_is_cheaper"], "from");
  EXPECT_NEAR(at["trainings_a_year"].get<double>(), trainings, 0.1);
  EXPECT_NEAR(at["hours_a_year"].get<double>(), trainings * 1, 0.1);
  EXPECT_NEAR(at["utilization"].get<double>(), trainings / 8'766, 1e-4);
  EXPECT_NEAR(at["months_of_use"].get<double>(), 12'000 / ((8'766 * (3.69 - 0.069) - 2'000) / 12), 1e-2);
  EXPECT_LT(at["hours_interval"][0], at["hours_a_year"]);
  EXPECT_GT(at["hours_interval"][1], at["hours_a_year"]);
}

// The stated use is no input: at 1 % of the time an hour would cost a hundred times as much.
TEST_F(OwnOrRent, DoesNotDependOnTheStatedUse) {
  content["search"]["markets"] = {"on-demand"};
  const Json before = answer();
  ownership["utilization"] = 0.01;
  EXPECT_EQ(answer()["offers"], before["offers"]);
}

// 50 W x 1.5 at 0.20 USD/kWh are 0.015 USD an hour, 131.49 USD a year; a training adds what is above that.
TEST_F(OwnOrRent, AMachineThatStaysOnDrawsIdlePower) {
  ownership["always_on"] = true;
  const Json own = answer()["own"];
  EXPECT_NEAR(own["usd_a_year"]["idle_electricity"].get<double>(), 0.015 * 8'766, 1e-6);
  EXPECT_NEAR(own["training"]["usd"].get<double>(), 0.069 - 0.015, 1e-4);
}

TEST_F(OwnOrRent, ComparesEachMarketAndSaysWhatIsMissing) {
  const Json all = answer();
  ASSERT_EQ(all["offers"].size(), 4U);  // every market
  EXPECT_FALSE(offer_of(all, "on-demand")["offer"].is_null());
  EXPECT_FALSE(offer_of(all, "spot")["offer"].is_null());
  EXPECT_TRUE(offer_of(all, "reserved-1y")["offer"].is_null());
  EXPECT_EQ(offer_of(all, "reserved-1y")["reason"], "the catalogs have no such offer");
}

// 0.50 USD/h reserved are 4,383 USD a year, less than owning; 1 USD/h are 8,766 USD, more.
TEST_F(OwnOrRent, AReservationIsPaidForAllYear) {
  content["search"]["markets"] = {"reserved-1y"};
  const auto with_price = [&](const char* price) {
    Json rented = Json::parse(made_up_platform());
    rented["instances"]["one"]["prices"][0].update({{"market", "reserved-1y"}, {"per_hour", price}});
    folder_.add("lab.json", rented.dump());
    return answer()["offers"][0];
  };
  const Json cheap = with_price("0.50USD/h");
  EXPECT_DOUBLE_EQ(cheap["committed_usd_a_year"].get<double>(), 4'383);
  EXPECT_EQ(with_price("1.00USD/h")["break_even"]["owning_is_cheaper"], "always");
  // The machine trains 8,766 times a year, the reserved one, which boots for 90 s, 8,552 times: beyond these it takes
  // a second reservation, and both together cost more than owning does.
  EXPECT_NEAR(cheap["break_even"]["trainings_a_year"].get<double>(), 8'766 / 1.025, 1);
}

TEST_F(OwnOrRent, RefusesWhatCannotBeBought) {
  ownership.erase("capital");
  EXPECT_THAT(message_of<ConfigError>([&] { answer(); }), AllOf(HasSubstr("mine.json"), HasSubstr("capital")));
  ownership["capital"] = "1USD";
  instance = "two";
  EXPECT_THAT(message_of<ConfigError>([&] { answer(); }), HasSubstr("no instance \"two\""));
  instance = "";
  content["deadline"] = "10min";
  EXPECT_THAT(message_of<Infeasible>([&] { answer(); }), HasSubstr("no machine of"));
  const OwnQuestion question{folder_.path() / "lab.json", "", request(), kNow};
  EXPECT_THAT(message_of<ConfigError>([&] { own_or_rent(question, {}); }),
              AllOf(HasSubstr("lab.json: /instances"), HasSubstr("ownership")));
}

}  // namespace
}  // namespace ganymede::plan
