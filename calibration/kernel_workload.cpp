#include "calibration/kernel_workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "calibration/kernel_steps.hpp"
#include "calibration/recipe_steps.hpp"
#include "calibration/stated_step.hpp"
#include "calibration/statistics.hpp"
#include "calibration/tpu_steps.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "traces/layer_list.hpp"
#include "traces/recipe.hpp"

namespace ganymede::calibration {
namespace {

/// A residual beyond this factor is one of another kernel, not of this one on another GPU.
constexpr double kMaxResidual = 4;
/// Half of the 90 % interval of ln(step) if its kernels keep measured residuals.
constexpr double kResidualError = 0.2;

bool is_measured(const traces::StepTrace& trace) {
  return std::any_of(trace.kernels.begin(), trace.kernels.end(),
                     [](const traces::TraceKernel& kernel) { return kernel.measured_s > 0; });
}

bool computes(const traces::TraceBatch& batch, const std::string& phase) {
  return std::any_of(batch.phases.begin(), batch.phases.end(),
                     [&](const traces::TracePhase& one) { return one.name == phase && one.stream == "compute"; });
}

using StepKernels = std::vector<StepKernel>;

StepKernels predict_step(const traces::StepTrace& trace, const traces::TraceBatch& batch, const GpuSheet& sheet,
                         bool with_beside = false) {
  StepKernels kernels = kernels_at(trace, batch);
  std::erase_if(kernels, [&](const StepKernel& kernel) { return !computes(batch, kernel.phase); });
  predict(kernels, KernelModel(sheet), with_beside);
  return kernels;
}

/// The recorded entry of the same stage, if `batch` is one that a fit over batch sizes made.
const traces::TraceBatch& recorded_entry(const traces::StepTrace& trace, const traces::TraceBatch& batch) {
  if (!batch.carried) return batch;
  for (const traces::TraceBatch& entry : trace.batches)
    if (!entry.carried && entry.stage == batch.stage) return entry;
  return batch;
}

/// Multiplies the kernels' times by what was measured on the recording GPU over what the model says of that.
void keep_residuals(StepKernels& target, const traces::StepTrace& trace, const traces::TraceBatch& recorded,
                    const GpuSheet& source) {
  const StepKernels there = predict_step(trace, recorded, source);
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (there[i].measured_s <= 0) continue;
    const double residual = std::clamp(there[i].measured_s / there[i].time.central_s, 1 / kMaxResidual, kMaxResidual);
    for (double* time : {&target[i].time.central_s, &target[i].time.low_s, &target[i].time.high_s}) *time *= residual;
  }
}

/// Adds what was idle in the recorded steps: before, in and after their phases. A kernel may have been given to another
/// phase than it ran in, which then looks shorter than its kernels; the step as a whole keeps its idle time.
void add_recorded_idle(KernelTimes& times, const traces::StepTrace& trace, const traces::TraceBatch& batch) {
  const StepModel recorded = measured_workload(trace, batch, 0, batch.wall_s.size()).central;
  const auto mean = [&](const std::vector<double>& seconds) {
    return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(recorded.samples);
  };
  times.tail_s = mean(recorded.tail_s);
  for (const StepPhase& phase : recorded.phases)
    if (phase.stream == Stream::compute) times.phases[phase.name].idle_s = mean(phase.gap_s) + mean(phase.device_s);
  for (const traces::TraceKernel& kernel : trace.kernels)
    if (kernel.stage == batch.stage && computes(batch, kernel.phase))
      times.phases[kernel.phase].idle_s -= kernel.times * kernel.measured_s;
  double idle = times.tail_s, missing = 0;
  for (const auto& [name, phase] : times.phases) (phase.idle_s > 0 ? idle : missing) += phase.idle_s;
  const double kept = idle > 0 ? std::max(0.0, 1 + missing / idle) : 0;
  times.tail_s *= kept;
  for (auto& [name, phase] : times.phases) phase.idle_s = kept * std::max(0.0, phase.idle_s);
}

KernelTimes times_of(const StepKernels& step, double launch_s) {
  KernelTimes times;
  double device = 0, host = 0;
  for (const StepKernel& kernel : step) {
    KernelTimes::Phase& phase = times.phases[kernel.phase];
    phase.device_s += kernel.times * (kernel.time.central_s + kernel.beside_s);
    phase.host_s += kernel.times * launch_s;
    device += kernel.times * (kernel.time.central_s + kernel.beside_s);
    host += kernel.times * launch_s;
  }
  for (auto& [name, phase] : times.phases)
    if (host > device) phase.idle_s = (host - device) * phase.host_s / host;
  return times;
}

void scale(KernelTimes& times, double ratio) {
  for (auto& [name, phase] : times.phases)
    for (double* part : {&phase.device_s, &phase.host_s, &phase.idle_s}) *part *= ratio;
}

KernelTimes predicted_times(const traces::StepTrace& trace, const traces::TraceBatch& batch, const std::string& gpu,
                            const GpuSheet& sheet) {
  const StepKernels step = predict_step(trace, batch, sheet, traces::is_counted(trace.software));
  const StepSum sum = sum_of(step, executor_of(trace), list_error(trace));
  KernelTimes times = times_of(step, host_launch_s(executor_of(trace)));
  times.factor = std::max(sum.high_s / sum.seconds, sum.seconds / sum.low_s);
  std::string more;
  if (sum.beside_s > 0) more = fmt::format(" and {} beside them", to_string(Seconds{sum.beside_s}));
  if (const double busy_s = sum.device_s + sum.beside_s; sum.seconds > busy_s)
    more += fmt::format(", {} of waiting for launches", to_string(Seconds{sum.seconds - busy_s}));
  times.rule =
      fmt::format("by the kernel model of {}: {:.0f} kernels of {}{}, within a factor of {:.2f}; decided by {}", gpu,
                  sum.launches, trace.model, more, times.factor, sum.decided_by);
  times.warnings = {fmt::format(
      "step times on {} are not measured: they are predicted kernel by kernel by a model of kernel times", gpu)};
  return times;
}

/// The times of a recipe's step: every kernel keeps the ratio of the nearest measured step to the predicted one.
KernelTimes recipe_times(const traces::StepTrace& trace, const traces::TraceBatch& batch, const std::string& gpu,
                         const GpuSheet& sheet, const RecipeAnchor& anchor) {
  KernelTimes times = predicted_times(trace, batch, gpu, sheet);
  scale(times, anchor.ratio);
  times.provenance = anchor.is_it ? Provenance::measured : Provenance::transferred;
  if (anchor.is_it) {
    times.rule = anchor.text;
    times.warnings.clear();
    return times;
  }
  times.factor = portable_exp(in_quadrature(anchor.error, kStatedError));
  times.rule = fmt::format(
      "carried to {} images on {} by the kernel model from what was {}, as {:.3g} times what the "
      "model says; within a factor of {:.2f}",
      batch.batch, gpu, anchor.text, anchor.ratio, times.factor);
  times.warnings = {
      fmt::format("the step at this batch on {} is not measured: it is carried over by a model of kernel "
                  "times; {}",
                  gpu, anchor.text)};
  return times;
}

/// The times of a stated step on another GPU: every kernel keeps the ratio of the stated step to the predicted one.
KernelTimes stated_times(const traces::StepTrace& trace, const traces::TraceBatch& batch, const std::string& gpu,
                         const GpuSheet& sheet, const GpuSheet& source) {
  const traces::TraceBatch& stated = recorded_entry(trace, batch);
  const double ratio = stated.wall_s.front() / sum_of(predict_step(trace, stated, source), executor_of(trace)).seconds;
  const StepKernels step = predict_step(trace, batch, sheet);
  KernelTimes times = times_of(step, host_launch_s(executor_of(trace)));
  scale(times, ratio);
  // The kernels that a list leaves out are in the ratio; the errors of single kernels differ from GPU to GPU.
  const double own = step_spread(step, 0);
  times.factor = portable_exp(in_quadrature(in_quadrature(own, kResidualError), kStatedError));
  times.provenance = Provenance::transferred;
  times.rule = fmt::format(
      "carried to {} by the kernel model from {}, which is {:.3g} times what the model says there; within a factor of "
      "{:.2f}; decided by {}",
      gpu, stated_text(trace), ratio, times.factor, sum_of(step, executor_of(trace)).decided_by);
  times.warnings = {
      fmt::format("step times on {} are not measured: they are carried over from {} by a model of kernel "
                  "times",
                  gpu, trace.device.name)};
  if (ratio > kMaxResidual || ratio < 1 / kMaxResidual)
    times.warnings.push_back(fmt::format(
        "the stated step is {:.3g} times what the model of kernel times says of {}: is it of this model, batch and "
        "precision, and of one GPU?",
        ratio, trace.device.name));
  return times;
}

/// The times of measured kernels on another GPU.
KernelTimes carried_times(const traces::StepTrace& trace, const traces::TraceBatch& batch, const std::string& gpu,
                          const GpuSheet& sheet, const GpuSheet& source) {
  StepKernels step = predict_step(trace, batch, sheet);
  const traces::TraceBatch& recorded = recorded_entry(trace, batch);
  keep_residuals(step, trace, recorded, source);
  KernelTimes times = times_of(step, 0);
  add_recorded_idle(times, trace, recorded);
  times.factor = portable_exp(kResidualError);
  times.provenance = Provenance::transferred;
  times.rule = fmt::format(
      "by the kernel model of {}: {:.0f} kernels of {}, with their residuals on {}, within a factor of {:.2f}; "
      "decided by {}",
      gpu, sum_of(step, "graph").launches, trace.model, trace.device.name, times.factor, deciding(step, 3));
  times.warnings = {
      fmt::format("step times on {} are not measured: they are carried over from {} by a model of kernel times", gpu,
                  trace.device.name)};
  return times;
}

}  // namespace

