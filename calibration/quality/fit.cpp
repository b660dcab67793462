#include "calibration/quality/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/errors.hpp"
#include "common/random.hpp"
#include "common/statistics.hpp"

namespace ganymede::calibration {
namespace {

constexpr int kRounds = 60;
/// Where no training says anything: FID from 100 to 12, half way down after 4.5 million images, slope 1.2.
constexpr Shape kVague = {2.5, 4.5, 1.5, 0.2};
constexpr double kVagueVariance = 100;
/// Weak expectations of the variances, which count as one level, and as two trainings: effects of 15 % and spreads of
/// 20 %. Without them a factor of two levels would be estimated to have no effect at all.
constexpr double kEffectVariance = 0.02, kBatchEffectVariance = 0.03, kSpreadVariance = 0.04;
constexpr double kSpreadRuns = 2;
constexpr double kFirstNoise = 0.0025;

/// A training with what is known of it so far in the fit.
struct FittedCurve {
  UsefulPoints useful;
  std::vector<double> row;  ///< of the design matrix
  ShapeFit fit;
  double variance = kFirstNoise;
};

QualityModel with_levels(const std::vector<RecordedRun>& runs) {
  QualityModel model;
  model.effects.push_back({.factor = kOfAll, .level = "all", .value = kVague});
  model.effects.push_back({.factor = kOfBatch, .level = "ln(batch/128)"});
  for (std::size_t f = 0; f < kQualityFactors; ++f) {
    std::set<std::string> levels;
    for (const RecordedRun& run : runs) levels.insert(run.kind.levels.at(f));
    levels.erase("");
    for (const std::string& level : levels) model.effects.push_back({.factor = f, .level = level});
  }
  for (std::size_t f = 0; f < model.effect_variance.size(); ++f)
    model.effect_variance.at(f).fill(f == kOfAll ? kVagueVariance : f == kOfBatch ? 0.04 : 0.25);
  model.spread = Matrix::diagonal(std::array{0.5, 0.5, 1.0, 0.3});
  return model;
}

Shape mean_of(const QualityModel& model, const std::vector<double>& row) {
  Shape mean{};
  for (std::size_t i = 0; i < row.size(); ++i)
    for (std::size_t d = 0; d < kShapeSize; ++d) mean.at(d) += row[i] * model.effects[i].value.at(d);
  return mean;
}

/// Given the effects: the shape of each training.
void expect(const QualityModel& model, std::vector<FittedCurve>& curves) {
  for (FittedCurve& curve : curves) {
    const ShapePrior prior{mean_of(model, curve.row), model.spread};
    curve.fit = fit_shape(curve.useful.seen, prior, curve.variance, curve.fit.shape);
    curve.variance = (kNoisePoints * kFirstNoise + curve.fit.squares) / (kNoisePoints + curve.useful.seen.weight());
  }
}

/// Given the shapes: the effects on one member of the shape, and their covariance.
Matrix regress(QualityModel& model, const std::vector<FittedCurve>& curves, std::size_t d) {
  const std::size_t count = model.effects.size();
  Matrix precision = Matrix::diagonal(effect_precision(model, d));
  std::vector<double> right(count);
  right[0] = precision.at(0, 0) * kVague.at(d);
  for (const FittedCurve& curve : curves) {
    precision.add_outer(curve.row, 1 / model.spread.at(d, d));
    for (std::size_t i = 0; i < count; ++i) right[i] += curve.row[i] * curve.fit.shape.at(d) / model.spread.at(d, d);
  }
  Matrix covariance = inverse(precision);
  const std::vector<double> values = covariance.times(right);
  std::array<double, kQualityFactors + 2> squares{}, levels{};
  for (std::size_t i = 0; i < count; ++i) {
    QualityEffect& effect = model.effects[i];
    effect.value.at(d) = values[i];
    effect.sd.at(d) = std::sqrt(covariance.at(i, i));
    squares.at(effect.factor) += values[i] * values[i] + covariance.at(i, i);
    ++levels.at(effect.factor);
  }
  for (std::size_t f = 0; f < squares.size(); ++f)
    if (f != kOfAll)
      model.effect_variance.at(f).at(d) =
          ((f == kOfBatch ? kBatchEffectVariance : kEffectVariance) + squares.at(f)) / (1 + levels.at(f));
  return covariance;
}

void maximise(QualityModel& model, const std::vector<FittedCurve>& curves) {
  Matrix spread = Matrix::diagonal(std::vector<double>(kShapeSize, kSpreadVariance * kSpreadRuns));
  for (std::size_t d = 0; d < kShapeSize; ++d) {
    const Matrix covariance = regress(model, curves, d);
    for (const FittedCurve& curve : curves) spread.at(d, d) += covariance.form(curve.row);
  }
  for (const FittedCurve& curve : curves) {
    Shape off = curve.fit.shape;
    const Shape mean = mean_of(model, curve.row);
    for (std::size_t d = 0; d < kShapeSize; ++d) off.at(d) -= mean.at(d);
    spread.add_outer(off, 1);
    spread.add(curve.fit.covariance);
  }
  model.spread = Matrix(kShapeSize);
  model.spread.add(spread, 1 / (static_cast<double>(curves.size()) + kSpreadRuns));
}

/// Newton's method for the hazard: of `log_time` e-folds of images, each has the hazard exp(row * effects).
void fit_hazard(QualityModel& model, const std::vector<FittedCurve>& curves) {
  const std::vector<double> prior = hazard_precision(model);
  model.effects[0].hazard = kHazardMean;
  for (int round = 0; round < 50; ++round) {
    Matrix precision = Matrix::diagonal(prior);
    std::vector<double> gradient(prior.size());
    for (std::size_t i = 0; i < prior.size(); ++i)
      gradient[i] = -prior[i] * (model.effects[i].hazard - (i == 0 ? kHazardMean : 0));
    for (std::size_t r = 0; r < curves.size(); ++r) {
      double log_hazard = 0;
      for (std::size_t i = 0; i < prior.size(); ++i) log_hazard += curves[r].row[i] * model.effects[i].hazard;
      const double expected = model.runs[r].log_time * portable_exp(log_hazard);
      precision.add_outer(curves[r].row, expected);
      for (std::size_t i = 0; i < prior.size(); ++i)
        gradient[i] += curves[r].row[i] * ((model.runs[r].diverged ? 1 : 0) - expected);
    }
    const Matrix covariance = inverse(precision);
    const std::vector<double> step = covariance.times(gradient);
    for (std::size_t i = 0; i < prior.size(); ++i) {
      model.effects[i].hazard += std::clamp(step[i], -1.0, 1.0);
      model.effects[i].hazard_sd = std::sqrt(covariance.at(i, i));
    }
  }
}

/// Counts how often FID rose far above the best so far, and how often it fell below that again.
void count_rises(const std::vector<RecordedRun::Point>& points, QualityModel& model) {
  double best = points.front().fid;
  bool risen = false;
  for (const RecordedRun::Point& point : points) {
    if (point.fid > kDivergedAbove * best && !risen) {
      risen = true;
      ++model.rises;
    }
    if (point.fid >= best) continue;
    best = point.fid;
    if (risen) ++model.recovered;
    risen = false;
  }
}

/// How the best of a training lies below its curve, and the noise of most trainings.
void measure_noise(QualityModel& model, const std::vector<FittedCurve>& curves) {
  std::vector<double> variances;
  double sum = 0;
  for (const FittedCurve& curve : curves) {
    variances.push_back(curve.variance);
    const SeenCurve& seen = curve.useful.seen;
    const double best = *std::min_element(seen.ln_fid.begin(), seen.ln_fid.end());
    sum += (best - log_fid(curve.fit.shape, seen.ln_images.back())) / std::sqrt(curve.variance);
  }
  std::sort(variances.begin(), variances.end());
  model.noise = quantile(variances, 0.5);
  model.best = sum / static_cast<double>(curves.size());
}

}  // namespace

UsefulPoints useful_points(const std::vector<RecordedRun::Point>& points) {
  UsefulPoints out;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].fid < points[out.best].fid) out.best = i;
  out.diverged = points.back().fid > kDivergedAbove * points[out.best].fid;
  for (std::size_t i = 0; i < (out.diverged ? out.best + 1 : points.size()); ++i)
    out.seen.add(points[i].images, points[i].fid);
  return out;
}

