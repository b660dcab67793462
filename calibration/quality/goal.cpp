#include "calibration/quality/goal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/quality/foreign.hpp"
#include "common/errors.hpp"
#include "common/json.hpp"

namespace ganymede::calibration {
namespace {

/// The least FID for which the price of a point less is asked.
constexpr double kLeastFid = 0.1;

}  // namespace

QualityGoal QualityGoal::read(const JsonNode& node, const std::string& model) {
  JsonObject in(node);
  QualityGoal goal;
  goal.fid_ = in.required("fid").as_number(1e-3, 1e6);
  const auto curve = in.optional("curve");
  if (const std::string why = why_no_forecast(model, "a \"curve\" (--curve)"); !curve && !why.empty()) node.fail(why);
  goal.model_ = curve ? load_quality_model(curve->directory() / curve->as_string()) : embedded_quality_model();
  goal.kind_ = kind_of_model(model);
  const auto dataset = in.optional("dataset"), reference = in.optional("reference");
  for (std::size_t f = 0; f < kQualityFactors; ++f)
    if (const auto level = in.optional(kQualityFactorNames.at(f)); level && f != kDatasetFactor)
      goal.kind_.levels.at(f) = level->as_string();
  goal.kind_.levels[kDatasetFactor] =
      dataset_level(dataset ? dataset->as_string() : "", reference ? reference->as_string() : "");
  goal.kind_ = with_usual_case(goal.kind_);
  if (reference) goal.reference_ = reference->as_string();
  in.finish();
  return goal;
}

QualityOutlook QualityGoal::given(const std::vector<RecordedRun::Point>& points, const std::string& reference,
                                  double batch, double horizon) const {
  if (!reference_.empty() && !reference.empty() && reference != reference_)
    throw ConfigError(
        fmt::format("the goal's FID compares with \"{}\", the run's with \"{}\": figures of different "
                    "references cannot be compared",
                    reference_, reference));
  QualityQuestion question{kind_, points, {fid_}, horizon};
  question.kind.batch = batch;
  return forecast_quality(model_, question);
}

const QualityOutlook& QualityGoal::outlook(double batch) const {
  const auto known = known_.find(batch);
  if (known != known_.end()) return known->second;
  QualityQuestion question{kind_, {}, {fid_}, 0};
  question.kind.batch = batch;
  if (fid_ - 1 >= kLeastFid) question.targets.push_back(fid_ - 1);
  return known_.emplace(batch, forecast_quality(model_, question)).first->second;
}

const TargetOutlook& QualityGoal::at(double batch) const {
  const QualityOutlook& all = outlook(batch);
  if (all.targets[0].images.median > 0) return all.targets[0];
  throw Infeasible(fmt::format(
      "hardly any training of this kind gets to an FID of {:g} within {:.3g} images; its best is {:.3g} ({:.3g} to "
      "{:.3g})",
      fid_, all.horizon, all.best.median, all.best.low, all.best.high));
}

std::int64_t QualityGoal::images(double batch) const {
  return std::max<std::int64_t>(1, std::llround(std::ceil(outlook(batch).targets[0].images.median)));
}

std::optional<double> QualityGoal::factor_of_a_point(double batch) const {
  const QualityOutlook& all = outlook(batch);
  if (all.targets.size() < 2 || !(all.targets[0].images.median > 0) || !(all.targets[1].images.median > 0)) return {};
  return std::max(1.0, all.targets[1].images.median / all.targets[0].images.median);
}

std::string QualityGoal::text(double batch) const {
  const TargetOutlook& target = at(batch);
  return fmt::format(
      "an FID of {:g} takes {:.3g} images at a batch of {:g} in all, {:.3g} to {:.3g} in 90 % of the trainings that "
      "get "
      "there; {:.0f} % of them never do",
      fid_, target.images.median, batch, target.images.low, target.images.high, 100 * (1 - target.probability));
}

std::vector<std::string> QualityGoal::notes(double batch) const { return outlook(batch).notes; }

}  // namespace ganymede::calibration
