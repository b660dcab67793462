#include "plan/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/units.hpp"
#include "plan/candidate_scenarios.hpp"
#include "plan/chosen_scenario.hpp"
#include "plans.hpp"
#include "sim/run/simulate.hpp"
#include "support/when.hpp"

namespace ganymede::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
// 23,040,000 images are 360,000 steps of 10 ms on one GPU: an hour, after 90 s of boot. The instance "one" costs 3.60
// USD/h, and 0.90 USD/h on the spot market of room-2, where a checkpoint of one second follows the last step.
TEST_F(Plans, FindTheCheapestThatMeetsTheGoals) {
  content["search"]["max_gpus"] = 1;
  content["search"]["gpus"] = {"NVIDIA gpu x"};  // as drivers and people write it
  const Json cheapest = json();
  EXPECT_EQ(cheapest["chosen"]["market"], "spot");
  EXPECT_EQ(cheapest["chosen"]["instance"], "one");
  EXPECT_NEAR(cheapest["chosen"]["time_s"]["median"].get<double>(), 3691, 1e-6);
  EXPECT_NEAR(cheapest["chosen"]["usd"]["median"].get<double>(), 0.9 * 3691 / 3600, 1e-6);
  // An hour of training, and 90 s of boot without spread.
  EXPECT_NEAR(cheapest["chosen"]["bounds"]["time_s"].get<double>(), 3690, 0.01);
  EXPECT_NEAR(cheapest["chosen"]["bounds"]["usd"].get<double>(), 0.9 * 3690 / 3600, 1e-5);

  content["search"]["markets"] = {"on-demand"};
  EXPECT_NEAR(json()["chosen"]["usd"]["median"].get<double>(), 3.69, 1e-6);

  // "other" has a faster GPU at twice the price.
  content["search"].erase("gpus");
  content["objective"] = "time";
  EXPECT_EQ(json()["chosen"]["instance"], "other");
  content["objective"] = "carbon";  // only room-1's "one" states power
  EXPECT_EQ(json()["chosen"]["instance"], "one");
}

// The scenarios that are simulated and the document that the chosen one is written as: they have the same hashes, from
// which what is random is drawn, and the same results.
TEST_F(Plans, SimulateWhatTheirDocumentsSay) {
  Json platform = Json::parse(made_up_platform());
  platform["instances"]["one"]["prices"][1]["region"] = "room-1";
  folder_.add("lab.json", platform.dump());
  content["deadline"] = "2h";
  content["budget"] = "50USD";
  content["checkpoint"] = {{"on_notice", false}};
  content["evaluation"] = {{"every", "1000s"}, {"fixed", "60s"}};
  content["search"]["max_gpus"] = 2;
  content["search"]["regions"] = {"room-1"};
  const Request asked = request();
  CandidateScenarios scenarios(asked);
  sim::ScenarioInputCache inputs;
  sim::StepDistributionCache steps;
  int mixed = 0, at_risk = 0;
  for (const PlanCandidate& candidate : enumerate(asked, true).all) {
    mixed += candidate.on_demand_nodes > 0 ? 1 : 0;
    at_risk += candidate.checkpoint.empty() ? 0 : 1;
    const sim::Scenario made = scenarios.scenario(candidate);
    const Json document = sim::document_of(scenarios.parts(candidate));
    const sim::Scenario read = sim::read_scenario(JsonNode::wrap(document, asked.file, ""), inputs);
    EXPECT_EQ(made.content, document.dump());
    EXPECT_EQ(made.step_fingerprint, read.step_fingerprint);
    EXPECT_EQ(made.workload_fingerprint, read.workload_fingerprint);
    const auto result = [&](const sim::Scenario& scenario) {
      return documents::result_text(sim::simulate(scenario, steps));
    };
    EXPECT_EQ(result(made), result(read)) << label_of(asked, candidate);
  }
  EXPECT_GT(at_risk, 0);
  EXPECT_GT(mixed, 0);
}

