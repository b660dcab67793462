// The spreads of workers: fitted to published weak scaling, and used without the study that is predicted.

#include "studies/variation_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "calibration/statistics.hpp"
#include "calibration/worker_variation.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"
#include "studies/validation.hpp"
#include "support/when.hpp"

namespace ganymede::studies {
namespace {

std::vector<documents::ValidatedStudy> variation_results() {
  std::vector<documents::ValidatedStudy> out;
  for (const std::string& name : variation_studies())
    out.push_back(run_validation(read_validation(JsonNode::parse(embedded_validation(name), name))));
  return out;
}

// The constants are rounded to the fit's grid; what counts is that they are no worse than the best ones.
TEST(DefaultSpreads, AreFittedToTheStudiesThatTheyName) {
  NOT_SANITIZED("repeats every study, which other tests run once");
  const auto all = variation_rows(variation_results());
  for (const bool eager : {true, false}) {  // the deviation is fitted in steps of 5e-4
    std::vector<VariationRow> rows;
    std::copy_if(all.begin(), all.end(), std::back_inserter(rows), [&](const auto& row) { return row.eager == eager; });
    const calibration::WorkerVariation& used = eager ? calibration::kEagerVariation : calibration::kGraphVariation;
    const VariationFit fit = fit_variation(rows);
    EXPECT_NEAR(used.central, fit.deviation, 5.1e-4) << (eager ? "eager" : "graph");
    EXPECT_NEAR(used.seconds_per_byte * 1e9, fit.per_gigabyte, 2e-3) << (eager ? "eager" : "graph");
  }
}

// The expected value is the median of the 4 rows of BERT pre-training, which reduces only every few hundred steps.
TEST(DefaultSpreads, KeepWhatBertPreTrainingKeeps) {
  const OrderedJson study = OrderedJson::parse(embedded_validation("dgx1_weak_scaling"));
  std::vector<double> deviations;
  for (const OrderedJson& series : study["series"])
    if (series["name"].get<std::string>().starts_with("BERT"))
      deviations.push_back(
          (8 * series["cells"][0]["measured"].get<double>() / series["cells"][1]["measured"].get<double>() - 1) /
          1.4236);  // Harter, Biometrika 48 (1961)
  ASSERT_EQ(deviations.size(), 4U);
  std::sort(deviations.begin(), deviations.end());
  EXPECT_NEAR(calibration::kGraphVariation.between, quantile(deviations, 0.5), 5e-5);
  EXPECT_EQ(calibration::kEagerVariation.between, calibration::kGraphVariation.between);
}

// Each study of the fit is predicted with constants that have not seen it.
TEST(DefaultSpreads, StudiesOfTheFitUseTheFitWithoutThem) {
  NOT_SANITIZED("repeats every study, which other tests run once");
  for (const LeftOut& row : leave_one_out(variation_results())) {
    if (!row.deviation) continue;  // recorded, not fitted again
    const OrderedJson study = OrderedJson::parse(embedded_validation(row.study));
    const OrderedJson& used =
        study["worker_variation"][row.constant == "workers of eager executors" ? "eager" : "graph"];
    EXPECT_NEAR(used["deviation"].get<double>(), *row.deviation, 5e-4) << row.constant << row.study;
    EXPECT_NEAR(parse_quantity<Seconds>(used["per_gigabyte"].get<std::string>()).si, *row.per_gigabyte_s, 2e-3)
        << row.constant << row.study;
  }
}

}  // namespace
}  // namespace ganymede::studies
