#include "calibration/workload_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "calibration/gpu_transfer.hpp"
#include "calibration/kernel_workload.hpp"
#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/stated_step.hpp"
#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/random.hpp"
#include "common/units.hpp"
#include "traces/layer_list.hpp"
#include "traces/profiler_trace.hpp"

namespace ganymede::calibration {
namespace {

/// The shares of a data sheet's limits that kernels reach, and the cost of launching them.
struct RooflineShares {
  double flops;      // share of the peak rate
  double bandwidth;  // share of the memory bandwidth
  double launch;     // multiple of the platform's cost of a back-to-back launch
  bool additive;     // launching, arithmetic and memory traffic do not overlap
};

// Central bandwidth: 750 of a V100's 900 GB/s, as measured by Jia et al., "Dissecting the NVIDIA Volta GPU Architecture
// via Microbenchmarking" (2018), table 3.1. Central FLOPs: an assumption; a matrix product of a small batch fills only
// a part of the chip.
constexpr RooflineShares kCentral{0.5, 750.0 / 900.0, 1, false};
// The limits of the data sheet, which no kernel exceeds.
constexpr RooflineShares kLow{1, 1, 1, false};
// Poor shares, which are assumptions. A launch that is waited for costs 9.6 us where a back-to-back one costs 3.8 us
// (V100; Gray, "Getting Started with CUDA Graphs", NVIDIA technical blog, 2019).
constexpr RooflineShares kHigh{0.15, 0.4, 9.6 / 3.8, true};

/// True if hardly any of the phase's time (5 %) overlaps phases of the compute stream.
bool is_inline(const traces::TracePhase& phase, const traces::TraceBatch& batch) {
  double beside = 0;
  double total = 0;
  for (std::size_t step = 0; step < batch.wall_s.size(); ++step) {
    const double start = phase.start_s[step];
    const double end = start + phase.seconds[step];
    total += phase.seconds[step];
    for (const auto& other : batch.phases)
      if (other.stream == "compute")
        beside += std::max(
            0.0, std::min(end, other.start_s[step] + other.seconds[step]) - std::max(start, other.start_s[step]));
  }
  return beside <= 0.05 * total;
}

/// Copies the trace's gradient buckets to the model.
void copy_buckets(StepModel& model, const traces::TraceBatch& batch) {
  for (const auto& bucket : batch.buckets) {
    const auto place = [&](const std::string& name) {
      const auto found =
          std::find_if(model.phases.begin(), model.phases.end(), [&](const StepPhase& p) { return p.name == name; });
      assert(found != model.phases.end());
      return static_cast<std::size_t>(found - model.phases.begin());
    };
    StepBucket& copy = model.buckets.emplace_back(
        StepBucket{bucket.network, bucket.bytes, place(bucket.after_phase), bucket.ready_fraction});
    if (!bucket.before_phase.empty()) copy.needed_by = place(bucket.before_phase);
  }
}

/// Warns if the buckets of a network hold less or more bytes than its gradients, since communication then looks cheaper
/// or dearer than it is.
void check_bucket_bytes(WorkloadModel& workload, const traces::StepTrace& trace, const traces::TraceBatch& batch) {
  for (const auto& [name, network] : trace.networks) {
    std::int64_t bytes = 0;
    std::set<std::string> updates;
    for (const auto& bucket : batch.buckets)
      if (bucket.network == name) {
        bytes += bucket.bytes;
        updates.insert(bucket.before_phase);
      }
    if (bytes != network.gradient_bytes * static_cast<std::int64_t>(std::max<std::size_t>(1, updates.size())))
      workload.warnings.push_back(fmt::format("the trace's buckets of {} hold {} bytes, its gradients are {}", name,
                                              bytes, network.gradient_bytes));
  }
}

/// Adds the error, the rule and the warnings of an entry that a fit over batch sizes predicted.
void add_batch_fit(WorkloadModel& workload, const traces::TraceBatch& batch) {
  if (!batch.carried) return;
  workload.rule += ", " + batch.carried->rule;
  workload.relative_error = in_quadrature(workload.relative_error, batch.carried->relative_error);
  workload.warnings.insert(workload.warnings.end(), batch.carried->warnings.begin(), batch.carried->warnings.end());
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The time of a phase by roofline, in seconds.
double roofline_s(const traces::TracePhase& phase, const platforms::Gpu& target, FlopsPerSecond rate,
                  const RooflineShares& shares) {
  const double launch = static_cast<double>(phase.launches) * target.launch.si * shares.launch;
  const double compute = phase.flops / (rate.si * shares.flops);
  const double traffic = (phase.bytes_read + phase.bytes_written) / (target.memory_bandwidth.si * shares.bandwidth);
  return shares.additive ? launch + compute + traffic : std::max({launch, compute, traffic});
}

StepPhase one_sample(std::string name, std::string network, Stream stream, double device_s, double host_s,
                     double flops) {
  return {std::move(name), std::move(network), stream, {0}, {device_s}, {host_s}, flops};
}

StepModel roofline_model(const traces::StepTrace& trace, const traces::TraceBatch& batch, const platforms::Gpu& target,
                         const platforms::Link* host_link, const RooflineShares& shares) {
  StepModel model;
  model.samples = 1;
  model.tail_s = {0};
  model.serial_host = trace.host == "serial";
  for (const auto& phase : batch.phases) {
    if (phase.stream == "compute") {
      const double launching = static_cast<double>(phase.launches) * target.launch.si * shares.launch;
      model.phases.push_back(one_sample(phase.name, phase.network, Stream::compute,
                                        roofline_s(phase, target, peak_rate(trace, target), shares), launching,
                                        phase.flops));
    } else if (phase.stream == "host") {
      model.phases.push_back(one_sample(phase.name, phase.network, Stream::input, mean(phase.seconds), 0, 0));
    } else if (host_link) {
      // The bytes that are read cross the host link; the device may write them in another form.
      const double copy = phase.bytes_read / host_link->bandwidth.si + host_link->latency.si;
      model.phases.push_back(one_sample(phase.name, phase.network, Stream::input, copy, 0, 0));
    }
  }
  copy_buckets(model, batch);
  return model;
}

/// The model for another device of the same kind: each phase's measured time, carried over by the limits of both.
StepModel carried_model(const traces::StepTrace& trace, const traces::TraceBatch& batch, const platforms::Gpu& target,
                        const platforms::Link* host_link, const TrainingLimits& from, const TrainingLimits& to) {
  StepModel model = roofline_model(trace, batch, target, host_link, kLow);
  const double source_launch = trace.device.launch.value_or(target.launch).si;
  for (const traces::TracePhase& phase : batch.phases) {
    if (phase.stream != "compute") continue;
    const double measured = mean(phase.seconds);
    const auto launches = static_cast<double>(phase.launches);
    const double work = phase.flops / from.flops + (phase.bytes_read + phase.bytes_written) / from.bytes;
    // A phase that launching binds does not get faster with the GPU.
    const bool launch_bound = source_launch > 0 && launches * source_launch > std::max(work, 0.5 * measured);
    const double time = launch_bound ? measured * (target.launch.si > 0 ? target.launch.si / source_launch : 1)
                                     : std::max(carried_s(phase, measured, from, to), launches * target.launch.si);
    for (StepPhase& out : model.phases)
      if (out.name == phase.name && out.stream == Stream::compute) out.device_s[0] = time;
  }
  return model;
}

/// Makes phases of a list of layers longer where the list says that they take longer than their work needs, as backward
/// passes do.
void apply_slowdowns(StepModel& model, const traces::StepTrace& trace, const traces::TraceBatch& batch) {
  if (!trace.device.launch) return;  // a trace of an older version, whose times are those of its work
  platforms::Gpu source;
  source.memory_bandwidth = trace.device.memory_bandwidth;
  source.launch = *trace.device.launch;
  for (const traces::TracePhase& phase : batch.phases) {
    const double limit = roofline_s(phase, source, trace.device.fp32, kLow);
    for (StepPhase& out : model.phases)
      if (limit > 0 && out.name == phase.name && out.stream == Stream::compute)
        out.device_s[0] *= std::max(1.0, mean(phase.seconds) / limit);
  }
}

/// Adds a warning for phases that were faster than the device's stated limits allow. Their times are believed: Winograd
/// convolutions do less arithmetic than is counted, and caches save traffic.
void warn_of_impossible_times(WorkloadModel& workload, const traces::StepTrace& trace,
                              const traces::TraceBatch& batch) {
  platforms::Gpu source;
  source.memory_bandwidth = trace.device.memory_bandwidth;
  std::string names;
  for (const traces::TracePhase& phase : batch.phases)
    if (phase.stream == "compute" && mean(phase.seconds) < 0.9 * roofline_s(phase, source, trace.device.fp32, kLow))
      names += (names.empty() ? "" : ", ") + phase.name;
  if (!names.empty())
    workload.warnings.push_back(fmt::format(
        "faster in the trace than the stated limits of {} ({}, {}) allow: {}; the times are believed, so the limits or "
        "the counted work may be wrong",
        trace.device.name, to_string(trace.device.fp32), to_string(trace.device.memory_bandwidth), names));
}

/// Replaces the times of the compute stream by those of the kernels.
void apply_kernel_times(WorkloadModel& workload, const KernelTimes& times) {
  for (StepPhase& phase : workload.central.phases) {
    const auto found = times.phases.find(phase.name);
    if (phase.stream != Stream::compute || found == times.phases.end()) continue;
    phase.device_s = {found->second.device_s};
    phase.gap_s = {found->second.idle_s};
    phase.host_s = {std::min(found->second.host_s, found->second.device_s)};
  }
  workload.central.tail_s = {times.tail_s};
  workload.provenance = times.provenance;
  workload.rule = times.rule;
  workload.warnings = times.warnings;
}

/// The model with all times of the compute stream multiplied by a factor.
StepModel scaled(StepModel model, double factor) {
  for (StepPhase& phase : model.phases)
    if (phase.stream == Stream::compute)
      for (auto* times : {&phase.device_s, &phase.host_s, &phase.gap_s})
        for (double& time : *times) time *= factor;
  for (double& time : model.tail_s) time *= factor;
  return model;
}

WorkloadModel workload_of_kernels(const traces::StepTrace& trace, const traces::TraceBatch& batch, StepModel step,
                                  const KernelTimes& times) {
  WorkloadModel workload;
  workload.central = std::move(step);
  apply_kernel_times(workload, times);
  workload.low = scaled(workload.central, 1 / times.factor);
  workload.high = scaled(workload.central, times.factor);
  workload.worker_variation = default_worker_variation(trace.software);
  if (is_of_the_device(workload.provenance)) {  // a published step, whose error is that of a stated one
    workload.low = workload.high = workload.central;
    workload.relative_error = in_quadrature(kStatedError, 1.96 * std::sqrt(2.0) * kRunDrift);
  }
  add_batch_fit(workload, batch);
  check_bucket_bytes(workload, trace, batch);
  return workload;
}

}  // namespace

bool in_sequence(const traces::TracePhase& phase, const traces::TraceBatch& batch) {
  return phase.stream == "compute" || is_inline(phase, batch);
}

std::string_view to_string(Provenance provenance) {
  return provenance == Provenance::measured       ? "measured"
         : provenance == Provenance::stated       ? "measured (stated by the user)"
         : provenance == Provenance::transferred  ? "transferred"
         : provenance == Provenance::kernel_model ? "kernel model"
                                                  : "datasheet";
}

// TF32 runs on the tensor cores of GPUs at half their 16-bit rate (A100: 156 of 312 TFLOP/s, H100: 495 of 990). TPUs
// and processors do not have it: what asks for it computes in FP32 there.
FlopsPerSecond peak_rate(std::string_view precision, const platforms::Gpu& target) {
  if (precision == "fp32" || !target.tensor) return target.fp32;
  if (precision != "tf32") return *target.tensor;
  return target.kind == platforms::Gpu::Kind::gpu ? *target.tensor / 2 : target.fp32;
}

namespace {

/// Adds what is known of a stated step: no sample, so neither its jitter nor its own error.
void describe_stated(WorkloadModel& workload, const traces::StepTrace& trace, double drift) {
  workload.provenance = Provenance::stated;
  workload.relative_error = in_quadrature(kStatedError, drift);
  workload.worker_variation = default_worker_variation(trace.software);
  workload.rule = stated_text(trace);
  workload.warnings.push_back(fmt::format(
      "{}: how it was measured is not known; it is taken to be off by up to {:.0f} %, and runs by {:.0f} % in all",
      stated_text(trace), 100 * kStatedError, 100 * workload.relative_error));
}

}  // namespace

WorkloadModel measured_workload(const traces::StepTrace& trace, const traces::TraceBatch& batch, std::size_t first,
                                std::size_t count) {
  assert(count > 0 && first + count <= batch.wall_s.size());
  StepModel model;
  model.samples = count;
  model.serial_host = trace.host == "serial";
  std::vector<double> end(count, 0);  // end of the previous phase in each sample, in seconds since the step's start
  for (const auto& phase : batch.phases) {
    const bool sequential = in_sequence(phase, batch);
    StepPhase out{phase.name, phase.network, sequential ? Stream::compute : Stream::input, {}, {}, {}, phase.flops};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t step = first + i;
      out.gap_s.push_back(sequential ? std::max(0.0, phase.start_s[step] - end[i]) : 0);
      out.device_s.push_back(phase.seconds[step]);
      out.host_s.push_back(phase.host_s[step]);
      if (sequential) end[i] += out.gap_s[i] + std::max(out.device_s[i], out.host_s[i]);
    }
    model.phases.push_back(std::move(out));
  }
  for (std::size_t i = 0; i < count; ++i) model.tail_s.push_back(std::max(0.0, batch.wall_s[first + i] - end[i]));
  copy_buckets(model, batch);

