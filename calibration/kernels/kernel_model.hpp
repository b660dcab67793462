#pragma once
// How long one kernel takes on a GPU, from its shape and the GPU's data sheet.
//
//   const KernelModel model(*find_gpu_sheet("A100-40GB"));
//   const KernelTime time = model.time(kernel);   // time.central_s, time.low_s, time.high_s

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "calibration/kernels/candidates.hpp"
#include "calibration/kernels/chip.hpp"
#include "calibration/kernels/gpu_sheets.hpp"
#include "calibration/kernels/kernel.hpp"
#include "calibration/kernels/parameters.hpp"

namespace ganymede::calibration {

struct KernelTime {
  double central_s = 0;
  double low_s = 0, high_s = 0;  ///< 90 % interval
  std::string algorithm;         ///< class of the algorithm, for example "winograd-4x4" or "implicit-gemm"
  double flops = 0;              ///< that the algorithm does
  double bytes = 0;              ///< that it moves from and to memory
  std::int64_t tiles = 0;        ///< blocks of threads that the work is cut into
  double waves = 0;              ///< tiles over those that the GPU holds at once
  std::string limit;             ///< "arithmetic", "memory", "launch" or "tail"
};

/// The device's time alone, without the host's part in launching the kernel.
class KernelModel {
 public:
  /// Throws ConfigError for a sheet that lacks a figure.
  explicit KernelModel(const GpuSheet& sheet);
  KernelModel(const GpuSheet& sheet, std::shared_ptr<const KernelParameters> parameters);

  /// Throws ConfigError for a shape that no kernel has (check_kernel).
  KernelTime time(const Kernel& kernel, Load load = Load::kSustained) const;

  const GpuSheet& sheet() const { return chip_.sheet; }
  /// True if the fit saw kernels of this GPU; otherwise intervals are those of GPUs that were left out of it.
  bool measured() const { return chip_.measured; }

  /// The candidate that is the fastest with the learned part, and its time.
  struct Chosen {
    Candidate candidate;
    double seconds;
  };
  Chosen chosen(const Kernel& kernel, Load load) const;
  double seconds_of(const Candidate& candidate, Load load) const;
  const KernelParameters& parameters() const { return *parameters_; }
  const Chip& chip() const { return chip_; }

 private:
  double roofline_s(const Candidate& candidate, KernelPrecision precision) const;
  double beyond_cache_s(const Candidate& candidate) const;
  double unlimited_s(const Candidate& candidate) const;  ///< without the limit of power
  double limited_s(const Candidate& candidate, double seconds, Load load) const;

  Chip chip_;
  std::shared_ptr<const KernelParameters> parameters_;
  std::array<Residual, kGroups> residuals_;  // with what the chip's own kernels tell
  Spreads factors_;                          // of the interval's ends over the central time
};

}  // namespace ganymede::calibration
