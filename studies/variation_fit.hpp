#pragma once
// Fits how much longer a step of several workers takes (calibration/worker_variation.hpp) to published weak scaling,
// and finds how well the fit predicts a study that it has not seen.

#include <string>
#include <vector>

#include "documents/validation_result.hpp"

namespace ganymede::studies {

/// One published measurement of several GPUs of one machine.
struct VariationRow {
  std::string study;
  bool eager = false;
  int gpus = 2;
  double alone_s = 0;        ///< one GPU's step
  double collectives_s = 0;  ///< what simulated collectives add to it
  double bytes = 0;          ///< gradients of a step
  double measured_s = 0;
};

struct VariationFit {
  double deviation = 0;     ///< WorkerVariation::central
  double per_gigabyte = 0;  ///< seconds for 1e9 bytes of gradients
  double error = 0;         ///< variation_error() of it, where no error counts more than a tenth
};

/// Names of the studies that the defaults are fitted to. None is a GAN's.
const std::vector<std::string>& variation_studies();

/// The rows for the fit among the cells of results of run_validation(): one machine, a measured batch, no input
/// pipeline that falls behind.
std::vector<VariationRow> variation_rows(const std::vector<documents::ValidatedStudy>& studies);

/// The fit with the least error. `rows` must not be empty.
VariationFit fit_variation(const std::vector<VariationRow>& rows);
/// The mean absolute error of logarithms, each study counting the same, where no error counts more than `largest`.
double variation_error(const std::vector<VariationRow>& rows, double deviation, double per_gigabyte,
                       double largest = INFINITY);

/// For each executor and each study: the fit without it and its error then, and what was recorded about constants that
/// the studies do not suffice to fit again. Empty if one of the studies is not among `studies`.
using LeftOut = documents::ValidationResult::LeftOut;
std::vector<LeftOut> leave_one_out(const std::vector<documents::ValidatedStudy>& studies);

}  // namespace ganymede::studies