  const BlockMean wall = block_mean(std::span(batch.wall_s).subspan(first, count), kBlockSteps);
  WorkloadModel workload;
  workload.central = model;
  workload.low = model;
  workload.high = std::move(model);
  // The trace's run and the predicted run each deviate from the device's long-term mean by a drift of their own.
  const double drift = 1.96 * std::sqrt(2.0) * kRunDrift;
  if (is_stated(trace)) {
    describe_stated(workload, trace, drift);
    check_bucket_bytes(workload, trace, batch);
    return workload;
  }
  workload.relative_error = in_quadrature(wall.half_width / wall.mean, drift);
  workload.rule = fmt::format("measured on {} ({} {}, {}), {} steps at batch {}", trace.device.name,
                              trace.software.name, trace.software.version, trace.software.backend, count, batch.batch);
  add_batch_fit(workload, batch);
  check_bucket_bytes(workload, trace, batch);
  if (wall.blocks < 2)
    workload.warnings.push_back("the trace is too short to tell its own error: the interval is +-100 %");
  return workload;
}

WorkloadModel transferred_workload(const traces::StepTrace& trace, const traces::TraceBatch& batch,
                                   const platforms::Gpu& target, const platforms::Link* host_link) {
  if (const auto times = kernel_times(trace, batch, target))
    return workload_of_kernels(trace, batch, roofline_model(trace, batch, target, host_link, kLow), *times);
  const bool work = std::any_of(batch.phases.begin(), batch.phases.end(), [](const traces::TracePhase& phase) {
    return phase.stream == "compute" && phase.flops > 0;
  });
  WorkloadModel workload;
  const bool counted = traces::is_counted(trace.software);
  workload.provenance = counted ? Provenance::datasheet : Provenance::transferred;
  const std::string how = counted ? fmt::format("counted from the layers of {}, on {}", trace.model, target.name)
                                  : fmt::format("transferred from {} to {}", trace.device.name, target.name);
  const bool alike =
      target.kind == (trace.device.kind == "cpu" ? platforms::Gpu::Kind::cpu : platforms::Gpu::Kind::gpu);
  if (!alike && !work && trace.software.backend == traces::kProfilerBackend)
    throw ConfigError(
        fmt::format("the trace of {} has no FLOPs, so it predicts {} alone, not {}; `ganymede import "
                    "profiler --layers` gives them",
                    trace.model, trace.device.name, target.name));
  if (alike && !counted) {
    const TrainingLimits from = recorded_limits(trace), to = training_limits(trace, target);
    const double error = portable_exp(transfer_error(from, to, work));
    workload.central = carried_model(trace, batch, target, host_link, from, to);
    workload.low = scaled(workload.central, 1 / error);
    workload.high = scaled(workload.central, error);
    workload.rule =
        fmt::format("{} by what trainings reach of both: {} and {} there, {} and {} here{}; within a factor of {:.2f}",
                    how, to_string(FlopsPerSecond{from.flops}), to_string(BytesPerSecond{from.bytes}),
                    to_string(FlopsPerSecond{to.flops}), to_string(BytesPerSecond{to.bytes}),
                    work ? "" : ", taking a usual mix of the two, as the trace counts no FLOPs", error);
    warn_of_impossible_times(workload, trace, batch);
  } else {
    workload.central = roofline_model(trace, batch, target, host_link, kCentral);
    workload.low = roofline_model(trace, batch, target, host_link, kLow);
    workload.high = roofline_model(trace, batch, target, host_link, kHigh);
    if (counted)
      for (StepModel* model : {&workload.central, &workload.high}) apply_slowdowns(*model, trace, batch);
    workload.rule = fmt::format("{} by roofline ({:.0f} % of {}, {:.0f} % of {}, {} a launch)", how,
                                100 * kCentral.flops, to_string(peak_rate(trace, target)), 100 * kCentral.bandwidth,
                                to_string(target.memory_bandwidth), to_string(target.launch));
  }
  workload.worker_variation = default_worker_variation(trace.software);
  workload.warnings.push_back(
      counted ? fmt::format("step times on {} are not measured anywhere: they follow from a list of layers and a data "
                            "sheet",
                            target.name)
              : fmt::format("step times on {} are not measured but carried over from {}; their jitter is "
                            "unknown: several workers are taken to differ by {:.1f} %",
                            target.name, trace.device.name, 100 * workload.worker_variation.central));
  add_batch_fit(workload, batch);
  check_bucket_bytes(workload, trace, batch);
  if (trace.precision != "fp32" && !target.tensor && !(alike && !counted && has_tensor_cores(target.name)))
    workload.warnings.push_back(fmt::format(
        "the platform gives no tensor-core rate for {}: {} is taken at its fp32 rate", target.name, trace.precision));
  if (target.launch.si == 0)
    workload.warnings.push_back(fmt::format(
        "the platform gives no launch time for {}: a small model will look faster than it is", target.name));
  return workload;
}

WorkloadModel workload_on(const traces::StepTrace& trace, const traces::TraceBatch& batch, const platforms::Gpu& target,
                          const platforms::Link* host_link) {
  const bool same = trace.device.name == target.name ||
                    (is_stated(trace) && find_gpu_sheet(target.name) == find_gpu_sheet(trace.device.name));
  if (same) return measured_workload(trace, batch, 0, batch.wall_s.size());
  return transferred_workload(trace, batch, target, host_link);
}

const WorkloadModel& KnownWorkloads::on(const traces::StepTrace& trace, std::size_t batch, const platforms::Gpu& target,
                                        const platforms::Link* host_link) {
  const std::optional<platforms::Link> link = host_link ? std::optional(*host_link) : std::nullopt;
  for (const Known& known : known_)
    if (known.batch == batch && known.target == target && known.host_link == link) return known.model;
  known_.push_back({batch, target, link, workload_on(trace, trace.batches[batch], target, host_link)});
  return known_.back().model;
}

}  // namespace ganymede::calibration
