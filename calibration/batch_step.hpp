#pragma once
// The time of a step at a batch size that was not measured, if only its total at one other size is known. BatchModel
// (batch_fit.hpp) does better where a trace has several sizes.

namespace ganymede::calibration {

/// Seconds of a step, with the ends of its 90 % interval.
struct StepAtBatch {
  double central_s = 0, low_s = 0, high_s = 0;
};

/// Seconds of a step that do not depend on the batch, for each network that is trained, on a GPU of 900 GB/s (V100):
/// launching kernels while the device idles, updates of the weights, kernels too short to fill the device. On another
/// GPU they are in proportion to the power -kFixedExponent of its memory bandwidth: part of them waits for the host and
/// part for the device. Each GPU alone asks for 66 ms (K80), 34 to 46 (P100), 36 to 52 (V100) and 24 (A100).
///
/// Fitted to published steps of 26 ms to 3 s (bench/step_fits.py): tf_benchmarks 2017 (batch 32 and 64 on K80 and
/// P100), Gavel's ResNet-50 and ResNet-18 (batch 16 to 256 on K80, P100 and V100), StyleGAN3-T on V100 and A100. Fitted
/// without one publication at a time, the mean errors of what is left out are 1.6 %, 6.6 %, 28 % and 3.6 %, where 50 ms
/// on any GPU are 1.9, 5.9, 26 and 6.1 % off and the square root of the ratio 28, 40, 27 and 34 %. Not fitted is
/// StyleGAN2-ADA (36 %, square root 15 %): in mixed precision launches bind there below batch 16; `launch_s` is for
/// that.
inline constexpr double kFixedPerNetwork_s = 0.036;
inline constexpr double kFixedExponent = 0.55;

/// The same on a GPU with this memory bandwidth in bytes/s.
double fixed_per_network(double bandwidth, double on_v100_s = kFixedPerNetwork_s, double exponent = kFixedExponent);

/// Returns the time of a step of `ratio` times the images, where a step took `measured_s`. A part of the step is fixed,
/// and the rest is in proportion to the images. The fixed part is F / (F + measured_s) of the step, where F is
/// `fixed_s` for each of `networks`: most of a short step, little of a long one. The interval takes F from a quarter to
/// eight times as long. `launch_s` is the least time of a step, that of launching its kernels; 0: unknown.
StepAtBatch step_at_batch(double measured_s, double ratio, int networks, double launch_s = 0,
                          double fixed_s = kFixedPerNetwork_s);

}  // namespace ganymede::calibration