QualityModel fit_quality(const std::vector<RecordedRun>& runs) {
  QualityModel model = fit_without_drift(runs);
  model.drift = fitted_drift(model, runs);
  return model;
}

QualityModel fit_without_drift(const std::vector<RecordedRun>& runs) {
  if (runs.size() < 2)
    throw ConfigError(
        fmt::format("found {} training, expected at least two: a spread between runs needs several", runs.size()));
  QualityModel model = with_levels(runs);
  std::vector<FittedCurve> curves;
  for (const RecordedRun& run : runs) {
    FittedCurve& curve = curves.emplace_back();
    curve.useful = useful_points(run.points);
    curve.row = model.design(run.kind);
    curve.fit.shape = kVague;
    curve.fit.shape[0] = *std::min_element(curve.useful.seen.ln_fid.begin(), curve.useful.seen.ln_fid.end());
    const double images = run.points[curve.useful.diverged ? curve.useful.best : run.points.size() - 1].images;
    model.runs.push_back({run.name, run.kind, run.points[curve.useful.best].fid,
                          std::max(0.0, portable_log(images / kFirstImages)), curve.useful.diverged});
    count_rises(run.points, model);
  }
  for (int round = 0; round < kRounds; ++round) {
    expect(model, curves);
    maximise(model, curves);
  }
  measure_noise(model, curves);
  fit_hazard(model, curves);
  return model;
}

}  // namespace ganymede::calibration
