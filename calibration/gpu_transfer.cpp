#include "calibration/gpu_transfer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string>

#include "common/random.hpp"
#include "traces/profiler_trace.hpp"

namespace ganymede::calibration {
namespace {

/// A kind of GPU: its data sheet, and the shares of it that trainings reach.
struct GpuKind {
  std::string_view prefix;    // of the name, in capitals, without the maker's name, blanks and dashes
  std::string_view contains;  // what else the name contains
  double fp32, tensor;        // TFLOP/s; no tensor cores: 0
  double bandwidth;           // GB/s
  double fp32_share, tensor_share, bandwidth_share;
  bool tf32 = false;
};

// Shares of the FLOP rates: the geometric mean over DeepBench's convolutions of FLOPs over time of the forward pass and
// both gradients (Baidu, DeepBench @da81ba782073): V100 9.45 TFLOP/s in fp32 and 39.1 on tensor cores, P100 5.15, GTX
// 1080 Ti 6.57. Shares of the bandwidth: the median rate of additions and activations of more than 200 MB (NeuSight
// @6945927d9afc): P100 544, V100 807, T4 238, A100 1,309 (40 GB) and 1,684 of 1,935 GB/s (80 GB, PCIe).
// - K80: fitted, together with kFillExponent, to what the rest of the model leaves over in 40 pairs with a P100 or V100
//   (tf_benchmarks 2017, Gavel). Its convolutions lack the Winograd kernels of later GPUs, and its clock is 562 MHz
//   where the data sheet counts with 824 MHz. Fitted without one model at a time it is 0.22 to 0.26
//   (bench/step_fits.py).
// - T4: products of random numbers that last run at 3.7 TFLOP/s where a V100 reaches 12.4 (NeuSight, `linear`), because
//   its 70 W are used up. Its tensor cores are taken to lose as much; so are those of the L4 (72 W).
// - A100, H100, B200: V100's shares in the ratio of the shares that the best matrix products reach, 87 %, 80 % and 78 %
//   where V100 reaches 79 % (Bekman, "Machine Learning Engineering", MAMF table). A100 in fp32: 1.16 times V100's
//   rate of convolutions (NeuSight).
// - Ampere and Ada boards other than A100: half of the fp32 lanes also do integers; an assumption.
constexpr std::array kKinds = {
    GpuKind{"K80", "", 4.113, 0, 240, 0.22, 0, 0.78},
    GpuKind{"P100", "", 9.526, 0, 732, 0.54, 0, 0.74},
    GpuKind{"GTX1080TI", "", 11.34, 0, 484.4, 0.58, 0, 0.80},
    GpuKind{"V100", "", 15.7, 125, 900, 0.60, 0.31, 0.90},
    GpuKind{"T4", "", 8.1, 65, 320, 0.29, 0.16, 0.75},
    GpuKind{"RTX2080TI", "", 13.45, 53.8, 616, 0.55, 0.31, 0.86},
    GpuKind{"A100", "80GB", 19.5, 312, 2039, 0.53, 0.34, 0.87, true},
    GpuKind{"A100", "", 19.5, 312, 1555, 0.53, 0.34, 0.85, true},
    GpuKind{"A10", "", 31.52, 70, 600, 0.40, 0.31, 0.87, true},
    GpuKind{"A40", "", 37.4, 149.7, 696, 0.40, 0.31, 0.87, true},
    GpuKind{"A6000", "", 38.7, 154.8, 768, 0.40, 0.31, 0.87, true},
    GpuKind{"RTXA6000", "", 38.7, 154.8, 768, 0.40, 0.31, 0.87, true},
    GpuKind{"RTX3090", "", 35.58, 71, 936, 0.40, 0.31, 0.87, true},
    GpuKind{"RTX4090", "", 82.6, 165, 1008, 0.40, 0.31, 0.87, true},
    GpuKind{"L4", "", 30.3, 121, 300, 0.20, 0.16, 0.87, true},
    GpuKind{"L40", "", 91.6, 362, 864, 0.40, 0.31, 0.87, true},
    GpuKind{"H100", "", 67, 990, 3350, 0.53, 0.315, 0.87, true},
    GpuKind{"H200", "", 67, 990, 4800, 0.53, 0.315, 0.87, true},
    GpuKind{"B200", "", 75, 2250, 8000, 0.53, 0.305, 0.87, true},
};

// A GPU that is not in the table: the middle of those that are.
constexpr GpuKind kOtherGpu{"", "", 0, 0, 0, 0.55, 0.31, 0.86, false};
// The share of the rate of large matrix products that convolutions reach, which is what a trace states: on V100 9.45
// of 13.4 TFLOP/s in fp32, 39.1 of 99 on tensor cores (DeepBench).
constexpr double kConvolutionOfProducts = 0.7, kTensorConvolutionOfProducts = 0.39;
// A CPU's products and copies reach most of its limits; the first is an assumption, the second as on a V100 (Jia et al.
// 2018, table 3.1).
constexpr double kCpuFlops = 0.9, kCpuBandwidth = 750.0 / 900.0;
// Convolutions in TF32 gain less than the data sheet's factor, because their numbers are rearranged for the tensor
// cores. Fitted to ResNet-50 in fp32 on V100 against TF32 on A100 (NVIDIA) and RTX A6000 (Lambda).
constexpr double kTf32Share = 0.75;
// The same work fills a larger chip less well: the ratio of two GPUs' limits is taken to this power. Fitted to 60
// pairs of the same training on two GPUs: Gavel, tf_benchmarks 2017, DeepLearningExamples, MLPerf 0.7 and 4.1, and
// of Lambda's ResNet-50 and SSD300 from V100 to RTX A6000 (bench/step_fits.py). Fitted to all 79 without one pair of
// GPUs at a time it is 0.88 to 0.99, without one training 0.87 to 0.98, without one source 0.85 to 0.96; 58 of other
// sources than Lambda are then 10 % off, Lambda's 42 %. A lower value than most pairs ask for (they are K80, P100
// and V100) suits the later GPUs.
constexpr double kFillExponent = 0.9;

std::string plain_name(std::string_view gpu) {
  std::string name;
  for (const char c : gpu)
    if (std::isalnum(static_cast<unsigned char>(c)))
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const std::string_view maker : {"NVIDIA", "TESLA", "GEFORCE", "QUADRO"})
    if (name.starts_with(maker)) name.erase(0, maker.size());
  return name;
}

/// The kind with the longest matching prefix; nullptr: not in the table.
const GpuKind* kind_of(std::string_view gpu) {
  const std::string name = plain_name(gpu);
  const GpuKind* found = nullptr;
  for (const GpuKind& kind : kKinds)
    if (name.starts_with(kind.prefix) && name.find(kind.contains) != std::string::npos &&
        (!found || kind.prefix.size() > found->prefix.size()))
      found = &kind;
  return found;
}

bool takes_tf32(const traces::StepTrace& trace, const GpuKind& kind) {
  return kind.tf32 && trace.precision == "fp32" && trace.software.name != "ganymede";
}

/// The FLOP rate of trainings in a trace's precision on a GPU with these peaks, in FLOP/s.
double flop_rate(const traces::StepTrace& trace, const GpuKind& kind, double fp32, double tensor) {
  const double plain = fp32 * kind.fp32_share;
  const double tf32 = tensor / 2 * kind.tensor_share * kTf32Share;
  if (trace.precision == "fp32") return takes_tf32(trace, kind) ? std::max(plain, tf32) : plain;
  if (tensor <= 0) return plain;
  return trace.precision == "tf32" ? tf32 : tensor * kind.tensor_share;
}

double power(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

/// True if two rates differ by less than a factor of 1.5, which separates a data sheet from what is measured, but not
/// one GPU from a part of it.
bool alike(double a, double b) { return a < 1.5 * b && b < 1.5 * a; }

}  // namespace

TrainingLimits training_limits(const traces::StepTrace& trace, const platforms::Gpu& gpu) {
  if (gpu.kind == platforms::Gpu::Kind::cpu)
    return {gpu.fp32.si * kCpuFlops, gpu.memory_bandwidth.si * kCpuBandwidth, true};
  const GpuKind* known = kind_of(gpu.name);
  const GpuKind& kind = known ? *known : kOtherGpu;
  const double tensor = gpu.tensor ? gpu.tensor->si : 1e12 * kind.tensor;
  return {flop_rate(trace, kind, gpu.fp32.si, tensor), gpu.memory_bandwidth.si * kind.bandwidth_share, known != nullptr,
          takes_tf32(trace, kind)};
}

TrainingLimits recorded_limits(const traces::StepTrace& trace) {
  const double stated = trace.device.fp32.si, copies = trace.device.memory_bandwidth.si;
  if (trace.device.kind == "cpu") return {stated, copies, true};
  if (const GpuKind* kind = kind_of(trace.device.name);
      kind && alike(copies, 1e9 * kind->bandwidth * std::sqrt(kind->bandwidth_share)))
    return {flop_rate(trace, *kind, 1e12 * kind->fp32, 1e12 * kind->tensor),
            1e9 * kind->bandwidth * kind->bandwidth_share, true, takes_tf32(trace, *kind)};
  const bool tensor = trace.precision != "fp32";
  if (trace.software.backend == traces::kProfilerBackend)  // `import profiler` takes the rates from a catalog
    return {stated * (tensor ? kOtherGpu.tensor_share : kOtherGpu.fp32_share), copies * kOtherGpu.bandwidth_share,
            false};
  return {stated * (tensor ? kTensorConvolutionOfProducts : kConvolutionOfProducts), copies, false};
}

double carried_s(const traces::TracePhase& phase, double measured_s, const TrainingLimits& source,
                 const TrainingLimits& target) {
  const double bytes = phase.bytes_read + phase.bytes_written;
  double computing = phase.flops / source.flops;
  double moving = bytes / source.bytes;
  if (phase.flops <= 0 && bytes <= 0) {
    computing = kUnknownFlopShare, moving = 1 - kUnknownFlopShare;
  } else if (bytes <= 0) {
    moving = std::max(0.0, measured_s - computing);
  }
  const double ratio =
      (computing * source.flops / target.flops + moving * source.bytes / target.bytes) / (computing + moving);
  return measured_s * power(ratio, kFillExponent);
}

// The root mean square of ln(predicted / measured) of the 60 fitted pairs is 0.08 where a step becomes at most 1.6
// times as long or short, and 0.10 to 0.13 beyond; 0.17 if FLOPs and bytes are withheld. 1.96 times that, and 0.05
// (kRunDrift) for the same GPU. Where uncounted work begins to run in TF32, or ceases to, nobody knows how much of it
// are products, which gain far more than convolutions: 0.9 is as far as the worst of 14 such pairs is off (Lambda's
// seven networks in FP32 on a V100, in TF32 on an RTX A6000 and an H100; Transformer-XL large), where 0.37 held 5.
double transfer_error(const TrainingLimits& source, const TrainingLimits& target, bool counted) {
  const double distance =
      0.5 * (std::abs(portable_log(target.flops / source.flops)) + std::abs(portable_log(target.bytes / source.bytes)));
  constexpr double kUncountedTf32 = 0.9;
  if (!counted && source.tf32 != target.tf32) return kUncountedTf32;
  const double error = counted ? std::min(0.05 + 0.35 * distance, 0.25) : std::min(0.05 + 0.5 * distance, 0.37);
  return source.known && target.known ? error : 1.5 * error;
}

bool has_tensor_cores(std::string_view gpu) {
  const GpuKind* kind = kind_of(gpu);
  return kind && kind->tensor > 0;
}

}  // namespace ganymede::calibration
