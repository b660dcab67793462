#pragma once
// Carries a phase's time from one GPU to another: what trainings reach of the two GPUs' limits decides, and the time
// that the phase took on the first one.

#include <string_view>

#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

/// The rates that trainings reach on a device, not those of its data sheet.
struct TrainingLimits {
  double flops = 0;    ///< of convolutions and matrix products with their gradients, in FLOP/s
  double bytes = 0;    ///< of kernels that only move data, in bytes/s
  bool known = false;  ///< the shares of the data sheet's rates were measured for this kind of GPU
  bool tf32 = false;   ///< a framework runs the trace's fp32 convolutions and products in TF32 there
};

/// The limits of a platform's device for a trace's precision. PyTorch and TensorFlow convolve fp32 numbers in TF32
/// where the GPU can (Ampere and later), so an "fp32" trace of theirs meets the TF32 rate there.
TrainingLimits training_limits(const traces::StepTrace& trace, const platforms::Gpu& gpu);

/// The limits of the device that recorded the trace. For a kind of GPU that is known by name they do not depend on
/// whether the trace states measured rates or those of a data sheet.
TrainingLimits recorded_limits(const traces::StepTrace& trace);

/// Seconds that a phase takes on the target, if it took `measured_s` on the source. The phase's FLOPs and bytes say
/// which share of its time follows which limit. Without bytes, what the FLOPs do not explain is taken to move data;
/// without either, kUnknownFlopShare holds.
double carried_s(const traces::TracePhase& phase, double measured_s, const TrainingLimits& source,
                 const TrainingLimits& target);

/// Half of the 95 % interval of ln(predicted / true) between the two GPUs. `counted`: the FLOPs are known.
double transfer_error(const TrainingLimits& source, const TrainingLimits& target, bool counted);

/// The share of a step of unknown composition that follows the rate of arithmetic: the middle of the convolutional
/// networks of `carried_s`'s fit, whose FLOPs take 0.5 to 0.8 of their time.
inline constexpr double kUnknownFlopShare = 0.6;

/// True if the kind of GPU is in the table, and so has a tensor-core rate even if a platform does not state it.
bool has_tensor_cores(std::string_view gpu);

}  // namespace ganymede::calibration
