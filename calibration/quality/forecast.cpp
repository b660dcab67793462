#include "calibration/quality/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/random.hpp"
#include "common/statistics.hpp"

namespace ganymede::calibration {
namespace {

constexpr int kDraws = 4000;
constexpr double kNever = std::numeric_limits<double>::infinity();
/// Fewer trainings than this that reach a target say nothing about when.
constexpr std::size_t kFewestReached = 20;

/// One training as it may go.
struct DrawnTraining {
  Shape shape{};
  double log_end = 0;     ///< ln of the millions of images at which it diverges; it improves until then
  double log_offset = 0;  ///< ln of the best evaluation so far over the curve
};

struct Posterior {
  ShapePrior shape;
  double noise = 0;
  UsefulPoints useful;
};

Posterior posterior_of(const QualityModel& model, const QualityPrior& prior, const QualityQuestion& question) {
  Posterior out{prior.shape, model.noise, {}};
  if (question.points.empty()) return out;
  out.useful = useful_points(question.points);
  const ShapeFit fit = fit_shape_and_noise(out.useful.seen, prior.shape, model.noise, model.discount, out.noise);
  out.shape = {fit.shape, fit.covariance};
  return out;
}

std::vector<DrawnTraining> draw(const QualityModel& model, const QualityPrior& prior, const Posterior& posterior,
                                double last_images) {
  RandomStream random(1, "calibration/quality");
  const Matrix lower = cholesky(posterior.shape.covariance);
  const double log_last = portable_log(std::max(kFirstImages, last_images) / 1e6);
  // A training that has risen far above its best seldom comes back; one rise and one return are added to those seen.
  const double comes_back = (model.recovered + 1.0) / (model.rises + 2.0);
  std::vector<DrawnTraining> out(kDraws);
  for (DrawnTraining& drawn : out) {
    std::array<double, kShapeSize> normal{};
    for (double& value : normal) value = random.normal();
    for (std::size_t i = 0; i < kShapeSize; ++i) {
      drawn.shape.at(i) = posterior.shape.mean.at(i);
      for (std::size_t j = 0; j <= i; ++j) drawn.shape.at(i) += lower.at(i, j) * normal.at(j);
    }
    const double log_hazard = prior.log_hazard + prior.log_hazard_sd * random.normal();
    drawn.log_end = log_last + random.exponential() / portable_exp(std::clamp(log_hazard, -30.0, 30.0));
    drawn.log_offset = std::sqrt(posterior.noise) * (model.best + random.normal());
    if (random.uniform() >= comes_back && posterior.useful.diverged) drawn.log_end = -kNever;
  }
  return out;
}

QualityInterval interval_of(std::vector<double>& logs, double factor) {
  std::sort(logs.begin(), logs.end());
  const auto at = [&](double share) { return factor * portable_exp(quantile(logs, share)); };
  return {at(0.5), at(0.05), at(0.95)};
}

/// Images at which the points first reached `fid`, on a straight line over ln(images); nothing if they did not.
std::optional<double> reached_at(const std::vector<RecordedRun::Point>& points, double fid) {
  const RecordedRun::Point* before = nullptr;  // the best so far
  for (const RecordedRun::Point& point : points) {
    if (point.fid <= fid) {
      if (!before) return point.images;
      const double from = portable_log(before->images), to = portable_log(point.images);
      return portable_exp(from + (to - from) * (before->fid - fid) / (before->fid - point.fid));
    }
    if (!before || point.fid < before->fid) before = &point;
  }
  return std::nullopt;
}

TargetOutlook outlook_of(const std::vector<DrawnTraining>& drawn, const QualityQuestion& question, double fid,
                         double log_seen, double log_horizon) {
  TargetOutlook out{.fid = fid};
  if (const auto at = reached_at(question.points, fid)) {
    out.reached = true;
    out.probability = 1;
    out.images = {*at, *at, *at};
    return out;
  }
  std::vector<double> logs;
  for (const DrawnTraining& training : drawn) {
    const double at = std::max(log_seen, log_images_to(training.shape, fid * portable_exp(-training.log_offset)));
    if (at <= training.log_end && at <= log_horizon) logs.push_back(at);
  }
  out.probability = static_cast<double>(logs.size()) / kDraws;
  if (logs.size() >= kFewestReached) out.images = interval_of(logs, 1e6);
  return out;
}

QualityInterval best_by_horizon(const std::vector<DrawnTraining>& drawn, double best_seen, double log_horizon) {
  std::vector<double> logs;
  for (const DrawnTraining& training : drawn) {
    double log_best = best_seen > 0 ? portable_log(best_seen) : kNever;
    if (training.log_end > -kNever)
      log_best =
          std::min(log_best, log_fid(training.shape, std::min(training.log_end, log_horizon)) + training.log_offset);
    logs.push_back(log_best);
  }
  return interval_of(logs, 1);
}

std::vector<std::string> notes_of(const QualityModel& model, const QualityQuestion& question,
                                  const UsefulPoints& useful, const QualityOutlook& outlook) {
  std::vector<std::string> notes;
  const std::string& dataset = question.kind.levels[kDatasetFactor];
  for (const std::size_t factor : model.unknown(question.kind)) {
    const std::string& level = question.kind.levels.at(factor);
    notes.push_back(level.empty()
                        ? fmt::format("the {} is not stated, which widens the answer", kQualityFactorNames.at(factor))
                        : fmt::format("no recorded training has the {} \"{}\", which widens the answer",
                                      kQualityFactorNames.at(factor), level));
  }
  if (question.points.size() == 1) notes.push_back("one point alone says little about where the curve goes");
  if (useful.diverged)
    notes.push_back(
        fmt::format("the last FID is above {} times the best, {:.4g}: of {} trainings that rose so, {} "
                    "fell below their best again",
                    kDivergedAbove, outlook.best_seen, model.rises, model.recovered));
  else if (question.points.size() > 1 && question.points.back().fid > question.points.front().fid)
    notes.push_back("FID has risen since the first point; the answer is mostly that of other trainings of its kind");
  if (const double best = model.best_of(dataset); best > 0)
    for (const double fid : question.targets)
      if (fid < best)
        notes.push_back(
            fmt::format("an FID of {:g} is below the best of all recorded trainings of {}, {:g}", fid, dataset, best));
  for (const TargetOutlook& target : outlook.targets)
    if (target.images.median == 0)
      notes.push_back(fmt::format("hardly any training of this kind gets to an FID of {:g} within {:.3g} images",
                                  target.fid, outlook.horizon));
  return notes;
}

}  // namespace

QualityOutlook forecast_quality(const QualityModel& model, const QualityQuestion& question) {
  QualityOutlook out;
  for (const RecordedRun::Point& point : question.points) {
    out.images_seen = point.images;
    out.best_seen = out.best_seen > 0 ? std::min(out.best_seen, point.fid) : point.fid;
  }
  out.horizon = question.horizon > 0 ? question.horizon : std::max(kHorizon, 10 * out.images_seen);
  const QualityPrior prior = prior_of(model, question.kind);
  const Posterior posterior = posterior_of(model, prior, question);
  out.diverged = posterior.useful.diverged;
  const std::vector<DrawnTraining> drawn = draw(model, prior, posterior, out.images_seen);
  const double log_seen = portable_log(std::max(kFirstImages, out.images_seen) / 1e6);
  const double log_horizon = portable_log(out.horizon / 1e6);
  for (const double fid : question.targets)
    out.targets.push_back(outlook_of(drawn, question, fid, log_seen, log_horizon));
  out.best = best_by_horizon(drawn, out.best_seen, log_horizon);
  out.notes = notes_of(model, question, posterior.useful, out);
  return out;
}

}  // namespace ganymede::calibration
