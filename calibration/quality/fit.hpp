#pragma once
// Fits a model of quality to recorded trainings: `ganymede quality fit`.

#include "calibration/quality/model.hpp"

namespace ganymede::calibration {

struct RecordedRun {
  std::string name;
  QualityKind kind;
  struct Point {
    double images = 0, fid = 0;
  };
  std::vector<Point> points;  ///< in ascending order of images; at least one
};

/// The points that follow the curve: all, or those up to the best if the training diverged after it.
struct UsefulPoints {
  SeenCurve seen;
  std::size_t best = 0;   ///< index of the lowest FID
  bool diverged = false;  ///< the last point is above kDivergedAbove times the best
};
UsefulPoints useful_points(const std::vector<RecordedRun::Point>& points);

/// The least drift with which 90 % of the points after a tenth, a fifth and a half of a training lie, in the mean over
/// the trainings, where the points before put them with a probability of 90 %; 0 if no training has points enough. What
/// is known beforehand of a training is what a model of the other datasets knows, as most people train on data that no
/// recorded training has.
double fitted_drift(const QualityModel& model, const std::vector<RecordedRun>& runs);
/// A model whose drift is 0.
QualityModel fit_without_drift(const std::vector<RecordedRun>& runs);

/// Fits by expectation and maximisation: each training's shape is normally distributed about the sum of the effects of
/// its kind, so given the effects each shape has a posterior (fit_shape), and given the shapes the effects follow from
/// ridge regressions whose strengths are the variances of the effects, which are estimated too. The hazard of
/// divergence is an exponential regression over ln(images). Throws ConfigError if there are fewer than two trainings.
QualityModel fit_quality(const std::vector<RecordedRun>& runs);

}  // namespace ganymede::calibration