// With one seed, the interval of CO2e is 400 g/kWh for as long as the run may take by all stated error.
TEST_F(Plans, CarbonHasTheErrorOfTheTime) {
  content["search"]["max_gpus"] = 1;
  content["search"]["seeds"] = 1;
  content["objective"] = "carbon";
  const Json chosen = json()["chosen"];
  const auto of = [&](const char* what, const char* which) {
    return chosen.at(what).at(JsonPointer(which)).get<double>();
  };
  for (const char* end : {"/interval/0", "/interval/1"}) {
    EXPECT_NE(of("kg_co2e", end), of("kg_co2e", "/median"));
    EXPECT_NEAR(of("kg_co2e", end) / of("kg_co2e", "/median"), of("time_s", end) / of("time_s", "/median"), 1e-9);
  }
}

// 8,766 USD over a year of 8,766 h, of which half is in use, are 2 USD/h.
TEST_F(Plans, SayWhatOwningAssumes) {
  Json platform = Json::parse(made_up_platform());
  const Json ownership = {{"capital", "8766USD"}, {"life_years", 1}, {"utilization", 0.5}};
  platform["instances"]["one"]["prices"] = Json::array(
      {Json{{"region", "room-1"}, {"market", "on-demand"}, {"as_of", "2026-11-01"}, {"ownership", ownership}}});
  folder_.add("lab.json", platform.dump());
  content["search"]["max_gpus"] = 1;
  content["search"]["instances"] = {"one"};
  const Json plan = json();
  EXPECT_EQ(plan["chosen"]["usd_per_hour"], "2.00");
  EXPECT_EQ(plan["chosen"]["usd_per_hour_number"], 2);
  EXPECT_EQ(plan["chosen"]["price"]["usd_per_hour_number"].get<double>(),
            std::stod(plan["chosen"]["price"]["usd_per_hour"].get<std::string>()));
  EXPECT_EQ(plan["chosen"]["owned"], "8766.00 USD over 1 year at 50 % use, no staff, boot 90 s");
}

TEST_F(Plans, ADeadlineTakesMoreGpus) {
  content["deadline"] = "40min";
  content["search"]["gpus"] = {"GPU-X"};
  const Json plan = json();
  EXPECT_GT(plan["chosen"]["gpus"], 1);
  EXPECT_LE(plan["chosen"]["time_s"]["median"], 2400);
  EXPECT_GT(plan["searched"]["too_slow"], 0);
  ASSERT_FALSE(plan["near_misses"].empty());
  for (const Json& miss : plan["near_misses"]) EXPECT_FALSE(miss["reason"].get<std::string>().empty());
  // In the Pareto set, each is slower than the one before and cheaper, with doubtful prices at their highest values.
  double time = 0, usd = 1e9;
  for (const Json& row : plan["pareto"]) {
    EXPECT_GT(row["time_s"]["median"], time);
    EXPECT_LT(row["usd"]["at_worst_prices"], usd);
    time = row["time_s"]["median"].get<double>();
    usd = row["usd"]["at_worst_prices"].get<double>();
  }
  EXPECT_EQ(usd, plan["chosen"]["usd"]["at_worst_prices"].get<double>());
}

TEST_F(Plans, WhatSimulatesTheChosenScenarioGetsThePlansFigures) {
  content["deadline"] = "40min";
  content["budget"] = "20USD";
  const Json plan = json();
  const auto file = folder_.add("plan.json", plan.dump());
  const sim::Scenario scenario = load_scenario_or_plan(file);
  EXPECT_EQ(scenario.deadline, Seconds{2400});
  EXPECT_EQ(scenario.budget, MicroUsd{20'000'000});
  const Json run = Json::parse(documents::result_text(sim::simulate(scenario)));
  const Json& time = run["time"];
  EXPECT_NEAR(time["total_s"].get<double>(), plan["chosen"]["time_s"]["median"].get<double>(), 1e-6);
  // The rate is that of training: boots are not in it.
  const auto images = time["images"].get<double>(), rate = plan["chosen"]["images_per_s"].get<double>();
  EXPECT_NEAR(rate, images / (time["step_mean_s"].get<double>() * time["steps"].get<double>()), 1e-6 * rate);
  EXPECT_GT(rate, images / time["total_s"].get<double>());
  // The result holds its inputs, and the same scenario in a file of its own is the same.
  EXPECT_EQ(run["provenance"]["scenario"], plan["chosen"]["scenario"]);
  EXPECT_TRUE(run["provenance"]["files"].contains("/workload/trace"));
  EXPECT_TRUE(run["provenance"]["files"].contains("/platform/catalog"));
  EXPECT_EQ(scenario.hash, load_scenario_or_plan(folder_.add("s.json", plan["chosen"]["scenario"].dump())).hash);
  EXPECT_EQ(plan["provenance"]["request"], content);
  EXPECT_EQ(load_scenario_or_plan(file, {{"/platform/nodes", "2"}}).pools[0].pool.nodes, 2);
}

