#pragma once
// Predicts what published measurements of kernels say: the model's time, with what their method adds.

#include <map>
#include <memory>
#include <span>
#include <string>

#include "calibration/kernels/kernel_model.hpp"
#include "calibration/kernels/measured_kernels.hpp"
#include "calibration/kernels/measuring_method.hpp"

namespace ganymede::calibration {

using Parameters = std::shared_ptr<const KernelParameters>;

class RowPredictor {
 public:
  /// `rows` are all rows of the comparison. Throws ConfigError with file and line for a GPU without a data sheet.
  RowPredictor(const Parameters& parameters, std::span<const MeasuredKernel> rows);
  KernelTime operator()(const MeasuredKernel& row) const { return method_.expected(model_of(row), row); }
  const MeasuringMethod& method() const { return method_; }
  const KernelModel& model_of(const MeasuredKernel& row) const { return models_.at(row.gpu); }

 private:
  MeasuringMethod method_;
  std::map<std::string, KernelModel> models_;  // by the names of the rows
};

}  // namespace ganymede::calibration
