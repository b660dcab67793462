// The text of a result: its fields, its sums, and the same bytes each time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scenario_files.hpp"
#include "sim/ledger/ledger.hpp"

namespace ganymede::sim {
namespace {

using testing::HasSubstr;
using testing::IsSupersetOf;
std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [key, value] : object.items()) names.push_back(key);
  return names;
}

/// Steps that vary, so that every category of GPU time that this version knows can be non-zero.
traces::StepTrace uneven_trace() {
  std::vector<double> scale;
  for (int i = 0; i < 100; ++i) scale.push_back(1e-3 * (1 + 0.1 * (i * 7 % 11)));
  return made_up_trace(scale);
}

TEST(Result, HasTheDesignsFields) {
  const Json run = simulate_json(ScenarioFiles().load(ScenarioFiles::basic()));
  EXPECT_EQ(run["schema"], "ganymede.result/1");
  EXPECT_THAT(keys(run), IsSupersetOf({"time", "utilization", "gpu_seconds", "gpu_hours", "cost", "energy", "events",
                                       "provenance"}));
  EXPECT_THAT(keys(run["time"]),
              IsSupersetOf({"total_s", "steps", "step_mean_s", "interval_s", "sampling_interval_s", "confidence"}));
  EXPECT_THAT(keys(run["utilization"]), IsSupersetOf({"gpu_busy", "gpu_flops", "cpu", "network", "memory_bytes"}));
  EXPECT_THAT(keys(run["gpu_seconds"]), IsSupersetOf({"compute", "exposed_communication", "straggler", "input_stall",
                                                      "checkpoint", "provisioning", "lost", "idle", "total"}));
  EXPECT_THAT(keys(run["cost"]), IsSupersetOf({"total_usd", "interval_usd", "items"}));
  EXPECT_THAT(keys(run["cost"]["items"][0]),
              IsSupersetOf({"item", "pool", "quantity", "unit", "unit_price_usd", "usd"}));
  EXPECT_THAT(keys(run["energy"]), IsSupersetOf({"kwh", "kg_co2e"}));
  EXPECT_THAT(keys(run["provenance"]),
              IsSupersetOf({"tool", "scenario_hash", "seed", "inputs", "software", "prices_as_of", "warnings"}));
  EXPECT_EQ(run["time"]["interval_s"].size(), 2U);
  EXPECT_EQ(run["time"]["confidence"], 0.95);
}

TEST(Result, MoneyIsADecimalStringAndUnitsAreInTheNames) {
  const Json run = simulate_json(ScenarioFiles().load(ScenarioFiles::basic()));
  EXPECT_TRUE(run["cost"]["total_usd"].is_string());
  EXPECT_TRUE(run["cost"]["items"][0]["usd"].is_string());
  EXPECT_TRUE(run["cost"]["interval_usd"][0].is_string());
  EXPECT_TRUE(run["time"]["total_s"].is_number());
}

TEST(Result, AmountsOfPartsAreNumbersToo) {
  Json content = ScenarioFiles::basic();
  content["budget"] = "12.34USD";
  const Json run = simulate_json(ScenarioFiles().load(content));
  const Json& cost = run["cost"];
  EXPECT_EQ(run["goals"]["budget_usd_number"], 12.34);
  const auto expect_number = [](const Json& object, const std::string& key) {
    EXPECT_EQ(object.at(key + "_number"), std::stod(object.at(key).get<std::string>())) << key;
  };
  for (const char* key : {"usd", "unit_price_usd", "list_price_usd"}) expect_number(cost["items"][0], key);
  expect_number(run["pools"][0], "usd");
  for (const auto& [use, amount] : cost["instance_hours_by_use"].items())
    EXPECT_EQ(cost["instance_hours_by_use_number"].at(use), std::stod(amount.get<std::string>())) << use;
}

