// How a training saves itself: assumed, or as the request says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(Saves, TakeThePlaceOfTheIntervalsThatAreTried) {
  content["checkpoint"] = {{"every", "1h"}};
  content["search"]["checkpoints"] = {"2h", "daly"};
  EXPECT_EQ(request().checkpoints, std::vector<std::string>{"1h"});
}

}  // namespace
}  // namespace ganymede::plan
