#include "calibration/kernels/kernel_model.hpp"

#include <algorithm>
#include <cmath>

#include "common/random.hpp"

namespace ganymede::calibration {
namespace {

// A card may run above the clock of its data sheet; the fit allows 15 %.
constexpr double kMaxAboveSheet = 1.15;
constexpr double kMaxLearned = 1.2;  // largest logarithm of the learned part, a factor of 3.3

/// Exponential within 1e-5 for |x| up to kMaxLearned, several times as fast as the portable one.
double learned_factor(double x) {
  const double t = x / 8;
  const double root = 1 + t * (1 + t / 2 * (1 + t / 3 * (1 + t / 4)));
  const double square = root * root, fourth = square * square;
  return fourth * fourth;
}

std::string limit_of(const Candidate& c, double seconds) {
  if (c.launch_s > 0.5 * seconds) return "launch";
  if (c.memory_s > c.arithmetic_s) return "memory";
  const double whole = std::ceil(c.waves);
  return whole - c.waves > 0.3 * whole ? "tail" : "arithmetic";
}

}  // namespace

KernelModel::KernelModel(const GpuSheet& sheet) : KernelModel(sheet, built_in_kernel_parameters()) {}

KernelModel::KernelModel(const GpuSheet& sheet, std::shared_ptr<const KernelParameters> parameters)
    : parameters_(std::move(parameters)) {
  check_gpu_sheet(sheet, "GPU " + sheet.name);
  chip_ = chip_of(sheet, *parameters_);
  residuals_ = parameters_->residuals;
  const auto own = parameters_->chips.find(chip_key(sheet));
  const ChipFit* fit = chip_.measured && own != parameters_->chips.end() ? &own->second : nullptr;
  const Spreads& spreads = fit ? fit->known : parameters_->left_out;
  for (std::size_t group = 0; group < kGroups; ++group) {
    if (fit) residuals_[group].add(fit->residuals[group]);
    for (std::size_t i = 0; i < kDurations; ++i)
      factors_[group][i] = {portable_exp(spreads[group][i].low), portable_exp(spreads[group][i].high)};
  }
}

double KernelModel::unlimited_s(const Candidate& c) const {
  const Residual& residual = residuals_[static_cast<std::size_t>(c.group)];
  const double learned = std::clamp(residual.at(c.features), -kMaxLearned, kMaxLearned);
  const double work = (c.analytic_s - c.launch_s) * learned_factor(learned);
  return std::max({c.launch_s + work, c.floor_s, beyond_cache_s(c)});
}

double KernelModel::limited_s(const Candidate& c, double seconds, Load load) const {
  if (c.power_flops <= 0) return seconds;
  const double share = power_share(chip_, c.power_flops, seconds, load);
  return share < 1 ? std::max(seconds, smooth_maximum(c.memory_s, seconds / share)) : seconds;
}

double KernelModel::seconds_of(const Candidate& c, Load load) const { return limited_s(c, unlimited_s(c), load); }

KernelModel::Chosen KernelModel::chosen(const Kernel& kernel, Load load) const {
  const Candidates candidates = candidates_of(kernel, chip_, *parameters_);
  const Candidate* best = nullptr;
  double best_s = 0, least = 0;  // `least` with the handicap
  for (const Candidate& candidate : candidates) {
    // Neither the learned part nor the limit of power can make these the fastest.
    if (best && candidate.analytic_s * learned_factor(-kMaxLearned) * candidate.handicap >= least) continue;
    const double unlimited = unlimited_s(candidate);
    if (best && unlimited * candidate.handicap >= least) continue;
    const double seconds = limited_s(candidate, unlimited, load);
    if (!best || seconds * candidate.handicap < least)
      best = &candidate, best_s = seconds, least = seconds * candidate.handicap;
  }
  return {*best, best_s};
}

/// The least seconds by the data sheet's rates of arithmetic, and of memory beyond the cache.
double KernelModel::roofline_s(const Candidate& c, KernelPrecision precision) const {
  const bool tensor =
      c.group == Group::kTensorProduct || c.group == Group::kTensorConvolution || c.group == Group::kTensorGradient;
  double rate = chip_.sheet.fp32_flops();
  if (tensor)
    rate = precision == KernelPrecision::kTf32 ? chip_.sheet.tensor_tf32_flops : chip_.sheet.tensor_fp16_flops;
  else if (bytes_per_number(precision) == 2)
    rate *= 2;  // the P100 has two lanes for half precision where it has one for single
  return std::max(c.flops / (kMaxAboveSheet * rate), beyond_cache_s(c));
}

double KernelModel::beyond_cache_s(const Candidate& c) const {
  return std::max(0.0, c.least_bytes - chip_.sheet.l2_bytes) / chip_.sheet.memory_bandwidth;
}

KernelTime KernelModel::time(const Kernel& kernel, Load load) const {
  check_kernel(kernel, kernel.name.empty() ? std::string_view("kernel") : kernel.name);
  const auto [c, seconds] = chosen(kernel, load);
  const auto group = static_cast<std::size_t>(c.group);
  const Spread& spread = factors_[group][duration_class(seconds)];
  const double bound = roofline_s(c, kernel.precision);
  KernelTime result;
  result.central_s = std::max(seconds, bound);
  result.low_s = std::max(seconds * spread.low, bound);
  result.high_s = std::max(seconds * spread.high, bound);
  result.algorithm = c.algorithm;
  result.flops = c.flops, result.bytes = c.bytes;
  result.tiles = static_cast<std::int64_t>(c.blocks), result.waves = c.waves;
  result.limit = limit_of(c, seconds);
  return result;
}

}  // namespace ganymede::calibration
