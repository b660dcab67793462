// How far a training goes off the curve that its first points foretell.

#include <algorithm>
#include <cmath>

#include "calibration/quality/fit.hpp"
#include "common/random.hpp"
#include "common/statistics.hpp"

namespace ganymede::calibration {
namespace {

constexpr double kHeld = 0.9, kNormal90 = 1.6449;
/// Trainings with fewer useful points have hardly a first tenth.
constexpr std::size_t kFewestPoints = 10;

/// The least drift with which the end of the useful points lies within the interval of 90 % from their first tenth.
double needed_drift(const QualityModel& model, const ShapePrior& prior, const SeenCurve& all) {
  SeenCurve first;
  const double until = all.ln_images.back() - portable_log(10);
  for (std::size_t i = 0; i < all.ln_images.size(); ++i)
    if (i < 2 || all.ln_images[i] <= until)
      first.add(1e6 * portable_exp(all.ln_images[i]), portable_exp(all.ln_fid[i]));
  double noise = 0;
  const ShapeFit fit = fit_shape_and_noise(first, prior, model.noise, noise);
  const double end = all.ln_images.back();
  const double known = fit.covariance.form(log_fid_gradient(fit.shape, end)) + noise;
  const double off = (all.ln_fid.back() - log_fid(fit.shape, end)) / kNormal90;
  return std::sqrt(std::max(0.0, off * off - known) / (end - first.ln_images.back()));
}

}  // namespace

double fitted_drift(const QualityModel& model, const std::vector<RecordedRun>& runs) {
  std::vector<double> needed;
  for (const RecordedRun& run : runs) {
    const SeenCurve seen = useful_points(run.points).seen;
    if (seen.ln_fid.size() >= kFewestPoints)
      needed.push_back(needed_drift(model, prior_of(model, run.kind).shape, seen));
  }
  if (needed.empty()) return 0;
  std::sort(needed.begin(), needed.end());
  return quantile(needed, kHeld);
}

}  // namespace ganymede::calibration
