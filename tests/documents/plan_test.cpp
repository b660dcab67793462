// The descriptions of plans and of what their choices hang on.

#include "documents/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

using testing::HasSubstr;

PlanRow row_of(const std::string& instance) {
  PlanRow row;
  row.provider = "aws", row.region = "us-east-1", row.market = "spot", row.instance = instance, row.gpu = "V100";
  row.nodes = 2, row.gpus_per_node = 4, row.gpus = 8, row.batch_per_gpu = 64;
  row.scheme = "ring", row.policy = "fixed", row.checkpoint = "10min";
  row.usd_per_hour = {2'500'000};
  row.price = {{1'250'000}, "undated", "a list", "undated", {0.5, 2}};
  row.bounds = {100, 0.5};
  row.time_s = {200, {150, 300}};
  row.usd = {1.5, {1, 2}, 3.0, 1.75, std::nullopt};
  row.quality = PlanQuality{512, {5e6, {4e6, 6e6}}, 0.125, 1e-6, 0.5, PlanQuality::Checks{1e5, 60, 50, 5e4}, {}};
  row.images_per_s = 1000, row.probability = 0.97, row.met_share = 1, row.seeds = 5;
  return row;
}

Plan whole_plan() {
  Plan plan;
  plan.request.model = "dcgan-64";
  plan.request.fid = 30;
  plan.request.deadline = "60h", plan.request.deadline_s = Seconds{216000};
  plan.steps = {{"V100", 64, 0.01, {0.008, 0.0125}, "kernel model", "how"}};
  plan.chosen = row_of("a");
  plan.chosen->quality->curve = {{1e6, 0.5, {60, {50, 70}}}};
  plan.chosen->scenario.text = R"({"seed":1})";
  plan.chosen->warnings = {"beware"};
  plan.cards = {row_of("a"), row_of("b"), row_of("c")};
  plan.more_money.emplace();
  PlanRow beaten = row_of("d");
  beaten.verdict = "too slow", beaten.reason = "it is";
  plan.near_misses = {beaten};
  plan.cannot_run = {{3, "too small"}};
  plan.simulated = {row_of("a"), row_of("b")};
  plan.asked.text = R"({"schema":"ganymede.request/1"})";
  return plan;
}

TEST(PlanDocument, WhatIsWrittenIsReadAndWrittenAgainAsTheSameBytes) {
  const std::string text = plan_text(whole_plan());
  EXPECT_EQ(plan_text(read_plan(JsonNode::parse(text, "plan.json"))), text);
}

TEST(PlanDocument, ARowThatWasNotSimulatedHasNoFigures) {
  const Json out = Json::parse(plan_text(whole_plan()));
  EXPECT_EQ(out["near_misses"][0]["reason"], "it is");
  for (const char* figure : {"time_s", "usd", "probability", "chosen"})
    EXPECT_FALSE(out["near_misses"][0].contains(figure)) << figure;
  EXPECT_TRUE(out["chosen"]["quality"].contains("curve"));
  EXPECT_FALSE(out["simulated"][0]["quality"].contains("curve")) << "only the chosen candidate's is kept";
  EXPECT_EQ(out["chosen"]["usd_per_hour_number"], 2.5);
  EXPECT_TRUE(out["best_of_known_risk"].is_null());
}

TEST(PlanDocument, ErrorsSayWhere) {
  Json bad = Json::parse(plan_text(whole_plan()));
  bad["simulated"][1]["nodes"] = 0;
  const auto refusal = [&] {
    try {
      (void)plan_in(bad);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(), HasSubstr("plan: /simulated/1/nodes: found 0, expected an integer from 1"));
  bad.erase("simulated");
  EXPECT_EQ(refusal(), "plan: /: is not whole, \"simulated\" is missing; plan again, with `ganymede plan --save`");
}

TEST(WhyDocument, IsReadAsItWasWritten) {
  Why why;
  why.request.model = "dcgan-64";
  why.chosen = row_of("a");
  why.hangs_on = {{"price", "USD/h", 2.5, 5, 3.25, row_of("b"), std::nullopt},
                  {"interruptions", "factor", 1, 16, std::nullopt, std::nullopt, "nobody takes nodes back"}};
  const std::string text = why_text(why);
  EXPECT_EQ(why_text(why_in(Json::parse(text))), text);
}

}  // namespace
}  // namespace ganymede::documents