TEST_F(Plans, NothingThatFitsHasNoChosenOneAndNamesTheNearest) {
  content["budget"] = "0.10USD";
  const Plan none = plan();
  EXPECT_FALSE(none.best);
  ASSERT_FALSE(none.near_misses.empty());
  const auto file = folder_.add("plan.json", json().dump());
  EXPECT_THAT(message_of<ConfigError>([&] { load_scenario_or_plan(file); }), HasSubstr("the plan has chosen nothing"));
}

// A measured step drifts by at most 14 % between runs, so an hour and 90 s may become 4,200 s.
TEST_F(Plans, ToBeSureTheIntervalMustMeetTheGoals) {
  content["search"]["gpus"] = {"GPU-X"};
  content["search"]["max_gpus"] = 1;
  content["deadline"] = "3900s";
  content["search"]["certainty"] = 0.7;
  EXPECT_TRUE(plan().best);
  content["search"]["sure"] = true;
  const Plan sure = plan();
  EXPECT_FALSE(sure.best);
  ASSERT_FALSE(sure.near_misses.empty());
  EXPECT_THAT(sure.runs[sure.near_misses.front()].reason, HasSubstr("takes up to"));
  content["deadline"] = "4300s";
  EXPECT_TRUE(plan().best);
}

TEST_F(Plans, AreTheSameBytesWithAnyNumberOfJobs) {
  content["deadline"] = "40min";
  EXPECT_EQ(json(1).dump(), json(2).dump());
}

/// A request that searches clouds, with spot nodes that are lost.
class CloudPlans : public testing::TestWithParam<const char*> {};

std::vector<std::string> labels(const Request& request, const Plan& plan, const std::vector<std::size_t>& which) {
  std::vector<std::string> names;
  for (const std::size_t i : which) names.push_back(label_of(request, plan.candidates.all[i]));
  return names;
}

