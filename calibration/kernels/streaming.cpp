#include <algorithm>

#include "calibration/kernels/candidates.hpp"

namespace ganymede::calibration {
namespace {

/// Reads of its input beyond those that the kernel's description counts: statistics of a batch need a pass of their own
/// before the results.
double further_reads(const Kernel& kernel) {
  return kernel.op == "batch_norm" || kernel.op == "batch_norm_backward" ? kernel.reads_per_element : 0;
}

/// Reads and writes of values that are within the second-level cache are faster by a factor.
double streaming_s(double bytes, double footprint, const ChipRates& rates, const KernelParameters& parameters) {
  const double held = std::min(1.0, rates.l2_bytes / footprint);
  const double hits = held * held;  // a buffer larger than the cache has mostly lost what it will need next
  return bytes * (1 - hits + hits / parameters[Scalar::kStreamL2Speed]) / rates.memory_bandwidth;
}

/// Numbers a clock and multiprocessor of PyTorch's kernels in which an operand has one number for many of the result,
/// whose place each number needs. On an H200 1,024 x 10,240 of 16 bits with a number for each channel (prelu) move at
/// 1.18 TB/s, without (leaky_relu) at 2.57 TB/s (tile-ai/TileOPs pull request 500): 295e9 numbers a second.
constexpr double kBroadcastNumbers = 295e9 / (132 * 1.98e9);

/// Words that the banks of a multiprocessor's shared memory serve in a clock (CUDA C++ Programming Guide, "Compute
/// Capabilities": 32 banks of 32 bits).
constexpr double kSharedWords = 32;

bool is_broadcast(const Kernel& kernel) { return kernel.op == "broadcast" || kernel.op == "bias"; }

}  // namespace

void add_streaming(const Kernel& kernel, const Chip& chip, const KernelParameters& parameters, Candidates& out) {
  Candidate& c = out.add();
  const ChipRates& rates = chip.fp32;
  const double numbers = direct_flops(kernel), footprint = operand_bytes(kernel);
  const bool along_rows = kernel.op == "ln" || kernel.kind == KernelKind::kSoftmax;
  c.group = kernel.op == "ln"                     ? Group::kNormalization
            : kernel.kind == KernelKind::kSoftmax ? Group::kSoftmax
                                                  : Group::kElementwise;
  c.algorithm = "streaming";
  c.bytes = footprint + further_reads(kernel) * numbers * static_cast<double>(bytes_per_number(kernel.precision));
  c.least_bytes = footprint;
  c.flops = numbers;
  c.memory_s = streaming_s(c.bytes, std::max(footprint, 1.0), rates, parameters);
  c.launch_s = parameters[Scalar::kLaunchSeconds];
  const double clocks = (is_broadcast(kernel) ? 1 / kBroadcastNumbers : 0) + kernel.shared_per_element / kSharedWords;
  c.arithmetic_s = numbers * clocks / (rates.multiprocessors * rates.clock_hz);
  c.analytic_s = std::max(c.memory_s, c.arithmetic_s) + c.launch_s;
  c.blocks = along_rows ? static_cast<double>(kernel.rows) : numbers / 512;  // threads of a block times four numbers
  c.waves = c.blocks / (rates.multiprocessors * 16);
  c.features = {rough_log2(c.blocks / rates.multiprocessors),
                1,
                -10,
                along_rows ? rough_log2(static_cast<double>(kernel.cols)) : -6,
                rough_log2(footprint / rates.l2_bytes),
                along_rows ? rough_log2(static_cast<double>(kernel.rows)) : 0,
                -10};
}

}  // namespace ganymede::calibration