std::optional<KernelTimes> kernel_times(const traces::StepTrace& trace, const traces::TraceBatch& batch,
                                        const platforms::Gpu& target) {
  if (is_stated(trace)) {
    const auto sheet = sheet_of(target);
    if (!sheet) return {};
    return stated_times(trace, batch, target.name, *sheet, *find_gpu_sheet(trace.device.name));
  }
  const bool measured = is_measured(trace);
  if (!measured)
    if (auto times = tpu_times(trace, batch, target)) return times;
  if (trace.kernels.empty() || (trace.device.kind == "gpu" && !traces::is_counted(trace.software) && !measured))
    return {};
  const auto sheet = sheet_of(target);
  const GpuSheet* source = measured ? find_gpu_sheet(trace.device.name) : nullptr;
  if (!sheet || (measured && source == nullptr)) return {};
  if (trace.software.name == traces::kRecipeSoftware)
    if (const auto anchor = recipe_anchor(trace.software.version, *sheet, batch.batch))
      return recipe_times(trace, batch, target.name, *sheet, *anchor);
  return measured ? carried_times(trace, batch, target.name, *sheet, *source)
                  : predicted_times(trace, batch, target.name, *sheet);
}

traces::RooflineDevice roofline_device(const platforms::Gpu& gpu, const std::string& precision) {
  return {gpu.name, calibration::peak_rate(precision, gpu), gpu.memory_bandwidth, gpu.launch, gpu.memory};
}

std::string time_by_kernels(traces::StepTrace& trace, const platforms::Gpu& gpu) {
  std::string how = fmt::format(
      "Times are a roofline's on the data sheet of {}: nothing was measured, and no device reaches them.", gpu.name);
  for (traces::TraceBatch& batch : trace.batches) {
    const auto times = kernel_times(trace, batch, gpu);
    if (!times) return how;
    double now = 0;
    for (traces::TracePhase& phase : batch.phases) {
      phase.start_s = {now};
      if (const auto found = times->phases.find(phase.name); found != times->phases.end()) {
        phase.seconds = {found->second.device_s + found->second.idle_s};
        phase.host_s = {std::min(found->second.host_s, phase.seconds[0])};
      }
      now += phase.seconds[0];
    }
    batch.wall_s = {now};
    how = "Times are a prediction, nothing was measured: " + times->rule + ".";
  }
  trace.device.name = gpu.name + " by kernel model";
  return how;
}

}  // namespace ganymede::calibration
