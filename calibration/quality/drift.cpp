// How far a training goes off the curve that its first points foretell.

#include <array>
#include <map>

#include "calibration/quality/fit.hpp"
#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

constexpr double kHeld = 0.9, kNormal90 = 1.6449;
/// Forecasts are made after a tenth, a fifth and a half of a training.
constexpr std::array kForecastAfter = {10.0, 5.0, 2.0};
/// Trainings with fewer useful points have hardly a first tenth.
constexpr std::size_t kFewestPoints = 10;

/// Narrower than this the drift is not known: a few dozen trainings hold or do not.
constexpr double kMostDrift = 2, kExact = 1e-3;

struct LeftOut {
  ShapePrior prior;  ///< what a model of the other datasets knows
  SeenCurve first, later;
};

/// The share of the points after the first ones that lie within the interval of 90 % from there.
double held(const QualityModel& model, const LeftOut& run, double drift) {
  const SeenCurve first = run.first.from_its_end(drift, model.noise);
  double noise = 0, count = 0;
  const ShapeFit fit = fit_shape_and_noise(first, run.prior, model.noise, noise);
  for (std::size_t i = 0; i < run.later.ln_fid.size(); ++i) {
    const double at = run.later.ln_images[i];
    const double known = fit.covariance.form(log_fid_gradient(fit.shape, at)) + noise;
    const double off = (run.later.ln_fid[i] - log_fid(fit.shape, at)) / kNormal90;
    count += off * off <= known + drift * drift * (at - first.ln_images.back()) ? 1 : 0;
  }
  return count / static_cast<double>(run.later.ln_fid.size());
}

}  // namespace

double fitted_drift(const QualityModel& model, const std::vector<RecordedRun>& runs) {
  std::vector<LeftOut> left_out;
  std::map<std::string, QualityModel> elsewhere;  // by dataset: the model of all others
  for (const RecordedRun& run : runs) {
    const SeenCurve seen = useful_points(run.points).seen;
    if (seen.ln_fid.size() < kFewestPoints) continue;
    const auto [found, is_new] = elsewhere.try_emplace(run.kind.levels[kDatasetFactor], model);
    if (is_new) {
      std::vector<RecordedRun> others;
      for (const RecordedRun& other : runs)
        if (other.kind.levels[kDatasetFactor] != found->first) others.push_back(other);
      if (others.size() >= 2) found->second = fit_without_drift(others);
    }
    for (const double part : kForecastAfter) {
      LeftOut& one = left_out.emplace_back(LeftOut{prior_of(found->second, run.kind).shape, SeenCurve{}, SeenCurve{}});
      for (std::size_t i = 0; i < seen.ln_images.size(); ++i)
        (i < 2 || seen.ln_images[i] <= seen.ln_images.back() - portable_log(part) ? one.first : one.later)
            .add(1e6 * portable_exp(seen.ln_images[i]), portable_exp(seen.ln_fid[i]));
    }
  }
  if (left_out.empty()) return 0;
  const auto enough = [&](double drift) {
    double sum = 0;
    for (const LeftOut& run : left_out) sum += held(model, run, drift);
    return sum >= kHeld * static_cast<double>(left_out.size());
  };
  if (enough(0)) return 0;
  double low = 0, high = kMostDrift;
  while (high - low > kExact) (enough((low + high) / 2) ? high : low) = (low + high) / 2;
  return high;
}

}  // namespace ganymede::calibration
