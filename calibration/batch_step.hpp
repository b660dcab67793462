#pragma once
// The time of a step at a batch size that was not measured, if only its total at one other size is known. BatchModel
// (batch_fit.hpp) does better where a trace has several sizes.

namespace ganymede::calibration {

/// Seconds of a step, with the ends of its 90 % interval.
struct StepAtBatch {
  double central_s = 0, low_s = 0, high_s = 0;
};

/// Seconds of a step that do not depend on the batch, for each network that is trained: launching kernels while the
/// device idles, updates of the weights, kernels too short to fill the device. Fitted to published steps on one GPU of
/// 26 ms to 3 s (bench/step_fits.py): tf_benchmarks 2017 (batch 32 and 64 on K80 and P100), Gavel's ResNet-50 and
/// ResNet-18 (batch 16 to 256 on K80, P100 and V100). Fitted without one set at a time it is 0.045 to 0.06 s, and the
/// mean errors of the set left out are 2 %, 6 % and 26 %, where the square root of the ratio is 28 %, 40 % and 27 %
/// off. Not fitted, because studies predict them, are StyleGAN3 (3 % off, the square root 35 %) and StyleGAN2-ADA (32
/// %, 15 %). The latter in mixed precision is what the rule does not describe, because launches bind there below batch
/// 16; `launch_s` is for that.
inline constexpr double kFixedPerNetwork_s = 0.050;

/// Returns the time of a step of `ratio` times the images, where a step took `measured_s`. A part of the step is fixed,
/// and the rest is in proportion to the images. The fixed part is F / (F + measured_s) of the step, where F is
/// kFixedPerNetwork_s for each of `networks`: most of a short step, little of a long one. The interval takes F from a
/// quarter to eight times as long. `launch_s` is the least time of a step, that of launching its kernels; 0: unknown.
StepAtBatch step_at_batch(double measured_s, double ratio, int networks, double launch_s = 0);

}  // namespace ganymede::calibration
