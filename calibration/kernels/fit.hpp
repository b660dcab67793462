#pragma once
// Fits the kernel model's parameters to measured kernels, with the model's own formulas.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calibration/kernels/kernel_model.hpp"
#include "calibration/kernels/measured_kernels.hpp"
#include "calibration/kernels/row_predictor.hpp"

namespace ganymede::calibration {

/// Parameters fitted to the rows, whose GPUs must have data sheets. Only these GPUs get shares and floors of their own.
KernelParameters fitted(const std::vector<MeasuredKernel>& rows);

/// Collects the residuals of rows that the fit has not seen, from which intervals are made.
class Leftovers {
 public:
  void add(const Parameters& predict_with, const std::vector<MeasuredKernel>& rows);
  /// Returns the quantiles for each group and duration class, `widened` times as far from 0. A class with too few rows
  /// gets those of its group, or of all rows.
  std::array<std::array<Spread, kDurations>, kGroups> spreads(double widened = 1) const;
  std::size_t rows(std::size_t group) const;

  static constexpr std::size_t kFewest = 60;  ///< rows that tell an interval, of which one outlier shall not decide

 private:
  std::array<std::array<std::vector<double>, kDurations>, kGroups> logarithms_;
};

struct ErrorRow {
  std::string kind, gpu;
  std::size_t kernels = 0;
  double mean_error = 0, sum20_error = 0, held = 0;
  double median_ratio = 1;  ///< of expected over measured
};
/// Errors of the rows by set and GPU, predicted by `expected`.
std::vector<ErrorRow> errors_of(const std::vector<MeasuredKernel>& rows,
                                const std::function<KernelTime(const MeasuredKernel&)>& expected);

/// Hash of the shape alone, so that the same shape of another GPU falls on the same side.
std::uint64_t shape_hash(const Kernel& kernel);

/// Returns the text of data/parameters.json, from which the library is built.
std::string parameters_json(const KernelParameters& parameters, const std::vector<ErrorRow>& shapes_left_out,
                            const std::vector<ErrorRow>& gpus_left_out);

}  // namespace ganymede::calibration
