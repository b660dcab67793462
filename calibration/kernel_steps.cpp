#include "calibration/kernel_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "common/random.hpp"
#include "traces/layer_list.hpp"

namespace ganymede::calibration {
namespace {

using Growth = traces::TraceKernel::Growth;

/// The common part of the errors of a step's kernels: on left-out shapes sums of 20 kernels are off by a
/// third of what a kernel is.
constexpr double kCommonError = 0.1;

KernelPrecision precision_of(std::string_view name) {
  return name == "fp16"   ? KernelPrecision::kFp16
         : name == "bf16" ? KernelPrecision::kBf16
         : name == "tf32" ? KernelPrecision::kTf32
                          : KernelPrecision::kFp32;
}

KernelKind kernel_kind(traces::TraceKernel::Kind kind) { return KernelKind(static_cast<int>(kind)); }

void copy_convolution(Kernel& to, const traces::TraceKernel& from, std::int64_t batch) {
  const std::int64_t groups = from.grows == Growth::groups ? batch : 1;
  to.batch = from.grows == Growth::none || from.grows == Growth::groups ? from.batch : from.batch * batch;
  to.in_channels = groups * from.in_channels, to.out_channels = groups * from.out_channels;
  to.groups = groups * from.groups;
  to.in_d = from.in[0], to.in_h = from.in[1], to.in_w = from.in[2];
  to.kernel_d = from.window[0], to.kernel_h = from.window[1], to.kernel_w = from.window[2];
  to.pad_d = from.padding[0], to.pad_h = from.padding[1], to.pad_w = from.padding[2];
  to.stride_d = from.stride[0], to.stride_h = from.stride[1], to.stride_w = from.stride[2];
  to.channels_last = from.channels_last;
}

/// The kernel of a list, for a batch.
Kernel kernel_at(const traces::TraceKernel& from, const std::string& precision, std::int64_t batch) {
  Kernel to;
  to.kind = kernel_kind(from.kind);
  to.precision = precision_of(from.precision.empty() ? precision : from.precision);
  to.name = from.layer;
  const auto grown = [&](std::int64_t extent, Growth by) { return from.grows == by ? extent * batch : extent; };
  if (from.is_convolution()) {
    copy_convolution(to, from, batch);
  } else if (from.is_product()) {
    to.batch = grown(from.batch, Growth::batch);
    to.m = grown(from.m, Growth::m), to.n = grown(from.n, Growth::n), to.k = grown(from.k, Growth::k);
    to.transposed_a = from.transposed_a, to.transposed_b = from.transposed_b;
  } else {
    to.op = from.op;
    to.rows = grown(from.rows, Growth::rows), to.cols = from.cols;
    to.reads_per_element = from.reads, to.writes_per_element = from.writes;
    to.shared_per_element = from.shared;
  }
  return to;
}

bool moves_only(const StepKernel& kernel) { return kernel.kernel.kind == KernelKind::kElementwise; }

double numbers_of(const Kernel& kernel) { return static_cast<double>(kernel.rows) * static_cast<double>(kernel.cols); }

/// Joins kernels that a compiler fuses: those that move as many numbers one after the other. What the first writes is
/// not read again.
std::vector<StepKernel> fused(std::vector<StepKernel> kernels) {
  std::vector<StepKernel> out;
  for (StepKernel& next : kernels) {
    StepKernel* last = out.empty() ? nullptr : &out.back();
    const bool joins = last && moves_only(*last) && moves_only(next) && last->phase == next.phase &&
                       last->times == next.times && last->kernel.precision == next.kernel.precision &&
                       numbers_of(last->kernel) == numbers_of(next.kernel);
    if (!joins) {
      out.push_back(std::move(next));
      continue;
    }
    last->kernel.op = "fused";
    last->measured_s += next.measured_s;
    last->kernel.reads_per_element += std::max(0.0, next.kernel.reads_per_element - 1);
    last->kernel.shared_per_element += next.kernel.shared_per_element;
    last->kernel.writes_per_element = std::max(last->kernel.writes_per_element, next.kernel.writes_per_element);
  }
  return out;
}

/// Everything that decides a kernel's time.
auto shape_of(const Kernel& k) {
  return std::tuple(std::tuple(k.kind, k.precision, k.batch, k.in_channels, k.in_d, k.in_h, k.in_w, k.out_channels),
                    std::tuple(k.kernel_d, k.kernel_h, k.kernel_w, k.pad_d, k.pad_h, k.pad_w, k.stride_d, k.stride_h),
                    std::tuple(k.stride_w, k.groups, k.channels_last, k.m, k.n, k.k, k.transposed_a, k.transposed_b),
                    std::tuple(k.rows, k.cols, k.op, k.reads_per_element, k.writes_per_element, k.shared_per_element));
}

/// True for grouped convolutions in 16 bits that take kSlowGroups times as long as the model of kernel times says. From
/// Ampere on those whose groups have even numbers of channels do not: cp.async, by which its kernels load, copies at
/// least four bytes (PTX ISA), which is two channels.
bool has_slow_groups(const Kernel& kernel, const GpuSheet& gpu) {
  constexpr int kAmpere = 80;
  if (kernel.groups == 1 || (kernel.precision != KernelPrecision::kFp16 && kernel.precision != KernelPrecision::kBf16))
    return false;
  const bool in_pairs = kernel.in_channels / kernel.groups % 2 == 0 && kernel.out_channels / kernel.groups % 2 == 0;
  return gpu.capability < kAmpere || !in_pairs;
}

/// True if two rates differ by less than a factor of 1.5: one GPU by other figures, and not another one of its name.
bool about(double a, double b) { return a < 1.5 * b && b < 1.5 * a; }

GpuSheet stated_sheet(const platforms::Gpu& gpu) {
  GpuSheet sheet;
  sheet.name = gpu.name;
  sheet.multiprocessors = gpu.multiprocessors;
  sheet.capability = gpu.tensor ? 80 : 60;
  // A multiprocessor has 64 or 128 lanes; that which gives a clock of at most 2 GHz is taken.
  const double lane_hz = gpu.fp32.si / (2.0 * gpu.multiprocessors);
  sheet.fp32_lanes = lane_hz / 64 > 2.0e9 ? 128 : 64;
  sheet.clock_hz = lane_hz / sheet.fp32_lanes;
  sheet.memory_bandwidth = gpu.memory_bandwidth.si;
  sheet.tensor_fp16_flops = gpu.tensor ? gpu.tensor->si : 0;
  sheet.tensor_tf32_flops = sheet.tensor_fp16_flops / 2;
  sheet.l2_bytes = gpu.l2_cache.si > 0 ? gpu.l2_cache.si : gpu.multiprocessors * 50e3;  // about a V100's share
  sheet.power_w = gpu.peak ? gpu.peak->si : 300;
  sheet.stated = true;
  return sheet;
}

}  // namespace

std::string_view executor_of(const traces::StepTrace& trace) {
  if (!trace.executor.empty()) return trace.executor;
  return trace.software.name == "PyTorch" || traces::is_counted(trace.software) ? "eager" : "graph";
}

double list_error(const traces::StepTrace& trace) {
  return traces::is_counted(trace.software) ? kCountedListError : kListError;
}

double host_launch_s(std::string_view executor) { return executor == "graph" ? 0 : kEagerLaunch_s; }

std::optional<GpuSheet> sheet_of(const platforms::Gpu& gpu) {
  if (gpu.kind != platforms::Gpu::Kind::gpu) return {};
  const auto alike = [&](const GpuSheet& sheet) {
    return gpu.multiprocessors == 0 || gpu.multiprocessors == sheet.multiprocessors;
  };
  for (const std::string& name : {gpu.name, gpu.family})
    if (const GpuSheet* sheet = find_gpu_sheet(name); sheet && alike(*sheet) &&
                                                      about(gpu.fp32.si, sheet->fp32_flops()) &&
                                                      about(gpu.memory_bandwidth.si, sheet->memory_bandwidth))
      return *sheet;
  if (gpu.multiprocessors > 0) return stated_sheet(gpu);
  return {};
}

std::vector<StepKernel> kernels_at(const traces::StepTrace& trace, const traces::TraceBatch& entry) {
  std::vector<StepKernel> kernels;
  for (const traces::TraceKernel& kernel : trace.kernels)
    if (kernel.stage == entry.stage)
      kernels.push_back(
          {kernel.phase, kernel.times, kernel_at(kernel, trace.precision, entry.batch), {}, kernel.measured_s});
  return executor_of(trace) == "compiled" ? fused(std::move(kernels)) : kernels;
}

void predict(std::vector<StepKernel>& kernels, const KernelModel& model, bool of_layers) {
  const double most_s = of_layers ? kBeside_s * kBesideBandwidth / model.sheet().memory_bandwidth : 0;
  std::map<decltype(shape_of(Kernel{})), KernelTime> known;
  for (StepKernel& kernel : kernels) {
    const auto [at, added] = known.try_emplace(shape_of(kernel.kernel));
    if (added) {
      at->second = model.time(kernel.kernel);
      if (of_layers && has_slow_groups(kernel.kernel, model.sheet()))
        for (double* time : {&at->second.central_s, &at->second.low_s, &at->second.high_s}) *time *= kSlowGroups;
    }
    kernel.time = at->second;
    kernel.beside_s = std::min(kBesideShare * kernel.time.central_s, most_s);
  }
}

double step_spread(const std::vector<StepKernel>& kernels, double list_error) {
  double total = 0, common = 0;
  std::map<decltype(shape_of(Kernel{})), double> own;  // equal kernels have equal errors
  for (const StepKernel& kernel : kernels) {
    const double time = kernel.times * kernel.time.central_s;
    const double error = 0.5 * portable_log(kernel.time.high_s / kernel.time.low_s) * time;
    total += time, common += error;
    own[shape_of(kernel.kernel)] += error;
  }
  if (total <= 0) return list_error;
  double squares = kCommonError * common * common;
  for (const auto& [shape, error] : own) squares += (1 - kCommonError) * error * error;
  return std::sqrt(squares / (total * total) + list_error * list_error);
}

StepSum sum_of(const std::vector<StepKernel>& kernels, std::string_view executor, double list_error) {
  StepSum sum;
  for (const StepKernel& kernel : kernels) {
    sum.launches += kernel.times;
    sum.device_s += kernel.times * kernel.time.central_s;
    sum.beside_s += kernel.times * kernel.beside_s;
  }
  sum.host_s = sum.launches * host_launch_s(executor);
  const double device_s = sum.device_s + sum.beside_s;
  sum.seconds = std::max(device_s, sum.host_s);
  const double spread = portable_exp(step_spread(kernels, list_error));
  sum.low_s = std::max(device_s / spread, sum.host_s / kEagerLaunchFactor);
  sum.high_s = std::max(device_s * spread, sum.host_s * kEagerLaunchFactor);
  sum.decided_by = sum.host_s > device_s ? "launching" : deciding(kernels, 3);
  return sum;
}

std::string deciding(const std::vector<StepKernel>& kernels, std::size_t count) {
  struct Equal {
    double seconds = 0;
    std::string first;
    int others = -1;
  };
  std::map<decltype(shape_of(Kernel{})), Equal> parts;
  double total = 0;
  for (const StepKernel& kernel : kernels) {
    const double time = kernel.times * kernel.time.central_s;
    const std::string& layer = kernel.kernel.name.empty() ? kernel.kernel.op : kernel.kernel.name;
    Equal& part = parts[shape_of(kernel.kernel)];
    part.seconds += time, ++part.others, total += time;
    if (part.first.empty())
      part.first =
          fmt::format("{}{}{} in {}", to_string(kernel.kernel.kind), layer.empty() ? "" : " of ", layer, kernel.phase);
  }
  std::vector<Equal> order;
  for (const auto& [shape, part] : parts) order.push_back(part);
  std::stable_sort(order.begin(), order.end(), [](const Equal& a, const Equal& b) { return a.seconds > b.seconds; });
  std::string text;
  for (std::size_t i = 0; i < std::min(count, order.size()); ++i)
    text += fmt::format("{}{}{} {:.0f} %", i == 0 ? "" : ", ", order[i].first,
                        order[i].others > 0 ? fmt::format(" and {} like it", order[i].others) : "",
                        100 * order[i].seconds / total);
  return text;
}

}  // namespace ganymede::calibration
