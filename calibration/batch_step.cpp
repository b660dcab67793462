#include "calibration/batch_step.hpp"

#include <algorithm>

#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

// The range of the fixed part, and what else a published figure is off. The interval then holds 93 to 100 % of the
// pairs of each set that kFixedPerNetwork_s is fitted to, and seven of eight of StyleGAN2-ADA's, which is not.
constexpr double kMinFixed = 0.25, kMaxFixed = 8;
constexpr double kRepeat = 0.05;

}  // namespace

double fixed_per_network(double bandwidth, double on_v100_s, double exponent) {
  constexpr double kBandwidthOfV100 = 900e9;
  return on_v100_s * portable_exp(exponent * portable_log(kBandwidthOfV100 / bandwidth));
}

StepAtBatch step_at_batch(double measured_s, double ratio, int networks, double launch_s, double fixed_s) {
  if (ratio == 1) return {measured_s, measured_s, measured_s};
  const auto with_fixed = [&](double factor) {
    const double fixed = factor * fixed_s * std::max(1, networks);
    const double share = fixed / (fixed + measured_s);
    return std::max(measured_s * (share + (1 - share) * ratio), std::min(launch_s, measured_s));
  };
  const double least = with_fixed(kMinFixed), most = with_fixed(kMaxFixed);
  return {with_fixed(1), std::min(least, most) / (1 + kRepeat), std::max(least, most) * (1 + kRepeat)};
}

}  // namespace ganymede::calibration
