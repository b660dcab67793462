// Plans to an FID: the images that trainings take pass through whole runs.

#include <gtest/gtest.h>

#include "plan/candidate_scenarios.hpp"
#include "plans.hpp"
#include "sim/run/simulate.hpp"
#include "sim/scenario/scenario.hpp"
#include "support/when.hpp"

namespace ganymede::plan {
namespace {

/// One L4 of gcp trains a DCGAN to an FID of 60, which takes 1.08M images in the median.
class QualityPlans : public Plans {
 protected:
  QualityPlans() {
    content["workload"] = Json::parse(R"({ "model": "dcgan-64", "batch_per_gpu": 64,
      "quality": { "fid": 60, "dataset": "CIFAR10", "reference": "test 10000" } })");
    content["search"] = Json::parse(R"({ "catalogs": ["gcp"], "gpus": ["L4"], "regions": ["us-central1"],
      "markets": ["on-demand"], "instances": ["g2-standard-4"], "max_gpus": 1, "certainty": 0.3, "seeds": 2 })");
  }
  /// Seconds of the run of a training that gets there after so many images.
  static double run_s(const Request& of, const PlanCandidate& candidate, double images) {
    sim::Scenario scenario = CandidateScenarios(of).scenario(candidate);
    sim::train_to_fid(scenario, std::llround(images));
    return sim::simulate(scenario).total.si;
  }
};

// The nodes boot for as long with few images as with many: the ends of the interval of time are nearer than those of
// the images, but for what is not known of a step.
TEST_F(QualityPlans, OnlyWhatIsTrainedGrowsWithTheImages) {
  NOT_SANITIZED("draws thousands of trainings");
  const Request of = request();
  const Plan known = make_plan(of, {});
  ASSERT_TRUE(known.best);
  const PlanCandidate& chosen = known.candidates.all[*known.best];
  const PlannedRun& run = known.runs[*known.best];
  const calibration::QualityInterval images = of.quality->at(64).images;
  const double boot_s = of.catalogs[0].platform->boot(*chosen.instance).median.si;
  EXPECT_EQ(run.seeds, 15);  // five for each of three seeds, an odd number
  EXPECT_NEAR(run.time_s.median, run_s(of, chosen, images.median), 0.15 * run.time_s.median);
  // A step may take half to twice as long as said, and more in a case of ten.
  EXPECT_GT(run.time_s.low, boot_s + 0.4 * (run_s(of, chosen, images.low) - boot_s));
  EXPECT_LE(run.time_s.low, 1.05 * run_s(of, chosen, images.low));
  EXPECT_GE(run.time_s.high, 0.95 * run_s(of, chosen, images.high));
  EXPECT_LT(run.time_s.high, boot_s + 2.5 * (run_s(of, chosen, images.high) - boot_s));
  // What an image more costs is the time that it takes.
  const double more_h = (run_s(of, chosen, 2 * images.median) - run_s(of, chosen, images.median)) / 3600;
  EXPECT_NEAR(run.usd_per_image * images.median, more_h * 1e-6 * static_cast<double>(price_of(chosen).value), 5e-3);
  const Json curve = json()["chosen"]["quality"]["curve"];
  EXPECT_GT(curve[0]["usd"].get<double>(), 0.9 * boot_s / 3600 * 1e-6 * static_cast<double>(price_of(chosen).value));
}

// No training ends before its first evaluation, of 13 minutes after 1M images, whatever its luck.
TEST_F(QualityPlans, ATrainingEndsAtAnEvaluation) {
  NOT_SANITIZED("draws thousands of trainings");
  content["evaluation"] = {{"every", "1000000 images"}, {"fixed", "13min"}};
  content["search"]["certainty"] = 0.01;
  content["deadline"] = "13min";
  const Request of = request();
  const Plan none = make_plan(of, {});
  EXPECT_FALSE(none.best);
  ASSERT_FALSE(none.near_misses.empty());
  EXPECT_EQ(none.runs[none.near_misses.front()].probability, 0);
  EXPECT_GT(none.runs[none.near_misses.front()].time_s.low, 13 * 60);

  const sim::Scenario median = CandidateScenarios(of).scenario(none.candidates.all.front());
  EXPECT_EQ(median.images, 2'000'000);  // the first evaluation after 1.08M
  sim::Scenario scenario = median;
  for (const auto& [images, until] : {std::pair{1, 1'000'000}, {1'000'000, 1'000'000}, {1'000'001, 2'000'000}}) {
    sim::train_to_fid(scenario, images);
    EXPECT_EQ(scenario.images, until) << images;
    EXPECT_EQ(scenario.steps, (until + 63) / 64) << images;
  }
}

}  // namespace
}  // namespace ganymede::plan
