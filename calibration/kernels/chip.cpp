#include "calibration/kernels/chip.hpp"

#include <algorithm>

#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

double to_power(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

/// True for memory stacked beside the chip, which reaches more of its data sheet than GDDR with error correction.
bool has_stacked_memory(int capability) {
  return capability == 60 || capability == 70 || capability == 80 || capability == 90 || capability == 100 ||
         capability == 103;
}

/// The part of its memory's rate that a GPU is taken to reach while no other was measured.
constexpr double kMemoryShare = 0.85;

/// The mean of the measured GPUs with the same kind of memory, or of all. Only GPUs with a host's floor had kernels
/// that stream, which tell this share.
double memory_share(const GpuSheet& sheet, const KernelParameters& parameters) {
  double sums[2] = {}, boards[2] = {};
  for (const auto& [name, shares] : parameters.gpus) {
    const GpuSheet* other = find_gpu_sheet(name);
    if (other == nullptr || other->name == sheet.name || !parameters.floors.contains(name)) continue;
    const bool same = has_stacked_memory(other->capability) == has_stacked_memory(sheet.capability);
    sums[same] += shares.memory, ++boards[same];
  }
  if (boards[1] > 0) return sums[1] / boards[1];
  return boards[0] > 0 ? sums[0] / boards[0] : kMemoryShare;
}

/// Cards for games of the generations GTX and TITAN X run well above the clock of their data sheet, as long as they
/// stay cool. An assumption, as for all GPUs that were not measured.
double clock_share(const GpuSheet& sheet) {
  return sheet.name.starts_with("GTX") || sheet.name.starts_with("TITANX") ? 1.12 : 1;
}

/// The part of the 32-bit lanes of a GPU that was not measured that products keep busy. Half of the lanes of chips
/// after the A100 share their ports with integers and addresses; Kepler's 192 lanes need pairs of independent
/// instructions. Both are assumptions.
double lane_share(const GpuSheet& sheet) {
  if (sheet.capability < 50) return 0.65;
  return sheet.capability <= 80 ? 1 : sheet.capability == 90 ? 0.85 : 0.8;
}

/// Energy of one 32-bit operation with its traffic, at a clock.
struct Energy {
  double picojoules, clock_hz;
};

/// A100 (7 nm) from its 40 GB board's rate under 250 W; V100 and T4 (12 nm) from the V100's, which its 250 W just allow
/// (NeuSight's long products). The others are assumptions from what boards of 300 W (8 nm, RTX A6000) and 450 W (4 nm,
/// RTX 4090) sustain; 16 nm and 28 nm between their successors and what P100 and K80 may draw at most.
Energy operation_energy(int capability) {
  if (capability < 60) return {25, 1.0e9};
  if (capability < 70) return {18, 1.4e9};
  if (capability < 80) return {15.5, 1.38e9};
  if (capability == 80) return {12, 1.41e9};
  return capability < 89 ? Energy{9.8, 1.7e9} : Energy{6, 2.5e9};
}

constexpr double kClockExponent = 0.7;  // of the energy over the clock between boards: higher clocks need more voltage
constexpr double kThrottleExponent = 0.4;  // the same below the data sheet's clock, where the voltage soon is the least
constexpr double kIdleW = 10, kIdleShare = 0.16;
constexpr double kUnnoticed_s = 1e-4, kNoticed_s = 3e-3;  // a kernel that short or long in a burst of some dozen

}  // namespace

std::optional<GpuShares> shares_of_chip(const GpuSheet& sheet, const KernelParameters& parameters) {
  if (sheet.stated) return {};
  if (const auto found = parameters.gpus.find(sheet.name); found != parameters.gpus.end()) return found->second;
  GpuShares sum{0, 0};
  double boards = 0;
  for (const auto& [name, shares] : parameters.gpus)
    if (const GpuSheet* other = find_gpu_sheet(name);
        other && other->capability == sheet.capability && other->multiprocessors == sheet.multiprocessors)
      sum.arithmetic += shares.arithmetic, sum.memory += shares.memory, ++boards;
  if (boards == 0) return {};
  return GpuShares{sum.arithmetic / boards, sum.memory / boards};
}

double assumed_memory_share(const GpuSheet& sheet, const KernelParameters& parameters) {
  for (const auto& [name, shares] : parameters.gpus)
    if (const GpuSheet* other = find_gpu_sheet(name); other && name != sheet.name && parameters.floors.contains(name) &&
                                                      other->capability == sheet.capability &&
                                                      other->multiprocessors == sheet.multiprocessors)
      return shares.memory;
  return memory_share(sheet, parameters);
}

Chip chip_of(const GpuSheet& sheet, const KernelParameters& parameters) {
  Chip chip;
  chip.sheet = sheet;
  const std::optional<GpuShares> measured = shares_of_chip(sheet, parameters);
  chip.measured = measured.has_value();
  const GpuShares shares = measured.value_or(GpuShares{clock_share(sheet), memory_share(sheet, parameters)});
  const double lanes = sheet.fp32_lanes, sms = sheet.multiprocessors;
  chip.fp32 = {sms,        lanes * (chip.measured ? 1 : lane_share(sheet)), sheet.clock_hz * shares.arithmetic,
               lanes / 64, sheet.memory_bandwidth * shares.memory,          sheet.l2_bytes};
  const Energy energy = operation_energy(sheet.capability);
  chip.joules_per_flop = 1e-12 * parameters[Scalar::kEnergyFactor] * energy.picojoules *
                         to_power(sheet.clock_hz / energy.clock_hz, kClockExponent);
  chip.joules_per_flop_of_zeros = chip.joules_per_flop * parameters[Scalar::kZerosEnergy];
  const double cycles = 2 * sms * sheet.clock_hz;
  chip.tensor_fp16_macs = sheet.tensor_fp16_flops / cycles;
  chip.tensor_tf32_macs = sheet.tensor_tf32_flops / cycles;
  return chip;
}

bool on_tensor_cores(const Chip& chip, KernelPrecision precision) {
  if (precision == KernelPrecision::kFp32) return false;
  if (precision == KernelPrecision::kTf32) return chip.tensor_tf32_macs > 0;
  if (precision == KernelPrecision::kBf16 && chip.sheet.capability < 80) return false;
  return chip.tensor_fp16_macs > 0;
}

ChipRates rates_of(const Chip& chip, KernelPrecision precision) {
  ChipRates rates = chip.fp32;
  if (!on_tensor_cores(chip, precision)) return rates;
  rates.macs_per_cycle = precision == KernelPrecision::kTf32 ? chip.tensor_tf32_macs : chip.tensor_fp16_macs;
  rates.lanes_of_64 = 1;
  return rates;
}

double power_share(const Chip& chip, double flops, double seconds, Load load) {
  const GpuSheet& sheet = chip.sheet;
  if (sheet.power_w <= 0 || flops <= 0) return 1;
  const double joules = load == Load::kBurstZeros ? chip.joules_per_flop_of_zeros : chip.joules_per_flop;
  const double free_w = (1 - kIdleShare) * sheet.power_w - kIdleW;
  const double wanted_w = joules * flops / seconds;
  if (wanted_w <= free_w) return 1;
  const double share = to_power(free_w / wanted_w, 1 / (1 + kThrottleExponent));
  if (load == Load::kSustained || seconds >= kNoticed_s) return share;
  if (seconds <= kUnnoticed_s) return 1;
  const double noticed = portable_log(seconds / kUnnoticed_s) / portable_log(kNoticed_s / kUnnoticed_s);
  return to_power(share, noticed);
}

}  // namespace ganymede::calibration
