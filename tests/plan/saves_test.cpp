// How a training saves itself: assumed, or as the request says.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/json.hpp"
#include "plans.hpp"

namespace ganymede::plan {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Two hundred hours on spot nodes of room-2, of which 99.9 % are taken back in a month: after 106 h on average.
class Saves : public Plans {
 protected:
  Saves() {
    Json platform = Json::parse(made_up_platform());
    platform["instances"]["one"]["prices"][1]["interrupted_per_month"] = 0.999;
    folder_.add("lab.json", platform.dump());
    content["workload"]["images"] = 200LL * 23'040'000;
    content["search"].update(Json::parse(
        R"({ "instances": ["one"], "markets": ["spot"], "policies": ["fixed"], "max_gpus": 1, "seeds": 9 })"));
  }
  Json chosen() const { return json()["chosen"]; }
  double time_s() const { return chosen()["time_s"]["median"].get<double>(); }
};

constexpr const char* kAssumed = "it is assumed that the training saves itself, but not within the notice";

TEST_F(Saves, NotWithinTheNoticeUnlessTheRequestSaysSo) {
  content["search"]["checkpoints"] = {"1h"};
  const Json assumed = chosen();
  const double assumed_s = assumed["time_s"]["median"].get<double>();
  EXPECT_THAT(assumed["warnings"].dump(), HasSubstr(kAssumed));
  EXPECT_EQ(assumed["scenario"]["checkpoint"], Json::parse(R"({ "every": "1h", "on_notice": false })"));
  // An hour of training and what writing takes lie between two checkpoints, and at most that is lost with each node.
  EXPECT_NEAR(assumed["saved_every_s"].get<double>(), 3600, 120);
  EXPECT_GT(assumed["lost_s"].get<double>(), 0);
  EXPECT_LE(assumed["lost_s"].get<double>(), 3600 * assumed["losses_mean"].get<double>());
  content["checkpoint"] = {{"on_notice", false}};
  EXPECT_EQ(time_s(), assumed_s);
  EXPECT_THAT(chosen()["warnings"].dump(), Not(HasSubstr(kAssumed)));
  content["checkpoint"] = {{"on_notice", true}};
  EXPECT_LT(chosen()["lost_s"], assumed["lost_s"]);
  EXPECT_LE(time_s(), assumed_s);
  content["search"].erase("checkpoints");
  content["checkpoint"] = {{"on_notice", false}, {"every", "1h"}};
  EXPECT_EQ(time_s(), assumed_s);
  EXPECT_THAT(chosen()["warnings"].dump(), Not(HasSubstr(kAssumed)));
  // Without any checkpoint everything is.
  const double hourly_s = time_s();
  content["checkpoint"] = {{"every", "never"}};
  EXPECT_GT(time_s(), hourly_s + 3600);
  EXPECT_TRUE(chosen()["checkpoint"].is_null());
  EXPECT_FALSE(chosen()["scenario"].contains("checkpoint"));
}

TEST_F(Saves, ArePartOfWhatWasAsked) {
  for (const char* checkpoint : {R"({ "every": "never" })", R"({ "every": "2h", "on_notice": false })",
                                 R"({ "on_notice": true })", R"({ "every": "daly" })"}) {
    content["checkpoint"] = Json::parse(checkpoint);
    const Request of = request();
    const Json asked = request_document(of, folder_.path());
    const Request again = read_request(JsonNode::load(folder_.add("asked.json", asked.dump())), kNow);
    EXPECT_EQ(again.checkpoints, of.checkpoints) << checkpoint;
    EXPECT_EQ(again.on_notice, of.on_notice) << checkpoint;
  }
}

TEST_F(Saves, ThatContradictThemselvesAreRefused) {
  content["checkpoint"] = {{"every", "never"}, {"on_notice", true}};
  EXPECT_THAT(error(), HasSubstr("/checkpoint/every: a training that never saves itself cannot do so within a notice"));
  content["checkpoint"] = {{"every", "soon"}};
  EXPECT_THAT(error(), HasSubstr("/checkpoint/every: "));
  content["checkpoint"] = {{"evry", "1h"}};
  EXPECT_THAT(error(), HasSubstr("/checkpoint/evry: unknown key"));
}

TEST_F(Saves, AsOftenAsIsBestForTheLifeOfNodesByDefault) {
  EXPECT_EQ(request().checkpoints, std::vector<std::string>{"daly"});
}

TEST_F(Saves, AsOftenAsTheRecipesProgramDoes) {
  content["workload"] = {{"recipe", "stylegan3-t"}, {"images", 1'000'000}};
  EXPECT_EQ(request().checkpoints, std::vector<std::string>{"200000 images"});
  content["checkpoint"] = {{"every", "1h"}};
  EXPECT_EQ(request().checkpoints, std::vector<std::string>{"1h"});
}

TEST_F(Saves, AfterSoManyImages) {
  content["search"]["checkpoints"] = {"23040000 images"};  // those of an hour
  const Json by_images = chosen();
  content["search"]["checkpoints"] = {"1h"};
  EXPECT_NEAR(by_images["saved_every_s"].get<double>() / chosen()["saved_every_s"].get<double>(), 1, 0.1);
  content["search"]["checkpoints"] = {"0 images"};
  EXPECT_THAT(message_of<ConfigError>([&] { json(); }), HasSubstr("expected a whole number from 1"));
}

// The deadline is the time of the luckiest of twelve runs, which its plan by one run takes for met.
TEST_F(Saves, AChoiceByLuckIsNone) {
  content["search"].update(Json::parse(R"({ "checkpoints": ["1h"], "seeds": 1, "certainty": 0.5 })"));
  double least_s = 1e300;
  const auto plan_of = [](Request of, std::uint64_t seed) {
    of.seed = seed;
    return make_plan(of, {});
  };
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Plan plan = plan_of(request(), seed);
    least_s = std::min(least_s, plan.runs[*plan.best].time_s.median);
  }
  content["deadline"] = fmt::format("{}s", std::ceil(least_s));
  int lucky = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Plan plan = plan_of(request(), seed);
    EXPECT_FALSE(plan.best);
    for (const PlannedRun& run : plan.runs) {
      if (run.probability_runs == 0) continue;
      ++lucky;
      EXPECT_LT(run.probability, 0.5);
      EXPECT_EQ(run.verdict, Verdict::misses);
    }
  }
  EXPECT_GT(lucky, 0);
  content["deadline"] = "1000h";
  const Json sure = chosen();
  EXPECT_EQ(sure["seeds"], 1);
  EXPECT_EQ(sure["probability_runs"], 400);
}

TEST_F(Saves, TakeThePlaceOfTheIntervalsThatAreTried) {
  content["checkpoint"] = {{"every", "1h"}};
  content["search"]["checkpoints"] = {"2h", "daly"};
  EXPECT_EQ(request().checkpoints, std::vector<std::string>{"1h"});
}

}  // namespace
}  // namespace ganymede::plan
