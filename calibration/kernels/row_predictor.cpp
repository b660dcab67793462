#include "calibration/kernels/row_predictor.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"

namespace ganymede::calibration {

RowPredictor::RowPredictor(const Parameters& parameters, std::span<const MeasuredKernel> rows)
    : method_(parameters, rows) {
  for (const MeasuredKernel& row : rows) {
    if (models_.contains(row.gpu)) continue;
    const GpuSheet* sheet = find_gpu_sheet(row.gpu);
    if (sheet == nullptr)
      throw ConfigError(fmt::format("{}: gpu: found \"{}\", expected one of `ganymede list gpus`, such as V100",
                                    row.kernel.name, row.gpu));
    models_.emplace(row.gpu, KernelModel(*sheet, parameters));
  }
}

}  // namespace ganymede::calibration
