#include "calibration/kernels/gpu_sheets.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"

namespace ganymede::calibration {

void check_gpu_sheet(const GpuSheet& sheet, std::string_view where) {
  const auto need = [&](std::string_view field, double value) {
    if (!(value > 0))
      throw ConfigError(fmt::format("{}: {}: found {}, expected a number above 0", where, field, value));
  };
  need("multiprocessors", sheet.multiprocessors);
  need("fp32_lanes", sheet.fp32_lanes);
  need("clock_hz", sheet.clock_hz);
  need("memory_bandwidth", sheet.memory_bandwidth);
  need("l2_bytes", sheet.l2_bytes);
}

}  // namespace ganymede::calibration