// Leaving candidates out by bounds, and taking the scheme with the shortest step, must not change the answer: the best,
// the best of known risk and the Pareto set are those of simulating all candidates with each scheme.
TEST_P(CloudPlans, AreThoseOfExhaustiveSearch) {
  NOT_SANITIZED("simulates every candidate of a plan");
  const Request request = read_request(JsonNode::parse(GetParam(), "request.json"), kNow);
  PlanOptions options;
  options.jobs = 2;
  const Plan quick = make_plan(request, options);
  options.effort = Effort::exhaustive;
  const Plan all = make_plan(request, options);
  EXPECT_GE(all.candidates.all.size(), 200U);
  ASSERT_TRUE(quick.best && all.best && quick.best_of_known_risk && all.best_of_known_risk);
  EXPECT_EQ(labels(request, quick, {*quick.best, *quick.best_of_known_risk}),
            labels(request, all, {*all.best, *all.best_of_known_risk}));
  EXPECT_EQ(labels(request, quick, quick.pareto), labels(request, all, all.pareto));
  EXPECT_LT(quick.simulated, all.simulated);
  EXPECT_EQ(all.count(Verdict::beaten), 0U);
  // No simulation beats the bounds.
  for (std::size_t i = 0; i < all.runs.size(); ++i) {
    if (!all.runs[i].simulated()) continue;
    const PlanCandidate& candidate = all.candidates.all[i];
    EXPECT_GE(all.runs[i].time_s.median, candidate.bounds.time_s) << label_of(request, candidate);
    EXPECT_GE(all.runs[i].usd.median, candidate.bounds.usd) << label_of(request, candidate);
    EXPECT_GE(all.runs[i].usd_at_worst, candidate.bounds.usd_at_worst) << label_of(request, candidate);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Requests, CloudPlans,
    testing::Values(
        R"({ "schema": "ganymede.request/1", "workload": { "model": "dcgan-64", "images": 40000000, "batch_per_gpu": [64, 128] },
             "deadline": "20h", "budget": "60USD",
             "search": { "catalogs": ["gcp", "aws"], "gpus": ["V100", "T4"], "regions": ["us-central1", "us-east-1"],
                         "schemes": ["ring", "halving-doubling", "nccl"], "max_gpus": 4, "seeds": 2 } })",
        R"({ "schema": "ganymede.request/1", "workload": { "model": "progressive-gan", "images": 20000000 },
             "objective": "time", "budget": "30USD", "faults": { "crash": { "every": "20h" } },
             "search": { "catalogs": ["gcp", "azure"], "gpus": ["A100", "T4"], "regions": ["us-central1", "eastus", "us-west1"],
                         "schemes": ["ring", "parameter-server"], "max_gpus": 4, "seeds": 2, "policies": ["fixed", "spot-first", "cheapest-region"] } })",
        R"({ "schema": "ganymede.request/1", "workload": { "model": "dcgan-64", "images": 40000000, "batch_per_gpu": [64, 128] },
             "objective": "risk-neutral", "deadline": "20h",
             "search": { "catalogs": ["gcp", "aws"], "gpus": ["V100", "T4"], "regions": ["us-central1", "us-east-1"],
                         "schemes": ["ring"], "max_gpus": 4, "seeds": 3 } })",
        R"({ "schema": "ganymede.request/1", "workload": { "model": "dcgan-64", "images": 40000000, "batch_per_gpu": [64, 128] },
             "objective": "risk-averse", "deadline": "20h",
             "search": { "catalogs": ["gcp", "aws"], "gpus": ["V100", "T4"], "regions": ["us-central1", "us-east-1"],
                         "schemes": ["ring"], "max_gpus": 4, "seeds": 3 } })"));

// A family is all of its GPUs, and what a driver says is one.
TEST(RequestGpus, AreThoseThatTheNamesStandFor) {
  const auto named = [](const std::string& name) {
    Json content = {{"schema", "ganymede.request/1"},
                    {"workload", {{"trace", "layers:dcgan"}, {"batch_per_gpu", 8}, {"images", 100000}}},
                    {"search", {{"catalogs", {"aws"}}, {"gpus", {name}}}}};
    return read_request(JsonNode::wrap(content, "request.json", ""), kNow).gpu_names;
  };
  EXPECT_THAT(named("V100"), testing::UnorderedElementsAre("V100", "V100-32GB"));
  EXPECT_THAT(named("Tesla V100-SXM2-16GB"), testing::ElementsAre("V100"));
  EXPECT_THAT(named("V100-32GB"), testing::ElementsAre("V100-32GB"));
}