TEST(Result, SaysWhatRanAndWhereItComesFrom) {
  const Scenario scenario = ScenarioFiles().load(ScenarioFiles::basic());
  const Json run = simulate_json(scenario);
  EXPECT_EQ(run["run"]["platform"], "lab room-1");
  EXPECT_EQ(run["run"]["allocation"], "2 x one");
  EXPECT_EQ(run["run"]["gpu"], "GPU-X");
  EXPECT_EQ(run["run"]["gpus"], 2);
  EXPECT_EQ(run["run"]["scheme"], "ring");
  EXPECT_EQ(run["provenance"]["scenario_hash"], scenario.hash);
  EXPECT_EQ(run["provenance"]["seed"], 1);
  EXPECT_EQ(run["provenance"]["prices_as_of"], "2026-11-01");
  EXPECT_THAT(run["provenance"]["tool"].get<std::string>(), HasSubstr("ganymede "));
  EXPECT_THAT(run["provenance"]["software"].get<std::string>(), HasSubstr("ganymede 0.1.0 (eigen)"));
  ASSERT_EQ(run["events"].size(), 3U);
  EXPECT_EQ(run["events"][0]["event"], "requested");
  EXPECT_EQ(run["events"][1]["at_s"], 90);
  EXPECT_EQ(run["events"][2]["at_s"], run["time"]["total_s"]);
}

TEST(Result, CategoriesOfGpuTimeSumToTheGpusHeld) {
  for (const int nodes : {1, 2, 3}) {
    Json content = ScenarioFiles::basic();
    content["platform"] = {{"catalog", "lab.json"}, {"instance", "four"}, {"nodes", nodes}, {"gpus_per_node", 3}};
    const Json run = simulate_json(ScenarioFiles(uneven_trace()).load(content));
    double sum = 0;
    for (const auto use : kGpuUseNames) sum += run["gpu_seconds"][std::string(use)].get<double>();
    const double held = 4.0 * nodes * run["time"]["total_s"].get<double>();
    EXPECT_NEAR(sum, run["gpu_seconds"]["total"].get<double>(), 1e-6);
    EXPECT_NEAR(sum, held, 1e-6);  // one nanosecond for each GPU
    EXPECT_NEAR(run["gpu_hours"].get<double>(), held / 3600, 1e-9);
    EXPECT_GT(run["gpu_seconds"]["straggler"].get<double>(), 0);
  }
}

TEST(Result, IsTheSameBytesForTheSameScenarioAndSeed) {
  const ScenarioFiles files(uneven_trace());
  const Scenario scenario = files.load(ScenarioFiles::basic());
  const std::string first = simulate_text(scenario);
  EXPECT_TRUE(simulate_text(scenario) == first);
  // The same scenario from files in another folder.
  EXPECT_TRUE(simulate_text(ScenarioFiles(uneven_trace()).load(ScenarioFiles::basic())) == first);
  EXPECT_FALSE(simulate_text(files.load_with("/seed", 2)) == first);
}

TEST(Result, IsTheSameBytesWhateverTheNumberOfProcesses) {
  const ScenarioFiles files(uneven_trace());
  std::vector<Scenario> scenarios;
  for (const int nodes : {1, 2, 3, 4, 5, 6}) scenarios.push_back(files.load_with("/platform/nodes", nodes));
  const auto run = [&](int jobs) {
    std::string texts;
    for (const auto& outcome : run_children(
             scenarios.size(), jobs, [&](std::size_t i) { return documents::result_text(simulate(scenarios[i])); })) {
      rethrow(outcome);
      texts += outcome.text;
    }
    return texts;
  };
  const std::string alone = run(1);
  EXPECT_TRUE(run(2) == alone);
  EXPECT_TRUE(run(4) == alone);
}

TEST(Result, LeavesOutWhatThePlatformDoesNotState) {
  std::string bare = made_up_platform();
  const auto cut = [&](const std::string& text) { bare.erase(bare.find(text), text.size()); };
  cut(R"(,
                       "power": { "idle": "50W", "peak": "250W" })");
  cut(R"("vcpus": 8, )");
  const ScenarioFiles files;
  files.folder().add("lab.json", bare);
  const Json run = simulate_json(files.load(ScenarioFiles::basic()));
  EXPECT_TRUE(run["energy"].is_null());
  EXPECT_TRUE(run["utilization"]["cpu"].is_null());
  EXPECT_THAT(run["provenance"]["warnings"].dump(), HasSubstr("energy is not estimated"));
}

}  // namespace
}  // namespace ganymede::sim
