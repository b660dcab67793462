#pragma once
// The data sheets of platforms/gpu_sheets.hpp, as far as the kernel model needs them.

#include <string_view>

#include "platforms/gpu_sheets.hpp"

namespace ganymede::calibration {

using platforms::find_gpu_sheet;
using platforms::gpu_sheets;
using platforms::GpuSheet;

/// Throws ConfigError "where: multiprocessors: ..." if the sheet lacks what the model cannot do without.
void check_gpu_sheet(const GpuSheet& sheet, std::string_view where);

}  // namespace ganymede::calibration
