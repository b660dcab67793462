#pragma once
// Makes a model of a worker's step on the device of a scenario from a step trace: as measured if the trace was recorded
// on that device, else carried over by roofline. The model states its provenance and its error.

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/step_model.hpp"
#include "calibration/worker_variation.hpp"
#include "platforms/platform.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::calibration {

enum class Provenance {
  measured,
  stated,        ///< a step that the user says to have measured
  transferred,   ///< measured on another device and carried over
  kernel_model,  ///< predicted kernel by kernel: nothing of this training was measured
  datasheet,     ///< work counted from layers, times from data sheets: nothing was measured
};
std::string_view to_string(Provenance provenance);
/// True if steps were measured on the very kind of device, so that `relative_error` is their error.
inline bool is_of_the_device(Provenance provenance) { return provenance <= Provenance::stated; }

/// A worker's step with its bounds. If it was measured, the three models are the same and `relative_error` is the
/// error; if not, `low` and `high` are the bounds.
struct WorkloadModel {
  Provenance provenance = Provenance::measured;
  StepModel central;
  StepModel low;
  StepModel high;
  /// Relative 95 % half-width of the mean step. The part that stems from the trace's length shrinks only with a longer
  /// trace.
  double relative_error = 0;
  WorkerVariation worker_variation;  ///< between workers, in addition to the variation of the samples
  std::string rule;                  ///< how the times were derived, in words for people
  std::vector<std::string> warnings;
};

/// The relative standard deviation of a run's speed: two runs of a program on one machine differ by more than the
/// jitter of their steps, because memory is laid out anew and clock rates and neighbours change. It is a default for
/// devices without several traces. Measured with `ganymede train --steps 300` on a virtual machine of two cores of an
/// AMD EPYC: 2.7 % over 21 runs when it was quiet, 6 % over 14 in the minute after a full load.
inline constexpr double kRunDrift = 0.05;

/// True if a phase is part of the step's sequence, as all phases of the compute stream are; false if it runs beside it,
/// on the thread of a loader.
bool in_sequence(const traces::TracePhase& phase, const traces::TraceBatch& batch);

/// The model of the steps [first, first + count) of `batch` as they were measured.
WorkloadModel measured_workload(const traces::StepTrace& trace, const traces::TraceBatch& batch, std::size_t first,
                                std::size_t count);

/// The target's peak rate in a precision ("fp32", "tf32", "bf16" or "fp16"), or in the trace's precision. If the
/// platform states no tensor-core rate, it is the fp32 rate.
FlopsPerSecond peak_rate(std::string_view precision, const platforms::Gpu& target);
inline FlopsPerSecond peak_rate(const traces::StepTrace& trace, const platforms::Gpu& target) {
  return peak_rate(trace.precision, target);
}

/// The model of `batch` carried over to `target`.
///
/// Where the trace lists kernels and the target is a GPU of known multiprocessors, a phase takes the time of its
/// kernels (kernel_workload.hpp); those that a profiler measured on another such GPU keep their residuals. Otherwise,
/// between two GPUs or two CPUs, each phase's measured time changes with the rates that trainings reach on both
/// (gpu_transfer.hpp). Otherwise, and for lists of layers without kernels, a phase takes the longest of: launching its
/// kernels, its FLOPs at a share of the target's peak, and its memory traffic at a share of the target's bandwidth;
/// `low` uses the full peak and bandwidth, which no kernel exceeds, and `high` adds the three times at poor shares. The
/// jitter of the recording machine is not carried over, and the target's is unknown: workers differ by
/// default_worker_variation(). Reading a batch keeps its measured host time and happens in advance, as does its copy
/// over `host_link`, if there is one (null: none).
WorkloadModel transferred_workload(const traces::StepTrace& trace, const traces::TraceBatch& batch,
                                   const platforms::Gpu& target, const platforms::Link* host_link);

/// The measured model if the trace was recorded on a device of the target's name, else the transferred one.
WorkloadModel workload_on(const traces::StepTrace& trace, const traces::TraceBatch& batch, const platforms::Gpu& target,
                          const platforms::Link* host_link);

/// A cache of what workload_on() returned for one trace. All calls must be with the same trace.
class KnownWorkloads {
 public:
  /// The model of `trace.batches[batch]`. The reference is valid as long as this object.
  const WorkloadModel& on(const traces::StepTrace& trace, std::size_t batch, const platforms::Gpu& target,
                          const platforms::Link* host_link);

 private:
  struct Known {
    std::size_t batch = 0;
    platforms::Gpu target;
    std::optional<platforms::Link> host_link;
    WorkloadModel model;
  };
  std::deque<Known> known_;
};

}  // namespace ganymede::calibration
