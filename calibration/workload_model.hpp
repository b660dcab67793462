#pragma once
// From a step trace to what a worker does on the device of a scenario: as measured where it is the same device, carried
// over by roofline where it is not. Both say where the numbers come from and how far to trust them.

#include <string>
#include <string_view>
#include <vector>

#include "calibration/spread.hpp"
#include "calibration/step_model.hpp"
#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede {

enum class Provenance {
  measured,
  transferred,  ///< measured on another device
  datasheet,    ///< counted from layers, timed by data sheets: nothing was measured
};
std::string_view to_string(Provenance provenance);

/// A worker's step and the bounds of what it may be. For a measured one the three are the same model, whose error is
/// `relative_error`; a transferred one is bounded by `low` and `high`.
struct WorkloadModel {
  Provenance provenance = Provenance::measured;
  StepModel central;
  StepModel low;
  StepModel high;
  double relative_error = 0;  ///< 95 % half-width of the mean step from the trace's own length, relative; it shrinks
                              ///< only with a longer trace
  Spread spread;              ///< of workers, beyond what the samples hold
  std::string rule;           ///< for people: how the numbers came about
  std::vector<std::string> warnings;
};

/// Two runs of one program on one machine differ by more than their steps' jitter says: memory is laid out anew, clocks
/// and neighbours change. This is the standard deviation of a run's speed, relative: a stated default until a device
/// has several traces. Measured with `ganymede train --steps 300` on a virtual machine of two cores of an AMD EPYC:
/// 2.7 % over 21 runs when it was quiet, 6 % over 14 in the minute after a full load.
inline constexpr double kRunDrift = 0.05;

/// Whether a phase runs inside the step's own sequence, as all of the compute stream do, rather than beside it on a
/// loader's thread.
bool in_sequence(const TracePhase& phase, const TraceBatch& batch);

/// The steps [first, first + count) of `batch`, as they were measured.
WorkloadModel measured_workload(const StepTrace& trace, const TraceBatch& batch, std::size_t first, std::size_t count);

/// The target's peak in a precision, or in the trace's; fp32's where the platform gives no tensor-core rate.
FlopsPerSecond peak_rate(std::string_view precision, const Gpu& target);
inline FlopsPerSecond peak_rate(const StepTrace& trace, const Gpu& target) {
  return peak_rate(trace.precision, target);
}

/// `batch` carried to `target` by the roofline of its phases.
///
/// A phase takes the longest of: launching its kernels, its FLOPs at a share of the target's peak, its memory traffic
/// at a share of the target's bandwidth. The central shares, and the bounds: `low` is what no kernel beats (full peak
/// and bandwidth), `high` adds the three up at poor shares. The jitter of the recording machine stays behind; the
/// target's is unknown: workers differ by `default_spread`. Reading a batch keeps its measured host time and is worked
/// ahead, and so is its copy over `host_link`, if there is one.
WorkloadModel transferred_workload(const StepTrace& trace, const TraceBatch& batch, const Gpu& target,
                                   const Link* host_link);

/// Measured if the trace was recorded on a device of the target's name, else transferred.
WorkloadModel workload_on(const StepTrace& trace, const TraceBatch& batch, const Gpu& target, const Link* host_link);

}  // namespace ganymede
