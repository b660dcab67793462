#include "calibration/tpu_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "calibration/kernel_steps.hpp"

namespace ganymede::calibration {
namespace {

// Arrays lie in tiles of 8 x 128 numbers of any two dimensions, and the matrix unit takes 128 x 128 (Google Cloud,
// "Cloud TPU performance guide": batches that are multiples of 8 a core with features that are multiples of 128, or
// batches of 128 with features of 8, leave nothing empty). TPU v6e's unit is 256 wide, which is not counted.
constexpr double kLanes = 128, kSublanes = 8;
// What the best products of GPUs reach of their peak, V100 79 % to A100 87 % (Bekman, "Machine Learning Engineering",
// MAMF table); of TPUs no such table was found. The share of the bandwidth is that of kernels on a V100 (Jia et al.
// 2018, table 3.1). Neither is fitted to a run on a TPU.
constexpr double kFlopShare = 0.8, kBandwidthShare = 750.0 / 900.0;
// An assumption. ResNet-50 of MLPerf 0.7 on TPU v3 and v4 is 8 and 29 % slower than measured, evaluation included.
constexpr double kFactor = 2;

double filled(double count, double multiple) { return std::ceil(count / multiple) * multiple / count; }

/// What fills an array of `batch` x `channels` x rows of `width` up, in the best of its layouts.
double layout_fill(double batch, double channels, double width) {
  const double rows = std::min(filled(batch, kSublanes), filled(width, kSublanes));
  return std::min({filled(channels, kLanes) * rows, filled(batch, kLanes) * filled(channels, kSublanes),
                   filled(width, kLanes) * filled(channels, kSublanes)});
}

/// Seconds of the kernels of one phase, which come in their order.
class Fused {
 public:
  Fused(double flops, double bytes) : flops_(flops * kFlopShare), bytes_(bytes * kBandwidthShare) {}

  double seconds(const Kernel& kernel) {
    if (is_convolution(kernel.kind)) return convolution(kernel);
    if (is_product(kernel.kind)) return product(kernel);
    return moved(kernel);
  }

 private:
  double computed(const Kernel& k, double fill, double numbers) {
    joins_ = true, is_read_ = false;
    return std::max(direct_flops(k) * fill / flops_,
                    numbers * static_cast<double>(bytes_per_number(k.precision)) / bytes_);
  }

  double convolution(const Kernel& k) {
    const auto number = [](std::int64_t count) { return static_cast<double>(count); };
    const double taps = number(k.kernel_d * k.kernel_h * k.kernel_w), groups = number(k.groups);
    const double in = number(k.in_channels) / groups, out = number(k.out_channels) / groups;
    const bool to_input = k.kind == KernelKind::kConvolutionDataGradient;
    const double fill =
        to_input ? filled(out * taps, kLanes) * filled(in, kLanes) : filled(in * taps, kLanes) * filled(out, kLanes);
    const double in_fill = layout_fill(number(k.batch), number(k.in_channels), number(k.in_w));
    const double out_fill = layout_fill(number(k.batch), number(k.out_channels), number(k.out_w()));
    const double inputs = number(k.batch * k.in_channels * k.in_d * k.in_h * k.in_w);
    const double outputs = number(k.batch * k.out_channels * k.out_d() * k.out_h()) * number(k.out_w());
    fill_ = to_input ? in_fill : out_fill;
    return computed(k, fill, inputs * in_fill + outputs * out_fill + in * number(k.out_channels) * taps);
  }

  double product(const Kernel& k) {
    const double m = static_cast<double>(k.m), n = static_cast<double>(k.n), depth = static_cast<double>(k.k);
    fill_ = 1;
    return computed(k, filled(m, kSublanes) * filled(n, kLanes) * filled(depth, kLanes),
                    static_cast<double>(k.batch) * (m * depth + depth * n + m * n));
  }

  /// What moves numbers, beside what computes them or alone.
  double moved(const Kernel& k) {
    double passes = std::max(0.0, k.reads_per_element - 1);
    // The sums of a normalization come with the numbers; what follows reads and writes them again, once.
    const bool needs_all = k.kind != KernelKind::kElementwise && k.op != "sum" && !is_read_;
    if (needs_all || !joins_) passes += 2, is_read_ = joins_ = true;
    return static_cast<double>(k.rows) * static_cast<double>(k.cols) * passes * fill_ *
           static_cast<double>(bytes_per_number(k.precision)) / bytes_;
  }

  double flops_, bytes_;
  double fill_ = 1;
  bool joins_ = false;    // there is something that moved numbers are fused with
  bool is_read_ = false;  // a normalization since then has read all numbers
};

}  // namespace

std::optional<KernelTimes> tpu_times(const traces::StepTrace& trace, const traces::TraceBatch& batch,
                                     const platforms::Gpu& target) {
  if (target.kind != platforms::Gpu::Kind::tpu || trace.kernels.empty()) return {};
  KernelTimes times;
  std::map<std::string, Fused> phases;
  for (const StepKernel& kernel : kernels_at(trace, batch)) {
    Fused& phase =
        phases.try_emplace(kernel.phase, peak_rate(trace, target).si, target.memory_bandwidth.si).first->second;
    times.phases[kernel.phase].device_s += kernel.times * phase.seconds(kernel.kernel);
  }
  const bool is_tpu = target.name.starts_with("TPU");
  times.provenance = Provenance::datasheet;
  times.factor = kFactor;
  times.rule = fmt::format(
      "the kernels of {} as XLA fuses them, by roofline on {} ({:.0f} % of {}, {:.0f} % of {}, arrays filled up to "
      "tiles of 8 x 128{}), within a factor of {}",
      trace.model, target.name, 100 * kFlopShare, to_string(peak_rate(trace, target)), 100 * kBandwidthShare,
      to_string(target.memory_bandwidth), is_tpu ? "" : " as a TPU's are", kFactor);
  times.warnings = {fmt::format(
      "step times on {} are not measured anywhere: they follow from a list of kernels and a data sheet", target.name)};
  if (!is_tpu)
    times.warnings.push_back(fmt::format(
        "{} is no TPU, but is taken to fuse kernels and to fill arrays up as one does: how it does is not known here",
        target.name));
  return times;
}

}  // namespace ganymede::calibration