TEST_F(Plans, RefuseRequestsThatContradictThemselves) {
  content["workload"]["steps"] = 5;
  EXPECT_THAT(error(), HasSubstr("/workload/steps: a plan compares allocations of different sizes"));
  content["workload"].erase("steps");
  content["workload"]["epochs"] = 5;
  EXPECT_THAT(error(), HasSubstr("expected exactly one of \"images\", \"epochs\" and \"quality\""));
  content["workload"].erase("epochs");
  content["workload"]["model"] = "dcgan-64";
  EXPECT_THAT(error(), HasSubstr("t.json is a trace of made-up-gan"));
  content["workload"].erase("model");
  content["search"]["min_gpus"] = 16;
  EXPECT_THAT(error(), HasSubstr("/search/max_gpus: at most 8 GPUs and at least 16 contradict each other"));
  content["search"].erase("min_gpus");
  content["budget"] = "0USD";
  EXPECT_THAT(error(), HasSubstr("/budget: expected a budget above 0"));
  content["budget"] = "-5USD";
  EXPECT_THAT(error(), HasSubstr("/budget"));
  content.erase("budget");
  content["search"]["gpus"] = {"GPU-Z"};
  EXPECT_THAT(error(),
              AllOf(HasSubstr("/search/gpus: \"GPU-Z\" is in none of the catalogs"), HasSubstr("did you mean")));
  content["search"].erase("gpus");
  for (const auto& [policy, why] : std::map<std::string, std::string>{
           {R"("external")", ": a plan cannot try a program"},
           {R"("q-learning")", ": found \"q-learning\", expected {\"name\": …, \"table\": FILE}"},
           {R"({"name": "q-learning", "table": "none.json"})", "/table: "},
           {R"({"name": "deadline", "reserv": 3})", "/reserv: unknown key"}}) {
    content["search"]["policies"] = {Json::parse(policy)};
    EXPECT_THAT(error(), HasSubstr("/search/policies/0" + why));
  }
  content["search"].erase("policies");
  content["workload"]["batch_per_gpu"] = 65;
  EXPECT_THAT(error(), HasSubstr("/workload/batch_per_gpu: found 65, expected a batch size that"));
}

TEST_F(Plans, ADeadlineIsADurationOrATimeWithItsZone) {
  content["deadline"] = "2026-11-21T12:00:00+00:00";
  EXPECT_EQ(request().deadline, Seconds{86400});  // counted from now
  EXPECT_EQ(request().start, kNow);
  content["start"] = "2026-11-21T12:30:00+01:00";
  EXPECT_EQ(request().deadline, Seconds{1800});
  content["start"] = "2026-11-22T00:00:00Z";
  EXPECT_THAT(error(), HasSubstr("/deadline: 2026-11-21T12:00:00+00:00 is not after the start"));
  content["deadline"] = "2026-11-25T12:00:00";
  EXPECT_THAT(error(), HasSubstr("expected a duration such as \"60h\", or a time with its zone"));
  content["deadline"] = "60h";
  EXPECT_THAT(error(), HasSubstr("/start: a start needs a \"deadline\" that is a time"));
  content["start"] = "tomorrow";
  EXPECT_THAT(error(), HasSubstr("/start: found \"tomorrow\", expected a time with its zone"));
  content.erase("start");
  content["deadline"] = "0h";
  EXPECT_THAT(error(), HasSubstr("/deadline"));
}

TEST_F(Plans, PickARecordedTraceByItsModel) {
  content["workload"] = {{"model", "mlp-gan"}, {"images", 1000}};
  EXPECT_THAT(request().trace_choice, StartsWith("recorded:mlp-gan-cpu, which comes with the program"));
  content["workload"]["model"] = "dcgan-46";
  EXPECT_THAT(error(),
              AllOf(HasSubstr("/workload/model: no trace of \"dcgan-46\""), HasSubstr("did you mean \"dcgan-64\"?")));
}

TEST_F(Plans, SayWhatIsLeftOut) {
  Json platform = Json::parse(made_up_platform());
  platform["instances"]["four"]["retired"] = "gone";
  platform["instances"]["other"].erase("prices");
  folder_.add("lab.json", platform.dump());
  const Json plan = json();
  EXPECT_THAT(plan["left_out"].dump(),
              AllOf(HasSubstr("1 instance type, retired: four"), HasSubstr("1 instance type, no price is known: other"),
                    HasSubstr("of which a GPU-S has 64 MiB, for a batch of at most 32: small")));
}

// If one catalog lacks a storage class, its candidates are left out; if all lack it, the request is wrong.
TEST_F(Plans, WhatIsWrongForAllIsWrongInTheRequest) {
  content["search"]["markets"] = {"on-demand"};
  content["storage"] = {{"dataset", "nowhere"}};
  EXPECT_THAT(message_of<ConfigError>([&] { plan(); }), HasSubstr("no storage \"nowhere\""));
}

}  // namespace
}  // namespace ganymede::plan
