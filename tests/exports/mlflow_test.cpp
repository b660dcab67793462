// The file that ganymede export mlflow writes; tests/python/tools_mlflow_test.py sends it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "exports/exporter.hpp"
#include "report/results.hpp"
#include "support/errors.hpp"

namespace ganymede::exports {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const Exporter& mlflow() {
  for (const Exporter& exporter : exporters())
    if (exporter.name == "mlflow") return exporter;
  throw std::logic_error("there is no exporter mlflow");
}

Json written(const Json& document, const std::map<std::string, std::string>& options = {}) {
  ExportValues values(mlflow().options);
  for (const auto& [name, value] : options) values.slot(name) = value;
  return Json::parse(mlflow().write(report::document_of(document), values, {}));
}

Json result_of_seed(int seed) {
  Json result = report::a_result();
  result["provenance"]["seed"] = seed;
  return result;
}

TEST(MlflowRuns, OfASweepHaveItsNumbers) {
  const Json sweep = report::a_sweep({result_of_seed(1), result_of_seed(2)});
  const Json out = written(sweep);
  EXPECT_EQ(out["schema"], "ganymede.mlflow-runs/1");
  ASSERT_THAT(out["runs"], SizeIs(2));
  EXPECT_NE(out["runs"][0]["id"], out["runs"][1]["id"]);
  for (const Json& run : out["runs"]) {
    EXPECT_EQ(run["params"]["pool.instance"], "p3.8xlarge");
    EXPECT_EQ(run["params"]["scheme"], "ring");
    EXPECT_EQ(run["metrics"]["cost.total_usd"], 7.35);
    EXPECT_EQ(run["metrics"]["time.interval_s.high"], 3700);
    EXPECT_EQ(run["metrics"]["gpu_seconds.compute"], 20000.5);
    EXPECT_EQ(run["tags"]["ganymede.warnings"], "first warning\nsecond warning");
    EXPECT_EQ(run["seconds"], 3600);
  }
  EXPECT_EQ(written(sweep, {{"run", "1"}})["runs"], Json::array({out["runs"][1]}));
  // Another result of the same scenario and seed is another run.
  Json changed = result_of_seed(1);
  changed["time"]["total_s"] = 1.0;
  EXPECT_NE(written(changed)["runs"][0]["id"], out["runs"][0]["id"]);
}

TEST(MlflowRuns, OfAPlanAreItsCandidates) {
  Json plan = report::a_plan(), other = plan["simulated"][0];
  other["chosen"] = false;
  plan["simulated"].push_back(other);
  const Json out = written(plan);
  ASSERT_THAT(out["runs"], SizeIs(1));
  EXPECT_EQ(out["runs"][0]["metrics"]["usd.median"], 12.5);
  EXPECT_EQ(out["runs"][0]["params"]["request.model"], "dcgan-64");
  EXPECT_THAT(written(plan, {{"all", "yes"}})["runs"], SizeIs(2));
}

// The id stands in a query to the server, and MLflow refuses keys with other characters.
TEST(MlflowRuns, HostileTextStaysText) {
  Json hostile = report::a_result();
  hostile["provenance"]["scenario_hash"] = "' or tags.x = '" + report::kHostile;
  hostile["run"][report::kHostile + std::string(300, 'k')] = report::kHostile;
  const Json run = written(hostile)["runs"][0];
  EXPECT_THAT(run["id"].get<std::string>(), testing::MatchesRegex("[A-Za-z0-9-]+"));
  for (const auto& [key, value] : run["params"].items()) {
    EXPECT_THAT(key, testing::MatchesRegex("[A-Za-z0-9_. -]+"));
    EXPECT_LE(key.size(), 250U);
  }
}

TEST(MlflowRuns, AnErrorSaysWhatIsWrong) {
  const auto refused = [](const Json& document, const std::map<std::string, std::string>& options) {
    return message_of<ConfigError>([&] { written(document, options); });
  };
  const Json sweep = report::a_sweep({result_of_seed(1), result_of_seed(2)});
  EXPECT_THAT(refused(report::a_result(), {{"run", "0"}}), HasSubstr("is no sweep"));
  EXPECT_THAT(refused(sweep, {{"run", "2"}}), HasSubstr("expected 0 to 1"));
  EXPECT_THAT(refused(sweep, {{"checkpoint", "x"}}), HasSubstr("found 2 runs"));
  EXPECT_THAT(refused(report::a_result(), {{"checkpoint", "missing"}}), HasSubstr("found no checkpoint"));
  EXPECT_THAT(refused(report::a_sweep(Json::array()), {}), HasSubstr("found no run"));
  ExportValues values(mlflow().options);
  values.slot("tracking-uri") = "http://localhost:5000";
  EXPECT_THAT(message_of<ConfigError>([&] { mlflow().check(values); }), HasSubstr("python -m ganymede mlflow"));
}

}  // namespace
}  // namespace ganymede::exports
