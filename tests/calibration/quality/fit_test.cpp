#include "calibration/quality/fit.hpp"

#include <gmock/gmock.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "support/drawn_runs.hpp"

namespace ganymede::calibration {
namespace {

double effect(const QualityModel& model, const std::string& level, std::size_t member) {
  for (const QualityEffect& each : model.effects)
    if (each.level == level) return each.value.at(member);
  return NAN;
}

TEST(QualityFit, FindsTheEffectOfABackboneAndTheSpread) {
  RandomStream random(3, "test");
  std::vector<RecordedRun> runs = drawn_runs(random, {}, 40);
  for (const RecordedRun& run : drawn_runs(random, {.backbone = "dcgan", .log_floor = 1, .log_half = -1}, 40))
    runs.push_back(run);
  const QualityModel model = fit_quality(runs);
  EXPECT_NEAR(effect(model, "dcgan", 0) - effect(model, "resnet", 0), 1, 0.2);
  EXPECT_NEAR(effect(model, "dcgan", 2) - effect(model, "resnet", 2), -1, 0.2);
  // Levels that all trainings share tell nothing of an effect.
  EXPECT_LT(std::abs(effect(model, "hinge", 0)), 0.3);
  for (std::size_t d = 0; d < kShapeSize; ++d) EXPECT_NEAR(std::sqrt(model.spread.at(d, d)), 0.2, 0.1) << d;
  EXPECT_NEAR(std::sqrt(model.noise), 0.035, 0.01);
}

TEST(QualityFit, TheHazardIsThatOfTheKindThatDiverges) {
  RandomStream random(4, "test");
  std::vector<RecordedRun> runs = drawn_runs(random, {}, 20);
  for (RecordedRun& run : drawn_runs(random, {.backbone = "dcgan"}, 20)) {
    diverge(run, 8);
    runs.push_back(run);
  }
  const QualityModel model = fit_quality(runs);
  const QualityPrior stable = prior_of(model, runs.front().kind), unstable = prior_of(model, runs.back().kind);
  // Twenty divergences in twenty trainings, each after ln(images / 1e5) e-folds.
  const double each = std::log(runs.back().points[8].images / kFirstImages);
  EXPECT_NEAR(unstable.log_hazard, std::log(1 / each), 0.7);
  EXPECT_LT(stable.log_hazard, unstable.log_hazard - 1.5);
  EXPECT_EQ(model.rises, 20);
  EXPECT_EQ(model.recovered, 0);
}

TEST(QualityFit, PointsAfterTheBestDoNotCountIfTheTrainingDiverged) {
  RandomStream random(5, "test");
  RecordedRun run = drawn_run(random, {});
  const std::size_t all = run.points.size();
  EXPECT_EQ(useful_points(run.points).seen.ln_fid.size(), all);
  diverge(run, 6);
  const UsefulPoints useful = useful_points(run.points);
  EXPECT_TRUE(useful.diverged);
  EXPECT_EQ(useful.seen.ln_fid.size(), useful.best + 1);
}

TEST(QualityFit, AFileHoldsAllThatForecastsNeed) {
  RandomStream random(6, "test");
  std::vector<RecordedRun> runs = drawn_runs(random, {}, 6);
  diverge(runs[1], 5);
  QualityModel model = fit_quality(runs);
  model.sources = {"a test"};
  const std::string text = write_quality_model(model);
  const QualityModel again = read_quality_model(JsonNode::parse(text, "model.json"));
  EXPECT_EQ(write_quality_model(again), text);
  EXPECT_NEAR(prior_of(again, runs[0].kind).shape.mean[2], prior_of(model, runs[0].kind).shape.mean[2], 1e-4);
  EXPECT_EQ(again.runs.size(), 6U);
}

TEST(QualityFit, OneTrainingHasNoSpread) {
  RandomStream random(7, "test");
  EXPECT_THROW(fit_quality(drawn_runs(random, {}, 1)), ConfigError);
}

TEST(QualityModel, AWrongFileIsRefusedWithItsPlace) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      read_quality_model(JsonNode::parse(text, "model.json"));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  RandomStream random(8, "test");
  QualityModel model = fit_quality(drawn_runs(random, {}, 3));
  model.sources = {"a test"};
  std::string text = write_quality_model(model);
  EXPECT_EQ(error_of(text), "");
  model.spread.at(1, 1) = -0.5;
  EXPECT_THAT(error_of(write_quality_model(model)), testing::HasSubstr("model.json: /spread"));
  text.replace(text.find("\"backbone\""), 10, "\"backbonr\"");
  EXPECT_THAT(error_of(text), testing::HasSubstr("backbon"));
}

TEST(QualityModel, TheOneOfTheProgramNamesItsSource) {
  const QualityModel& model = embedded_quality_model();
  EXPECT_THAT(model.sources, testing::Contains(testing::HasSubstr("StudioGAN")));
  EXPECT_GT(model.runs.size(), 20U);
  // Each model that the program trains has a kind, so that `plan --model` can forecast it.
  for (const char* name : {"dcgan-64", "mlp-gan", "progressive-gan", "stylegan2"})
    EXPECT_FALSE(kind_of_model(name).levels[1].empty()) << name;
}

}  // namespace
}  // namespace ganymede::calibration
