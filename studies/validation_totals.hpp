#pragma once
// Sums over predicted cells: their errors, and how often their intervals hold, by the evidence that they rest on.

#include <cstddef>
#include <map>
#include <string>

#include "common/json_value.hpp"

namespace ganymede::studies {

/// Absolute relative errors of predicted cells.
struct CellErrors {
  /// Sums over the cells that have a certain baseline.
  struct BaselineErrors {
    std::size_t count = 0;
    double sum = 0;             ///< of the baseline's errors
    double prediction_sum = 0;  ///< of the predictions' errors
  };
  std::size_t count = 0;
  std::size_t in_interval = 0;  ///< measurements inside the stated interval
  double sum = 0, worst = 0;
  std::map<std::string, BaselineErrors> baselines;  ///< by the baseline's name
  double mean() const { return sum / static_cast<double>(count); }
};

/// Errors of the predicted cells with this tag (all if it is empty), without alternative readings.
CellErrors errors_of(const OrderedJson& cells, const std::string& tag);

/// "summary" of a study or of all.
OrderedJson summary_json(const CellErrors& errors);

/// "coverage": for each class of evidence the number of cells, the share whose 90 % interval holds, and the intervals'
/// mean half-width over the prediction. Alternative readings and cells without a class are left out.
OrderedJson coverage_json(const OrderedJson& cells);

}  // namespace ganymede::studies
