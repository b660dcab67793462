#pragma once
// The rates of one GPU that the model computes with: its data sheet, what the GPU or its kind reaches of it, and the
// limit of its power.

#include "calibration/kernels/block_time.hpp"
#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/kernels/kernel.hpp"
#include "calibration/kernels/parameters.hpp"

namespace ganymede::calibration {

/// The kind of work, which decides how much power it draws: the values of the operands and the duration.
enum class Load {
  kSustained,  ///< a training: random numbers, for seconds
  kBurst,      ///< some dozen repetitions of one kernel on random numbers, as benchmarks of kernels have
  kBurstZeros  ///< the same on zeros
};

struct Chip {
  GpuSheet sheet;
  bool measured = false;  ///< the fit saw kernels of this chip, on this board or another
  ChipRates fp32;
  double joules_per_flop = 0, joules_per_flop_of_zeros = 0;  ///< of 32-bit operations, with their traffic
  double tensor_fp16_macs = 0, tensor_tf32_macs = 0;         ///< a cycle of one multiprocessor; no such cores: 0
};

/// The share of its data sheet's memory bandwidth that a board without measured kernels is taken to reach: that of
/// another board with the same chip, or else the mean of the measured GPUs with the same kind of memory.
double assumed_memory_share(const GpuSheet& sheet, const KernelParameters& parameters);

Chip chip_of(const GpuSheet& sheet, const KernelParameters& parameters);

/// The chip's rates for a precision; those of its tensor cores if they support it.
ChipRates rates_of(const Chip& chip, KernelPrecision precision);
bool on_tensor_cores(const Chip& chip, KernelPrecision precision);

/// Share of the clock that the power limit leaves to work of `flops` that would take `seconds`, at most 1.
double power_share(const Chip& chip, double flops, double seconds, Load load);

}  // namespace ganymede::calibration
