#include "calibration/quality/policies.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "calibration/quality/outlook_report.hpp"
#include "common/json_value.hpp"
#include "support/drawn_runs.hpp"

namespace ganymede::calibration {
namespace {

/// A kind of which two in three trainings diverge after some millions of images.
const QualityModel& fragile() {
  static const QualityModel model = [] {
    RandomStream random(21, "test");
    std::vector<RecordedRun> runs = drawn_runs(random, {}, 30);
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (i % 3 != 0) diverge(runs[i], 5 + i % 4);
    return fit_quality(runs);
  }();
  return model;
}

PolicyOutlook of(const PolicyComparison& all, const std::string& name) {
  for (const PolicyOutlook& one : all.policies)
    if (one.name == name) return one;
  ADD_FAILURE() << name;
  return {};
}

PolicyComparison compare(int seeds) {
  return compare_quality_policies(fragile(), {fragile().runs[0].kind, 18, 1e8, 1e6, seeds});
}

TEST(QualityPolicies, ARestartGetsThereMoreOftenAndIsBilled) {
  const PolicyComparison all = compare(4);
  const PolicyOutlook once = of(all, "train-on"), again = of(all, "restart-if-diverged");
  EXPECT_GT(again.probability, once.probability + 0.1);
  EXPECT_GT(again.mean_trainings, 1.2);
  // A training that diverged is given up, so that more trainings need not take more images than one until its end.
  EXPECT_LT(again.mean_images / again.probability, once.mean_images / once.probability);
  EXPECT_EQ(once.mean_trainings, 1);
}

TEST(QualityPolicies, EarlyStoppingSavesTheImagesOfTrainingsThatDiverged) {
  const PolicyComparison all = compare(4);
  EXPECT_LT(of(all, "early-stop").mean_images, 0.7 * of(all, "train-on").mean_images);
  EXPECT_LE(of(all, "early-stop").probability, of(all, "train-on").probability);
}

TEST(QualityPolicies, HalvingBeginsWithAllSeedsAndIsOneTrainingWithOne) {
  const PolicyComparison eight = compare(8), one = compare(1);
  EXPECT_EQ(of(eight, "halving").mean_trainings, 8);
  EXPECT_GT(of(eight, "halving").probability, of(eight, "train-on").probability);
  EXPECT_EQ(of(one, "halving").probability, of(one, "train-on").probability);
  EXPECT_EQ(of(one, "halving").mean_images, of(one, "train-on").mean_images);
}

TEST(QualityPolicies, ImagesAreThoseOfEvaluations) {
  const PolicyComparison all = compare_quality_policies(fragile(), {fragile().runs[0].kind, 18, 1e8, 5e6, 1});
  EXPECT_EQ(std::fmod(of(all, "train-on").images.median, 5e6), 0);
}

TEST(QualityPolicies, ATargetThatIsOutOfReachHasNoHorizonOfItsOwn) {
  EXPECT_TRUE(compare_quality_policies(fragile(), {fragile().runs[0].kind, 0.01, 0, 1e6, 4}).policies.empty());
}

TEST(QualityPolicies, AreATableAndADocument) {
  const PolicyQuestion question{fragile().runs[0].kind, 18, 1e8, 1e6, 4};
  const PolicyComparison all = compare(4);
  const OrderedJson json = to_json(question, all, 2);
  EXPECT_EQ(json.at("horizon_images"), 1e8);
  const OrderedJson& first = json.at("policies").at(0);
  EXPECT_EQ(first.at("usd").get<double>(), first.at("mean_images").get<double>() * 1e-6 * 2);
  EXPECT_TRUE(to_json(question, all, 0).at("policies").at(0).at("usd").is_null());
  const std::string table = to_table(question, all, 0);
  for (const PolicyOutlook& one : all.policies) EXPECT_NE(table.find(one.name + ": " + one.summary), std::string::npos);
}

}  // namespace
}  // namespace ganymede::calibration
