#pragma once
// Fits the kernel model's parameters to measured kernels, with the model's own formulas.

#include <array>
#include <functional>
#include <map>
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
  /// Quantiles for each group and duration class of a chip that the fit saw. A class with too few rows gets those of
  /// its group, then those of all chips, then `otherwise`.
  Spreads known(const std::string& chip, const Spreads& otherwise) const;
  /// The same for a chip that it did not see, from errors of chips that were left out: what differs from chip to chip
  /// is added as squares. A group of which too few rows were left out has the widest interval of the others.
  Spreads unseen() const;
  /// Shares of measured over expected times that are the host's, by GPU and operation.
  std::map<std::string, std::map<std::string, Spread>> floor_spreads() const;

  static constexpr std::size_t kFewest = 60;  ///< rows that tell an interval, of which one outlier shall not decide

 private:
  using Values = std::array<std::array<std::vector<double>, kDurations>, kGroups>;
  Values together() const;
  std::map<std::string, Values> logarithms_;  // by chip
  std::map<std::string, std::map<std::string, std::vector<double>>> floors_;
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
