#pragma once
// Where the FID of a training goes: how many images it takes to a target, whether it gets there, and how good it gets;
// from its kind alone, or also from the points that it has recorded so far.

#include "calibration/quality/fit.hpp"
#include "calibration/quality/shape.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {

// Shapes drawn from what a training's points and its kind say of its curve.

/// Draws `count` shapes from the posterior by Metropolis's random walk from `fit`. The posterior is far from normal
/// where points have not come near a floor: any lower floor fits them as well, which a normal distribution about the
/// most probable floor does not know. `variance` is that of a point's ln FID, as fit_shape() takes it.
std::vector<Shape> sample_shapes(const SeenCurve& seen, const ShapePrior& prior, double variance, const ShapeFit& fit,
                                 std::size_t count, RandomStream& random);

struct QualityInterval {
  double median = 0, low = 0, high = 0;  ///< the interval holds 90 %
};

struct TargetOutlook {
  double fid = 0;
  double probability = 0;    ///< to reach it within the horizon
  QualityInterval images{};  ///< of the trainings that ever reach it, within the horizon or later; all 0 if none does
  bool reached = false;      ///< the recorded points are there already: `images` is when
};

/// The lowest FID of the trainings after so many images.
struct OutlookPoint {
  double images = 0;
  QualityInterval best{};
};

struct QualityOutlook {
  double horizon = 0;      ///< images until which the training goes on
  double images_seen = 0;  ///< at the last point; 0 if there is none
  double best_seen = 0;    ///< lowest recorded FID; 0 if there is none
  bool diverged = false;   ///< the last point is above kDivergedAbove times the best
  std::vector<TargetOutlook> targets;
  QualityInterval best;             ///< lowest FID until the horizon
  std::vector<OutlookPoint> curve;  ///< from the last point, or kFirstImages, to the horizon
  std::vector<std::string> notes;   ///< sentences: why the answer is wide, or what it assumes
};

struct QualityQuestion {
  QualityKind kind;
  std::vector<RecordedRun::Point> points;  ///< may be empty; images ascend
  std::vector<double> targets;             ///< FIDs
  double horizon = 0;                      ///< 0: kHorizon, or ten times the images seen if that is more
};
/// Beyond what any recorded training was trained for; 8.2e8 images is the longest.
inline constexpr double kHorizon = 1e9;

/// Draws trainings: their shapes from the posterior, the images at which they diverge from the hazard, after which they
/// do not improve. The same question gets the same answer.
QualityOutlook forecast_quality(const QualityModel& model, const QualityQuestion& question);

}  // namespace ganymede::calibration
