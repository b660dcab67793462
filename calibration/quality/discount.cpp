// How much the points of a training say of where its curve goes on.

#include <cmath>

#include "calibration/quality/fit.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

constexpr double kMostDiscount = 64;
constexpr double kHeld = 0.9, kNormal90 = 1.6449;
/// Trainings with fewer useful points have hardly a first tenth.
constexpr std::size_t kFewestPoints = 10;

/// True if the end of the useful points lies within the interval of 90 % from their first tenth.
bool foretold(const QualityModel& model, const ShapePrior& prior, const SeenCurve& all, double discount) {
  SeenCurve first;
  const double until = all.ln_images.back() - portable_log(10);
  for (std::size_t i = 0; i < all.ln_images.size(); ++i)
    if (i < 2 || all.ln_images[i] <= until)
      first.add(1e6 * portable_exp(all.ln_images[i]), portable_exp(all.ln_fid[i]));
  double noise = 0;
  const ShapeFit fit = fit_shape_and_noise(first, prior, model.noise, discount, noise);
  const double end = all.ln_images.back();
  const double variance = fit.covariance.form(log_fid_gradient(fit.shape, end)) + noise;
  return std::abs(all.ln_fid.back() - log_fid(fit.shape, end)) <= kNormal90 * std::sqrt(variance);
}

}  // namespace

double fitted_discount(const QualityModel& model, const std::vector<RecordedRun>& runs) {
  double discount = 1;
  for (; discount < kMostDiscount; discount *= 2) {
    int held = 0, count = 0;
    for (const RecordedRun& run : runs) {
      const SeenCurve seen = useful_points(run.points).seen;
      if (seen.ln_fid.size() < kFewestPoints) continue;
      ++count;
      held += foretold(model, prior_of(model, run.kind).shape, seen, discount) ? 1 : 0;
    }
    if (held >= kHeld * count) break;
  }
  return discount;
}

}  // namespace ganymede::calibration
