#pragma once
// The times of a step's phases from the model of kernel times.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/workload_model.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::calibration {

struct KernelTimes {
  struct Phase {
    double device_s = 0;  ///< of its kernels
    double host_s = 0;    ///< of launching them, meanwhile or before
    double idle_s = 0;    ///< of the device, before or between the kernels
  };
  std::map<std::string, Phase> phases;
  double tail_s = 0;  ///< from the last phase's end to the step's end
  double factor = 1;  ///< the step takes at most so many times as long, or as short; 90 %
  Provenance provenance = Provenance::kernel_model;
  std::string rule;
  std::vector<std::string> warnings;
};

/// Predicts the phases of an entry on a GPU. The host launches ahead of the GPU, so a step takes as long as its kernels
/// or its launches, whichever is longer. If the launches take longer, the difference is idle time, divided among the
/// phases in proportion to their launches. A kernel that a profiler measured keeps its ratio of measured to predicted
/// time, and the step keeps the idle time that it had on the recording GPU. On a TPU the kernels are those that XLA
/// makes of them (tpu_steps.hpp). Nothing if the trace lists no kernels, the target is a CPU, or the multiprocessors of
/// a GPU are not known; nor for a trace of a GPU whose kernels were not measured.
std::optional<KernelTimes> kernel_times(const traces::StepTrace& trace, const traces::TraceBatch& batch,
                                        const platforms::Gpu& target);

/// The GPU's data sheet for a list of layers, with its peak rate in that precision.
traces::RooflineDevice roofline_device(const platforms::Gpu& gpu, const std::string& precision);

/// Gives the phases of each batch size the times of their kernels on the GPU, one after the other. Returns how, in
/// words for people; if kernel_times() knows nothing, they keep the times of the roofline.
std::string time_by_kernels(traces::StepTrace& trace, const platforms::Gpu& gpu);

}  // namespace ganymede::calibration
